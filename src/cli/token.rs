//! `toolgate token`: an access token for a user of the quickstart data.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::quickstart;

/// `toolgate token`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The user: alice@acme.test, bob@globex.test or admin@acme.test.
    #[arg(long, short)]
    user: String,
    /// The quickstart's data directory.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// The MCP endpoint that the token is for. Without it: the one that quickstart serves.
    #[arg(long)]
    resource: Option<String>,
    /// How many seconds the token is good for.
    #[arg(long, default_value_t = 43_200)]
    lifetime: u32,
}

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let data = quickstart::Data::find(options.data_dir.clone())?;
    println!(
        "{}",
        data.token(&options.user, options.resource.as_deref(), options.lifetime)?
    );
    Ok(ExitCode::SUCCESS)
}
