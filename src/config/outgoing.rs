//! `outgoing`: every connection that Toolgate makes.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use indexmap::IndexMap;
use ipnet::IpNet;
use serde::Deserialize;

use super::check::Check;
use super::web_url::WebUrl;

/// `outgoing`
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outgoing {
    /// Certificates of a private certificate authority, PEM, beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// An HTTP proxy for everything.
    pub proxy: Option<String>,
    /// `host:port` pinned to an address, exempt from the guard against private addresses.
    pub resolve: IndexMap<String, SocketAddr>,
    /// Private networks that may be connected to.
    pub allow_networks: Vec<IpNet>,
}

impl Outgoing {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        if let Some(proxy) = &self.proxy {
            check.within("proxy", |check| {
                if WebUrl::parse(&without_user(proxy)).is_err() {
                    check.fault(
                        "is no http or https URL",
                        "write one such as `http://egress.example.com:3128`",
                    );
                }
            });
        }
        check.within("resolve", |check| {
            for pin in self.resolve.keys() {
                check.within(pin, |check| {
                    let port = pin
                        .rsplit_once(':')
                        .filter(|(host, _)| !host.is_empty() && !host.contains(['/', '*']))
                        .and_then(|(_, port)| port.parse::<u16>().ok());
                    if port.is_none_or(|port| port == 0) {
                        check.key_fault(
                            "is no host with a port",
                            "write one such as `chatgpt.com:443`",
                        );
                    }
                });
            }
        });
    }
}

/// A proxy may want a user and a password, which come best by the environment.
fn without_user(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let host = rest.get(..end).and_then(|host| host.rfind('@'));
            let from = host.map_or(0, |at| at + 1);
            format!("{scheme}://{}", rest.get(from..).unwrap_or_default())
        }
        None => url.to_owned(),
    }
}

/// Shows no proxy: it may hold a password.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("ca_file", &self.ca_file)
            .field("proxy", &self.proxy.as_ref().map(|_| "[secret]"))
            .field("resolve", &self.resolve)
            .field("allow_networks", &self.allow_networks)
            .finish()
    }
}
