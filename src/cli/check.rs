//! `toolgate check`: the configuration, whole, without starting anything.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;

use crate::config::{self, Config, Loaded};

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
    let mut failing = Vec::new();
    let (faults, wrong) = match config::load(&options.config, &config::environment()) {
        Ok(loaded) => {
            failing = failing_vectors(&loaded.config);
            (loaded.warnings, !failing.is_empty())
        }
        Err(faults) => (faults.0, true),
    };
    for vector in &failing {
        eprintln!("{vector}");
    }
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

/// Texts that the tenants' rules for findings treat in another way than the
/// configuration expects.
fn failing_vectors(config: &Config) -> Vec<String> {
    let mut failing = Vec::new();
    for (tenant, rules) in &config.tenants {
        for vector in super::sanitize::failing_vectors(&rules.sanitize) {
            failing.push(format!("tenants.{tenant}.sanitize.{vector}"));
        }
    }
    failing
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
