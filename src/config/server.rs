//! `server`: where the service listens and what it is called.

use std::net::{Ipv4Addr, SocketAddr};

use ipnet::IpNet;
use serde::Deserialize;

use super::{ByteSize, Interval};

/// `server`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The public listener.
    pub listen: SocketAddr,
    /// The admin listener: probes and metrics.
    pub admin_listen: SocketAddr,
    /// What the service is called from outside. Every URL that is printed starts
    /// with this text, byte for byte. Required unless the listener is on loopback.
    pub public_url: Option<String>,
    /// Browser origins that may call, besides `public_url`'s own.
    pub allowed_origins: Vec<String>,
    /// Host names that may be called by, besides `public_url`'s own.
    pub allowed_hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Largest request body.
    pub body_limit: ByteSize,
    /// How long readiness is off before the listener closes.
    pub drain_delay: Interval,
    /// How long calls in flight may take to finish when the service stops.
    pub drain_timeout: Interval,
    /// How long a legacy session may live.
    pub session_lifetime: Interval,
    /// Time between comment lines on a quiet stream.
    pub keep_alive: Interval,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            admin_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)),
            public_url: None,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            body_limit: ByteSize(4 << 20),
            drain_delay: Interval::seconds(5),
            drain_timeout: Interval::seconds(30),
            session_lifetime: Interval::seconds(24 * 3600),
            keep_alive: Interval::seconds(15),
        }
    }
}
