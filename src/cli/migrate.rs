//! `toolgate migrate`.

use std::process::ExitCode;

use super::ConfigFile;
use crate::app;

pub(super) async fn run(file: ConfigFile) -> anyhow::Result<ExitCode> {
    let loaded = super::check::load(&file.config)?;
    app::migrate(&loaded).await?;
    println!("The database has this release's schema.");
    Ok(ExitCode::SUCCESS)
}
