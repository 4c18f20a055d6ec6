//! `toolgate sample-tools`: the built-in MCP server that quickstart fronts.

use std::process::ExitCode;

use clap::Args;

use crate::sample::{self, Kind};

/// `toolgate sample-tools`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Which set of tools.
    kind: String,
}

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let kind: Kind = options.kind.parse().map_err(anyhow::Error::msg)?;
    sample::serve(kind, tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(ExitCode::SUCCESS)
}
