//! Whether a person is still who they were when they signed in: asked at each refresh,
//! so that a leaver's grant dies.

use std::time::Duration;

use super::Site;
use super::federation::{Expected, RenewFault, Tokens as ProviderTokens, judge};
use super::tokens::tenant_of;
use crate::config::{IdentityProvider, LOCAL_PROVIDER};
use crate::ids::ProviderId;
use crate::jose::Claims;
use crate::secret::Secret;
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
        Ok(self.provider_standing(grant).await?.unwrap_or(here))
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
    async fn provider_standing(&self, grant: &Grant) -> Result<Option<Standing>, StoreError> {
        let id = ProviderId::from(grant.provider.as_str());
        let provider = self.settings.providers.get(&id);
        let Some((provider, login)) = provider.and_then(|one| Some((one, one.login.as_ref()?)))
        else {
            return Ok(None);
        };
        let Some(token) = self.provider_token(grant) else {
            return Ok(None);
        };
        let callback = format!("{}/oauth/callback", self.issuer.trim_end_matches('/'));
        let federation = self.server.federation();
        let tokens = match federation.renew(provider, login, &callback, &token).await {
            Ok(tokens) => tokens,
            Err(RenewFault::Gone) => return Ok(Some(Standing::Gone)),
            Err(RenewFault::Away(fault)) => {
                tracing::warn!(provider.id = %id, error = %fault, "A person's standing could not be asked for; they stay signed in.");
                return Ok(None);
            }
        };
        self.keep_provider_token(grant, tokens.refresh_token.as_ref())
            .await?;
        let standing = self.described(grant, &id, provider, &tokens).await;
        if let Some(Standing::Good(Some(roles))) = &standing {
            let tenant = tenant_of(&grant.tenant);
            let store = &self.server.store;
            store
                .update_grant_roles(&tenant, grant.grant_id, roles)
                .await?;
        }
        Ok(standing)
    }

    /// What fresh tokens say of the person. The ID token where there is one, and
    /// userinfo for what it leaves out.
    async fn described(
        &self,
        grant: &Grant,
        id: &ProviderId,
        provider: &IdentityProvider,
        tokens: &ProviderTokens,
    ) -> Option<Standing> {
        let readers = self.settings.id_tokens.as_ref()?;
        let login = provider.login.as_ref()?;
        let mut claims = Claims::new();
        if let Some(token) = &tokens.id_token {
            let signed = (readers.verify)(id.clone(), token.clone()).await;
            let expected = Expected {
                issuer: &provider.issuer,
                client_id: &login.client_id,
                nonce: None,
                now: self.server.clock.unix_seconds(),
            };
            // A token that does not fit says nothing of the person.
            claims = signed.filter(|claims| judge(claims, expected).is_ok())?;
            let subject = claims.get("sub").and_then(serde_json::Value::as_str);
            if subject != Some(grant.provider_subject.as_str()) {
                return Some(Standing::Gone);
            }
        }
        let tells = |claims: &Claims, path: &str| {
            let first = path.split('.').next().unwrap_or(path);
            claims.contains_key(path) || claims.contains_key(first)
        };
        let (tenant, roles) = (&provider.claims.tenant, &provider.claims.roles);
        if !tells(&claims, roles) || (provider.tenants.len() != 1 && !tells(&claims, tenant)) {
            let federation = self.server.federation();
            let asked = federation
                .userinfo(provider, &grant.provider_subject, &tokens.access_token)
                .await;
            for (name, value) in asked.ok().flatten()? {
                claims.entry(name).or_insert(value);
            }
        }
        let (tenants, roles) = (readers.describe)(id, &claims)?;
        if !tenants.iter().any(|one| one.as_str() == grant.tenant) {
            return Some(Standing::Gone);
        }
        let roles = roles.iter().map(ToString::to_string).collect();
        Some(Standing::Good(Some(roles)))
    }

    /// The provider's refresh token; none where it was sealed with a key that is gone.
    fn provider_token(&self, grant: &Grant) -> Option<Secret<String>> {
        let sealed = grant.provider_token.as_deref()?;
        let tokens = &self.server.provider_tokens;
        let bytes = tokens.open(sealed, grant.subject.as_bytes()).ok()?;
        String::from_utf8(bytes).ok().map(Secret::new)
    }

    /// Providers that rotate theirs give a new one each time.
    async fn keep_provider_token(
        &self,
        grant: &Grant,
        token: Option<&Secret<String>>,
    ) -> Result<(), StoreError> {
        let Some(token) = token else { return Ok(()) };
        let tokens = &self.server.provider_tokens;
        let sealed = tokens.seal(token.expose().as_bytes(), grant.subject.as_bytes());
        let tenant = tenant_of(&grant.tenant);
        let store = &self.server.store;
        store
            .update_provider_token(&tenant, grant.grant_id, Some(&sealed))
            .await
    }
}
