//! `toolgate audit verify`.

use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use time::Date;

use crate::app;
use crate::audit::checkpoint::{self, Verifier};
use crate::audit::verify::{Finding, Progress, Report, VerifyOptions, verify};
use crate::clock::{Clock, SystemClock, timestamp};

use super::erase::day;

/// `toolgate audit verify`
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// From this day on (UTC), such as 2026-07-01. Without it: all there is.
    #[arg(long)]
    since: Option<String>,
    /// Up to and with this day.
    #[arg(long)]
    until: Option<String>,
    /// Only this tenant's chains.
    #[arg(long)]
    tenant: Option<String>,
    /// A log that has checkpoints in it, in whatever form: what the tables say is held
    /// against it. May be given again.
    #[arg(long)]
    checkpoints: Vec<PathBuf>,
    /// A JWK set that `toolgate audit keys` printed, instead of the keys file: then
    /// nothing secret is needed. May be given again.
    #[arg(long)]
    public_keys: Vec<PathBuf>,
    /// One JSON object a finding, and one with the sums.
    #[arg(long)]
    json: bool,
}

/// Something was altered.
const TAMPERED: u8 = 2;
/// Nothing was, but not all is signed.
const NOTICED: u8 = 3;

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let loaded = super::super::check::load(&options.config)?;
    let verifier = verifier(&options, &loaded.config)?;
    let store = app::patient_reader(&loaded).await?;
    let request = VerifyOptions {
        since: options.since.as_deref().map(day).transpose()?,
        until: options.until.as_deref().map(day).transpose()?,
        tenant: options.tenant.clone(),
        logged: logged(&options.checkpoints)?,
        ..VerifyOptions::new(&verifier, SystemClock.now())
    };
    let begun = std::time::Instant::now();
    let mut shown = Shown(std::io::stderr().is_terminal() && !options.json);
    let report = verify(&store, &request, &mut shown).await?;
    shown.clear();
    print(&report, begun.elapsed(), options.json)?;
    Ok(if report.is_tampered() {
        ExitCode::from(TAMPERED)
    } else if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOTICED)
    })
}

/// Who may have signed: the keys that were given, or those of the configuration.
fn verifier(options: &Options, config: &crate::config::Config) -> anyhow::Result<Verifier> {
    if options.public_keys.is_empty() {
        let keys = checkpoint::public_keys(&app::keys(config)?)?;
        return Ok(Verifier::parse(&keys.to_string())?);
    }
    let mut all = Vec::new();
    for file in &options.public_keys {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let set: serde_json::Value =
            serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        let keys = set.get("keys").and_then(serde_json::Value::as_array);
        all.extend(keys.cloned().unwrap_or_default());
    }
    Ok(Verifier::parse(
        &serde_json::json!({ "keys": all }).to_string(),
    )?)
}

/// The checkpoints of the logs.
fn logged(files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let mut tokens = Vec::new();
    for file in files {
        let name = || file.display().to_string();
        let log = BufReader::new(std::fs::File::open(file).with_context(name)?);
        for line in log.split(b'\n') {
            let line = line.with_context(name)?;
            let line = String::from_utf8_lossy(&line);
            tokens.extend(checkpoint::tokens(&line).map(str::to_owned));
        }
    }
    if !files.is_empty() && tokens.is_empty() {
        anyhow::bail!("there is no checkpoint in the files that were given");
    }
    Ok(tokens)
}

/// Progress on a terminal, on one line.
struct Shown(bool);

impl Progress for Shown {
    fn at(&mut self, day: Date, events: u64, all: u64) {
        if self.0 {
            eprint!("\r{day}  {events} of about {} events ", all.max(events));
        }
    }
}

impl Shown {
    fn clear(&self) {
        if self.0 {
            eprint!("\r{:60}\r", "");
        }
    }
}

fn print(report: &Report, took: std::time::Duration, json: bool) -> anyhow::Result<()> {
    if json {
        for finding in &report.findings {
            println!("{}", serde_json::to_string(finding)?);
        }
        let counts = serde_json::to_value(&report.counts)?;
        let sums = serde_json::json!({
            "events": report.events,
            "checkpoints": report.checkpoints,
            "chains": report.chains,
            "erased": report.erased,
            "dropped_days": report.dropped_days,
            "seconds": took.as_secs_f64(),
            "findings": counts,
            "tampered": report.is_tampered(),
        });
        println!("{sums}");
        return Ok(());
    }
    for finding in &report.findings {
        println!("{}", line(finding));
    }
    for (kind, count) in &report.counts {
        println!("{}: {count}", kind.word());
    }
    println!(
        "{} events in {} chains, {} checkpoints, {} erased rows, {} dropped days; {:.1} s. {}",
        report.events,
        report.chains,
        report.checkpoints,
        report.erased,
        report.dropped_days,
        took.as_secs_f64(),
        if report.is_tampered() {
            "The audit was altered."
        } else if report.is_clean() {
            "All of it is whole."
        } else {
            "Nothing was altered, but not everything is signed."
        }
    );
    Ok(())
}

fn line(finding: &Finding) -> String {
    let mut place = Vec::new();
    if let Some(writer) = finding.writer {
        place.push(format!("writer {writer}"));
    }
    if let Some(tenant) = &finding.tenant {
        place.push(format!("tenant `{tenant}`"));
    }
    match (finding.sequence, finding.last) {
        (Some(first), Some(last)) => place.push(format!("places {first} to {last}")),
        (Some(first), None) => place.push(format!("place {first}")),
        _ => {}
    }
    if let Some(time) = finding.time.map(timestamp::text) {
        place.push(time);
    }
    if let Some(id) = finding.call_id {
        place.push(id.to_string());
    }
    format!(
        "{}  {}  {}",
        finding.kind.word(),
        place.join(", "),
        finding.detail
    )
}
