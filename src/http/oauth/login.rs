//! `/oauth/login`: who a person is. By their organisation's identity provider where
//! one is set up, chosen by the endpoint's tenant or by the address's domain; by a
//! password where there are local users.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::flow::{self, Browser, Flow, Goal, Step};
use super::proceed::{self, Case};
use super::visit::{Form, Posted, Visit};
use super::ways::Ways;
use super::{consent, fail_goal, problems};
use crate::http::pages::{Forms, SignInPage, name, onward, page};
use crate::ids::ProviderId;
use crate::limits::address_key;
use crate::oauth::administration::Administration;
use crate::oauth::federation::Asking;
use crate::oauth::local::PasswordFault;
use crate::oauth::sign_ins::{self, SignedIn};
use crate::oauth::{AuthorizationRequest, Event, Ledger as _, Person, Refusal, StepFault};
use crate::secret::Secret;

/// Begins with an app's valid request: the first page that its person sees, or
/// where the browser goes instead.
pub(in crate::http) async fn begin(visit: &Visit, request: AuthorizationRequest) -> Response {
    let begun = begun(visit, request.clone()).await;
    begun.unwrap_or_else(|fault| super::fail(visit, &request, &fault))
}

async fn begun(visit: &Visit, request: AuthorizationRequest) -> Result<Response, StepFault> {
    let prompt = request.prompt;
    let signed_in = current(visit).await?;
    if prompt.none {
        let Some(signed_in) = signed_in else {
            return Err(Refusal::LoginRequired.into());
        };
        return silently(visit, request, signed_in).await;
    }
    let signed_in = signed_in.filter(|_| !prompt.login && !prompt.select_account);
    let enough = signed_in.as_ref().filter(|one| consent::is_enough(one));
    if let Some(known) = &signed_in
        && !prompt.consent
        && proceed::is_remembered(visit, &request, known).await?
    {
        // Whoever signs in at the provider is looked up once more: it may be another person.
        return match enough {
            Some(known) => proceed::proceed(visit, Case::new(request, false, known.clone())).await,
            None => {
                ask(
                    visit,
                    Goal::App(Box::new(request)),
                    false,
                    Asking::default(),
                    None,
                )
                .await
            }
        };
    }
    Ok(consent::ask(visit, request, enough))
}

/// `prompt=none`: a code, or an error at once.
async fn silently(
    visit: &Visit,
    request: AuthorizationRequest,
    signed_in: SignedIn,
) -> Result<Response, StepFault> {
    if !proceed::is_remembered(visit, &request, &signed_in).await? {
        return Err(Refusal::ConsentRequired.into());
    }
    if consent::is_enough(&signed_in) {
        return proceed::proceed(visit, Case::new(request, false, signed_in)).await;
    }
    let asking = Asking {
        none: true,
        ..Asking::default()
    };
    let goal = Goal::App(Box::new(request));
    depart(visit, goal, &signed_in.person.provider, false, asking).await
}

/// Asks who the person is, or sends them to whoever knows.
pub(super) async fn ask(
    visit: &Visit,
    goal: Goal,
    consented: bool,
    asking: Asking,
    hint: Option<&str>,
) -> Result<Response, StepFault> {
    let ways = Ways::of(visit, tenant(&goal));
    if ways.is_empty() {
        return Ok(problems::no_way_in(visit));
    }
    let hinted = hint.and_then(|address| ways.by_address(address));
    if let Some(provider) = ways.only_provider().map(|(id, _)| id).or(hinted) {
        return depart(visit, goal, provider, consented, asking).await;
    }
    let question = Question {
        with_password: ways.only_local(),
        username: hint.unwrap_or_default(),
        problem: None,
    };
    let step = Step::SignIn { consented, asking };
    Ok(show(visit, goal, step, question, StatusCode::OK))
}

struct Question<'a> {
    with_password: bool,
    username: &'a str,
    problem: Option<String>,
}

fn show(
    visit: &Visit,
    goal: Goal,
    step: Step,
    question: Question<'_>,
    status: StatusCode,
) -> Response {
    let mut jar = visit.jar();
    let browser = Browser::of(visit);
    let (client, redirect_uri) = match &goal {
        Goal::App(request) => (
            Some(name(&request.client.name)),
            Some(request.redirect_uri.clone()),
        ),
        Goal::Account | Goal::Continue(_) => (None, None),
    };
    let plain = Ways::of(visit, tenant(&goal)).has_plain();
    let view = SignInPage {
        frame: visit.frame(),
        goes_on: matches!(goal, Goal::Continue(_)),
        client,
        problem: question.problem,
        with_password: question.with_password,
        username: crate::sanitize::shown(question.username, 254),
        flow: Flow::new(visit, goal, step).seal(visit, &browser),
    };
    browser.put(&mut jar);
    let forms = Forms::Leading {
        redirect_uri: redirect_uri.as_deref(),
        plain,
    };
    jar.onto(page(status, &view, forms))
}

/// `GET /oauth/login`: for a person's own page.
pub(in crate::http) async fn get(visit: Visit) -> Response {
    let asked = ask(&visit, Goal::Account, false, Asking::default(), None).await;
    asked.unwrap_or_else(|fault| fail_goal(&visit, &Goal::Account, &fault))
}

/// `POST /oauth/login`
pub(in crate::http) async fn post(Posted { visit, form }: Posted) -> Response {
    let flow = form.one("flow").and_then(|text| Flow::open(&visit, text));
    let Some(Flow {
        goal,
        step: Step::SignIn { consented, asking },
        ..
    }) = flow
    else {
        return problems::stale(&visit);
    };
    let answered = answered(&visit, &form, goal.clone(), (consented, asking)).await;
    answered.unwrap_or_else(|fault| fail_goal(&visit, &goal, &fault))
}

async fn answered(
    visit: &Visit,
    form: &Form,
    goal: Goal,
    (consented, asking): (bool, Asking),
) -> Result<Response, StepFault> {
    let ways = Ways::of(visit, tenant(&goal));
    let username = form.one("username").unwrap_or_default().trim();
    let step = Step::SignIn { consented, asking };
    if let Some(password) = form.one("password").filter(|_| ways.local) {
        let password = Secret::new(password.to_owned());
        return match by_password(visit, username, password).await {
            Ok(person) => arrived(visit, goal, consented, person, visit.jar()).await,
            Err(fault) => Ok(refused(visit, goal, step, username, fault)),
        };
    }
    if let Some(provider) = ways.by_address(username) {
        return depart(visit, goal, provider, consented, asking).await;
    }
    let problem = (!ways.local).then(|| {
        "No sign-in is set up for addresses like this one. Check it, or ask your administrator."
            .to_owned()
    });
    let status = match problem {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let question = Question {
        with_password: ways.local,
        username,
        problem,
    };
    Ok(show(visit, goal, step, question, status))
}

async fn by_password(
    visit: &Visit,
    username: &str,
    password: Secret<String>,
) -> Result<Person, PasswordFault> {
    let site = visit.site();
    let address = address_key(visit.address).to_string();
    let given = (username, password);
    let checked = site
        .server
        .passwords()
        .check(&site.settings.users, &visit.base, given, &address);
    checked.await
}

fn refused(
    visit: &Visit,
    goal: Goal,
    step: Step,
    username: &str,
    fault: PasswordFault,
) -> Response {
    let (status, reason, problem, wait) = match fault {
        PasswordFault::Wrong => (
            StatusCode::FORBIDDEN,
            "wrong_password",
            "E-mail or password is wrong.".to_owned(),
            None,
        ),
        PasswordFault::TooMany { wait } => {
            let minutes = wait.as_secs().div_ceil(60);
            let s = if minutes == 1 { "" } else { "s" };
            (
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_passwords",
                format!("Too many wrong passwords. Try again in {minutes} minute{s}."),
                Some(wait.as_secs().max(1)),
            )
        }
    };
    visit.count(Event::Refused {
        subject: None,
        client: client(&goal),
        reason,
    });
    let question = Question {
        with_password: true,
        username,
        problem: Some(problem),
    };
    let mut response = show(visit, goal, step, question, status);
    if let Some(wait) = wait {
        let wait = HeaderValue::from(wait);
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    response
}

/// Sends the browser to an identity provider.
async fn depart(
    visit: &Visit,
    goal: Goal,
    provider: &ProviderId,
    consented: bool,
    asking: Asking,
) -> Result<Response, StepFault> {
    let site = visit.site();
    let known = site.settings.providers.get(provider);
    let Some((config, login)) = known.and_then(|config| Some((config, config.login.as_ref()?)))
    else {
        return Ok(problems::no_way_in(visit));
    };
    let federation = site.server.federation();
    let callback = visit.callback();
    let departed = federation.depart(config, login, &callback, asking);
    let departure = match departed.await {
        Ok(departure) => departure,
        Err(fault) => {
            tracing::warn!(provider.id = %provider, error = %fault, "Nobody can be sent to an identity provider.");
            return Ok(problems::provider_away(visit));
        }
    };
    let state = departure.secrets.state.clone();
    let step = Step::AtProvider {
        provider: provider.clone(),
        secrets: departure.secrets,
        consented,
    };
    let mut jar = visit.jar();
    let flow = Flow::new(visit, goal, step);
    if !flow::keep(visit, &flow, &state, &mut jar) {
        return Err(Refusal::InvalidRequest("state, scope and redirect_uri are too long").into());
    }
    Ok(jar.onto(onward(&departure.url)))
}

/// Goes on with somebody who has just proved who they are.
pub(super) async fn arrived(
    visit: &Visit,
    goal: Goal,
    consented: bool,
    person: Person,
    mut jar: super::cookies::Jar,
) -> Result<Response, StepFault> {
    visit
        .record(Event::SignedIn {
            subject: person.own_subject(),
            tenant: only_tenant(&person),
            client: client(&goal),
            administers: Administration::of(visit.site().settings, &person).in_words(),
        })
        .await?;
    let signed_in = sign_ins::open(&visit.site(), &person).await?;
    flow::remember(visit, signed_in.id, &mut jar);
    let response = match goal {
        Goal::Account => onward(&visit.path("/account")),
        Goal::Continue(id) => onward(&visit.path(&format!("/account/continue/{}", id.simple()))),
        Goal::App(request) => {
            let case = Case::new((*request).clone(), consented, signed_in);
            let proceeded = proceed::proceed(visit, case).await;
            proceeded.unwrap_or_else(|fault| super::fail(visit, &request, &fault))
        }
    };
    Ok(jar.onto(response))
}

/// Who is signed in to this browser.
pub(super) async fn current(visit: &Visit) -> Result<Option<SignedIn>, StepFault> {
    match flow::remembered(visit) {
        Some(id) => sign_ins::find(&visit.site(), id, visit).await,
        None => Ok(None),
    }
}

/// What a page calls a person.
pub(super) fn called(person: &Person) -> String {
    let given = person.email.as_deref().or(person.name.as_deref());
    let called = crate::sanitize::shown(given.unwrap_or_default(), 80);
    if called.is_empty() {
        "somebody without a name".to_owned()
    } else {
        called
    }
}

fn tenant(goal: &Goal) -> Option<&crate::ids::TenantId> {
    match goal {
        Goal::App(request) => request.resource.tenant.as_ref(),
        Goal::Account | Goal::Continue(_) => None,
    }
}

fn only_tenant(person: &Person) -> Option<crate::ids::TenantId> {
    match person.memberships.as_slice() {
        [only] => Some(only.tenant.clone()),
        _ => None,
    }
}

pub(super) fn client(goal: &Goal) -> Option<crate::ids::ClientId> {
    match goal {
        Goal::App(request) => Some(request.client.id.clone()),
        Goal::Account | Goal::Continue(_) => None,
    }
}
