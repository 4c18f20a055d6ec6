//! The ways to sign in for one endpoint: identity providers, and local users.

use super::visit::Visit;
use crate::config::{IdentityProvider, Login};
use crate::ids::{ProviderId, TenantId};

/// Who can vouch for people who want to use an endpoint.
pub(super) struct Ways<'a> {
    providers: Vec<(&'a ProviderId, &'a IdentityProvider)>,
    /// Whether somebody of the list of local users could.
    pub(super) local: bool,
}

impl<'a> Ways<'a> {
    /// Those that are trusted for a tenant; all of them where none is fixed, and for
    /// one that does not exist.
    pub(super) fn of(visit: &'a Visit, tenant: Option<&TenantId>) -> Self {
        let settings = &visit.snapshot.oauth;
        let tenant = tenant.filter(|tenant| settings.tenants.contains(*tenant));
        let trusted = |provider: &IdentityProvider| {
            provider.login.is_some()
                && tenant.is_none_or(|tenant| {
                    provider.tenants.is_empty() || provider.tenants.contains(tenant)
                })
        };
        let mut users = settings.users.values();
        Self {
            providers: settings
                .providers
                .iter()
                .filter(|(_, provider)| trusted(provider))
                .collect(),
            local: users.any(|user| tenant.is_none_or(|tenant| user.tenants.contains_key(tenant))),
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.providers.is_empty() && !self.local
    }

    /// The provider, if there is no other way.
    pub(super) fn only_provider(&self) -> Option<(&'a ProviderId, &'a IdentityProvider)> {
        match self.providers.as_slice() {
            [only] if !self.local => Some(*only),
            _ => None,
        }
    }

    /// Whether local users are the only way.
    pub(super) fn only_local(&self) -> bool {
        self.providers.is_empty() && self.local
    }

    /// The provider of an address's domain.
    pub(super) fn by_address(&self, address: &str) -> Option<&'a ProviderId> {
        let (_, domain) = address.rsplit_once('@')?;
        let has = |login: &Login| {
            let mut domains = login.email_domains.iter();
            domains.any(|known| known.eq_ignore_ascii_case(domain))
        };
        self.providers
            .iter()
            .find(|(_, provider)| provider.login.as_ref().is_some_and(has))
            .map(|(id, _)| *id)
    }

    /// Whether some provider is at plain http: development.
    pub(super) fn has_plain(&self) -> bool {
        let mut providers = self.providers.iter();
        providers.any(|(_, provider)| provider.issuer.starts_with("http://"))
    }
}
