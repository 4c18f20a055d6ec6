//! What a URL in the configuration must be. The text itself is kept as written:
//! nothing here gives back a changed one (a URL type would add a slash).

use std::net::IpAddr;

use http::Uri;
use thiserror::Error;

/// What was learnt from a URL that is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WebUrl {
    pub(super) https: bool,
    /// The host is this machine by its name or number.
    pub(super) loopback: bool,
    pub(super) query: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum UrlFault {
    #[error("is no absolute http or https URL")]
    Malformed,
    #[error("has a user name or password in it")]
    UserInfo,
    #[error("has a fragment (`#…`)")]
    Fragment,
    #[error("has a port that does not exist")]
    Port,
}

impl WebUrl {
    pub(super) fn parse(text: &str) -> Result<Self, UrlFault> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlFault::Malformed)?;
        let https = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(UrlFault::Malformed),
        };
        if text.contains('#') {
            return Err(UrlFault::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let authority = rest.get(..end).unwrap_or_default();
        if authority.contains('@') {
            return Err(UrlFault::UserInfo);
        }
        // Browsers and libraries read a backslash as a slash.
        if text.contains('\\') {
            return Err(UrlFault::Malformed);
        }
        let uri: Uri = text.parse().map_err(|_| UrlFault::Malformed)?;
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or(UrlFault::Malformed)?;
        let port = authority.get(host.len()..).unwrap_or_default();
        if !port.is_empty() && uri.port_u16().is_none_or(|port| port == 0) {
            return Err(UrlFault::Port);
        }
        Ok(Self {
            https,
            loopback: is_loopback(host),
            query: uri.query().is_some(),
        })
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    if let Ok(address) = address.parse::<IpAddr>() {
        return address.is_loopback();
    }
    // RFC 6761 §6.3: names under localhost are this machine.
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_web_urls_pass() {
        for (text, expected) in [
            ("https://gw.example.com", None),
            ("https://gw.example.com/", None),
            ("https://gw.example.com:8443/base?x=1", None),
            ("http://[::1]:8080", None),
            ("gw.example.com", Some(UrlFault::Malformed)),
            ("ftp://gw.example.com", Some(UrlFault::Malformed)),
            ("https:/gw.example.com", Some(UrlFault::Malformed)),
            ("https://", Some(UrlFault::Malformed)),
            ("https://:8080", Some(UrlFault::Malformed)),
            ("https://a b", Some(UrlFault::Malformed)),
            ("https://gw.example.com\\x", Some(UrlFault::Malformed)),
            ("https://u:p@gw.example.com", Some(UrlFault::UserInfo)),
            ("https://gw.example.com/#x", Some(UrlFault::Fragment)),
            ("https://gw.example.com:", Some(UrlFault::Port)),
            ("https://gw.example.com:99999", Some(UrlFault::Port)),
            ("https://gw.example.com:0", Some(UrlFault::Port)),
        ] {
            assert_eq!(WebUrl::parse(text).err(), expected, "{text}");
        }
    }

    #[test]
    fn loopback_is_known_by_name_and_number() {
        for (text, loopback) in [
            ("http://127.0.0.1", true),
            ("http://127.8.8.8:1", true),
            ("http://[::1]:8080", true),
            ("http://localhost:3000", true),
            ("http://LOCALHOST", true),
            ("http://app.localhost", true),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
            ("http://127.0.0.1.example.com", false),
        ] {
            assert_eq!(WebUrl::parse(text).unwrap().loopback, loopback, "{text}");
        }
    }
}
