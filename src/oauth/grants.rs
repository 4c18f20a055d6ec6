//! Grants: a person's consent to a client, and the codes and families of tokens that
//! come of it (`rules.md` §4.4).

use time::OffsetDateTime;
use uuid::Uuid;

use super::ledger::make;
use super::redirect::without_port;
use super::tokens::{digest_of, new_id, new_secret};
use super::{
    Approval, AuthorizationRequest, AuthorizationServer, ClientKind, Event, Ledger, Membership,
    Person, Refusal, Settings, Site, StepFault, Unrecorded,
};
use crate::ids::{ClientId, Subject, TenantId};
use crate::store::StoreError;
use crate::store::oauth_families::NewFamily;
use crate::store::oauth_grants::Grant;

/// The exchange that revocations are told to other replicas by.
pub const EXCHANGE: &str = "oauth";
/// A replica that has not been heard of for so long is gone.
const LIVE_SECONDS: u32 = 15;

/// Whether the person has consented before, so that nobody need be asked again: to
/// this client, for this redirect, tenant and at least these scopes. Only clients
/// whose identity is proven are remembered (`rules.md` §4.4).
///
/// # Errors
/// When the database cannot be asked.
pub async fn is_remembered(
    site: &Site<'_>,
    request: &AuthorizationRequest,
    person: &Person,
    approval: &Approval,
) -> Result<bool, StepFault> {
    if !request.client.proven || request.prompt.consent {
        return Ok(false);
    }
    let known = site
        .server
        .store
        .find_grant(
            &approval.tenant,
            person.own_subject().as_str(),
            request.client.id.as_str(),
            &without_port(&request.redirect_uri),
        )
        .await?;
    Ok(known.is_some_and(|grant| {
        let granted = site.settings.implied_by(&grant.scopes);
        let covered = |scope| granted.contains(scope);
        grant.remembered && approval.scopes.iter().all(covered)
    }))
}

/// Makes the grant (or finds the person's earlier one) and a code of it, and gives the
/// place where the browser goes. Client and redirect are judged again: the request may
/// have waited in a cookie.
///
/// # Errors
/// When the approval does not fit person and request, or the database is away.
pub async fn authorize(
    site: &Site<'_>,
    request: &AuthorizationRequest,
    person: &Person,
    approval: &Approval,
    ledger: &dyn Ledger,
) -> Result<String, StepFault> {
    let membership = fitting(site, request, person, approval)?;
    if site.client(request.client.id.as_str()).await.is_err() {
        return Err(StepFault::Page("the client is not known any more"));
    }
    let server = site.server;
    let now = server.clock.now();
    let scopes: Vec<String> = approval.scopes.iter().map(ToString::to_string).collect();
    let code = new_secret();
    let family = NewFamily {
        family_id: new_id(),
        code_digest: digest_of(code.expose()),
        code_expires_at: now + site.settings.server.code_lifetime.0,
        code_challenge: request.code_challenge.clone(),
        redirect_uri: request.redirect_uri.clone(),
        resource: request.resource.url.clone(),
        scopes: scopes.clone(),
        roles: membership.roles.iter().map(ToString::to_string).collect(),
        ends_at: now + lasts(site, person),
    };
    let mut grant = grant_of(server, request, person, approval, scopes, now);
    let earlier = server
        .store
        .find_grant(
            &approval.tenant,
            &grant.subject,
            &grant.client_id,
            &grant.redirect_uri,
        )
        .await?;
    if let Some(earlier) = earlier {
        grant.grant_id = earlier.grant_id;
    }
    ledger.record(consented(&grant, approval)).await?;
    let grant_id = server.store.insert_grant(&grant, &family).await?;
    if grant_id != grant.grant_id {
        // The same person was faster in another window: that one's consent counts.
        ledger.note(consented(&grant, approval), Some("another one is older"));
        grant.grant_id = grant_id;
        ledger.record(consented(&grant, approval)).await?;
    }
    if request.client.kind == ClientKind::Registered {
        server
            .store
            .update_oauth_client_used(request.client.id.as_str(), now)
            .await?;
    }
    Ok(request.granted(code.expose()))
}

/// The person's place in the tenant, where the approval is one that they could give.
fn fitting<'p>(
    site: &Site<'_>,
    request: &AuthorizationRequest,
    person: &'p Person,
    approval: &Approval,
) -> Result<&'p Membership, Refusal> {
    const NOWHERE: Refusal = Refusal::AccessDenied("the person has no place in the tenant");
    let fixed = request.resource.tenant.as_ref();
    let membership = person
        .membership(&approval.tenant)
        .filter(|one| site.settings.tenants.contains(&one.tenant))
        .filter(|one| fixed.is_none_or(|fixed| *fixed == one.tenant))
        .ok_or(NOWHERE)?;
    let asked = |scope| request.scopes.contains(scope);
    if approval.scopes.is_empty() || !approval.scopes.iter().all(asked) {
        return Err(Refusal::InvalidScope);
    }
    Ok(membership)
}

fn consented(grant: &Grant, approval: &Approval) -> Event {
    Event::Consented {
        tenant: approval.tenant.clone(),
        subject: Subject::from(grant.subject.as_str()),
        client: ClientId::from(grant.client_id.as_str()),
        grant: grant.grant_id,
        scopes: grant.scopes.join(" "),
    }
}

/// How long a person stays signed in: shorter where nobody can be asked whether they
/// are still there.
fn lasts(site: &Site<'_>, person: &Person) -> std::time::Duration {
    let longest = site.settings.server.sign_in_lifetime.0;
    let provider = site.settings.providers.get(&person.provider);
    match provider.and_then(|provider| provider.login.as_ref()) {
        Some(login) if person.refresh_token.is_none() => longest.min(login.unchecked_lifetime.0),
        _ => longest,
    }
}

fn grant_of(
    server: &AuthorizationServer,
    request: &AuthorizationRequest,
    person: &Person,
    approval: &Approval,
    scopes: Vec<String>,
    now: OffsetDateTime,
) -> Grant {
    let subject = person.own_subject();
    let provider_token = person.refresh_token.as_ref().map(|token| {
        server
            .provider_tokens
            .seal(token.expose().as_bytes(), subject.as_str().as_bytes())
    });
    Grant {
        grant_id: new_id(),
        tenant: approval.tenant.to_string(),
        subject: subject.to_string(),
        client_id: request.client.id.to_string(),
        client_name: request.client.name.clone(),
        redirect_uri: without_port(&request.redirect_uri),
        scopes,
        remembered: request.client.proven,
        provider: person.provider.to_string(),
        provider_issuer: person.issuer.to_string(),
        provider_subject: person.subject.to_string(),
        provider_token,
        person_name: person.name.clone(),
        person_email: person.email.clone(),
        created_at: now,
        used_at: now,
        checked_at: now,
    }
}

/// A person's grants in a tenant, the last used first.
///
/// # Errors
/// When the database cannot be asked.
pub async fn list(
    server: &AuthorizationServer,
    tenant: &TenantId,
    subject: &Subject,
) -> Result<Vec<Grant>, StoreError> {
    server
        .store
        .list_grants(tenant, Some(subject.as_str()), None)
        .await
}

/// Ends a grant: its families with their refresh tokens now, its access tokens on
/// every replica within a second. Nothing where there is none.
///
/// # Errors
/// When it cannot be put on record, or the database cannot be asked.
pub async fn revoke<E>(
    server: &AuthorizationServer,
    settings: &Settings,
    (tenant, grant_id): (&TenantId, Uuid),
    reason: &'static str,
    ledger: &dyn Ledger,
) -> Result<(), E>
where
    E: From<Unrecorded> + From<StoreError>,
{
    let Some(grant) = server.store.find_grant_by_id(tenant, grant_id).await? else {
        return Ok(());
    };
    let revoked = Event::Revoked {
        tenant: tenant.clone(),
        subject: Subject::new(grant.subject),
        client: ClientId::new(grant.client_id),
        revoked: grant_id,
        reason,
    };
    let until = server.tokens_end(settings);
    let deleted = server.store.delete_grant(tenant, grant_id, until);
    if make::<E>(ledger, revoked, deleted).await? {
        server.tell_revoked().await;
    }
    Ok(())
}

impl AuthorizationServer {
    /// When every access token that lives now has expired, the leeway of resource
    /// servers included.
    pub(super) fn tokens_end(&self, settings: &Settings) -> OffsetDateTime {
        // The longest that a configuration allows: it may have been longer a moment ago.
        let longest = std::time::Duration::from_hours(1);
        let lifetime = settings.server.access_token_lifetime.0.max(longest);
        self.clock.now() + lifetime + std::time::Duration::from_mins(5)
    }

    /// Wakes the other replicas to look for revocations. One that does not hear looks
    /// by itself within a second.
    pub(super) async fn tell_revoked(&self) {
        let told = self
            .store
            .insert_message_for_all(self.replica, LIVE_SECONDS, EXCHANGE, b"{}")
            .await;
        if let Err(error) = told {
            tracing::debug!(%error, "Other replicas could not be woken; they look by themselves.");
        }
        self.revoked.notify_one();
    }

    /// Waits until something was revoked by this replica.
    pub async fn revocation(&self) {
        self.revoked.notified().await;
    }

    /// Forgets what has ended by itself.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn tidy(&self, settings: &Settings) -> Result<(), StoreError> {
        let now = self.clock.now();
        let store = &self.store;
        store.delete_expired_families(now).await?;
        store
            .delete_idle_grants(now - settings.server.sign_in_lifetime.0)
            .await?;
        store
            .delete_unused_oauth_clients(now - settings.server.registration.unused_for.0)
            .await?;
        store.delete_expired_revocations(now).await?;
        store.delete_expired_signing_keys(now).await?;
        store.delete_expired_sign_ins(now).await?;
        Ok(())
    }
}
