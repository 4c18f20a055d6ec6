//! Protected resource metadata (RFC 9728): where tokens for an endpoint come
//! from. Issuers are the configured strings, unchanged (§3.3).

use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::ids::TenantId;

use super::base::{path_of, resource};
use super::bearer::BASE_SCOPE;
use super::router::not_found;
use super::{Edge, Snapshot};

#[derive(Serialize)]
struct Document<'a> {
    resource: String,
    authorization_servers: Vec<&'a str>,
    scopes_supported: Vec<&'a str>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// The document of `/mcp`.
pub(super) async fn root(
    State(edge): State<Edge>,
    peer: ConnectInfo<std::net::SocketAddr>,
    headers: HeaderMap,
) -> Response {
    document(&edge, &headers, peer.ip(), None)
}

/// The documents of endpoints by their paths: that of `/mcp`, and that of
/// `/t/{tenant}/mcp`. An unknown tenant has one like a known one.
pub(super) async fn suffixed(
    State(edge): State<Edge>,
    peer: ConnectInfo<std::net::SocketAddr>,
    Path(endpoint): Path<String>,
    headers: HeaderMap,
) -> Response {
    let base = edge.current.load().base.of(&headers, peer.ip());
    match Endpoint::at(path_of(&base), &endpoint) {
        Some(Endpoint::Root) => document(&edge, &headers, peer.ip(), None),
        Some(Endpoint::Tenant(tenant)) => document(&edge, &headers, peer.ip(), Some(&tenant)),
        None => not_found().await,
    }
}

/// An endpoint that has a document.
#[derive(Debug, PartialEq, Eq)]
enum Endpoint {
    Root,
    Tenant(TenantId),
}

impl Endpoint {
    /// The endpoint at this path below the well-known part. A path of `public_url`
    /// stands in front (RFC 9728 §3.1).
    fn at(base_path: &str, path: &str) -> Option<Self> {
        let path = match base_path.trim_matches('/') {
            "" => path,
            base => path.strip_prefix(base)?.strip_prefix('/')?,
        };
        if path == "mcp" {
            return Some(Self::Root);
        }
        let tenant = path.strip_prefix("t/")?.strip_suffix("/mcp")?;
        (!tenant.is_empty() && !tenant.contains('/')).then(|| Self::Tenant(TenantId::from(tenant)))
    }
}

fn document(
    edge: &Edge,
    headers: &HeaderMap,
    peer: std::net::IpAddr,
    tenant: Option<&TenantId>,
) -> Response {
    let snapshot = edge.current.load();
    let base = snapshot.base.of(headers, peer);
    let document = Document {
        resource: resource(&base, tenant),
        authorization_servers: issuers(&snapshot, &base, tenant),
        scopes_supported: vec![BASE_SCOPE],
        bearer_methods_supported: ["header"],
        resource_name: "Toolgate",
    };
    let body = serde_json::to_string(&document).unwrap_or_default();
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=60"),
        ),
    ];
    (headers, body).into_response()
}

/// The issuers that are trusted for the tenant; all of them where no tenant is fixed.
fn issuers<'a>(snapshot: &'a Snapshot, base: &'a str, tenant: Option<&TenantId>) -> Vec<&'a str> {
    let own = snapshot.config.authorization_server.enabled.then_some(base);
    let providers = || snapshot.config.identity_providers.values();
    let known = tenant.filter(|tenant| snapshot.config.tenants.contains_key(*tenant));
    let trusted = |provider: &&crate::config::IdentityProvider| {
        known.is_none_or(|tenant| provider.tenants.is_empty() || provider.tenants.contains(tenant))
    };
    // Our own comes first: clients take the first one.
    own.into_iter()
        .chain(
            providers()
                .filter(trusted)
                .map(|provider| provider.issuer.as_str()),
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_names_an_endpoint_or_nothing() {
        let acme = || Some(Endpoint::Tenant(TenantId::from("acme")));
        for (base, endpoint, right) in [
            ("", "mcp", Some(Endpoint::Root)),
            ("", "t/acme/mcp", acme()),
            ("", "mcp/", None),
            ("", "t//mcp", None),
            ("", "t/a/b/mcp", None),
            ("", "other", None),
            ("/gw", "gw/mcp", Some(Endpoint::Root)),
            ("/gw/", "gw/mcp", Some(Endpoint::Root)),
            ("/gw", "gw/t/acme/mcp", acme()),
            ("/gw", "mcp", None),
            ("/gw", "gwmcp", None),
        ] {
            assert_eq!(Endpoint::at(base, endpoint), right, "{base} {endpoint}");
        }
    }
}
