//! The authorization server's endpoints and the pages on the way of a sign-in.

mod account;
mod authorize;
mod callback;
mod consent;
mod continuation;
mod cookies;
mod documents;
mod flow;
mod login;
mod problems;
mod proceed;
mod protocol;
mod record;
mod register;
mod revoke;
mod token;
mod visit;
mod ways;

use axum::http::StatusCode;
use axum::response::Response;

use super::pages::onward;
use crate::oauth::{AuthorizationRequest, StepFault};
use flow::Goal;
use visit::Visit;

pub(super) use account::{get as account, revoke as account_revoke, sign_out as account_sign_out};
pub(super) use authorize::get as authorize;
pub(super) use callback::get as callback;
pub(super) use consent::post as consent;
pub(super) use continuation::{get as continuation, post as continuation_post};
pub(super) use documents::{keys, metadata, metadata_behind};
pub(super) use login::{get as login_page, post as login};
pub(super) use register::post as register;
pub(super) use revoke::{introspect, post as revoke};
pub(super) use token::post as token;

/// What becomes of a step that failed: the client is told where it may be.
fn fail(visit: &Visit, request: &AuthorizationRequest, fault: &StepFault) -> Response {
    match fault {
        StepFault::Refused(refusal) => onward(&request.refused(*refusal)),
        StepFault::Page(words) => problems::message(
            visit,
            StatusCode::BAD_REQUEST,
            "This sign-in cannot go on",
            &[words],
            None,
        ),
        StepFault::Store(error) => {
            tracing::error!(%error, "A step of a sign-in could not be stored.");
            problems::away(visit)
        }
        // Said in the log where it was found.
        StepFault::Unrecorded => problems::away(visit),
    }
}

/// The same where there may be no client.
fn fail_goal(visit: &Visit, goal: &Goal, fault: &StepFault) -> Response {
    match (goal, fault) {
        (Goal::App(request), fault) => fail(visit, request, fault),
        (Goal::Account | Goal::Continue(_), StepFault::Store(error)) => {
            tracing::error!(%error, "A sign-in could not be stored.");
            problems::away(visit)
        }
        (Goal::Account | Goal::Continue(_), StepFault::Unrecorded) => problems::away(visit),
        (Goal::Account | Goal::Continue(_), fault) => problems::with_link(
            visit,
            StatusCode::FORBIDDEN,
            "You are not signed in",
            &[&sentence(&fault.to_string())],
            super::pages::Link {
                href: visit.path("/oauth/login"),
                text: "Try again",
            },
        ),
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase).into_iter().flatten();
    format!("{}{}.", first.collect::<String>(), letters.as_str())
}
