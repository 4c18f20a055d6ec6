//! All public routes on one page, all layers on one page.

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use tower::ServiceBuilder;
use tower_governor::{GovernorError, GovernorLayer};

use super::{Edge, cors, endpoint, host, metadata, request_id};

/// The public listener's service.
pub fn public_router(edge: Edge) -> Router {
    // Reachable without a token: limited by address.
    let limiter = edge.current.load().edge.settings();
    let unauthenticated = Router::new()
        .route("/.well-known/oauth-protected-resource", get(metadata::root))
        .route(
            "/.well-known/oauth-protected-resource/mcp",
            get(metadata::root),
        )
        .route(
            "/.well-known/oauth-protected-resource/t/{tenant}/mcp",
            get(metadata::tenant),
        )
        .layer(GovernorLayer::new(limiter).error_handler(limited));

    let endpoints = Router::new()
        .route("/mcp", any(endpoint::root))
        .route("/t/{tenant}/mcp", any(endpoint::tenant));

    let layers = ServiceBuilder::new()
        // Outermost: everything below logs under the request's id and knows the caller's address.
        .layer(middleware::from_fn_with_state(
            edge.clone(),
            request_id::layer,
        ))
        // Before anything is read or charged: is this name ours, may this page call?
        .layer(middleware::from_fn_with_state(edge.clone(), host::layer))
        // Preflights end here, uncharged; 401 and 429 from below get their CORS headers.
        .layer(middleware::from_fn_with_state(edge.clone(), cors::layer));

    unauthenticated
        .merge(endpoints)
        .fallback(not_found)
        .layer(layers)
        .with_state(edge)
}

async fn not_found() -> Response {
    (
        StatusCode::NOT_FOUND,
        "Not found. The MCP endpoint is /mcp or /t/{tenant}/mcp.\n",
    )
        .into_response()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer hands its error over"
)]
fn limited(error: GovernorError) -> Response {
    match error {
        GovernorError::TooManyRequests { wait_time, .. } => {
            let wait = wait_time.max(1).to_string();
            (
                StatusCode::TOO_MANY_REQUESTS,
                [("retry-after", wait)],
                "Too many requests from this address.\n",
            )
                .into_response()
        }
        GovernorError::UnableToExtractKey | GovernorError::Other { .. } => {
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
