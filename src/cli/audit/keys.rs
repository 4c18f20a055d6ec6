//! `toolgate audit keys`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::app;
use crate::audit::checkpoint;

/// `toolgate audit keys`
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
}

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let loaded = super::super::check::load(&options.config)?;
    let keys = checkpoint::public_keys(&app::keys(&loaded.config)?)?;
    println!("{}", serde_json::to_string_pretty(&keys)?);
    Ok(ExitCode::SUCCESS)
}
