//! The process itself: its memory and its age, under the names that every
//! Prometheus dashboard knows.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

pub(super) fn register(registry: &mut Registry, started: i64) {
    registry.register_with_unit(
        "process_start_time",
        "When the process started, in seconds since the Unix epoch",
        Unit::Seconds,
        ConstGauge::new(started),
    );
    registry.register_collector(Box::new(Memory));
}

/// Read when it is asked for.
#[derive(Debug)]
struct Memory;

impl Collector for Memory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(resident) = resident_bytes() else {
            return Ok(());
        };
        let gauge = ConstGauge::new(resident);
        let metric = encoder.encode_descriptor(
            "process_resident_memory",
            "Memory of the process that is in RAM",
            Some(&Unit::Bytes),
            gauge.metric_type(),
        )?;
        gauge.encode(metric)
    }
}

/// Linux says it in `/proc`; elsewhere the metric is missing.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
