//! Bearer tokens in, challenges out (RFC 6750 §2.1, §3; RFC 9728 §5.1).

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::ids::Scope;

/// The base scope that the challenge asks for.
pub(super) const BASE_SCOPE: &str = "mcp";

/// The one bearer token of a request. Two `Authorization` headers are none.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Why a caller is challenged.
#[derive(Clone, Copy, Debug)]
pub(super) enum Challenge<'a> {
    /// No token came.
    NoToken,
    /// The token that came is not accepted.
    InvalidToken(&'a str),
    /// The token lacks scopes; these are all that are needed.
    InsufficientScope(&'a [Scope]),
}

/// The `WWW-Authenticate` value: one challenge, each parameter once.
pub(super) fn challenge(why: Challenge<'_>, metadata_url: &str) -> HeaderValue {
    let mut text = String::from("Bearer ");
    match why {
        Challenge::NoToken => {}
        Challenge::InvalidToken(description) => {
            text.push_str("error=\"invalid_token\", error_description=");
            quote(&mut text, description);
            text.push_str(", ");
        }
        Challenge::InsufficientScope(_) => text.push_str("error=\"insufficient_scope\", "),
    }
    text.push_str("scope=");
    let scopes = match why {
        Challenge::InsufficientScope(scopes) => scopes
            .iter()
            .map(Scope::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        Challenge::NoToken | Challenge::InvalidToken(_) => BASE_SCOPE.to_owned(),
    };
    quote(&mut text, &scopes);
    text.push_str(", resource_metadata=");
    quote(&mut text, metadata_url);
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// A quoted-string (RFC 9110 §5.6.4). What cannot stand in one is left out.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars().filter(|c| matches!(c, ' '..='~')) {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// 401 with its challenge.
pub(super) fn unauthorized(why: Challenge<'_>, metadata_url: &str) -> Response {
    let words = match why {
        Challenge::InvalidToken(description) => description,
        Challenge::NoToken | Challenge::InsufficientScope(_) => "a bearer token is needed",
    };
    let body = serde_json::json!({"error": if matches!(why, Challenge::NoToken) { "unauthorized" } else { "invalid_token" }, "error_description": words});
    let headers = [
        (header::WWW_AUTHENTICATE, challenge(why, metadata_url)),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
    ];
    (StatusCode::UNAUTHORIZED, headers, body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_has_each_parameter_once_and_nothing_breaks_out_of_it() {
        let text = challenge(
            Challenge::InvalidToken("say \"no\"\r\nSet-Cookie: a=b"),
            "https://gw.example.com/x",
        );
        assert_eq!(
            text.to_str().unwrap(),
            "Bearer error=\"invalid_token\", error_description=\"say \\\"no\\\"Set-Cookie: a=b\", scope=\"mcp\", resource_metadata=\"https://gw.example.com/x\""
        );
    }

    #[test]
    fn a_token_comes_in_one_header_of_the_bearer_scheme() {
        let of = |values: &[&'static str]| {
            let headers: HeaderMap = values
                .iter()
                .map(|value| (header::AUTHORIZATION, HeaderValue::from_static(value)))
                .collect();
            token(&headers).map(str::to_owned)
        };
        assert_eq!(of(&["bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(of(&["Basic abc"]), None);
        assert_eq!(of(&["Bearer "]), None);
        assert_eq!(of(&["Bearer a", "Bearer b"]), None);
    }
}
