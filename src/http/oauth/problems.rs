//! What people are told when something is wrong: what happened, and what to do.

use axum::http::StatusCode;
use axum::response::Response;

use super::visit::Visit;
use crate::http::pages::{Forms, Link, Message, page};
use crate::sanitize::shown;

/// A message of this service. The paragraphs are ours; `detail` is somebody else's
/// text, cut and cleaned.
pub(in crate::http) fn message(
    visit: &Visit,
    status: StatusCode,
    title: &str,
    paragraphs: &[&str],
    detail: Option<&str>,
) -> Response {
    let message = Message {
        frame: visit.frame(),
        title: title.to_owned(),
        paragraphs: paragraphs.iter().map(|&text| text.to_owned()).collect(),
        detail: detail.map(|text| shown(text, 200)),
        link: None,
    };
    page(status, &message, Forms::Own)
}

/// A message that offers one way on.
pub(super) fn with_link(
    visit: &Visit,
    status: StatusCode,
    title: &str,
    paragraphs: &[&str],
    link: Link,
) -> Response {
    let message = Message {
        frame: visit.frame(),
        title: title.to_owned(),
        paragraphs: paragraphs.iter().map(|&text| text.to_owned()).collect(),
        detail: None,
        link: Some(link),
    };
    page(status, &message, Forms::Own)
}

/// A form that another site sent.
pub(super) fn foreign_form(visit: &Visit) -> Response {
    message(
        visit,
        StatusCode::FORBIDDEN,
        "This did not come from here",
        &[
            "Another website tried to send this form in your name. Nothing was changed.",
            "If you meant to do this, go back to your app or to your account page and start there.",
        ],
        None,
    )
}

/// A question that this browser was not asked, or too long ago.
pub(super) fn stale(visit: &Visit) -> Response {
    message(
        visit,
        StatusCode::BAD_REQUEST,
        "This sign-in cannot go on",
        &[
            "It took longer than a quarter of an hour, was used before, or was begun in another \
             browser. Nothing was allowed.",
            "Go back to your app and start the sign-in again.",
        ],
        None,
    )
}

/// Something of ours is away.
pub(super) fn away(visit: &Visit) -> Response {
    message(
        visit,
        StatusCode::SERVICE_UNAVAILABLE,
        "Not possible at the moment",
        &[
            "The service cannot reach its database. Nothing was changed.",
            "Try again in a minute.",
        ],
        None,
    )
}

/// Nobody can sign in.
pub(super) fn no_way_in(visit: &Visit) -> Response {
    message(
        visit,
        StatusCode::NOT_FOUND,
        "Nobody can sign in here yet",
        &[
            "No identity provider is set up for signing in to this endpoint.",
            "Tell your administrator: an entry of identity_providers needs a login section.",
        ],
        None,
    )
}

/// The provider is away, or does not understand us.
pub(super) fn provider_away(visit: &Visit) -> Response {
    message(
        visit,
        StatusCode::BAD_GATEWAY,
        "Your sign-in page cannot be reached",
        &[
            "Your organisation’s identity provider did not answer as it should. Nothing was allowed.",
            "Try again in a minute. If it stays so, tell your administrator: the log says why.",
        ],
        None,
    )
}
