//! `/oauth/token` (RFC 6749 §3.2).

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::protocol::{Asked, answer};
use crate::identity::IdentityFault;
use crate::oauth::{Assertion, Client, JWT_BEARER, TokenFault, Tokens};

/// Exchanges a grant for tokens.
pub(in crate::http) async fn post(asked: Asked) -> Response {
    let (visit, parameters) = (&asked.visit, &asked.parameters);
    let result = match asked.client().await {
        Ok(client) if asked.one("grant_type") == Some(JWT_BEARER) => {
            assertion(&asked, &client).await
        }
        Ok(client) => visit.site().token(&client, parameters, visit).await,
        Err(fault) => Err(fault),
    };
    match result {
        Ok(tokens) => answer(StatusCode::OK, body(&tokens)),
        Err(fault) => asked.fail("token", &fault),
    }
}

/// An identity provider's word for a person, brought by a client.
async fn assertion(asked: &Asked, client: &Client) -> Result<Tokens, TokenFault> {
    let token = asked.one("assertion").ok_or(TokenFault::InvalidRequest(
        "assertion is missing, or occurs twice",
    ))?;
    let signed = asked.visit.snapshot.identity.signed(token).await;
    let signed = signed.map_err(|fault| match fault {
        IdentityFault::KeysUnavailable { .. } => TokenFault::Unavailable,
        fault => {
            tracing::info!(%fault, "An assertion was refused.");
            TokenFault::InvalidGrant("the assertion is not signed by a trusted provider")
        }
    })?;
    let assertion = Assertion {
        provider: signed.provider,
        typ: signed.typ,
        claims: signed.claims,
    };
    let (visit, parameters) = (&asked.visit, &asked.parameters);
    let site = visit.site();
    site.assertion(client, &assertion, parameters, visit).await
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
