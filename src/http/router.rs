//! All public routes on one page, all layers on one page.

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use tower::ServiceBuilder;
use tower_governor::{GovernorError, GovernorLayer};

use super::{Edge, cors, endpoint, host, metadata, oauth, pages, request_id, unread};

/// Who may come by a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody; limited by address.
    Everybody,
    /// Whoever has a token for it; failures are limited by address.
    Bearer,
}

/// One route of the public listener.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Its path, with `{name}` for a part that varies.
    pub path: &'static str,
    /// Who may come by it.
    pub access: Access,
    methods: fn() -> MethodRouter<Edge>,
}

/// Every public route. A test walks this table with good and bad tokens, so a
/// route that is not in it does not exist.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/mcp",
        access: Access::Bearer,
        methods: || any(endpoint::root),
    },
    Route {
        path: "/t/{tenant}/mcp",
        access: Access::Bearer,
        methods: || any(endpoint::tenant),
    },
    Route {
        path: "/.well-known/oauth-protected-resource",
        access: Access::Everybody,
        methods: || get(metadata::root),
    },
    Route {
        path: "/.well-known/oauth-protected-resource/{*endpoint}",
        access: Access::Everybody,
        methods: || get(metadata::suffixed),
    },
    Route {
        path: "/.well-known/oauth-authorization-server",
        access: Access::Everybody,
        methods: || get(oauth::metadata),
    },
    Route {
        path: "/.well-known/oauth-authorization-server/{*path}",
        access: Access::Everybody,
        methods: || get(oauth::metadata_behind),
    },
    Route {
        path: "/.well-known/openid-configuration",
        access: Access::Everybody,
        methods: || get(oauth::metadata),
    },
    Route {
        path: "/.well-known/openid-configuration/{*path}",
        access: Access::Everybody,
        methods: || get(oauth::metadata_behind),
    },
    Route {
        path: "/oauth/jwks",
        access: Access::Everybody,
        methods: || get(oauth::keys),
    },
    Route {
        path: "/oauth/authorize",
        access: Access::Everybody,
        methods: || get(oauth::authorize),
    },
    Route {
        path: "/oauth/token",
        access: Access::Everybody,
        methods: || post(oauth::token),
    },
    Route {
        path: "/oauth/register",
        access: Access::Everybody,
        methods: || post(oauth::register),
    },
    Route {
        path: "/oauth/revoke",
        access: Access::Everybody,
        methods: || post(oauth::revoke),
    },
    Route {
        path: "/oauth/introspect",
        access: Access::Everybody,
        methods: || post(oauth::introspect),
    },
    Route {
        path: "/oauth/consent",
        access: Access::Everybody,
        methods: || post(oauth::consent),
    },
    Route {
        path: "/oauth/login",
        access: Access::Everybody,
        methods: || get(oauth::login_page).post(oauth::login),
    },
    Route {
        path: "/oauth/callback",
        access: Access::Everybody,
        methods: || get(oauth::callback),
    },
    Route {
        path: "/account",
        access: Access::Everybody,
        methods: || get(oauth::account),
    },
    Route {
        path: "/account/revoke",
        access: Access::Everybody,
        methods: || post(oauth::account_revoke),
    },
    Route {
        path: "/account/sign-out",
        access: Access::Everybody,
        methods: || post(oauth::account_sign_out),
    },
    Route {
        path: "/account/continue/{id}",
        access: Access::Everybody,
        methods: || get(oauth::continuation).post(oauth::continuation_post),
    },
    Route {
        path: "/assets/{file}",
        access: Access::Everybody,
        methods: || get(pages::asset),
    },
];

/// The public listener's service.
pub fn public_router(edge: Edge) -> Router {
    let of = |access: Access| {
        ROUTES
            .iter()
            .filter(|route| route.access == access)
            .fold(Router::new(), |router, route| {
                router.route(route.path, (route.methods)())
            })
    };
    let limiter = edge.current.load().edge.settings();
    let unauthenticated =
        of(Access::Everybody).layer(GovernorLayer::new(limiter).error_handler(limited));
    let endpoints = of(Access::Bearer);

    let layers = ServiceBuilder::new()
        // Outermost: whoever answers, what is left of the request is seen to.
        .layer(middleware::from_fn(unread::layer))
        // Everything below logs under the request's id and knows the caller's address.
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

pub(super) async fn not_found() -> Response {
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
