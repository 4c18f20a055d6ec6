//! Redirect URIs: which may be registered, and which of them a request means
//! (RFC 9700 §4.1.3 exact strings; RFC 8252 §7.3 loopback ports are free, §7.1
//! private-use schemes). Texts are taken apart here, never normalised: two texts
//! that only some parser thinks equal are not equal.

use serde::{Deserialize, Serialize};

use crate::config;

/// Longest redirect URI: it travels in a sealed cookie with the rest of the request.
pub(super) const MAX_REDIRECT: usize = 1024;

/// What kind of place a redirect leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectKind {
    /// A web server that a certificate vouches for.
    Https,
    /// Whatever program listens on the person's own machine.
    Loopback,
    /// Whatever program has claimed the scheme there.
    PrivateUse,
}

struct Parts<'a> {
    scheme: &'a str,
    authority: &'a str,
    /// Path and query.
    rest: &'a str,
}

/// The kind of a redirect URI that may be registered; `None` for one that may not.
pub(super) fn redirect_kind(uri: &str, private_use: &[String]) -> Option<RedirectKind> {
    if uri.len() > MAX_REDIRECT || !uri.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    // No fragment (RFC 6749 §3.1.2); browsers read a backslash as a slash; the others
    // are no URI characters (RFC 3986 §2).
    if uri.contains(['#', '\\', '"', '<', '>', '^', '`', '{', '|', '}']) {
        return None;
    }
    let parts = take_apart(uri)?;
    match parts.scheme {
        "https" => is_authority(parts.authority).then_some(RedirectKind::Https),
        "http" => loopback_host(parts.authority).map(|_| RedirectKind::Loopback),
        // A browser runs these, or reads them: nobody is sent there.
        "javascript" | "data" | "file" | "vbscript" | "blob" | "about" => None,
        scheme => private_use
            .iter()
            .any(|allowed| allowed == scheme)
            .then_some(RedirectKind::PrivateUse),
    }
}

/// The kind of a redirect URI that an operator wrote down: any scheme is as private
/// as the operator says.
pub(super) fn configured_kind(uri: &str) -> Option<RedirectKind> {
    let scheme = uri.split(':').next().unwrap_or_default().to_owned();
    redirect_kind(uri, &[scheme])
}

/// Whether `asked` is the registered redirect: the same text, or the same loopback
/// address and path at another port.
pub(super) fn matches(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    let (Some(known), Some(asked)) = (take_apart(registered), take_apart(asked)) else {
        return false;
    };
    let hosts = (
        loopback_host(known.authority),
        loopback_host(asked.authority),
    );
    let (Some(known_host), Some(asked_host)) = hosts else {
        return false;
    };
    known.scheme == "http"
        && asked.scheme == "http"
        && known_host == asked_host
        && known.rest == asked.rest
}

/// A redirect as consent is bound to it: a loopback one without its port.
pub(super) fn without_port(uri: &str) -> String {
    match take_apart(uri) {
        Some(parts) if parts.scheme == "http" => match loopback_host(parts.authority) {
            Some(host) => format!("http://{host}{}", parts.rest),
            None => uri.to_owned(),
        },
        _ => uri.to_owned(),
    }
}

/// What a person is shown of a redirect: the host with its port, or the scheme.
pub(super) fn shown_host(uri: &str) -> String {
    match take_apart(uri) {
        Some(parts) if matches!(parts.scheme, "http" | "https") => parts.authority.to_owned(),
        Some(parts) => format!("{}:", parts.scheme),
        None => String::new(),
    }
}

/// The URI with parameters in its query; those that it has stay (RFC 6749 §3.1.2).
pub(super) fn with_parameters(uri: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    let joint = match uri.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    format!("{uri}{joint}{}", query.finish())
}

/// Whether the operator's list has the redirect; an empty list has every one.
pub(super) fn is_listed(uri: &str, allowed: &[config::Pattern]) -> bool {
    allowed.is_empty() || allowed.iter().any(|pattern| pattern.matches(uri))
}

/// Whether the operator's list has the name; an empty list has every one.
pub(super) fn is_name_listed(name: &str, allowed: &[config::Pattern]) -> bool {
    allowed.is_empty() || allowed.iter().any(|pattern| pattern.matches(name))
}

fn take_apart(uri: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = uri.split_once(':')?;
    let well_formed = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '.' | '-'));
    if !well_formed {
        return None;
    }
    let Some(rest) = rest.strip_prefix("//") else {
        // `com.example.app:/callback` has no authority.
        return Some(Parts {
            scheme,
            authority: "",
            rest,
        });
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end)?;
    Some(Parts {
        scheme,
        authority,
        rest,
    })
}

/// A host name, or an address, and perhaps a port; no user, no percent codes.
fn is_authority(authority: &str) -> bool {
    let (host, port) = split_port(authority);
    let port_fits = port.is_none_or(is_port);
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host_fits = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            host.chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
                && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        }
    };
    host_fits && port_fits
}

/// The host where it is loopback in one of its three usual notations. No name
/// resolves here, and no two of them are equal.
fn loopback_host(authority: &str) -> Option<&'static str> {
    let (host, port) = split_port(authority);
    if !port.is_none_or(is_port) {
        return None;
    }
    ["127.0.0.1", "[::1]", "localhost"]
        .into_iter()
        .find(|known| *known == host)
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_loopback_http_and_configured_schemes_can_be_registered() {
        use RedirectKind::{Https, Loopback, PrivateUse};
        let schemes = ["cursor".to_owned(), "com.example.app".to_owned()];
        for (uri, kind) in [
            ("https://app.example.com/cb", Some(Https)),
            ("https://app.example.com:8443/cb?x=1", Some(Https)),
            ("https://app.example.com", Some(Https)),
            ("https://[2001:db8::1]/cb", Some(Https)),
            ("http://127.0.0.1:5/cb", Some(Loopback)),
            ("http://127.0.0.1/cb", Some(Loopback)),
            ("http://[::1]:5/cb", Some(Loopback)),
            ("http://localhost:5/cb", Some(Loopback)),
            ("cursor://anysphere.cursor/oauth", Some(PrivateUse)),
            ("com.example.app:/cb", Some(PrivateUse)),
            ("vscode://x/cb", None),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("http://app.example.com/cb", None),
            ("http://127.0.0.1.evil.example/cb", None),
            ("http://127.0.0.1@evil.example/cb", None),
            ("http://localhost.evil.example/cb", None),
            ("http://LOCALHOST/cb", None),
            ("http://127.1/cb", None),
            ("http://0.0.0.0/cb", None),
            ("http://2130706433/cb", None),
            ("http://[::ffff:127.0.0.1]/cb", None),
            ("http://[0:0:0:0:0:0:0:1]/cb", None),
            ("http://localhost:0/cb", None),
            ("http://localhost:99999/cb", None),
            ("http://localhost:/cb", None),
            ("https://user@app.example.com/cb", None),
            ("https://user:pass@app.example.com/cb", None),
            ("https://app.example.com/cb#x", None),
            ("https://app.example.com\\@evil.example/cb", None),
            ("https://app.example.com/cb\r\nX: y", None),
            ("https://app.example.com/c b", None),
            ("https://%61pp.example.com/cb", None),
            ("https:///cb", None),
            ("https://", None),
            ("https:app.example.com", None),
            ("HTTPS://app.example.com/cb", None),
            ("//app.example.com/cb", None),
            ("/cb", None),
            ("", None),
            ("https://ünï.example/cb", None),
        ] {
            assert_eq!(redirect_kind(uri, &schemes), kind, "{uri}");
        }
        let long = format!("https://app.example.com/{}", "x".repeat(MAX_REDIRECT));
        assert_eq!(redirect_kind(&long, &schemes), None);
    }

    #[test]
    fn a_redirect_matches_as_text_and_a_loopback_one_at_any_port() {
        for (registered, asked, same) in [
            ("https://a.example/cb", "https://a.example/cb", true),
            ("https://a.example/cb", "https://a.example/cb/", false),
            ("https://a.example/cb", "https://a.example/cb2", false),
            ("https://a.example/cb", "https://a.example/cb?x=1", false),
            ("https://a.example/cb", "https://a.example/CB", false),
            ("https://a.example/cb", "https://A.example/cb", false),
            ("https://a.example/cb", "https://a.example:443/cb", false),
            ("https://a.example/cb", "https://a.example/%63b", false),
            ("https://a.example/cb", "https://a.example/x/../cb", false),
            ("https://a.example/cb", "http://a.example/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:5555/cb", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1/cb", true),
            ("http://localhost:1/cb", "http://localhost:2/cb", true),
            ("http://[::1]:1/cb", "http://[::1]:2/cb", true),
            ("http://127.0.0.1:1/cb", "http://localhost:1/cb", false),
            ("http://localhost:1/cb", "http://127.0.0.1:1/cb", false),
            ("http://127.0.0.1:1/cb", "http://[::1]:1/cb", false),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/other", false),
            ("http://127.0.0.1:1/cb", "https://127.0.0.1:1/cb", false),
            (
                "http://127.0.0.1:1/cb",
                "http://127.0.0.1:1@evil.example/cb",
                false,
            ),
            (
                "http://127.0.0.1:1/cb",
                "http://127.0.0.1:1.evil.example/cb",
                false,
            ),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:x/cb", false),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb#f", false),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb?x", false),
        ] {
            assert_eq!(matches(registered, asked), same, "{registered} {asked}");
        }
    }

    #[test]
    fn parameters_are_encoded_and_those_of_the_redirect_stay() {
        for (uri, whole) in [
            (
                "https://a.example/cb",
                "https://a.example/cb?state=a%0D%0A%26b",
            ),
            (
                "https://a.example/cb?",
                "https://a.example/cb?state=a%0D%0A%26b",
            ),
            (
                "https://a.example/cb?x=1",
                "https://a.example/cb?x=1&state=a%0D%0A%26b",
            ),
        ] {
            assert_eq!(with_parameters(uri, &[("state", "a\r\n&b")]), whole);
        }
    }

    #[test]
    fn consent_is_bound_to_a_loopback_redirect_without_its_port() {
        for (uri, bound) in [
            ("http://127.0.0.1:5/cb?x", "http://127.0.0.1/cb?x"),
            ("http://[::1]:5/cb", "http://[::1]/cb"),
            ("https://a.example:5/cb", "https://a.example:5/cb"),
            ("cursor://x/cb", "cursor://x/cb"),
        ] {
            assert_eq!(without_port(uri), bound);
        }
    }
}
