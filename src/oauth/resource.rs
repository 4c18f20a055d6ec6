//! The URLs of MCP endpoints, which are what tokens are for (RFC 8707; `rules.md` §4.2).

use std::fmt::Write as _;

use percent_encoding::percent_decode_str;

use super::request::Resource;
use crate::ids::TenantId;

/// The URL of an endpoint. A slash at the end of the base is the endpoint's first.
pub fn endpoint_url(base: &str, tenant: Option<&TenantId>) -> String {
    format!("{}{}", base.trim_end_matches('/'), endpoint_path(tenant))
}

/// An endpoint's path. A tenant comes from a request's path: what has a meaning in
/// URLs or headers is written in per cent codes again.
pub fn endpoint_path(tenant: Option<&TenantId>) -> String {
    let Some(tenant) = tenant else {
        return "/mcp".to_owned();
    };
    let mut path = String::from("/t/");
    for byte in tenant.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path + "/mcp"
}

impl Resource {
    /// The endpoint of `base` that a client means. Scheme and host are compared
    /// without case, the rest as text: `/mcp/` is another resource.
    pub(super) fn named(base: &str, text: &str) -> Option<Self> {
        let base = base.trim_end_matches('/');
        let origin = origin_len(base);
        let (own_origin, own_path) = base.split_at_checked(origin)?;
        let (origin, path) = text.split_at_checked(origin)?;
        if !origin.eq_ignore_ascii_case(own_origin) {
            return None;
        }
        let path = path.strip_prefix(own_path)?;
        if path == endpoint_path(None) {
            return Some(Self::root(base));
        }
        let tenant = path.strip_prefix("/t/")?.strip_suffix("/mcp")?;
        let tenant = percent_decode_str(tenant).decode_utf8().ok()?;
        if tenant.is_empty() || tenant.len() > 128 || tenant.chars().any(char::is_control) {
            return None;
        }
        let tenant = TenantId::new(&*tenant);
        // One URL for each tenant: another notation of the same path is another resource.
        (path == endpoint_path(Some(&tenant))).then(|| Self {
            url: endpoint_url(base, Some(&tenant)),
            tenant: Some(tenant),
        })
    }

    /// `/mcp`
    pub(super) fn root(base: &str) -> Self {
        Self {
            url: endpoint_url(base, None),
            tenant: None,
        }
    }
}

/// Where the path begins.
fn origin_len(base: &str) -> usize {
    let authority = base.find("://").map_or(0, |at| at + 3);
    base.get(authority..)
        .and_then(|rest| rest.find('/'))
        .map_or(base.len(), |at| authority + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_an_endpoint_of_ours_as_text_or_none() {
        const BASE: &str = "https://gw.example.com";
        for (text, tenant) in [
            ("https://gw.example.com/mcp", Some(None)),
            ("HTTPS://GW.example.com/mcp", Some(None)),
            ("https://gw.example.com/t/acme/mcp", Some(Some("acme"))),
            ("https://gw.example.com/t/a%20b/mcp", Some(Some("a b"))),
            ("https://gw.example.com/mcp/", None),
            ("https://gw.example.com/MCP", None),
            ("https://gw.example.com", None),
            ("https://gw.example.com/", None),
            ("https://gw.example.com/mcp?x", None),
            ("https://gw.example.com/mcp#x", None),
            ("https://gw.example.com/t//mcp", None),
            ("https://gw.example.com/t/acme/mcp/", None),
            ("https://gw.example.com/t/%61cme/mcp", None),
            ("https://gw.example.com/t/acme%2Fmcp", None),
            ("https://gw.example.com/t/a/b/mcp", None),
            ("https://gw.example.com:443/mcp", None),
            ("https://gw.example.com.evil.example/mcp", None),
            ("http://gw.example.com/mcp", None),
            ("https://gw.example.com/../mcp", None),
            ("", None),
        ] {
            let found = Resource::named(BASE, text);
            let expected = tenant.map(|tenant| tenant.map(TenantId::from));
            assert_eq!(found.clone().map(|one| one.tenant), expected, "{text}");
            if let Some(found) = found {
                assert!(found.url.starts_with(BASE), "{found:?}");
            }
        }
    }

    #[test]
    fn a_path_of_the_public_url_stands_before_the_endpoint() {
        let base = "https://gw.example.com/Tools/";
        assert_eq!(Resource::root(base).url, "https://gw.example.com/Tools/mcp");
        assert!(Resource::named(base, "https://GW.example.com/Tools/mcp").is_some());
        assert!(Resource::named(base, "https://gw.example.com/tools/mcp").is_none());
        assert!(Resource::named(base, "https://gw.example.com/mcp").is_none());
    }
}
