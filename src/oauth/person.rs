//! Somebody who has signed in, and what was approved.

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::administration::AdminClaim;
use crate::ids::{Issuer, ProviderId, Role, Scope, Subject, TenantId};
use crate::secret::Secret;

/// Somebody whom an identity provider (or the list of local users) vouches for.
#[derive(Clone, Debug)]
pub struct Person {
    /// Who vouches: an entry of `identity_providers`, or `config::LOCAL_PROVIDER`.
    pub provider: ProviderId,
    /// The provider's `iss`.
    pub issuer: Issuer,
    /// The provider's `sub`.
    pub subject: Subject,
    /// What the person is called.
    pub name: Option<String>,
    /// The e-mail address.
    pub email: Option<String>,
    /// The tenants that the person belongs to, with the roles there.
    pub memberships: Vec<Membership>,
    /// What entries of `admins` ask for and the provider says.
    pub admin_claims: Vec<AdminClaim>,
    /// With this the provider can be asked later whether the person is still there.
    pub refresh_token: Option<Secret<String>>,
}

/// A person's place in a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The tenant.
    pub tenant: TenantId,
    /// The roles there.
    pub roles: Vec<Role>,
}

/// What was said yes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The tenant; one of the person's.
    pub tenant: TenantId,
    /// The scopes; some of those asked for.
    pub scopes: Vec<Scope>,
}

impl Person {
    /// Our `sub`: a digest of the provider's issuer and subject, so that two
    /// providers' people are never one, and no provider's identifier leaves.
    pub fn own_subject(&self) -> Subject {
        own_subject(&self.issuer, &self.subject)
    }

    /// The person's place in a tenant.
    pub fn membership(&self, tenant: &TenantId) -> Option<&Membership> {
        self.memberships.iter().find(|one| one.tenant == *tenant)
    }
}

/// See [`Person::own_subject`].
pub fn own_subject(issuer: &Issuer, subject: &Subject) -> Subject {
    let mut context = Context::new(&SHA256);
    for text in [issuer.as_str(), subject.as_str()] {
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
    }
    Subject::new(URL_SAFE_NO_PAD.encode(context.finish().as_ref()))
}
