//! `toolgate audit`: the record of every call.

mod maintain;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::app;
use crate::audit::{self, Entry, Filter, Tail};
use crate::clock::{Clock, SystemClock};
use crate::config::Interval;
use crate::ids::CallId;

/// `toolgate audit`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Follows the calls as they are recorded.
    ///
    /// Example: toolgate audit tail --config toolgate.yaml --tenant acme
    Tail(Options),
    /// Finds calls. Newest first; `--cursor` of the last line continues.
    ///
    /// Example: toolgate audit search --config toolgate.yaml --outcome refused:visibility --since 1h
    Search(Options),
    /// Makes the daily partitions of the next seven days, empties the default
    /// partition, drops what is beyond `audit.retention`. For the tables' owner; at
    /// least once a day, such as by a `CronJob`. May run at any time.
    ///
    /// Example: toolgate audit maintain --config toolgate.yaml --json
    Maintain(maintain::Options),
}

/// Which calls, and how they are printed.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// From then on: a time such as 2026-07-28T12:00:00Z, or how long ago, such as 1h.
    #[arg(long)]
    since: Option<String>,
    /// Until then.
    #[arg(long)]
    until: Option<String>,
    /// Only this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only this subject.
    #[arg(long)]
    subject: Option<String>,
    /// Only this client.
    #[arg(long)]
    client: Option<String>,
    /// Only this tool, by exposed name.
    #[arg(long)]
    tool: Option<String>,
    /// Only this outcome, such as ok, `tool_error` or refused:limit.
    #[arg(long)]
    outcome: Option<String>,
    /// Only calls in whose results this was found, such as `github_token`.
    #[arg(long)]
    finding: Option<String>,
    /// Only this trace.
    #[arg(long)]
    trace_id: Option<String>,
    /// Only this call.
    #[arg(long)]
    call_id: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// Continues behind an earlier page.
    #[arg(long)]
    cursor: Option<String>,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Between looks for new calls.
const FOLLOW: std::time::Duration = std::time::Duration::from_millis(500);

pub(super) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Search(options) => search(options).await,
        Command::Tail(options) => tail(options).await,
        Command::Maintain(options) => maintain::run(options).await,
    }
}

async fn search(options: Options) -> anyhow::Result<ExitCode> {
    let store = app::reader(&super::check::load(&options.config)?).await?;
    let cursor = options
        .cursor
        .as_deref()
        .map(str::parse)
        .transpose()
        .context("--cursor is no UUID")?
        .map(CallId);
    let page = audit::search(&store, &filter(&options)?, cursor, options.limit).await?;
    for entry in &page.entries {
        print_entry(entry, options.json)?;
    }
    if let Some(cursor) = page.next {
        eprintln!("more: --cursor {cursor}");
    }
    Ok(ExitCode::SUCCESS)
}

async fn tail(options: Options) -> anyhow::Result<ExitCode> {
    let store = app::reader(&super::check::load(&options.config)?).await?;
    let mut tail = Tail::new(&filter(&options)?, SystemClock.now())?;
    loop {
        for entry in tail.next(&store, SystemClock.now()).await? {
            print_entry(&entry, options.json)?;
        }
        tokio::time::sleep(FOLLOW).await;
    }
}

fn filter(options: &Options) -> anyhow::Result<Filter> {
    let call_id = options
        .call_id
        .as_deref()
        .map(str::parse)
        .transpose()
        .context("--call-id is no UUID")?
        .map(CallId);
    Ok(Filter {
        since: options
            .since
            .as_deref()
            .map(moment)
            .transpose()
            .context("--since")?,
        until: options
            .until
            .as_deref()
            .map(moment)
            .transpose()
            .context("--until")?,
        tenant: options.tenant.clone(),
        subject: options.subject.clone(),
        client: options.client.clone(),
        tool: options.tool.clone(),
        outcome: options.outcome.clone(),
        finding: options.finding.clone(),
        trace_id: options.trace_id.clone(),
        call_id,
    })
}

/// A time, or how long ago.
fn moment(text: &str) -> anyhow::Result<OffsetDateTime> {
    if let Ok(ago) = text.parse::<Interval>() {
        return Ok(SystemClock.now() - ago.0);
    }
    OffsetDateTime::parse(text, &Rfc3339)
        .context("write a time such as 2026-07-28T12:00:00Z, or how long ago, such as 1h")
}

fn print_entry(entry: &Entry, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(entry)?);
    } else {
        println!("{}", line(entry));
    }
    Ok(())
}

/// A call as one line for people.
fn line(entry: &Entry) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
    let mut line = format!(
        "{}  {:<18} {:<10} {:<24} {}",
        entry.time.format(&Rfc3339).unwrap_or_default(),
        entry.outcome,
        entry.tenant,
        text(&entry.subject),
        text(&entry.tool),
    );
    if let Some(took) = entry.duration_ms {
        let _ = write!(line, "  {took:.1} ms");
    }
    if entry.count > 1 {
        let _ = write!(line, "  {} times", entry.count);
    }
    for (name, part) in [
        ("", &entry.reason),
        ("found ", &entry.findings),
        ("arguments ", &entry.arguments),
    ] {
        if let Some(part) = part.as_ref().filter(|part| !part.is_empty()) {
            let _ = write!(line, "  {name}{part}");
        }
    }
    line
}
