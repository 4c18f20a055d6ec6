//! `toolgate keys`: what the built-in authorization server signs access tokens with, and
//! what secrets are stored under.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::app;

/// `toolgate keys`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Lists the signing keys.
    ///
    /// Example: toolgate keys list --config toolgate.yaml
    List(List),
    /// Makes the next signing key now. It is published for ten minutes before it signs.
    ///
    /// Example: toolgate keys rotate --config toolgate.yaml
    Rotate(Rotate),
    /// Seals anew, under the first key of the keys file, what is stored sealed under older
    /// ones; these lines can go then. May be stopped and repeated. Exit code 1: something
    /// is stored that no key of the file opens.
    ///
    /// Example: toolgate keys rewrap --config toolgate.yaml --json
    Rewrap(Rewrap),
}

/// How stored secrets are sealed anew.
#[derive(Debug, Args)]
pub(super) struct Rewrap {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// Rows that are read at a time.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// How keys are listed.
#[derive(Debug, Args)]
pub(super) struct List {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// How keys are rotated.
#[derive(Debug, Args)]
pub(super) struct Rotate {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// The new key signs at once, and tokens of earlier keys are believed no more:
    /// for a key that somebody else may have. People stay signed in.
    #[arg(long)]
    compromised: bool,
}

pub(super) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(options) => {
            let loaded = super::check::load(&options.config)?;
            let authorization = app::Authorization::open(&loaded).await?;
            for key in authorization.keys().await? {
                if options.json {
                    let line = json!({
                        "kid": key.kid, "number": key.number,
                        "signs_from": key.signs_from.to_string(),
                        "published_until": key.published_until.to_string(),
                    });
                    println!("{line}");
                } else {
                    println!(
                        "{:>4}  {}  signs from {}, published until {}",
                        key.number, key.kid, key.signs_from, key.published_until
                    );
                }
            }
        }
        Command::Rotate(options) => {
            let loaded = super::check::load(&options.config)?;
            let authorization = app::Authorization::open(&loaded).await?;
            let kid = authorization.rotate(&loaded, options.compromised).await?;
            println!("{kid}");
        }
        Command::Rewrap(options) => return rewrap(options).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn rewrap(options: Rewrap) -> anyhow::Result<ExitCode> {
    let loaded = super::check::load(&options.config)?;
    let done = app::rewrap(&loaded, options.batch).await?;
    let unreadable: u64 = done.columns.iter().map(|column| column.unreadable).sum();
    if options.json {
        let columns = done.columns.iter().map(|column| {
            json!({
                "column": column.column, "resealed": column.resealed,
                "unreadable": column.unreadable,
            })
        });
        let line = json!({
            "columns": columns.collect::<Vec<_>>(), "retired_keys": done.retired,
            "refresh_tokens_left": done.families, "left": unreadable,
        });
        println!("{line}");
    } else {
        for column in &done.columns {
            println!(
                "{:<30} {:>8} sealed anew, {} unreadable",
                column.column, column.resealed, column.unreadable
            );
        }
        println!(
            "{} earlier keys are kept, sealed, for the audit's sealed arguments.",
            done.retired
        );
        println!(
            "{} sign-ins of apps have not been renewed since a key was retired; they end when its line goes.",
            done.families
        );
    }
    Ok(if unreadable == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
