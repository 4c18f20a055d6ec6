//! `toolgate check`: the configuration, whole, without starting anything.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;

use crate::config::{self, Loaded};

/// `toolgate check`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// Print the faults as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> ExitCode {
    let (faults, wrong) = match config::load(&options.config, &config::environment()) {
        Ok(loaded) => (loaded.warnings, false),
        Err(faults) => (faults.0, true),
    };
    if options.json {
        println!("{}", config::render_json(&faults));
    } else {
        print!("{}", config::render(&faults));
        if !wrong {
            println!("{} is in order.", options.config.display());
        }
    }
    if wrong {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The configuration for a command that needs one.
pub(super) fn load(path: &Path) -> anyhow::Result<Loaded> {
    match config::load(path, &config::environment()) {
        Ok(loaded) => Ok(loaded),
        Err(faults) => bail!(
            "the configuration is wrong\n{}",
            config::render(&faults.0).trim_end()
        ),
    }
}
