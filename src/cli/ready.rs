//! `toolgate ready`: asks a running service whether it is ready, for images without a
//! shell and for unit files.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

use super::ConfigFile;
use crate::config;
use crate::outgoing::{Outgoing, Reach};

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// No answer of a probe is longer.
const LONGEST: usize = 64 * 1024;

/// Asks the admin listener that the configuration names.
pub(super) async fn run(file: ConfigFile) -> anyhow::Result<ExitCode> {
    let loaded = super::check::load(&file.config)?;
    if loaded.config.server.admin_tls.is_some() {
        bail!(
            "server.admin_tls is set: its certificate is not for this machine's own address; ask /readyz by its name"
        );
    }
    let address = reachable(loaded.config.server.admin_listen);
    let outgoing = Outgoing::new(&config::Outgoing::default())?;
    let client = outgoing.client(Reach::Private, PATIENCE);
    let asking = async {
        let url = format!("http://{address}/readyz");
        let headers: [(&str, &str); 0] = [];
        let answer = client.get(url.as_str(), headers).await?;
        let status = answer.status;
        Ok::<_, anyhow::Error>((status, answer.body(LONGEST).await?))
    };
    let (status, body) = tokio::time::timeout(PATIENCE, asking)
        .await
        .context("no answer in time")??;
    println!("{}", String::from_utf8_lossy(&body).trim_end());
    Ok(if status == 200 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where a listener on all addresses answers on this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_asked_on_this_machine() {
        for (listen, asked) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:9090", "[::1]:9090"),
            ("10.1.2.3:9090", "10.1.2.3:9090"),
        ] {
            let address = reachable(listen.parse().unwrap());
            assert_eq!(address.to_string(), asked);
        }
    }
}
