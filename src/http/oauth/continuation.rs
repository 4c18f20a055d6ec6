//! `/account/continue/{id}`: on the way to a page elsewhere that a tool server wants a
//! person to open. The same person signs in, reads where it leads, and goes there.

use axum::extract::{Path, RawPathParams};
use axum::http::StatusCode;
use axum::response::Response;
use uuid::Uuid;

use super::flow::{Browser, Flow, Goal, Step};
use super::login::{self, current};
use super::visit::{Form, Posted, Visit};
use super::{account, fail_goal, problems};
use crate::http::pages::{ContinuePage, Forms, Link, name, onward, page};
use crate::ids::TenantId;
use crate::oauth::continuations::Destination;
use crate::oauth::federation::Asking;
use crate::oauth::sign_ins::SignedIn;
use crate::oauth::{Event, Ledger as _, StepFault};

/// `GET /account/continue/{id}`
pub(in crate::http) async fn get(visit: Visit, Path(id): Path<String>) -> Response {
    let Some(id) = read(&id) else {
        return over(&visit, None);
    };
    let shown = show(&visit, id).await;
    shown.unwrap_or_else(|fault| fail_goal(&visit, &Goal::Continue(id), &fault))
}

async fn show(visit: &Visit, id: Uuid) -> Result<Response, StepFault> {
    let goal = Goal::Continue(id);
    let Some(signed_in) = current(visit).await? else {
        return login::ask(visit, goal, false, Asking::default(), None).await;
    };
    let Some((tenant, destination)) = found(visit, &signed_in, id).await? else {
        return Ok(over(visit, Some(&signed_in)));
    };
    let mut jar = visit.jar();
    let browser = Browser::of(visit);
    let acting = Step::Acting {
        signed_in: signed_in.id,
    };
    let view = ContinuePage {
        frame: visit.frame(),
        host: name(destination.host()),
        upstream: name(destination.upstream.as_str()),
        tenant: name(tenant.as_str()),
        person: login::called(&signed_in.person),
        url: crate::sanitize::shown(&destination.url, 300),
        id: id.simple().to_string(),
        token: Flow::new(visit, goal, acting).seal(visit, &browser),
    };
    browser.put(&mut jar);
    let forms = Forms::Leading {
        redirect_uri: Some(&destination.url),
        plain: false,
    };
    Ok(jar.onto(page(StatusCode::OK, &view, forms)))
}

/// `POST /account/continue/{id}`
pub(in crate::http) async fn post(parameters: RawPathParams, posted: Posted) -> Response {
    let Posted { visit, form } = posted;
    let id = parameters.iter().next().and_then(|(_, id)| read(id));
    let Some(id) = id else {
        return over(&visit, None);
    };
    let gone = go(&visit, &form, id).await;
    gone.unwrap_or_else(|fault| fail_goal(&visit, &Goal::Continue(id), &fault))
}

async fn go(visit: &Visit, form: &Form, id: Uuid) -> Result<Response, StepFault> {
    let Some(signed_in) = account::acting(visit, form).await? else {
        return Ok(over(visit, None));
    };
    let Some((tenant, destination)) = found(visit, &signed_in, id).await? else {
        return Ok(over(visit, Some(&signed_in)));
    };
    visit
        .record(Event::Continued {
            tenant,
            subject: signed_in.person.own_subject(),
            host: destination.host().to_owned(),
            upstream: destination.upstream,
        })
        .await?;
    Ok(onward(&destination.url))
}

/// Where the link leads, if it is this person's, in a tenant of theirs.
async fn found(
    visit: &Visit,
    signed_in: &SignedIn,
    id: Uuid,
) -> Result<Option<(TenantId, Destination)>, StepFault> {
    let site = visit.site();
    let subject = signed_in.person.own_subject();
    for membership in &signed_in.person.memberships {
        let tenant = &membership.tenant;
        let links = site.server.continuations();
        if let Some(destination) = links.find(tenant, &subject, id).await? {
            return Ok(Some((tenant.clone(), destination)));
        }
    }
    Ok(None)
}

/// Ids have one form, so that nothing else is ever put into an address.
fn read(id: &str) -> Option<Uuid> {
    let simple = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    simple.then(|| id.parse().ok()).flatten()
}

/// The link is nobody's, somebody else's, or too old: which is not told.
fn over(visit: &Visit, signed_in: Option<&SignedIn>) -> Response {
    let who = signed_in.map_or_else(
        || "It is good for an hour, and for the person alone whose tool asked for it.".to_owned(),
        |signed_in| {
            format!(
                "It is good for an hour, and for the person alone whose tool asked for it. You are signed in as {}.",
                login::called(&signed_in.person)
            )
        },
    );
    problems::with_link(
        visit,
        StatusCode::NOT_FOUND,
        "This link leads nowhere",
        &[
            &who,
            "Go back to your app and start again. If you have another account here, sign out on your account page first.",
        ],
        Link {
            href: visit.path("/account"),
            text: "Your account",
        },
    )
}
