//! `toolgate quickstart`: the whole product on one machine, from nothing.

mod data;
mod welcome;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;

use crate::{app, config};

pub(super) use data::Data;

/// `toolgate quickstart`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where the admin listener listens: probes and metrics.
    #[arg(long, default_value = "127.0.0.1:9090")]
    admin_listen: SocketAddr,
    /// Where keys, configuration and database are kept between runs. Without it:
    /// /var/lib/toolgate as root, else ~/.local/share/toolgate.
    #[arg(long)]
    data_dir: Option<PathBuf>,
}

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    if !options.listen.ip().is_loopback() {
        bail!(
            "quickstart is for one machine: --listen must be a loopback address, got {}",
            options.listen
        );
    }
    let data = Data::prepare(options.data_dir, options.listen, options.admin_listen)?;
    let loaded = match config::load(&data.config_file(), &config::environment()) {
        Ok(loaded) => loaded,
        Err(faults) => bail!(
            "the configuration in {} is wrong\n{}",
            data.folder().display(),
            config::render(&faults.0)
        ),
    };
    eprintln!("Starting: database and sample tools …");
    app::run(loaded, |listening| welcome::print(&data, listening)).await?;
    eprintln!("Stopped. The data stays in {}.", data.folder().display());
    Ok(ExitCode::SUCCESS)
}
