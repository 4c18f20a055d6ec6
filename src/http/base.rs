//! What the service is called: the configured text, byte for byte. Nothing of a
//! caller's `Host` or forwarded headers gets into a URL that is printed, except
//! from a trusted proxy while no `public_url` is configured (development).

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, header};
use ipnet::IpNet;

use crate::ids::TenantId;
use crate::oauth::{endpoint_path, endpoint_url};

/// Where URLs begin.
#[derive(Clone, Debug)]
pub struct Base {
    configured: Option<String>,
    listen: SocketAddr,
    trusted: Vec<IpNet>,
}

impl Base {
    /// From `server.public_url`, `server.listen` and `server.trusted_proxies`.
    pub fn new(configured: Option<String>, listen: SocketAddr, trusted: Vec<IpNet>) -> Self {
        Self {
            configured,
            listen,
            trusted,
        }
    }

    /// The address that is listened on.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// The configured text.
    pub(super) fn configured(&self) -> Option<&str> {
        self.configured.as_deref()
    }

    /// Whether a peer is a proxy whose headers are believed.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.trusted.iter().any(|network| network.contains(&peer))
    }

    /// The text that every URL of an answer to this request begins with.
    pub(super) fn of(&self, headers: &HeaderMap, peer: IpAddr) -> String {
        if let Some(configured) = &self.configured {
            return configured.clone();
        }
        if self.trusts(peer) {
            let text = |name: &str| {
                headers
                    .get(name)
                    .and_then(|value| value.to_str().ok())
                    .filter(|text| is_authority(text))
            };
            if let Some(host) = text("x-forwarded-host").or_else(|| text(header::HOST.as_str())) {
                let secure = headers
                    .get("x-forwarded-proto")
                    .is_some_and(|proto| proto == "https");
                return format!("{}://{host}", if secure { "https" } else { "http" });
            }
        }
        format!("http://{}", self.listen)
    }
}

/// Whether a text can stand between `//` and `/` of a URL without changing its meaning.
fn is_authority(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']' | b'_')
        })
}

/// The URL of an endpoint: the resource identifier of RFC 8707 and RFC 9728.
pub(super) fn resource(base: &str, tenant: Option<&TenantId>) -> String {
    endpoint_url(base, tenant)
}

/// The URL of an endpoint's metadata: the path goes behind the well-known part
/// (RFC 9728 §3.1), whatever path the base itself has in front.
pub(super) fn metadata_url(base: &str, tenant: Option<&TenantId>) -> String {
    let path = path_of(base);
    let origin = base.strip_suffix(path).unwrap_or(base);
    let path = path.trim_end_matches('/');
    let endpoint = endpoint_path(tenant);
    format!("{origin}/.well-known/oauth-protected-resource{path}{endpoint}")
}

/// The path of a base, with its leading slash; empty where it has none.
pub(super) fn path_of(base: &str) -> &str {
    base.find("://")
        .and_then(|at| {
            let rest = base.get(at + 3..)?;
            rest.get(rest.find('/')?..)
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_a_trusted_proxy_names_us_and_only_while_nothing_is_configured() {
        let listen = "127.0.0.1:8080".parse().unwrap();
        let proxies = vec!["10.0.0.0/8".parse().unwrap()];
        let trusted: IpAddr = "10.0.0.9".parse().unwrap();
        let stranger: IpAddr = "203.0.113.7".parse().unwrap();
        let forged = headers(&[
            ("host", "10.1.2.3:8080"),
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-proto", "https"),
        ]);
        let honest = headers(&[("host", "gw.example.com"), ("x-forwarded-proto", "https")]);

        let fixed = Base::new(
            Some("https://gw.example.com".into()),
            listen,
            proxies.clone(),
        );
        assert_eq!(fixed.of(&forged, trusted), "https://gw.example.com");
        let open = Base::new(None, listen, proxies);
        assert_eq!(open.of(&honest, trusted), "https://gw.example.com");
        assert_eq!(open.of(&forged, stranger), "http://127.0.0.1:8080");
        assert_eq!(
            open.of(&headers(&[("host", "a/b\"c")]), trusted),
            "http://127.0.0.1:8080"
        );
    }

    #[test]
    fn metadata_stands_behind_the_well_known_part() {
        let tenant = TenantId::from("acme");
        assert_eq!(
            metadata_url("https://gw.example.com", None),
            "https://gw.example.com/.well-known/oauth-protected-resource/mcp"
        );
        assert_eq!(
            metadata_url("https://example.com/gw", Some(&tenant)),
            "https://example.com/.well-known/oauth-protected-resource/gw/t/acme/mcp"
        );
    }

    #[test]
    fn a_slash_at_the_end_of_the_base_is_not_doubled() {
        for base in ["https://gw.example.com", "https://gw.example.com/"] {
            assert_eq!(resource(base, None), "https://gw.example.com/mcp");
            assert_eq!(
                metadata_url(base, None),
                "https://gw.example.com/.well-known/oauth-protected-resource/mcp"
            );
        }
        assert_eq!(path_of("https://gw.example.com"), "");
        assert_eq!(path_of("https://gw.example.com/gw"), "/gw");
    }

    #[test]
    fn nothing_of_a_path_gets_out_of_its_segment() {
        let tenant = TenantId::from("a/b\r\n\"?é");
        assert_eq!(
            resource("https://gw.example.com", Some(&tenant)),
            "https://gw.example.com/t/a%2Fb%0D%0A%22%3F%C3%A9/mcp"
        );
    }
}
