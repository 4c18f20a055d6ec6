//! `toolgate audit erase`.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use time::Date;
use time::macros::format_description;

use crate::app;
use crate::audit::{self, Erased, Erasure};
use crate::clock::{Clock, SystemClock};
use crate::store::audit_erasures::ErasureTarget;

/// `toolgate audit erase`
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// Whose: the `sub` of their tokens.
    #[arg(long, required_unless_present = "text")]
    subject: Option<String>,
    /// Only as this issuer's subject.
    #[arg(long, requires = "subject")]
    issuer: Option<String>,
    /// Besides, or instead: every caller and body that holds this text. Sealed
    /// arguments cannot be searched.
    #[arg(long)]
    text: Option<String>,
    /// Only this tenant's.
    #[arg(long)]
    tenant: Option<String>,
    /// Only days before this one (UTC), such as 2026-07-01.
    #[arg(long)]
    before: Option<String>,
    /// For the record: a case number rather than a name.
    #[arg(long)]
    case: Option<String>,
    /// Counts, and erases nothing.
    #[arg(long)]
    dry_run: bool,
    /// Does not ask.
    #[arg(long, short)]
    yes: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    for text in [&options.subject, &options.text].into_iter().flatten() {
        if text.is_empty() {
            bail!("an empty text would be found everywhere");
        }
    }
    let loaded = super::super::check::load(&options.config)?;
    let store = app::patient_reader(&loaded).await?;
    let erasure = Erasure {
        target: ErasureTarget {
            subject: options.subject.clone(),
            issuer: options.issuer.clone(),
            text: options.text.clone(),
            tenant: options.tenant.clone(),
        },
        before: options.before.as_deref().map(day).transpose()?,
        actor: app::operator(),
        reason: options.case.clone(),
    };
    let counted = erasure.count(&store).await?;
    if options.dry_run {
        print("would be erased", &counted, options.json);
        return Ok(ExitCode::SUCCESS);
    }
    if !options.yes && !confirmed(&counted)? {
        eprintln!("Nothing was erased.");
        return Ok(ExitCode::FAILURE);
    }
    let auditor = app::auditor(&loaded).await?;
    let outcome = audit::erase(&store, &auditor, &erasure, &counted, SystemClock.now()).await;
    auditor.close().await;
    print("erased", &outcome?, options.json);
    Ok(ExitCode::SUCCESS)
}

/// A day, as it is written.
pub(super) fn day(text: &str) -> anyhow::Result<Date> {
    Date::parse(text, format_description!("[year]-[month]-[day]"))
        .with_context(|| format!("{text} is no day; write 2026-07-28"))
}

fn confirmed(counted: &Erased) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("nobody is there to be asked: give --yes");
    }
    print("would be erased", counted, false);
    eprint!("It cannot be undone. Erase? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn print(what: &str, erased: &Erased, json: bool) {
    if json {
        let report = json!({
            "callers": erased.callers,
            "bodies": erased.bodies,
            "days": erased.days,
            "names_that_stay": erased.names,
        });
        println!("{report}");
        return;
    }
    println!(
        "{} callers and {} bodies on {} days: {what}.",
        erased.callers, erased.bodies, erased.days
    );
    if !erased.names.is_empty() {
        println!(
            "Names of tenants, upstreams or tools that hold the text, and stay: {}",
            erased.names.join(", ")
        );
    }
}
