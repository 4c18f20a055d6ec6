//! `outgoing`: every connection that Toolgate makes.

use std::net::SocketAddr;
use std::path::PathBuf;

use indexmap::IndexMap;
use ipnet::IpNet;
use serde::Deserialize;

/// `outgoing`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
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
