//! `toolgate migrate`.

use std::process::ExitCode;

use super::ConfigFile;
use crate::app;

pub(super) async fn run(file: ConfigFile) -> anyhow::Result<ExitCode> {
    let loaded = super::check::load(&file.config)?;
    let missing = app::migrate(&loaded).await?;
    println!("The database has this release's schema.");
    if let Some(missing) = missing {
        eprintln!(
            "warning: the audit's roles are not all there: {missing}. Until they are, the service writes the audit as the owner of its tables (docs/operations.md)."
        );
    }
    Ok(ExitCode::SUCCESS)
}
