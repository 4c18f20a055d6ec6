//! `toolgate serve`.

use std::process::ExitCode;

use super::ConfigFile;
use crate::app;

pub(super) async fn run(file: ConfigFile) -> anyhow::Result<ExitCode> {
    let loaded = super::check::load(&file.config)?;
    app::run(loaded, |_| {}).await?;
    Ok(ExitCode::SUCCESS)
}
