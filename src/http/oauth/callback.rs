//! `/oauth/callback`: what an identity provider says of a person. Each answer counts
//! once, in the browser that was sent there, from the provider that was asked.

use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::Response;

use super::cookies::Jar;
use super::flow::{self, Flow, Goal, LIFETIME, Step};
use super::visit::Visit;
use super::{fail_goal, login, problems};
use crate::config::{IdentityProvider, Login};
use crate::identity::{IdentityFault, PersonClaims};
use crate::ids::{Issuer, ProviderId};
use crate::jose::Claims;
use crate::oauth::federation::{
    Expected, FederationFault, IdTokenFault, Return, Secrets, Tokens, judge,
};
use crate::oauth::{Event, Membership, Person, Refusal, StepFault, administration, sign_ins};

/// `GET /oauth/callback`
pub(in crate::http) async fn get(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let mut jar = visit.jar();
    let Some(back) = returned(query.as_deref().unwrap_or_default()) else {
        return problems::stale(&visit);
    };
    let flow = back
        .state
        .as_deref()
        .and_then(|state| flow::kept(&visit, state, &mut jar));
    let Some(Flow {
        goal,
        step:
            Step::AtProvider {
                provider,
                secrets,
                consented,
            },
        ..
    }) = flow
    else {
        return jar.onto(problems::stale(&visit));
    };
    let asked = Asked {
        provider,
        secrets,
        consented,
    };
    let answered = answered(&visit, goal.clone(), asked, &back, jar).await;
    answered.unwrap_or_else(|fault| fail_goal(&visit, &goal, &fault))
}

struct Asked {
    provider: ProviderId,
    secrets: Secrets,
    consented: bool,
}

/// Why an answer makes nobody known; each has its words for the log.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Federation(#[from] FederationFault),
    #[error(transparent)]
    IdToken(#[from] IdTokenFault),
    #[error(transparent)]
    Identity(#[from] IdentityFault),
}

/// The parameters that count, each at most once (RFC 6749 §3.1).
fn returned(query: &str) -> Option<Return> {
    let mut back = Return::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let place = match &*name {
            "code" => &mut back.code,
            "state" => &mut back.state,
            "error" => &mut back.error,
            "iss" => &mut back.iss,
            _ => continue,
        };
        if place.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    Some(back)
}

async fn answered(
    visit: &Visit,
    goal: Goal,
    asked: Asked,
    back: &Return,
    jar: Jar,
) -> Result<Response, StepFault> {
    let site = visit.site();
    let state = &asked.secrets.state;
    let same = back
        .state
        .as_ref()
        .is_some_and(|given| crate::secret::same(given.as_bytes(), state.as_bytes()));
    let lifetime = time::Duration::seconds(LIFETIME);
    if !same || !sign_ins::spend(&site, state, lifetime).await? {
        return Ok(jar.onto(problems::stale(visit)));
    }
    let known = site.settings.providers.get(&asked.provider);
    let Some((config, login)) = known.and_then(|config| Some((config, config.login.as_ref()?)))
    else {
        return Ok(jar.onto(problems::no_way_in(visit)));
    };
    match person(visit, &asked, config, login, back).await {
        Ok((person, untrusted)) => {
            for _ in untrusted {
                refused(visit, &goal, Some(&person), "tenant_not_trusted");
            }
            login::arrived(visit, goal, asked.consented, person, jar).await
        }
        Err(fault) => {
            tracing::warn!(provider.id = %asked.provider, error = %fault, "An identity provider's answer made nobody known.");
            let response = told(visit, &goal, &fault)?;
            Ok(jar.onto(response))
        }
    }
}

/// What the browser is told of a sign-in that failed at the provider.
fn told(visit: &Visit, goal: &Goal, fault: &Fault) -> Result<Response, StepFault> {
    let refusal = match fault {
        Fault::Federation(FederationFault::Refused(error)) => match error.as_str() {
            "login_required" | "interaction_required" | "account_selection_required" => {
                Refusal::LoginRequired
            }
            "consent_required" => Refusal::ConsentRequired,
            "temporarily_unavailable" | "server_error" => Refusal::TemporarilyUnavailable,
            _ => Refusal::AccessDenied("the identity provider refused the sign-in"),
        },
        Fault::Federation(FederationFault::MixedUp) | Fault::IdToken(_) | Fault::Identity(_) => {
            refused(visit, goal, None, "provider_answer");
            // Whoever made this answer must not learn what the app would have got.
            return Ok(problems::message(
                visit,
                StatusCode::BAD_REQUEST,
                "This sign-in was not accepted",
                &[
                    "What your identity provider answered does not fit the question. Nothing was allowed.",
                    "Go back to your app and start again. If it happens again, tell your administrator: the log says why.",
                ],
                None,
            ));
        }
        Fault::Federation(_) => return Ok(problems::provider_away(visit)),
    };
    refused(visit, goal, None, "provider_refused");
    Err(refusal.into())
}

fn refused(visit: &Visit, goal: &Goal, person: Option<&Person>, reason: &'static str) {
    visit.count(Event::Refused {
        subject: person.map(Person::own_subject),
        client: login::client(goal),
        reason,
    });
}

/// The person that an answer is about, and the tenants that the provider put them
/// in and may not speak for.
async fn person(
    visit: &Visit,
    asked: &Asked,
    config: &IdentityProvider,
    login: &Login,
    back: &Return,
) -> Result<(Person, Vec<crate::ids::TenantId>), Fault> {
    let site = visit.site();
    let federation = site.server.federation();
    let code = federation.arrive(config, back).await?;
    let tokens = federation
        .exchange(config, login, &visit.callback(), code, &asked.secrets)
        .await?;
    let id_token = tokens.id_token.as_deref().unwrap_or_default();
    let identity = &visit.snapshot.identity;
    let claims = identity.signed_claims(&asked.provider, id_token).await?;
    judge(
        &claims,
        Expected {
            issuer: &config.issuer,
            client_id: &login.client_id,
            nonce: Some(&asked.secrets.nonce),
            now: site.server.clock().unix_seconds(),
        },
    )?;
    let (described, claims) = described(visit, asked, config, &tokens, claims).await?;
    let membership = |tenant: &crate::ids::TenantId| Membership {
        tenant: tenant.clone(),
        roles: described.roles.clone(),
    };
    let person = Person {
        provider: asked.provider.clone(),
        issuer: Issuer::from(config.issuer.as_str()),
        subject: described.subject.clone(),
        name: described.name.clone(),
        email: described.email.clone(),
        memberships: described.tenants.iter().map(membership).collect(),
        admin_claims: administration::wanted(site.settings, &asked.provider, &claims),
        refresh_token: tokens.refresh_token,
    };
    Ok((person, described.untrusted))
}

/// What the claims say, and they. Where the ID token leaves out the tenant, the roles
/// or what `admins` asks for, the provider's userinfo is asked; what the ID token says
/// counts.
async fn described(
    visit: &Visit,
    asked: &Asked,
    config: &IdentityProvider,
    tokens: &Tokens,
    mut claims: Claims,
) -> Result<(PersonClaims, Claims), Fault> {
    let identity = &visit.snapshot.identity;
    let person = identity.person(&asked.provider, &claims)?;
    let needed = (person.tenants.is_empty() && person.untrusted.is_empty())
        || (person.roles.is_empty() && !claims.contains_key(&config.claims.roles))
        || administration::lacks_wanted(visit.site().settings, &asked.provider, &claims);
    if !needed {
        return Ok((person, claims));
    }
    let federation = visit.edge.oauth.federation();
    let subject = person.subject.as_str();
    let more = federation
        .userinfo(config, subject, &tokens.access_token)
        .await;
    match more {
        Ok(Some(more)) => {
            for (name, value) in more {
                claims.entry(name).or_insert(value);
            }
            Ok((identity.person(&asked.provider, &claims)?, claims))
        }
        Ok(None) => Ok((person, claims)),
        Err(fault) if person.tenants.is_empty() => Err(fault.into()),
        // Roles that nobody knows of are roles that the person has not.
        Err(fault) => {
            tracing::warn!(provider.id = %asked.provider, error = %fault, "An identity provider's userinfo cannot be had; the person has only what the ID token says.");
            Ok((person, claims))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_comes_twice_makes_the_answer_nobodys() {
        let back = returned("code=a%20b&state=s&iss=https%3A%2F%2Fidp&session_state=x").unwrap();
        assert_eq!(back.code.as_deref(), Some("a b"));
        assert_eq!(back.iss.as_deref(), Some("https://idp"));
        assert!(returned("code=a&code=b&state=s").is_none());
        assert!(returned("code=a&state=s&state=t").is_none());
    }
}
