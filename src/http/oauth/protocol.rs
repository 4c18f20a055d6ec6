//! What the endpoints that clients (not browsers) call have in common: forms in, JSON
//! out, credentials, faults.

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::visit::Visit;
use crate::http::Edge;
use crate::oauth::{Client, Presented, TokenFault};
use crate::secret::Secret;

/// Longest body that is read: an assertion and what goes with it.
const MAX_BODY: usize = 64 * 1024;

/// A request of a client with a form.
pub(in crate::http) struct Asked {
    pub(super) visit: Visit,
    pub(super) parameters: Vec<(String, String)>,
}

impl FromRequest<Edge> for Asked {
    type Rejection = Response;

    async fn from_request(request: Request, edge: &Edge) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, edge).await?;
        if !has_type(&parts.headers, "application/x-www-form-urlencoded") {
            return Err(fault(
                &TokenFault::InvalidRequest("the body must be application/x-www-form-urlencoded"),
                &parts.headers,
            ));
        }
        let Ok(bytes) = to_bytes(body, MAX_BODY).await else {
            return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
        };
        let parameters = form_urlencoded::parse(&bytes).into_owned().collect();
        Ok(Self { visit, parameters })
    }
}

impl Asked {
    /// A parameter that occurs once.
    pub(super) fn one(&self, name: &str) -> Option<&str> {
        let mut all = self.parameters.iter().filter(|(known, _)| known == name);
        match (all.next(), all.next()) {
            (Some((_, value)), None) if !value.is_empty() => Some(value),
            _ => None,
        }
    }

    /// The client, once it has proved who it is.
    pub(super) async fn client(&self) -> Result<Client, TokenFault> {
        for name in [
            "client_id",
            "client_secret",
            "client_assertion",
            "client_assertion_type",
        ] {
            if self
                .parameters
                .iter()
                .filter(|(known, _)| known == name)
                .count()
                > 1
            {
                return Err(TokenFault::InvalidRequest("a parameter occurs twice"));
            }
        }
        let text = |name: &str| self.one(name).map(str::to_owned);
        let presented = Presented {
            basic: basic(&self.visit.headers)?,
            client_id: text("client_id"),
            client_secret: text("client_secret").map(Secret::new),
            assertion_type: text("client_assertion_type"),
            assertion: text("client_assertion"),
        };
        self.visit.site().authenticate(&presented).await
    }

    /// The answer to a fault of the endpoint of this name.
    pub(super) fn fail(&self, endpoint: &'static str, why: &TokenFault) -> Response {
        self.visit.count_token_fault(endpoint, why);
        fault(why, &self.visit.headers)
    }
}

/// Id and secret of `Authorization: Basic`: both are form-encoded before they are put
/// together (RFC 6749 §2.3.1).
fn basic(headers: &HeaderMap) -> Result<Option<(String, Secret<String>)>, TokenFault> {
    const WRONG: TokenFault =
        TokenFault::InvalidClient("the Authorization header is not understood");
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let line = match (lines.next(), lines.next()) {
        (None, _) => return Ok(None),
        (Some(line), None) => line,
        _ => return Err(WRONG),
    };
    let (scheme, rest) = line
        .to_str()
        .ok()
        .and_then(|line| line.split_once(' '))
        .ok_or(WRONG)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(WRONG);
    }
    let bytes = STANDARD.decode(rest.trim()).map_err(|_| WRONG)?;
    let text = String::from_utf8(bytes).map_err(|_| WRONG)?;
    let (id, secret) = text.split_once(':').ok_or(WRONG)?;
    Ok(Some((decoded(id), Secret::new(decoded(secret)))))
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced)
        .decode_utf8_lossy()
        .into_owned()
}

/// Whether a body is of a type, whatever its parameters.
pub(super) fn has_type(headers: &HeaderMap, wanted: &str) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .and_then(|kind| kind.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}

/// JSON that nobody may keep (RFC 6749 §5.1).
pub(super) fn answer(status: StatusCode, body: String) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::PRAGMA, HeaderValue::from_static("no-cache")),
    ];
    (status, headers, body).into_response()
}

/// The answer to a fault of the token endpoint and its like (RFC 6749 §5.2).
fn fault(why: &TokenFault, headers: &HeaderMap) -> Response {
    let status = match why {
        TokenFault::InvalidClient(_) => StatusCode::UNAUTHORIZED,
        TokenFault::Unavailable
        | TokenFault::Unrecorded(_)
        | TokenFault::Store(_)
        | TokenFault::Keys(_) => StatusCode::SERVICE_UNAVAILABLE,
        TokenFault::InvalidRequest(_)
        | TokenFault::InvalidGrant(_)
        | TokenFault::UnauthorizedClient
        | TokenFault::UnsupportedGrantType
        | TokenFault::InvalidScope
        | TokenFault::InvalidTarget => StatusCode::BAD_REQUEST,
    };
    let words = match why {
        // Said in the log where it was found.
        TokenFault::Unrecorded(_) => "try again shortly".to_owned(),
        // What the database says is for the log.
        TokenFault::Store(error) => {
            tracing::error!(%error, "A step of the authorization server could not be stored.");
            "try again shortly".to_owned()
        }
        TokenFault::Keys(error) => {
            tracing::error!(%error, "There is no key to sign access tokens with.");
            "try again shortly".to_owned()
        }
        other => {
            tracing::info!(reason = %other, error = other.code(), "A client was refused.");
            other.to_string()
        }
    };
    let body = json!({ "error": why.code(), "error_description": words }).to_string();
    let mut response = answer(status, body);
    let out = response.headers_mut();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        out.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    }
    if status == StatusCode::UNAUTHORIZED && headers.contains_key(header::AUTHORIZATION) {
        out.insert(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=\"toolgate\""),
        );
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<(String, String)>, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, line.parse().unwrap());
        basic(&headers)
            .map(|found| found.map(|(id, secret)| (id, secret.expose().clone())))
            .map_err(|fault| fault.code())
    }

    #[test]
    fn basic_credentials_are_form_decoded() {
        let of = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let pair = |id: &str, secret: &str| Ok(Some((id.to_owned(), secret.to_owned())));
        assert_eq!(read(&of("id:secret")), pair("id", "secret"));
        assert_eq!(read(&of("a%3Ab:x%25+y%3A")), pair("a:b", "x% y:"));
        assert_eq!(read(&of("id:with:colon")), pair("id", "with:colon"));
        assert_eq!(read(&of("id:")), pair("id", ""));
        for wrong in ["Bearer x", "Basic", "Basic !", &of("nothing")] {
            assert_eq!(read(wrong), Err("invalid_client"), "{wrong}");
        }
        assert_eq!(basic(&HeaderMap::new()).unwrap().map(|_| ()), None);
    }
}
