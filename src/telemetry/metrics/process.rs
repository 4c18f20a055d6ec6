//! The process itself: its memory, its file handles, its CPU time and its age,
//! under the names that every Prometheus dashboard knows.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// Ticks of `/proc/self/stat` in a second: fixed in Linux's interface to programs.
const TICKS: f64 = 100.0;

pub(super) fn register(registry: &mut Registry, started: i64) {
    registry.register_with_unit(
        "process_start_time",
        "When the process started, in seconds since the Unix epoch",
        Unit::Seconds,
        ConstGauge::new(started),
    );
    registry.register_collector(Box::new(Process));
}

/// Read when it is asked for. Linux says it in `/proc`; elsewhere the metrics are missing.
#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(resident) = resident_bytes() {
            let about = "Memory of the process that is in RAM";
            let unit = Some(&Unit::Bytes);
            let gauge = ConstGauge::new(resident);
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor(
                "process_resident_memory",
                about,
                unit,
                kind,
            )?)?;
        }
        if let Some(handles) = open_handles() {
            let about = "File handles that are open";
            let gauge = ConstGauge::new(handles);
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor("process_open_fds", about, None, kind)?)?;
        }
        if let Some(seconds) = cpu_seconds() {
            let about = "CPU time that was spent, in user and in system mode";
            let unit = Some(&Unit::Seconds);
            let counter = ConstCounter::new(seconds);
            let kind = counter.metric_type();
            counter.encode(encoder.encode_descriptor("process_cpu", about, unit, kind)?)?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn open_handles() -> Option<i64> {
    // Reading the folder opens a handle of its own.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    i64::try_from(open.saturating_sub(1)).ok()
}

fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in brackets, may hold spaces; `utime` is the 12th word after it.
    let (_, after) = stat.rsplit_once(')')?;
    let mut words = after.split_whitespace().skip(11);
    let ticks: u32 = words.next()?.parse().ok()?;
    let system: u32 = words.next()?.parse().ok()?;
    Some((f64::from(ticks) + f64::from(system)) / TICKS)
}
