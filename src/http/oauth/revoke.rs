//! `/oauth/revoke` (RFC 7009) and `/oauth/introspect` (RFC 7662).

use axum::http::StatusCode;
use axum::response::Response;

use super::protocol::{Asked, answer};

/// Ends a token. One that is not known is ended already: that is a success (RFC 7009 §2.2).
pub(in crate::http) async fn post(asked: Asked) -> Response {
    let outcome = match asked.client().await {
        Ok(client) => {
            let (visit, parameters) = (&asked.visit, &asked.parameters);
            visit.site().revoke(&client, parameters, visit).await
        }
        Err(fault) => Err(fault),
    };
    match outcome {
        Ok(()) => answer(StatusCode::OK, "{}".to_owned()),
        Err(fault) => asked.fail("revoke", &fault),
    }
}

/// Says whether a token is good, to resource servers that have authenticated.
pub(in crate::http) async fn introspect(asked: Asked) -> Response {
    let outcome = match asked.client().await {
        Ok(client) => {
            asked
                .visit
                .site()
                .introspect(&client, &asked.parameters)
                .await
        }
        Err(fault) => Err(fault),
    };
    match outcome {
        Ok(document) => answer(StatusCode::OK, document),
        Err(fault) => asked.fail("introspect", &fault),
    }
}
