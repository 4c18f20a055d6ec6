//! Grants: a person's consent to a client, and the codes and families of tokens that
//! come of it.

use super::{Approval, AuthorizationRequest, Event, Person, Refusal, Site, StepFault};

/// A code was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorized {
    /// Where the browser goes.
    pub location: String,
    /// What happened.
    pub events: Vec<Event>,
}

/// Whether the person has consented before, so that nobody need be asked again: to
/// this client, for this redirect, tenant and at least these scopes. Only clients
/// whose identity is proven are remembered (`rules.md` §4.4).
///
/// # Errors
/// When the database cannot be asked.
#[expect(clippy::unused_async, reason = "it asks the store")]
pub async fn is_remembered(
    _site: &Site<'_>,
    _request: &AuthorizationRequest,
    _person: &Person,
    _approval: &Approval,
) -> Result<bool, StepFault> {
    Ok(false)
}

/// Makes the grant (or finds the person's earlier one) and a code of it.
///
/// # Errors
/// When the approval does not fit person and request, or the database is away.
#[expect(clippy::unused_async, reason = "it writes to the store")]
pub async fn authorize(
    _site: &Site<'_>,
    _request: &AuthorizationRequest,
    _person: &Person,
    _approval: &Approval,
) -> Result<Authorized, StepFault> {
    Err(Refusal::TemporarilyUnavailable.into())
}
