//! A person's own view of what they have let in.

use time::OffsetDateTime;
use uuid::Uuid;

use super::{ClientKind, Ledger, Person, RedirectKind, Site, StepFault, redirect};
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
    /// How it is known.
    pub kind: ClientKind,
    /// The host of its document, where it is known by one.
    pub document_host: Option<String>,
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
        let grants = super::grants::list(site.server, &membership.tenant, &subject).await?;
        all.extend(grants.into_iter().map(|grant| connection(site, grant)));
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.used_at.unwrap_or(one.created_at)));
    Ok(all)
}

fn connection(site: &Site<'_>, grant: Grant) -> Connected {
    let kind = if site.settings.clients.contains_key(grant.client_id.as_str()) {
        ClientKind::Configured
    } else if grant.client_id.starts_with("https://") {
        ClientKind::Document
    } else {
        ClientKind::Registered
    };
    Connected {
        kind,
        document_host: (kind == ClientKind::Document)
            .then(|| redirect::shown_host(&grant.client_id)),
        id: grant.grant_id,
        tenant: TenantId::new(grant.tenant),
        client_name: grant.client_name,
        redirect: redirect::configured_kind(&grant.redirect_uri),
        redirect_host: redirect::shown_host(&grant.redirect_uri),
        scopes: grant.scopes.into_iter().map(Scope::new).collect(),
        created_at: grant.created_at,
        used_at: (grant.used_at > grant.created_at).then_some(grant.used_at),
    }
}

/// Ends a grant: one of those that [`connected`] gave.
///
/// # Errors
/// When it cannot be put on record, or the database is away.
pub async fn revoke(
    site: &Site<'_>,
    connected: &Connected,
    ledger: &dyn Ledger,
) -> Result<(), StepFault> {
    let grant = (&connected.tenant, connected.id);
    super::grants::revoke(site.server, site.settings, grant, "account", ledger).await
}
