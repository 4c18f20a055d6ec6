//! `toolgate audit maintain`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use time::Date;

use crate::app;

/// `toolgate audit maintain`
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// Drops days that do not verify as well. Look at them with `toolgate audit verify`
    /// first: what they could prove goes with them.
    #[arg(long)]
    unverified: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let loaded = super::super::check::load(&options.config)?;
    let store = app::reader(&loaded).await?;
    let done = app::maintain(
        &store,
        &loaded.config,
        &app::keys(&loaded.config)?,
        options.unverified,
    )
    .await?;
    if let Some(act) = app::upkeep(&done) {
        let act = act.detail("unverified", options.unverified);
        app::record(&loaded, &act).await?;
    }
    let days = |days: &[Date]| days.iter().map(Date::to_string).collect::<Vec<_>>();
    if options.json {
        let report = json!({
            "made": days(&done.made),
            "moved_rows": done.moved,
            "waiting": days(&done.waiting),
            "dropped": days(&done.dropped),
            "held": days(&done.held),
            "days_ahead": i64::from(done.ahead) - 1,
            "left_to_another": done.left_to_another,
        });
        println!("{report}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} days ahead have partitions.", i64::from(done.ahead) - 1);
    for (what, list) in [
        ("made", &done.made),
        ("dropped", &done.dropped),
        ("beyond retention, but held", &done.held),
        (
            "still written and too much of it in the default partition; moved when it is over",
            &done.waiting,
        ),
    ] {
        if !list.is_empty() {
            println!("{what}: {}", days(list).join(", "));
        }
    }
    if done.moved > 0 {
        println!("{} rows moved out of the default partitions.", done.moved);
    }
    if done.left_to_another {
        println!("Another process is dropping days; that was left to it.");
    }
    Ok(ExitCode::SUCCESS)
}
