//! `/oauth/token` (RFC 6749 §3.2).

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::protocol::{Asked, answer};
use crate::identity::IdentityFault;
use crate::oauth::{Assertion, Client, Event, JWT_BEARER, TokenFault, Tokens};

/// Exchanges a grant for tokens.
pub(in crate::http) async fn post(asked: Asked) -> Response {
    let (result, events) = match asked.client().await {
        Ok(client) if asked.one("grant_type") == Some(JWT_BEARER) => {
            assertion(&asked, &client).await
        }
        Ok(client) => asked.visit.site().token(&client, &asked.parameters).await,
        Err(fault) => (Err(fault), Vec::new()),
    };
    // What happened is on record before anybody is told.
    if asked.visit.record(events).await.is_err() {
        return asked.fail("token", &TokenFault::Unavailable);
    }
    match result {
        Ok(tokens) => answer(StatusCode::OK, body(&tokens)),
        Err(fault) => asked.fail("token", &fault),
    }
}

/// An identity provider's word for a person, brought by a client.
async fn assertion(asked: &Asked, client: &Client) -> (Result<Tokens, TokenFault>, Vec<Event>) {
    let Some(token) = asked.one("assertion") else {
        let fault = TokenFault::InvalidRequest("assertion is missing, or occurs twice");
        return (Err(fault), Vec::new());
    };
    let signed = match asked.visit.snapshot.identity.signed(token).await {
        Ok(signed) => signed,
        Err(IdentityFault::KeysUnavailable { .. }) => {
            return (Err(TokenFault::Unavailable), Vec::new());
        }
        Err(fault) => {
            tracing::info!(%fault, "An assertion was refused.");
            let fault =
                TokenFault::InvalidGrant("the assertion is not signed by a trusted provider");
            return (Err(fault), Vec::new());
        }
    };
    let assertion = Assertion {
        provider: signed.provider,
        typ: signed.typ,
        claims: signed.claims,
    };
    asked
        .visit
        .site()
        .assertion(client, &assertion, &asked.parameters)
        .await
}

fn body(tokens: &Tokens) -> String {
    let mut body = json!({
        "access_token": tokens.access_token.expose(),
        "token_type": "Bearer",
        "expires_in": tokens.expires_in.as_secs().max(1),
        "scope": tokens.scope,
    });
    if let (Some(members), Some(token)) = (body.as_object_mut(), &tokens.refresh_token) {
        members.insert("refresh_token".to_owned(), token.expose().clone().into());
    }
    body.to_string()
}
