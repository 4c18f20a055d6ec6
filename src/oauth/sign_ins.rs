//! Who is signed in, in which browser: made when somebody has proved who they are,
//! used for the account page, for questions that are left before a code, and for
//! finding consents that were given before.
//!
//! A sign-in alone lets no app in. People of an identity provider go there again for
//! each app, so that the provider has the last word.

use time::Duration;
use uuid::Uuid;

use super::administration::{AdminClaim, Administration};
use super::{Ledger, Membership, Person, Settings, Site, StepFault, local};
use crate::clock;
use crate::config::LOCAL_PROVIDER;
use crate::ids::{Issuer, ProviderId, Role, Subject, TenantId};
use crate::secret::Secret;
use crate::store::StoreError;
use crate::store::oauth_sign_ins::SignInRow;

/// How long somebody stays signed in to the pages.
pub const LIFETIME: Duration = Duration::hours(8);

/// Somebody who is signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// Which sign-in.
    pub id: Uuid,
    /// Who; without the provider's refresh token.
    pub person: Person,
}

impl SignedIn {
    /// What they may administer now.
    pub fn administration(&self, settings: &Settings) -> Administration {
        Administration::of(settings, &self.person)
    }
}

/// Keeps a person's sign-in.
///
/// # Errors
/// When the database is away.
pub async fn open(site: &Site<'_>, person: &Person) -> Result<SignedIn, StepFault> {
    let now = site.server.clock().now();
    let id = Uuid::from_bytes(clock::random());
    let sealer = site.server.provider_tokens();
    let row = SignInRow {
        id,
        subject: person.own_subject().as_str().to_owned(),
        provider: person.provider.as_str().to_owned(),
        issuer: person.issuer.as_str().to_owned(),
        provider_subject: person.subject.as_str().to_owned(),
        name: person.name.clone(),
        email: person.email.clone(),
        memberships: write(&person.memberships),
        admin_claims: write_claims(&person.admin_claims),
        refresh_token: person
            .refresh_token
            .as_ref()
            .map(|token| sealer.seal(token.expose().as_bytes(), id.as_bytes())),
        created_at: now,
        checked_at: now,
        expires_at: now + LIFETIME,
    };
    site.server.store().insert_sign_in(&row).await?;
    let person = Person {
        refresh_token: None,
        ..person.clone()
    };
    Ok(SignedIn { id, person })
}

/// Who is signed in under this id, as the configuration sees them now: somebody who
/// was removed from it, or whose provider was, is signed in no more. About somebody who
/// administers the provider is asked again every few minutes.
///
/// # Errors
/// When the database is away.
pub async fn find(
    site: &Site<'_>,
    id: Uuid,
    ledger: &dyn Ledger,
) -> Result<Option<SignedIn>, StepFault> {
    let (now, store) = (site.server.clock().now(), site.server.store());
    let Some(mut row) = store.find_sign_in(id, now).await? else {
        return Ok(None);
    };
    if site.is_due(&row) {
        site.check_sign_in(&row, ledger).await?;
        let Some(checked) = store.find_sign_in(id, now).await? else {
            return Ok(None);
        };
        row = checked;
    }
    if row.provider == LOCAL_PROVIDER {
        let user = site.settings.users.get(&row.provider_subject);
        return Ok(user.map(|user| SignedIn {
            id,
            person: local::person(&row.provider_subject, user, &row.issuer),
        }));
    }
    let provider = ProviderId::from(row.provider.as_str());
    let stands = site.settings.providers.get(&provider);
    if !stands.is_some_and(|known| known.login.is_some() && known.issuer == row.issuer) {
        return Ok(None);
    }
    let inconsistent = || StoreError::Inconsistent("sign-in");
    let memberships = read(&row.memberships).ok_or_else(inconsistent)?;
    let admin_claims = read_claims(&row.admin_claims).ok_or_else(inconsistent)?;
    let person = Person {
        provider,
        issuer: Issuer::from(row.issuer.as_str()),
        subject: Subject::from(row.provider_subject.as_str()),
        name: row.name,
        email: row.email,
        memberships,
        admin_claims,
        refresh_token: None,
    };
    Ok(Some(SignedIn { id, person }))
}

/// The person with the provider's refresh token, which goes to whoever asks first.
///
/// # Errors
/// When the database is away.
pub async fn take(site: &Site<'_>, signed_in: &SignedIn) -> Result<Person, StepFault> {
    let mut person = signed_in.person.clone();
    let sealed = site.server.store().take_sign_in_token(signed_in.id).await?;
    // Sealed with a key that is gone: as if the provider had given none.
    person.refresh_token = sealed
        .and_then(|sealed| {
            let tokens = site.server.provider_tokens();
            tokens.open(&sealed, signed_in.id.as_bytes()).ok()
        })
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(Secret::new);
    Ok(person)
}

/// Signs out.
///
/// # Errors
/// When the database is away.
pub async fn close(site: &Site<'_>, id: Uuid) -> Result<(), StepFault> {
    Ok(site.server.store().delete_sign_in(id).await?)
}

/// Takes a provider's answer for used: `false` where it was used before, by whatever replica.
///
/// # Errors
/// When the database is away.
pub async fn spend(site: &Site<'_>, state: &str, lifetime: Duration) -> Result<bool, StepFault> {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, state.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    let until = site.server.clock().now() + lifetime;
    Ok(site
        .server
        .store()
        .insert_spent_state(&bytes, until)
        .await?)
}

pub(super) fn write(memberships: &[Membership]) -> String {
    let pairs: Vec<(&TenantId, &[Role])> = memberships
        .iter()
        .map(|one| (&one.tenant, one.roles.as_slice()))
        .collect();
    serde_json::to_string(&pairs).unwrap_or_default()
}

pub(super) fn read(text: &str) -> Option<Vec<Membership>> {
    let pairs: Vec<(TenantId, Vec<Role>)> = serde_json::from_str(text).ok()?;
    let membership = |(tenant, roles)| Membership { tenant, roles };
    Some(pairs.into_iter().map(membership).collect())
}

pub(super) fn write_claims(claims: &[AdminClaim]) -> String {
    serde_json::to_string(claims).unwrap_or_default()
}

pub(super) fn read_claims(text: &str) -> Option<Vec<AdminClaim>> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memberships_are_read_as_they_were_written() {
        let memberships = vec![
            Membership {
                tenant: "acme".into(),
                roles: vec!["support".into(), "odd \"role\"".into()],
            },
            Membership {
                tenant: "globex".into(),
                roles: Vec::new(),
            },
        ];
        assert_eq!(read(&write(&memberships)), Some(memberships));
        assert_eq!(read("{}"), None);
    }
}
