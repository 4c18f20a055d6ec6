//! `toolgate keys`: what the built-in authorization server signs access tokens with.

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
    }
    Ok(ExitCode::SUCCESS)
}
