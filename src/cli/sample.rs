//! `toolgate sample-tools`: the built-in MCP server that quickstart fronts.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use crate::sample::{self, Kind};

/// `toolgate sample-tools`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Which set of tools.
    kind: String,
}

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let names = Kind::ALL.map(Kind::name).join(", ");
    let kind = Kind::parse(&options.kind)
        .with_context(|| format!("no sample tools `{}`; there are {names}", options.kind))?;
    sample::serve(kind, tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(ExitCode::SUCCESS)
}
