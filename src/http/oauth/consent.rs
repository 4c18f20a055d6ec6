//! `/oauth/consent`: what a person says to an app's request, and to what is left to
//! decide after the sign-in (`rules.md` §4.4). There is no GET: nothing can be
//! approved by following a link.

use axum::http::StatusCode;
use axum::response::Response;

use super::flow::{Browser, Flow, Goal, Step};
use super::proceed::{self, ALWAYS, Case};
use super::visit::{Form, Posted, Visit};
use super::ways::Ways;
use super::{fail, login, problems};
use crate::config::LOCAL_PROVIDER;
use crate::http::pages::{ClientView, ConsentPage, Forms, Target, name, page};
use crate::ids::{Scope, TenantId};
use crate::oauth::federation::Asking;
use crate::oauth::sign_ins::{self, SignedIn};
use crate::oauth::{AuthorizationRequest, Event, Refusal, StepFault};

/// Asks whether an app may act for a person. `signed_in` is who, where a further
/// sign-in is not needed once it is approved.
pub(super) fn ask(
    visit: &Visit,
    request: AuthorizationRequest,
    signed_in: Option<&SignedIn>,
) -> Response {
    let ways = Ways::of(visit, request.resource.tenant.as_ref());
    let person = signed_in.map(|signed_in| login::called(&signed_in.person));
    let next = match ways.only_provider() {
        Some((_, provider)) => {
            let host = provider.issuer.split("://").nth(1).unwrap_or_default();
            let host = host.split('/').next().unwrap_or_default();
            format!("If you approve, you sign in at {host} next.")
        }
        None => "If you approve, you sign in next.".to_owned(),
    };
    let mut jar = visit.jar();
    let browser = Browser::of(visit);
    let step = Step::Consent {
        signed_in: signed_in.map(|signed_in| signed_in.id),
    };
    let redirect_uri = request.redirect_uri.clone();
    let view = ConsentPage {
        frame: visit.frame(),
        client: ClientView::of(&request.client),
        target: Target::of(&request),
        scopes: request
            .scopes
            .iter()
            .map(|scope| visit.scope(scope.as_str()))
            .collect(),
        tenant: request
            .resource
            .tenant
            .as_ref()
            .map(|tenant| name(tenant.as_str())),
        person,
        next,
        flow: Flow::new(visit, Goal::App(Box::new(request)), step).seal(visit, &browser),
    };
    browser.put(&mut jar);
    let forms = Forms::Leading {
        redirect_uri: Some(&redirect_uri),
        plain: ways.has_plain(),
    };
    jar.onto(page(StatusCode::OK, &view, forms))
}

/// `POST /oauth/consent`
pub(in crate::http) async fn post(Posted { visit, form }: Posted) -> Response {
    let flow = form.one("flow").and_then(|text| Flow::open(&visit, text));
    let Some(Flow { goal, step, .. }) = flow else {
        return problems::stale(&visit);
    };
    let Goal::App(request) = goal else {
        return problems::stale(&visit);
    };
    let answered = match step {
        Step::Consent { signed_in } => consented(&visit, &form, *request.clone(), signed_in).await,
        Step::Choose { signed_in, tenant } => {
            chosen(&visit, &form, *request.clone(), (signed_in, tenant)).await
        }
        _ => return problems::stale(&visit),
    };
    answered.unwrap_or_else(|fault| fail(&visit, &request, &fault))
}

async fn consented(
    visit: &Visit,
    form: &Form,
    request: AuthorizationRequest,
    signed_in: Option<uuid::Uuid>,
) -> Result<Response, StepFault> {
    let goal = |request| Goal::App(Box::new(request));
    let prompt = request.prompt;
    let asking = Asking {
        none: false,
        login: prompt.login,
        select_account: prompt.select_account,
    };
    match form.one("decision") {
        Some("approve") => {
            let Some(id) = signed_in else {
                let hint = request.login_hint.clone();
                return login::ask(visit, goal(request), true, asking, hint.as_deref()).await;
            };
            let Some(signed_in) = sign_ins::find(&visit.site(), id, visit).await? else {
                return login::ask(visit, goal(request), true, asking, None).await;
            };
            proceed::proceed(visit, Case::new(request, true, signed_in)).await
        }
        Some("switch") => {
            // Another person has not said yes yet: they are asked after they signed in.
            let asking = Asking {
                select_account: true,
                ..asking
            };
            login::ask(visit, goal(request), false, asking, None).await
        }
        _ => Err(denied(visit, &request, None)),
    }
}

async fn chosen(
    visit: &Visit,
    form: &Form,
    request: AuthorizationRequest,
    (signed_in, tenant): (uuid::Uuid, Option<TenantId>),
) -> Result<Response, StepFault> {
    let Some(signed_in) = sign_ins::find(&visit.site(), signed_in, visit).await? else {
        return Ok(problems::stale(visit));
    };
    if form.one("decision") != Some("approve") {
        return Err(denied(visit, &request, Some(&signed_in)));
    }
    let mut case = Case::new(request, true, signed_in);
    if let Some(tenant) = tenant {
        let asked = case.request.scopes.iter();
        let kept = asked.filter(|scope| {
            ALWAYS.contains(&scope.as_str()) || form.all("scope").any(|kept| kept == scope.as_str())
        });
        let kept: Vec<Scope> = kept.cloned().collect();
        case = case.with_scopes(kept).within(tenant);
    } else if let Some(tenant) = form.one("tenant") {
        case = case.within(TenantId::from(tenant));
    }
    proceed::proceed(visit, case).await
}

fn denied(
    visit: &Visit,
    request: &AuthorizationRequest,
    signed_in: Option<&SignedIn>,
) -> StepFault {
    visit.count(Event::Denied {
        subject: signed_in.map(|signed_in| signed_in.person.own_subject()),
        client: request.client.id.clone(),
    });
    Refusal::AccessDenied("the person said no").into()
}

/// Whether a sign-in alone is enough to act on a person's yes: people of an identity
/// provider go there for each app, so that it has the last word.
pub(super) fn is_enough(signed_in: &SignedIn) -> bool {
    signed_in.person.provider.as_str() == LOCAL_PROVIDER
}
