//! A URL that may be asked.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::OutgoingFault;

/// An absolute `http` or `https` URL, parsed. Parse once where a URL is asked often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(Url);

impl Target {
    /// The host, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        self.0
            .host_str()
            .unwrap_or_default()
            .trim_matches(['[', ']'])
    }

    /// The port, also where the URL leaves it to the scheme.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// Whether it is `https`.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The address where the host is one. The parser has brought every notation
    /// (`0x7f.1`, `2130706433`) into one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }

    /// The value of `Host`: the port only where the URL has one.
    pub(super) fn authority(&self) -> Option<HeaderValue> {
        let host = self.0.host_str()?;
        match self.0.port() {
            Some(port) => HeaderValue::try_from(format!("{host}:{port}")).ok(),
            None => HeaderValue::from_str(host).ok(),
        }
    }

    /// The same URL with the port of the address that it is pinned to. (A port in
    /// the URL wins over the resolver's.)
    pub(super) fn at_port(mut self, port: u16) -> Self {
        let _ = self.0.set_port(Some(port));
        self
    }

    pub(super) fn into_url(self) -> Url {
        self.0
    }
}

impl TryFrom<&str> for Target {
    type Error = OutgoingFault;

    fn try_from(text: &str) -> Result<Self, OutgoingFault> {
        let mut url = Url::parse(text).map_err(|_| OutgoingFault::BadUrl)?;
        let asked = matches!(url.scheme(), "http" | "https")
            && url.host_str().is_some_and(|host| !host.is_empty())
            && url.username().is_empty()
            && url.password().is_none();
        url.set_fragment(None);
        asked.then_some(Self(url)).ok_or(OutgoingFault::BadUrl)
    }
}

impl TryFrom<&String> for Target {
    type Error = OutgoingFault;

    fn try_from(text: &String) -> Result<Self, OutgoingFault> {
        Self::try_from(text.as_str())
    }
}

impl From<&Self> for Target {
    fn from(target: &Self) -> Self {
        target.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_urls_without_a_user_can_be_asked() {
        for text in [
            "",
            "/mcp",
            "mcp.example.com",
            "ftp://a.example/",
            "file:///etc/passwd",
            "http://",
            "https://user@a.example/",
            "https://user:pass@a.example/",
            "https://:pass@a.example/",
            "http://a.example:99999/",
        ] {
            assert_eq!(Target::try_from(text), Err(OutgoingFault::BadUrl), "{text}");
        }
    }

    #[test]
    fn an_address_is_seen_in_every_notation() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://１２７.0.0.1/",
        ] {
            let target = Target::try_from(text).unwrap();
            assert_eq!(target.address(), "127.0.0.1".parse().ok(), "{text}");
        }
        let v6 = Target::try_from("http://[::ffff:127.0.0.1]:8/").unwrap();
        assert_eq!(v6.address(), "::ffff:7f00:1".parse().ok());
        assert_eq!(v6.authority().unwrap(), "[::ffff:7f00:1]:8");
        assert_eq!(
            Target::try_from("http://localhost/").unwrap().address(),
            None
        );
    }

    #[test]
    fn the_host_header_has_a_port_only_where_the_url_has_one() {
        let authority = |text: &str| Target::try_from(text).unwrap().authority().unwrap();
        assert_eq!(authority("https://a.example/x"), "a.example");
        assert_eq!(authority("https://a.example:443/x"), "a.example");
        assert_eq!(authority("https://a.example:8443/x"), "a.example:8443");
    }
}
