//! The layer that refuses requests under a name that is not ours, and from
//! browser pages that have no business here (MCP transports, DNS rebinding).

use std::net::IpAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{Edge, Snapshot, cors};

/// Checks `Host` and `Origin`.
pub(super) async fn layer(
    State(edge): State<Edge>,
    ConnectInfo(peer): ConnectInfo<std::net::SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let snapshot = edge.current.load();
    let host = request
        .uri()
        .authority()
        .map(|authority| authority.as_str().to_owned())
        .or_else(|| {
            request
                .headers()
                .get(header::HOST)
                .and_then(|host| host.to_str().ok())
                .map(str::to_owned)
        });
    let host_known = host
        .as_deref()
        .is_some_and(|host| allowed_host(&snapshot, host, peer.ip()));
    if !host_known {
        return (StatusCode::FORBIDDEN, "Host is not a name of this service. Name it in server.public_url or server.allowed_hosts.\n").into_response();
    }
    let origin_known = match request.headers().get(header::ORIGIN) {
        None => true,
        // Metadata is for pages of everybody (`rules.md` §4.10).
        Some(_) if cors::is_metadata(request.uri().path()) => true,
        Some(origin) => origin
            .to_str()
            .is_ok_and(|origin| allowed_origin(&snapshot, origin)),
    };
    if !origin_known {
        return (
            StatusCode::FORBIDDEN,
            "Origin is not allowed. Name it in server.allowed_origins.\n",
        )
            .into_response();
    }
    drop(snapshot);
    next.run(request).await
}

/// The host of `public_url` with or without its default port, IP literals,
/// loopback names and configured extras (`rules.md` §1.3).
fn allowed_host(snapshot: &Snapshot, host: &str, peer: IpAddr) -> bool {
    let (name, port) = split_port(host);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() || is_loopback_name(name) {
        return true;
    }
    if snapshot
        .config
        .server
        .allowed_hosts
        .iter()
        .any(|allowed| allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name))
    {
        return true;
    }
    match snapshot
        .base
        .configured()
        .and_then(|url| url.split_once("://"))
    {
        Some((scheme, rest)) => {
            let authority = rest.split('/').next().unwrap_or_default();
            let (own_name, own_port) = split_port(authority);
            let default = if scheme == "https" { "443" } else { "80" };
            name.eq_ignore_ascii_case(own_name)
                && port.unwrap_or(default) == own_port.unwrap_or(default)
        }
        None => snapshot.base.trusts(peer),
    }
}

/// `public_url`'s own origin, configured ones, and loopback pages while the
/// service itself is on loopback.
pub(super) fn allowed_origin(snapshot: &Snapshot, origin: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    let own = snapshot
        .base
        .configured()
        .map(|url| origin_of(url).to_owned());
    if own
        .as_deref()
        .is_some_and(|own| own.eq_ignore_ascii_case(origin))
    {
        return true;
    }
    if snapshot
        .config
        .server
        .allowed_origins
        .iter()
        .any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(origin))
    {
        return true;
    }
    let on_loopback = own
        .as_deref()
        .and_then(|own| own.split_once("://"))
        .is_none_or(|(_, authority)| is_loopback(authority));
    on_loopback && matches!(scheme, "http" | "https") && is_loopback(authority)
}

fn origin_of(url: &str) -> &str {
    let path = url
        .find("://")
        .and_then(|at| url.get(at + 3..)?.find('/').map(|slash| at + 3 + slash));
    url.get(..path.unwrap_or(url.len())).unwrap_or(url)
}

fn is_loopback(authority: &str) -> bool {
    let (name, _) = split_port(authority);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    is_loopback_name(name) || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// Name and port of an authority; IPv6 literals keep their brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (name, Some(port))
        }
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_taken_apart() {
        assert_eq!(split_port("[::1]:8080"), ("[::1]", Some("8080")));
        assert_eq!(split_port("[::1]"), ("[::1]", None));
        assert_eq!(split_port("gw.example.com"), ("gw.example.com", None));
        assert!(
            is_loopback("127.0.0.1:3000")
                && is_loopback("[::1]:1")
                && !is_loopback("localhost.evil.example")
        );
        assert_eq!(origin_of("https://a.example/gw"), "https://a.example");
    }
}
