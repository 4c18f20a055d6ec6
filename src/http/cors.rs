//! What browsers are told (`rules.md` §4.10): preflight is unauthenticated and
//! uncharged; metadata is for everyone, the endpoint for allowed origins.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Edge;

/// Headers of answers that a page may read.
const EXPOSED: &str = "WWW-Authenticate, Retry-After, Mcp-Session-Id, MCP-Protocol-Version";
/// Headers that a page may send, besides `Mcp-*`.
const SENDABLE: [&str; 6] = [
    "authorization",
    "content-type",
    "accept",
    "last-event-id",
    "traceparent",
    "tracestate",
];

/// Whether a path is that of a document that everybody may read.
pub(super) fn is_metadata(path: &str) -> bool {
    path.starts_with("/.well-known/") || path == "/oauth/jwks"
}

/// Whether a path is one of the pages that people see: no other page may read them
/// or send their forms by script.
fn is_page(path: &str) -> bool {
    [
        "/oauth/authorize",
        "/oauth/login",
        "/oauth/consent",
        "/oauth/callback",
        "/account",
    ]
    .into_iter()
    .any(|page| {
        path.strip_prefix(page)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Answers preflights and marks answers. `Origin` was judged before.
pub(super) async fn layer(State(_): State<Edge>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    if is_page(request.uri().path()) {
        return next.run(request).await;
    }
    let is_metadata = is_metadata(request.uri().path());
    let preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if preflight {
        preflighted(request.headers())
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    if is_metadata {
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_ORIGIN,
            HeaderValue::from_static("*"),
        );
    } else if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(EXPOSED),
        );
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

fn preflighted(asked: &HeaderMap) -> Response {
    let wanted = asked
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .and_then(|names| names.to_str().ok())
        .unwrap_or_default();
    let allowed: Vec<&str> = wanted
        .split(',')
        .map(str::trim)
        .filter(|name| may_send(name))
        .collect();
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST, GET, DELETE"),
    );
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("600"),
    );
    if let Ok(names) = HeaderValue::from_str(&allowed.join(", ")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
    response
}

fn may_send(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SENDABLE.contains(&name.as_str()) || name.starts_with("mcp-")
}
