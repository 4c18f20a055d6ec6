//! `/account`: a person's own page. The apps that they have let in, and the end of each.

use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::Response;
use uuid::Uuid;

use super::flow::{self, Browser, Flow, Goal, Step};
use super::login::{self, current};
use super::visit::{Form, Posted, Visit};
use super::{fail_goal, problems};
use crate::config::AdminRole;
use crate::http::pages::{AccountPage, App, Forms, Link, Moment, Proof, name, onward, page};
use crate::ids::TenantId;
use crate::oauth::account::{self, Connected};
use crate::oauth::administration::Administration;
use crate::oauth::sign_ins::{self, SignedIn};
use crate::oauth::{Event, Ledger as _, RedirectKind, StepFault};

/// `GET /account`
pub(in crate::http) async fn get(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let done = match query.as_deref() {
        Some("done=one") => Some("The app is disconnected."),
        Some("done=all") => Some("All apps are disconnected."),
        _ => None,
    };
    let shown = show(&visit, done).await;
    shown.unwrap_or_else(|fault| fail_goal(&visit, &Goal::Account, &fault))
}

async fn show(visit: &Visit, done: Option<&'static str>) -> Result<Response, StepFault> {
    let Some(signed_in) = current(visit).await? else {
        return Ok(onward(&visit.path("/oauth/login")));
    };
    let now = visit.site().server.clock().now();
    let several = signed_in.person.memberships.len() > 1;
    let connected = account::connected(&visit.site(), &signed_in.person).await?;
    let apps = connected
        .iter()
        .map(|grant| App {
            grant: grant.id.to_string(),
            name: name(&grant.client_name),
            proof: Proof::of(grant.kind, grant.document_host.as_deref()),
            place: place(grant),
            tenant: several.then(|| name(grant.tenant.as_str())),
            scopes: in_words(visit, grant),
            since: Moment::of(grant.created_at, now),
            used: grant.used_at.map(|used| Moment::of(used, now)),
        })
        .collect();
    let mut jar = visit.jar();
    let browser = Browser::of(visit);
    let acting = Step::Acting {
        signed_in: signed_in.id,
    };
    let view = AccountPage {
        frame: visit.frame(),
        person: login::called(&signed_in.person),
        tenant: match signed_in.person.memberships.as_slice() {
            [only] => Some(name(only.tenant.as_str())),
            _ => None,
        },
        roles: roles(&signed_in.administration(visit.site().settings)),
        apps,
        done,
        token: Flow::new(visit, Goal::Account, acting).seal(visit, &browser),
    };
    browser.put(&mut jar);
    Ok(jar.onto(page(StatusCode::OK, &view, Forms::Own)))
}

/// What somebody may administer, in words.
fn roles(administration: &Administration) -> Vec<String> {
    let of = |place: Option<&TenantId>| match place {
        None => "all organisations".to_owned(),
        Some(tenant) => name(tenant.as_str()),
    };
    let in_words = |(role, places): (AdminRole, Vec<Option<&TenantId>>)| {
        let word = match role {
            AdminRole::Admin => "an administrator",
            AdminRole::Auditor => "an auditor",
        };
        let places: Vec<String> = places.into_iter().map(of).collect();
        let (last, others) = places.split_last()?;
        let places = if others.is_empty() {
            last.clone()
        } else {
            format!("{} and {last}", others.join(", "))
        };
        Some(format!("You are {word} of {places}."))
    };
    let all = administration.places();
    all.into_iter().filter_map(in_words).collect()
}

/// Where an app's answers went.
fn place(grant: &Connected) -> String {
    match grant.redirect {
        Some(RedirectKind::Https) => grant.redirect_host.clone(),
        Some(RedirectKind::Loopback) => "A program on one of your computers".to_owned(),
        Some(RedirectKind::PrivateUse) | None => {
            format!("An app that opens {} links", grant.redirect_host)
        }
    }
}

fn in_words(visit: &Visit, grant: &Connected) -> String {
    let words: Vec<String> = grant
        .scopes
        .iter()
        .map(|scope| visit.scope(scope.as_str()).words)
        .collect();
    words.join(" · ")
}

/// `POST /account/revoke`
pub(in crate::http) async fn revoke(Posted { visit, form }: Posted) -> Response {
    let revoked = revoked(&visit, &form).await;
    revoked.unwrap_or_else(|fault| fail_goal(&visit, &Goal::Account, &fault))
}

async fn revoked(visit: &Visit, form: &Form) -> Result<Response, StepFault> {
    let Some(signed_in) = acting(visit, form).await? else {
        return Ok(signed_out_meanwhile(visit));
    };
    let asked = form.one("grant").unwrap_or_default();
    let site = visit.site();
    let connected = account::connected(&site, &signed_in.person).await?;
    let chosen = connected
        .iter()
        .filter(|grant| asked == "all" || asked == grant.id.to_string());
    for grant in chosen {
        account::revoke(&site, grant, visit).await?;
    }
    let done = if asked == "all" { "all" } else { "one" };
    Ok(onward(&visit.path(&format!("/account?done={done}"))))
}

/// `POST /account/sign-out`
pub(in crate::http) async fn sign_out(Posted { visit, form }: Posted) -> Response {
    let ended = async {
        if let Some(signed_in) = acting(&visit, &form).await? {
            let subject = signed_in.person.own_subject();
            visit.record(Event::SignedOut { subject }).await?;
            sign_ins::close(&visit.site(), signed_in.id).await?;
        }
        Ok::<_, StepFault>(())
    };
    if let Err(fault) = ended.await {
        return fail_goal(&visit, &Goal::Account, &fault);
    }
    let mut jar = visit.jar();
    flow::forget(&mut jar);
    let response = problems::with_link(
        &visit,
        StatusCode::OK,
        "You are signed out",
        &[
            "Apps that you connected stay connected.",
            "You can close this window.",
        ],
        Link {
            href: visit.path("/account"),
            text: "Sign in again",
        },
    );
    jar.onto(response)
}

/// Who acts, where the form is of a page that this person got in this browser.
pub(super) async fn acting(visit: &Visit, form: &Form) -> Result<Option<SignedIn>, StepFault> {
    let flow = form.one("token").and_then(|text| Flow::open(visit, text));
    let Some(Flow {
        step: Step::Acting { signed_in },
        ..
    }) = flow
    else {
        return Ok(None);
    };
    let same = |one: &Uuid| *one == signed_in;
    match flow::remembered(visit).filter(same) {
        Some(id) => sign_ins::find(&visit.site(), id, visit).await,
        None => Ok(None),
    }
}

fn signed_out_meanwhile(visit: &Visit) -> Response {
    problems::with_link(
        visit,
        StatusCode::FORBIDDEN,
        "That page is too old",
        &["Nothing was changed. Open your account page again and repeat it there."],
        Link {
            href: visit.path("/account"),
            text: "Open your account",
        },
    )
}
