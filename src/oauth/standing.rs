//! Whether a person is still who they were when they signed in: asked at each refresh,
//! so that a leaver's grant dies, and for administrators while they look at our pages.

use std::time::Duration;

use super::administration::{self, AdminClaim, Administration};
use super::federation::{Expected, RenewFault, Tokens as ProviderTokens, judge};
use super::sign_ins::write_claims;
use super::tokens::tenant_of;
use super::{Event, Ledger, Membership, Site, StepFault, sign_ins};
use crate::config::{IdentityProvider, LOCAL_PROVIDER};
use crate::ids::{ProviderId, Role, Subject, TenantId};
use crate::jose::Claims;
use crate::secret::Secret;
use crate::store::StoreError;
use crate::store::oauth_grants::Grant;
use crate::store::oauth_sign_ins::SignInRow;

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
    pub(super) async fn standing(
        &self,
        grant: &Grant,
        ledger: &dyn Ledger,
    ) -> Result<Standing, StoreError> {
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
        Ok(self.provider_standing(grant, ledger).await?.unwrap_or(here))
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
    async fn provider_standing(
        &self,
        grant: &Grant,
        ledger: &dyn Ledger,
    ) -> Result<Option<Standing>, StoreError> {
        let Some(token) = self.opened(grant.provider_token.as_deref(), grant.subject.as_bytes())
        else {
            return Ok(None);
        };
        let someone = Someone {
            provider: ProviderId::from(grant.provider.as_str()),
            provider_subject: &grant.provider_subject,
            subject: &grant.subject,
        };
        let (tenant, store) = (tenant_of(&grant.tenant), &self.server.store);
        let (said, rotated) = self.asked(&someone, &token).await;
        if let Some(token) = rotated {
            let tokens = &self.server.provider_tokens;
            let sealed = tokens.seal(token.expose().as_bytes(), grant.subject.as_bytes());
            store
                .update_provider_token(&tenant, grant.grant_id, Some(&sealed))
                .await?;
        }
        self.keep_up(&someone, &said, ledger).await?;
        Ok(match said {
            Said::Nothing => None,
            Said::Here { tenants, roles, .. } if tenants.contains(&tenant) => {
                let roles: Vec<String> = roles.iter().map(ToString::to_string).collect();
                store
                    .update_grant_roles(&tenant, grant.grant_id, &roles)
                    .await?;
                Some(Standing::Good(Some(roles)))
            }
            Said::Here { .. } | Said::Gone => Some(Standing::Gone),
        })
    }

    /// Whether it is time to ask about somebody who administers and looks at our pages.
    pub(super) fn is_due(&self, row: &SignInRow) -> bool {
        let since = self.server.clock.now() - ASKED;
        row.provider != LOCAL_PROVIDER && row.admin_claims != "[]" && row.checked_at <= since
    }

    /// Asks about them: with the sign-in's own refresh token, or with that of an app
    /// which took it over.
    pub(super) async fn check_sign_in(
        &self,
        row: &SignInRow,
        ledger: &dyn Ledger,
    ) -> Result<(), StepFault> {
        let (now, store) = (self.server.clock.now(), &self.server.store);
        if !store
            .update_sign_in_checked(row.id, now, now - ASKED)
            .await?
        {
            return Ok(());
        }
        // Taken while it is used: a grant that is made meanwhile goes without.
        let sealed = store.take_sign_in_token(row.id).await?;
        let Some(token) = self.opened(sealed.as_deref(), row.id.as_bytes()) else {
            return self.check_by_grant(row, ledger).await;
        };
        let someone = Someone {
            provider: ProviderId::from(row.provider.as_str()),
            provider_subject: &row.provider_subject,
            subject: &row.subject,
        };
        let (said, rotated) = self.asked(&someone, &token).await;
        let next = rotated.unwrap_or(token);
        let tokens = &self.server.provider_tokens;
        let sealed = tokens.seal(next.expose().as_bytes(), row.id.as_bytes());
        store.update_sign_in_token(row.id, &sealed).await?;
        Ok(self.keep_up(&someone, &said, ledger).await?)
    }

    async fn check_by_grant(&self, row: &SignInRow, ledger: &dyn Ledger) -> Result<(), StepFault> {
        for membership in sign_ins::read(&row.memberships).unwrap_or_default() {
            let tenant = membership.tenant;
            let subject = Subject::from(row.subject.as_str());
            let grants = super::grants::list(self.server, &tenant, &subject).await?;
            let usable =
                |one: &&Grant| one.provider_token.is_some() && one.provider == row.provider;
            let Some(grant) = grants.iter().find(usable) else {
                continue;
            };
            if self.standing(grant, ledger).await? == Standing::Gone {
                let (server, gone) = (self.server, (&tenant, grant.grant_id));
                super::grants::revoke::<StepFault>(
                    server,
                    self.settings,
                    gone,
                    "person_gone",
                    ledger,
                )
                .await?;
            }
            break;
        }
        Ok(())
    }

    /// Brings a person's sign-ins up to date: a leaver is signed out of our pages too.
    async fn keep_up(
        &self,
        someone: &Someone<'_>,
        said: &Said,
        ledger: &dyn Ledger,
    ) -> Result<(), StoreError> {
        let (now, store) = (self.server.clock.now(), &self.server.store);
        let (tenants, roles, claims) = match said {
            Said::Nothing => return Ok(()),
            Said::Gone => return store.delete_sign_ins(someone.subject).await,
            Said::Here {
                tenants,
                roles,
                admin_claims,
            } => (tenants, roles, admin_claims),
        };
        let membership = |tenant: &TenantId| Membership {
            tenant: tenant.clone(),
            roles: roles.clone(),
        };
        let memberships: Vec<Membership> = tenants.iter().map(membership).collect();
        let written = (sign_ins::write(&memberships), write_claims(claims));
        let changed = store
            .update_sign_ins(someone.subject, (&written.0, &written.1), now)
            .await?;
        if changed {
            let now = Administration::by(self.settings, &someone.provider, claims);
            let event = Event::Administers {
                subject: Subject::from(someone.subject),
                administers: now.in_words(),
            };
            ledger.note(event, None);
        }
        Ok(())
    }

    /// What a provider says of somebody now, and its next refresh token where it gave one.
    async fn asked(
        &self,
        someone: &Someone<'_>,
        token: &Secret<String>,
    ) -> (Said, Option<Secret<String>>) {
        let id = &someone.provider;
        let provider = self.settings.providers.get(id);
        let Some((provider, login)) = provider.and_then(|one| Some((one, one.login.as_ref()?)))
        else {
            return (Said::Nothing, None);
        };
        let callback = format!("{}/oauth/callback", self.issuer.trim_end_matches('/'));
        let federation = self.server.federation();
        let tokens = match federation.renew(provider, login, &callback, token).await {
            Ok(tokens) => tokens,
            Err(RenewFault::Gone) => return (Said::Gone, None),
            Err(RenewFault::Away(fault)) => {
                tracing::warn!(provider.id = %id, error = %fault, "A person's standing could not be asked for; they stay signed in.");
                return (Said::Nothing, None);
            }
        };
        let said = self.described(someone, provider, &tokens).await;
        (said.unwrap_or(Said::Nothing), tokens.refresh_token)
    }

    /// What fresh tokens say of the person. The ID token where there is one, and
    /// userinfo for what it leaves out.
    async fn described(
        &self,
        someone: &Someone<'_>,
        provider: &IdentityProvider,
        tokens: &ProviderTokens,
    ) -> Option<Said> {
        let readers = self.settings.id_tokens.as_ref()?;
        let (id, login) = (&someone.provider, provider.login.as_ref()?);
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
            if subject != Some(someone.provider_subject) {
                return Some(Said::Gone);
            }
        }
        let tells = |path: &str| {
            let first = path.split('.').next().unwrap_or(path);
            claims.contains_key(path) || claims.contains_key(first)
        };
        let of = &provider.claims;
        let needed = !tells(&of.roles) || (provider.tenants.len() != 1 && !tells(&of.tenant));
        if needed || administration::lacks_wanted(self.settings, id, &claims) {
            let federation = self.server.federation();
            let asked = federation
                .userinfo(provider, someone.provider_subject, &tokens.access_token)
                .await;
            let more = asked.ok().flatten();
            if needed && more.is_none() {
                return None;
            }
            // Without it nobody administers by what it would have said.
            for (name, value) in more.unwrap_or_default() {
                claims.entry(name).or_insert(value);
            }
        }
        let (tenants, roles) = (readers.describe)(id, &claims)?;
        Some(Said::Here {
            tenants,
            roles,
            admin_claims: administration::wanted(self.settings, id, &claims),
        })
    }

    /// A provider's refresh token; none where it was sealed with a key that is gone.
    fn opened(&self, sealed: Option<&str>, bound: &[u8]) -> Option<Secret<String>> {
        let bytes = self.server.provider_tokens.open(sealed?, bound).ok()?;
        String::from_utf8(bytes).ok().map(Secret::new)
    }
}

/// Somebody whom a provider is asked about.
struct Someone<'a> {
    provider: ProviderId,
    provider_subject: &'a str,
    /// Our `sub`.
    subject: &'a str,
}

/// What a provider says of somebody.
enum Said {
    /// There is nobody any more, or somebody else.
    Gone,
    /// Nothing that could be used: nobody is signed out for that.
    Nothing,
    /// They are there.
    Here {
        tenants: Vec<TenantId>,
        roles: Vec<Role>,
        admin_claims: Vec<AdminClaim>,
    },
}
