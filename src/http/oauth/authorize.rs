//! `/oauth/authorize` (RFC 6749 §3.1): judges the request and hands it to the pages.
//! It keeps nothing and may be asked again.

use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::Response;

use super::visit::Visit;
use super::{login, problems};
use crate::http::pages::onward;
use crate::oauth::{AuthorizeFault, DocumentFault, Event, PageFault};

/// Longest query that is read.
const MAX_QUERY: usize = 16 * 1024;

/// Begins a sign-in.
pub(in crate::http) async fn get(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    if query.len() > MAX_QUERY {
        return page(&visit, &["The app’s request is too long."]);
    }
    let parameters: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    match visit.site().authorization(&parameters).await {
        Ok(request) => login::begin(&visit, request).await,
        Err(AuthorizeFault::Redirect(location, refusal)) => {
            let refused = Event::Refused {
                subject: None,
                client: None,
                reason: refusal.code(),
            };
            visit.count(refused);
            onward(&location)
        }
        Err(AuthorizeFault::Page(fault)) => page(&visit, words(&fault)),
        Err(AuthorizeFault::Store(error)) => {
            tracing::error!(%error, "A client could not be looked up.");
            problems::away(&visit)
        }
    }
}

fn page(visit: &Visit, paragraphs: &[&str]) -> Response {
    problems::message(
        visit,
        StatusCode::BAD_REQUEST,
        "This app cannot sign you in",
        paragraphs,
        None,
    )
}

fn words(fault: &PageFault) -> &'static [&'static str] {
    match fault {
        PageFault::UnknownClient => &[
            "The app (client_id) is not known here. Registrations that nobody uses are removed \
             after some time.",
            "Remove this server from the app and add it again, so that the app registers anew.",
        ],
        PageFault::Redirect => &[
            "The address that the app wants to be answered at (redirect_uri) is not one that it \
             registered. Nothing was sent there.",
            "If you did not start this yourself, close this page.",
        ],
        PageFault::Document(DocumentFault::Fetch | DocumentFault::Busy(_)) => &[
            "The app’s description (its client_id is a web address) cannot be fetched at the moment.",
            "Try again in a minute.",
        ],
        PageFault::Document(_) => &[
            "The app’s description (its client_id is a web address) is not accepted here.",
            "If you did not start this yourself, close this page. The app’s maker, or the operator \
             of this server, can find the reason in the log.",
        ],
    }
}
