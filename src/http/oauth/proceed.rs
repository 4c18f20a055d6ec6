//! What is left between a person and an app's code: which tenant, which scopes,
//! consent where it was not given before the sign-in. Mostly nothing.

use axum::http::StatusCode;
use axum::response::Response;

use super::flow::{Browser, Flow, Goal, Step};
use super::visit::Visit;
use super::ways::Ways;
use super::{consent, login};
use crate::http::pages::{ChoosePage, Forms, Offer, ScopeView, name, onward, page};
use crate::ids::{Role, Scope, TenantId};
use crate::oauth::sign_ins::{self, SignedIn};
use crate::oauth::{
    Approval, AuthorizationRequest, BASE_SCOPE, Event, OFFLINE_ACCESS, Refusal, StepFault, grants,
};
use crate::visibility;

/// A request and what is known of its answer.
pub(super) struct Case {
    pub(super) request: AuthorizationRequest,
    /// Whether the person said yes on the way here.
    consented: bool,
    signed_in: SignedIn,
    tenant: Option<TenantId>,
    scopes: Option<Vec<Scope>>,
}

impl Case {
    pub(super) fn new(request: AuthorizationRequest, consented: bool, signed_in: SignedIn) -> Self {
        Self {
            request,
            consented,
            signed_in,
            tenant: None,
            scopes: None,
        }
    }

    /// With the tenant that was chosen.
    pub(super) fn within(mut self, tenant: TenantId) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// With the scopes that were left ticked.
    pub(super) fn with_scopes(mut self, scopes: Vec<Scope>) -> Self {
        self.scopes = Some(scopes);
        self
    }
}

/// Scopes that belong to no tool: there is nothing to ask about them.
pub(super) const ALWAYS: [&str; 2] = [BASE_SCOPE, OFFLINE_ACCESS];

/// What the scopes of a request come to for a person in a tenant.
#[derive(Default)]
struct Reach {
    /// What can be granted.
    scopes: Vec<Scope>,
    /// Those of them that open tools of their own.
    offers: Vec<Offer>,
    /// What opens nothing for the person.
    narrowed: Vec<ScopeView>,
}

impl Reach {
    fn leaves_a_question(&self) -> bool {
        !self.narrowed.is_empty() || self.offers.iter().any(|offer| offer.changes)
    }
}

/// Goes on until somebody has to be asked, or there is a code.
pub(super) async fn proceed(visit: &Visit, case: Case) -> Result<Response, StepFault> {
    let candidates = candidates(visit, &case);
    let tenant = match candidates.as_slice() {
        [] => return Err(nowhere(visit, &case).into()),
        [only] => only.clone(),
        several => {
            return quiet(&case).map(|()| ask_tenant(visit, &case, several));
        }
    };
    let membership = case.signed_in.person.membership(&tenant);
    let roles = membership.map_or(&[][..], |membership| &membership.roles);
    let reach = reach(visit, &case.request.scopes, &tenant, roles);
    let approval = Approval {
        tenant: tenant.clone(),
        scopes: match &case.scopes {
            Some(kept) => reach
                .scopes
                .iter()
                .filter(|scope| kept.contains(scope))
                .cloned()
                .collect(),
            None => reach.scopes.clone(),
        },
    };
    if approval.scopes.is_empty() {
        return Err(Refusal::InvalidScope.into());
    }
    let person = &case.signed_in.person;
    let remembered = !case.request.prompt.consent
        && grants::is_remembered(&visit.site(), &case.request, person, &approval).await?;
    if !remembered && !case.consented {
        quiet(&case)?;
        return Ok(consent::ask(visit, case.request, Some(&case.signed_in)));
    }
    if !remembered && case.scopes.is_none() && reach.leaves_a_question() {
        return quiet(&case).map(|()| ask_scopes(visit, &case, &tenant, reach));
    }
    authorize(visit, &case, &approval).await
}

/// Whether consent for all of this was given before, as far as that can be known:
/// with several tenants to choose from it was not.
pub(super) async fn is_remembered(
    visit: &Visit,
    request: &AuthorizationRequest,
    signed_in: &SignedIn,
) -> Result<bool, StepFault> {
    if !request.client.proven {
        return Ok(false);
    }
    let case = Case::new(request.clone(), false, signed_in.clone());
    let [tenant] = &*candidates(visit, &case) else {
        return Ok(false);
    };
    let membership = signed_in.person.membership(tenant);
    let roles = membership.map_or(&[][..], |membership| &membership.roles);
    let approval = Approval {
        tenant: tenant.clone(),
        scopes: reach(visit, &request.scopes, tenant, roles).scopes,
    };
    grants::is_remembered(&visit.site(), request, &signed_in.person, &approval).await
}

/// Makes the code.
async fn authorize(visit: &Visit, case: &Case, approval: &Approval) -> Result<Response, StepFault> {
    let site = visit.site();
    let person = sign_ins::take(&site, &case.signed_in).await?;
    let location = grants::authorize(&site, &case.request, &person, approval, visit).await?;
    Ok(onward(&location))
}

/// The person's tenants that exist and that the endpoint is for.
fn candidates(visit: &Visit, case: &Case) -> Vec<TenantId> {
    let fixed = case.request.resource.tenant.as_ref();
    let all = case.signed_in.person.memberships.iter();
    all.map(|membership| &membership.tenant)
        .filter(|tenant| visit.snapshot.oauth.tenants.contains(*tenant))
        .filter(|tenant| fixed.is_none_or(|fixed| fixed == *tenant))
        .filter(|tenant| case.tenant.as_ref().is_none_or(|chosen| chosen == *tenant))
        .cloned()
        .collect()
}

fn nowhere(visit: &Visit, case: &Case) -> Refusal {
    visit.count(Event::Refused {
        subject: Some(case.signed_in.person.own_subject()),
        client: Some(case.request.client.id.clone()),
        reason: "no_tenant",
    });
    Refusal::AccessDenied("the person does not belong to this tenant")
}

/// Whether somebody may be asked at all.
fn quiet(case: &Case) -> Result<(), StepFault> {
    if case.request.prompt.none {
        return Err(Refusal::ConsentRequired.into());
    }
    Ok(())
}

fn reach(visit: &Visit, asked: &[Scope], tenant: &TenantId, roles: &[Role]) -> Reach {
    let mut reach = Reach::default();
    let known = visit.snapshot.tenants.get(tenant);
    let view = visit.edge.catalog.view(tenant);
    let tools = known.map(|known| visibility::reachable(&known, roles, &view));
    let tools = tools.unwrap_or_default();
    for scope in asked {
        if ALWAYS.contains(&scope.as_str()) {
            reach.scopes.push(scope.clone());
            continue;
        }
        let implied = visit.snapshot.oauth.server.implied_by(scope);
        let opened: Vec<_> = tools
            .iter()
            .filter(|tool| tool.rule.scopes.iter().any(|one| implied.contains(one)))
            .collect();
        if opened.is_empty() {
            reach.narrowed.push(visit.scope(scope.as_str()));
            continue;
        }
        reach.scopes.push(scope.clone());
        reach.offers.push(Offer {
            scope: visit.scope(scope.as_str()),
            changes: opened.iter().any(|tool| !tool.definition.read_only()),
            tools: opened
                .iter()
                .map(|tool| name(tool.exposed.as_str()))
                .collect(),
        });
    }
    reach
}

fn ask_tenant(visit: &Visit, case: &Case, tenants: &[TenantId]) -> Response {
    let names = tenants.iter().map(|tenant| tenant.as_str().to_owned());
    show(visit, case, None, names.collect(), Reach::default())
}

fn ask_scopes(visit: &Visit, case: &Case, tenant: &TenantId, reach: Reach) -> Response {
    show(visit, case, Some(tenant), Vec::new(), reach)
}

fn show(
    visit: &Visit,
    case: &Case,
    tenant: Option<&TenantId>,
    tenants: Vec<String>,
    reach: Reach,
) -> Response {
    let mut jar = visit.jar();
    let browser = Browser::of(visit);
    let step = Step::Choose {
        signed_in: case.signed_in.id,
        tenant: tenant.cloned(),
    };
    let goal = Goal::App(Box::new(case.request.clone()));
    let view = ChoosePage {
        frame: visit.frame(),
        client: name(&case.request.client.name),
        person: login::called(&case.signed_in.person),
        tenant: tenant.map_or_else(String::new, |tenant| tenant.as_str().to_owned()),
        tenants,
        offers: reach.offers,
        narrowed: reach.narrowed,
        flow: Flow::new(visit, goal, step).seal(visit, &browser),
    };
    browser.put(&mut jar);
    let forms = Forms::Leading {
        redirect_uri: Some(&case.request.redirect_uri),
        plain: Ways::of(visit, case.request.resource.tenant.as_ref()).has_plain(),
    };
    jar.onto(page(StatusCode::OK, &view, forms))
}
