//! URLs: what a client may be given, and where its documents are.

use http::Uri;

use super::report::Report;

/// Scheme and authority, and the path without a slash at its end.
pub(super) fn parts(url: &str) -> Option<(String, String)> {
    let uri: Uri = url.parse().ok()?;
    let origin = format!("{}://{}", uri.scheme_str()?, uri.authority()?);
    Some((origin, uri.path().trim_end_matches('/').to_owned()))
}

/// The public name of an endpoint that was asked under another one.
pub(super) fn same_path(public: &str, asked: &str) -> String {
    let path = parts(asked).map(|(_, path)| path).unwrap_or_default();
    let public = public.trim_end_matches('/');
    if public.ends_with(&path) {
        public.to_owned()
    } else {
        format!("{public}{path}")
    }
}

/// Whether plain HTTP is fine there (RFC 8252 §7.3).
pub(super) fn is_loopback(url: &str) -> bool {
    let Some(authority) = url.split("://").nth(1) else {
        return false;
    };
    let host = authority.split('/').next().unwrap_or_default();
    let host =
        host.rsplit_once(':').map_or(
            host,
            |(host, port)| if port.ends_with(']') { authority } else { host },
        );
    host == "localhost" || host.starts_with("127.") || host.starts_with("[::1]")
}

/// Whether an endpoint may carry secrets.
pub(super) fn is_safe(url: &str) -> bool {
    url.starts_with("https://") || (url.starts_with("http://") && is_loopback(url))
}

/// Is this a URL that clients take?
pub(super) fn judge_url(url: &str, report: &mut Report) -> Option<()> {
    const STEP: &str = "URL";
    if parts(url).is_none() {
        report.fail(
            STEP,
            format!("{url} is no absolute URL; write https://host/mcp"),
        );
        return None;
    }
    if url.contains('#') {
        report.fail(
            STEP,
            "a fragment (#…) cannot be part of a resource (RFC 8707 §2)",
        );
    }
    if !is_safe(url) {
        report.fail(
            STEP,
            "plain http away from this machine: tokens would be readable on the way, and clients refuse it",
        );
    }
    if url.ends_with('/') && parts(url).is_some_and(|(_, path)| !path.is_empty()) {
        report.warn(
            STEP,
            "the slash at its end makes it another resource than without; give people exactly the form that the metadata names",
        );
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_names_that_look_like_it() {
        for (url, safe) in [
            ("http://127.0.0.1:8080/mcp", true),
            ("http://localhost/mcp", true),
            ("http://[::1]:8080/mcp", true),
            ("http://localhost.evil.example/mcp", false),
            ("http://tools.example.com/mcp", false),
            ("https://tools.example.com/mcp", true),
            ("ftp://127.0.0.1/", false),
        ] {
            assert_eq!(is_safe(url), safe, "{url}");
        }
    }

    #[test]
    fn an_endpoint_asked_from_within_has_its_public_name() {
        let asked = "http://toolgate.tools:80/t/acme/mcp";
        let named = "https://tools.example.com/t/acme/mcp";
        assert_eq!(same_path("https://tools.example.com", asked), named);
        assert_eq!(same_path("https://tools.example.com/", asked), named);
        assert_eq!(same_path(named, asked), named);
    }
}
