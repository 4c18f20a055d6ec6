//! What the authorization server publishes: its metadata (RFC 8414, `OpenID` Connect
//! Discovery) and its keys (RFC 7517).

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::visit::Visit;
use crate::http::base::path_of;
use crate::http::router::not_found;

/// The metadata.
pub(in crate::http) async fn metadata(visit: Visit) -> Response {
    document(visit.site().metadata())
}

/// The metadata behind the path of `public_url`; elsewhere there is none
/// (`rules.md` §4.1).
pub(in crate::http) async fn metadata_behind(visit: Visit, Path(path): Path<String>) -> Response {
    let own = path_of(&visit.base).trim_matches('/');
    if own.is_empty() || own != path {
        return not_found().await;
    }
    document(visit.site().metadata())
}

/// The keys.
pub(in crate::http) async fn keys(visit: Visit) -> Response {
    let settings = &visit.snapshot.oauth;
    match visit.edge.oauth.key_document(settings).await {
        Ok(keys) => document(keys),
        Err(error) => {
            tracing::error!(%error, "The signing keys cannot be published.");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                [(header::RETRY_AFTER, "2")],
            )
                .into_response()
        }
    }
}

fn document(text: String) -> Response {
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
    (headers, text).into_response()
}
