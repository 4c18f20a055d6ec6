//! Which entries: the filters that all reading commands share, and how one entry is
//! printed for people.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::audit::{Entry, Filter, Kinds};
use crate::clock::{Clock, SystemClock, timestamp};
use crate::config::Interval;
use crate::ids::CallId;

/// Which entries.
#[derive(Debug, Args)]
pub(in crate::cli) struct Filters {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    pub(super) config: PathBuf,
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
    /// Only this tool, by exposed name; of acts, what was done.
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
    /// Only this call or act.
    #[arg(long)]
    call_id: Option<String>,
    /// `call`, `any`, or a sort of act: `sign_in`, consent, revocation, `token_refused`,
    /// `token_issued`, registration, administration, configuration, service, session, connection.
    #[arg(long)]
    kind: Option<String>,
}

impl Filters {
    pub(super) fn filter(&self, without_kind: Kinds) -> anyhow::Result<Filter> {
        let kinds = match self.kind.as_deref() {
            None => without_kind,
            Some(word) => match Kinds::of_word(word) {
                Some(kinds) => kinds,
                None => bail!("--kind {word}: there is no such kind; see --help"),
            },
        };
        Ok(Filter {
            since: self
                .since
                .as_deref()
                .map(moment)
                .transpose()
                .context("--since")?,
            until: self
                .until
                .as_deref()
                .map(moment)
                .transpose()
                .context("--until")?,
            tenant: self.tenant.clone(),
            subject: self.subject.clone(),
            client: self.client.clone(),
            tool: self.tool.clone(),
            outcome: self.outcome.clone(),
            finding: self.finding.clone(),
            trace_id: self.trace_id.clone(),
            call_id: id(self.call_id.as_deref(), "--call-id")?,
            kinds,
        })
    }
}

/// An id that was given.
pub(super) fn id(text: Option<&str>, what: &'static str) -> anyhow::Result<Option<CallId>> {
    let id = text.map(str::parse).transpose();
    Ok(id
        .with_context(|| format!("{what} is no UUID"))?
        .map(CallId))
}

/// A time, or how long ago.
fn moment(text: &str) -> anyhow::Result<OffsetDateTime> {
    if let Ok(ago) = text.parse::<Interval>() {
        return Ok(SystemClock.now() - ago.0);
    }
    OffsetDateTime::parse(text, &Rfc3339)
        .context("write a time such as 2026-07-28T12:00:00Z, or how long ago, such as 1h")
}

pub(super) fn print_entry(entry: &Entry, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(entry)?);
    } else {
        println!("{}", line(entry));
    }
    Ok(())
}

/// An entry as one line for people.
fn line(entry: &Entry) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
    let what = match &entry.action {
        Some(action) => format!("{} {action}", entry.kind),
        None => text(&entry.tool),
    };
    let tenant = if entry.tenant.is_empty() {
        "-"
    } else {
        &entry.tenant
    };
    let mut line = format!(
        "{}  {:<18} {:<10} {:<24} {what}",
        timestamp::text(entry.time),
        entry.outcome,
        tenant,
        text(&entry.subject),
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
        ("", &entry.details),
    ] {
        if let Some(part) = part.as_ref().filter(|part| !part.is_empty()) {
            let _ = write!(line, "  {name}{part}");
        }
    }
    line
}
