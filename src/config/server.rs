//! `server`: where the service listens and what it is called.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;
use serde::Deserialize;

use super::check::Check;
use super::{ByteSize, Interval, ListenerTls};

/// `server`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The public listener.
    pub listen: SocketAddr,
    /// The admin listener: probes and metrics.
    pub admin_listen: SocketAddr,
    /// TLS of the public listener; plain without it.
    pub tls: Option<ListenerTls>,
    /// TLS of the admin listener; plain without it.
    pub admin_tls: Option<ListenerTls>,
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
    /// Most tools on one page of `tools/list`.
    pub page_size: usize,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            admin_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)),
            tls: None,
            admin_tls: None,
            public_url: None,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            body_limit: ByteSize(4 << 20),
            drain_delay: Interval::seconds(5),
            drain_timeout: Interval::seconds(30),
            session_lifetime: Interval::seconds(24 * 3600),
            keep_alive: Interval::seconds(15),
            page_size: 200,
        }
    }
}

impl Server {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.within("public_url", |check| self.validate_public_url(check));
        check.each("allowed_origins", &self.allowed_origins, |origin, check| {
            validate_origin(origin, check);
        });
        check.each("allowed_hosts", &self.allowed_hosts, |host, check| {
            validate_host(host, check);
        });
        check.each(
            "trusted_proxies",
            &self.trusted_proxies,
            |network, check| {
                if network.prefix_len() == 0 {
                    check.warning(
                        "believes the forwarded headers of everybody",
                        "name the networks of your proxies",
                    );
                }
            },
        );
        if self.listen == self.admin_listen && self.listen.port() != 0 {
            check.within("admin_listen", |check| {
                check.fault("is the same as `server.listen`", "write another port");
            });
        }
        check.positive("body_limit", self.body_limit.0 as u64);
        check.positive("page_size", self.page_size as u64);
        check.lasting("drain_timeout", self.drain_timeout);
        check.lasting("session_lifetime", self.session_lifetime);
        check.lasting("keep_alive", self.keep_alive);
    }

    fn validate_public_url(&self, check: &mut Check<'_>) {
        let Some(text) = &self.public_url else {
            if self.tls.is_some() {
                check.fault(
                    "is missing, while `server.tls` is set",
                    "write the https URL that the certificate is for",
                );
            } else if !self.listen.ip().to_canonical().is_loopback() {
                check.fault(
                    "is missing, while `server.listen` can be reached from other machines",
                    "write what clients call this service, such as `https://tools.example.com`",
                );
            }
            return;
        };
        let Some(url) = check.url(text, "https://tools.example.com") else {
            return;
        };
        if url.query {
            check.fault("has a query (`?…`)", "remove what follows `?`");
        }
        check.secure(url);
        if self.tls.is_some() && !url.https {
            check.fault("is http, while `server.tls` is set", "write https");
        }
        if text.ends_with('/') {
            check.warning(
                "ends with a slash, which clients will see in every URL and must repeat exactly",
                "leave the slash out",
            );
        }
    }
}

/// An origin as browsers send it (RFC 6454 §6.2): compared as text.
fn validate_origin(origin: &str, check: &mut Check<'_>) {
    let example = "write one such as `https://app.example.com`";
    if origin.contains('*') {
        check.fault(
            "would let pages of every site call",
            "name the origins that may",
        );
        return;
    }
    let Some((scheme, host)) = origin.split_once("://") else {
        check.fault("is no origin", example);
        return;
    };
    let scheme_is_one = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c));
    let host_is_one = !host.is_empty()
        && host
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._:[]".contains(c));
    let default_port = match scheme {
        "https" => host.ends_with(":443"),
        "http" => host.ends_with(":80"),
        _ => false,
    };
    if host.contains(['/', '?', '#', '@']) {
        check.fault(
            "is more than an origin",
            "write scheme, host and port alone",
        );
    } else if !scheme_is_one || !host_is_one {
        check.fault(
            "is no origin as browsers send it",
            "write it in lower case, such as `https://app.example.com`",
        );
    } else if default_port {
        check.fault(
            "names the default port, which browsers leave out",
            "leave the port out",
        );
    }
}

fn validate_host(host: &str, check: &mut Check<'_>) {
    let name = host
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if host.is_empty() || !(name || address) {
        check.fault(
            "is no host name",
            "write the name alone, without scheme, port, path or `*`",
        );
    }
}
