//! `/oauth/register` (RFC 7591 §3).

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::protocol::{answer, has_type};
use super::visit::Visit;
use crate::oauth::RegistrationFault;

/// Longest document.
const MAX_DOCUMENT: usize = 16 * 1024;

/// Registers a client.
pub(in crate::http) async fn post(visit: Visit, request: Request) -> Response {
    // Not every client says that it sends JSON; a form of a page says what it is.
    if request.headers().contains_key(header::CONTENT_TYPE)
        && !has_type(request.headers(), "application/json")
    {
        return fail(
            &visit,
            &RegistrationFault::Metadata("the body must be application/json"),
        );
    }
    let Ok(body) = to_bytes(request.into_body(), MAX_DOCUMENT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let Ok(metadata) = serde_json::from_slice::<Value>(&body) else {
        return fail(&visit, &RegistrationFault::Metadata("the body is not JSON"));
    };
    match visit.site().register(&metadata, &visit).await {
        Ok(document) => answer(StatusCode::CREATED, document.expose().clone()),
        Err(fault) => fail(&visit, &fault),
    }
}

fn fail(visit: &Visit, fault: &RegistrationFault) -> Response {
    visit.count_registration_fault(fault);
    let status = match fault {
        RegistrationFault::Closed => StatusCode::FORBIDDEN,
        RegistrationFault::Redirect(..)
        | RegistrationFault::NoRedirects
        | RegistrationFault::Metadata(_) => StatusCode::BAD_REQUEST,
        RegistrationFault::Busy(_) => StatusCode::TOO_MANY_REQUESTS,
        RegistrationFault::Store(_) | RegistrationFault::Unrecorded(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    let words = match fault {
        RegistrationFault::Store(error) => {
            tracing::error!(%error, "A registration could not be stored.");
            "try again shortly".to_owned()
        }
        RegistrationFault::Unrecorded(_) => "try again shortly".to_owned(),
        other => {
            tracing::info!(reason = %other, "A registration was refused.");
            other.to_string()
        }
    };
    let body = json!({ "error": fault.code(), "error_description": words }).to_string();
    let mut response = answer(status, body);
    let wait = match fault {
        RegistrationFault::Busy(wait) => Some(wait.as_secs().max(1)),
        RegistrationFault::Store(_) | RegistrationFault::Unrecorded(_) => Some(2),
        _ => None,
    };
    if let Some(wait) = wait.and_then(|wait| HeaderValue::from_str(&wait.to_string()).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    response
}
