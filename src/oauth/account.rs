//! A person's own view of what they have let in.

use time::OffsetDateTime;
use uuid::Uuid;

use super::redirect::{redirect_kind, shown_host};
use super::{Event, Person, RedirectKind, Site, StepFault, grants};
use crate::ids::{Scope, TenantId};
use crate::store::oauth_grants::Grant;

/// An app that a person has let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The grant.
    pub id: Uuid,
    /// Where.
    pub tenant: TenantId,
    /// What the app called itself; its own word.
    pub client_name: String,
    /// Whether nobody else can answer for it.
    pub proven: bool,
    /// What kind of place its answers go to.
    pub redirect: Option<RedirectKind>,
    /// That place.
    pub redirect_host: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Since when.
    pub created_at: OffsetDateTime,
    /// When it last got tokens, after the first time.
    pub used_at: Option<OffsetDateTime>,
}

/// Every app that the person has let in, in all their tenants, the last used first.
///
/// # Errors
/// When the database is away.
pub async fn connected(site: &Site<'_>, person: &Person) -> Result<Vec<Connected>, StepFault> {
    let subject = person.own_subject();
    let mut all = Vec::new();
    for membership in &person.memberships {
        all.extend(grants::list(site.server, &membership.tenant, &subject).await?);
    }
    all.sort_by_key(|grant| std::cmp::Reverse(grant.used_at));
    let schemes = &site.settings.server.registration.private_use_schemes;
    Ok(all.into_iter().map(|grant| view(grant, schemes)).collect())
}

/// Ends a grant of the person. Whose it is is judged once more.
///
/// # Errors
/// When the database is away.
pub async fn revoke(
    site: &Site<'_>,
    person: &Person,
    grant: &Connected,
) -> Result<Vec<Event>, StepFault> {
    let subject = person.own_subject();
    let (server, settings) = (site.server, site.settings);
    let revoked = grants::revoke(server, settings, &grant.tenant, Some(&subject), grant.id);
    Ok(revoked.await?)
}

fn view(grant: Grant, schemes: &[String]) -> Connected {
    Connected {
        id: grant.grant_id,
        tenant: TenantId::new(grant.tenant),
        client_name: grant.client_name,
        proven: grant.remembered,
        redirect: redirect_kind(&grant.redirect_uri, schemes),
        redirect_host: shown_host(&grant.redirect_uri),
        scopes: grant.scopes.into_iter().map(Scope::new).collect(),
        created_at: grant.created_at,
        used_at: (grant.used_at > grant.created_at).then_some(grant.used_at),
    }
}
