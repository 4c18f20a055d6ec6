//! From a bearer token to a principal.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use moka::Expiry;
use moka::sync::Cache;
use thiserror::Error;

use super::claims::ProviderRules;
use super::keys::{KeyTimings, ProviderKeys};
use super::own::{OwnIssuer, Signed};
use super::principal::digest;
use super::source::Source;
use super::{IdentityFault, Principal};
use crate::clock::SharedClock;
use crate::config::{self, IdentityProvider};
use crate::ids::{Issuer, ProviderId};
use crate::jose::{Algorithm, Claims, JoseFault, MAX_TOKEN, Token};
use crate::outgoing::Outgoing;

/// Most verified tokens that are remembered. One takes about a kilobyte.
const REMEMBERED: u64 = 50_000;

/// Verifies bearer tokens.
pub struct Identity {
    providers: Vec<Provider>,
    by_issuer: HashMap<Issuer, usize>,
    clock: SharedClock,
    verified: Cache<[u8; 32], Verified>,
}

pub(super) struct Provider {
    pub(super) rules: ProviderRules,
    algorithms: Vec<Algorithm>,
    keys: Arc<ProviderKeys>,
}

/// A token that was verified before: good until it expires or its issuer's keys change.
#[derive(Clone)]
struct Verified {
    principal: Arc<Principal>,
    by: By,
    generation: u64,
    at: i64,
}

/// Who vouches for a token.
#[derive(Clone, Copy)]
enum By {
    /// The built-in authorization server.
    Ourselves,
    /// A configured provider.
    Provider(usize),
}

/// Why the configured providers cannot be put to use.
#[derive(Debug, Error)]
pub enum IdentitySetupFault {
    /// Two providers have the same issuer.
    #[error(
        "`identity_providers.{second}.issuer` is that of `{first}` too; an issuer can be configured once"
    )]
    SameIssuer {
        /// The earlier one.
        first: ProviderId,
        /// The later one.
        second: ProviderId,
    },
    /// A keys file cannot be read or is none.
    #[error("`identity_providers.{provider}.jwks_file`: {path}: {why}")]
    KeysFile {
        /// Whose.
        provider: ProviderId,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl Identity {
    /// Takes the configured providers. Keys in files are read now, others when
    /// they are needed or [`Identity::warm`] is called.
    ///
    /// # Errors
    /// [`IdentitySetupFault`]
    pub fn new(
        providers: &IndexMap<ProviderId, IdentityProvider>,
        outgoing: &Arc<Outgoing>,
        clock: SharedClock,
    ) -> Result<Self, IdentitySetupFault> {
        Self::with_timings(providers, outgoing, clock, KeyTimings::default())
    }

    /// Takes over the keys that an earlier configuration's providers have from the
    /// same places: a provider that is away when the configuration changes is still
    /// believed.
    #[must_use]
    pub fn with_keys_of(mut self, earlier: &Self) -> Self {
        for provider in &mut self.providers {
            let known = earlier
                .providers
                .iter()
                .find(|known| provider.keys.are_those_of(&known.keys));
            if let Some(known) = known {
                provider.keys = Arc::clone(&known.keys);
            }
        }
        self
    }

    /// The same with other timings; for tests.
    ///
    /// # Errors
    /// As [`Identity::new`].
    pub fn with_timings(
        providers: &IndexMap<ProviderId, IdentityProvider>,
        outgoing: &Arc<Outgoing>,
        clock: SharedClock,
        timings: KeyTimings,
    ) -> Result<Self, IdentitySetupFault> {
        let mut by_issuer: HashMap<Issuer, usize> = HashMap::new();
        let mut all: Vec<Provider> = Vec::new();
        for (id, config) in providers {
            let provider = Provider::new(id, config, outgoing, &clock, timings)?;
            if let Some(first) = by_issuer
                .insert(provider.rules.issuer.clone(), all.len())
                .and_then(|first| all.get(first))
            {
                return Err(IdentitySetupFault::SameIssuer {
                    first: first.rules.id.clone(),
                    second: id.clone(),
                });
            }
            all.push(provider);
        }
        Ok(Self {
            providers: all,
            by_issuer,
            clock,
            verified: Cache::builder()
                .max_capacity(REMEMBERED)
                .expire_after(AtExpiry)
                .build(),
        })
    }

    /// The principal of a bearer token that is for `resource`, the URL of the
    /// endpoint that it was sent to.
    ///
    /// # Errors
    /// [`IdentityFault`]
    pub async fn verify(
        &self,
        bearer: &str,
        resource: &str,
        own: Option<OwnIssuer<'_>>,
    ) -> Result<Arc<Principal>, IdentityFault> {
        if bearer.len() > MAX_TOKEN {
            return Err(IdentityFault::Malformed);
        }
        let now = self.clock.unix_seconds();
        let key = digest([bearer, resource]);
        let known = match self.verified.get(&key) {
            Some(known) if self.still_good(&known, own, now).await? => Some(known.principal),
            _ => None,
        };
        let principal = match known {
            Some(principal) => principal,
            None => {
                self.verify_and_keep(key, bearer, resource, own, now)
                    .await?
            }
        };
        // Asked each time: a look at a table in memory.
        if own.is_some_and(|own| own.tokens.is_revoked(&principal)) {
            return Err(IdentityFault::Revoked);
        }
        Ok(principal)
    }

    async fn verify_and_keep(
        &self,
        key: [u8; 32],
        bearer: &str,
        resource: &str,
        own: Option<OwnIssuer<'_>>,
        now: i64,
    ) -> Result<Arc<Principal>, IdentityFault> {
        let verified = self.verify_anew(bearer, resource, own, now).await?;
        let principal = Arc::clone(&verified.principal);
        if principal.expires_at() > now {
            self.verified.insert(key, verified);
        }
        Ok(principal)
    }

    /// The claims of a token that a configured provider signed: an assertion. What it
    /// says is for the caller to judge.
    ///
    /// # Errors
    /// [`IdentityFault`]
    pub async fn signed(&self, token: &str) -> Result<Signed, IdentityFault> {
        let token = Token::parse(token)?;
        let now = self.clock.unix_seconds();
        let (_, provider) = self.of_issuer(&token)?;
        let (claims, _) = provider.check_signature(&token, now).await?;
        Ok(Signed {
            provider: provider.rules.id.clone(),
            typ: token.header().typ.clone(),
            claims: claims.clone(),
        })
    }

    /// The provider that a token's `iss` names. One that is not configured costs no
    /// key and no signature check.
    fn of_issuer(&self, token: &Token<'_>) -> Result<(usize, &Provider), IdentityFault> {
        token
            .unverified_issuer()
            .and_then(|issuer| self.by_issuer.get(issuer))
            .and_then(|index| Some((*index, self.providers.get(*index)?)))
            .ok_or(IdentityFault::UnknownIssuer)
    }

    /// Fetches the keys of all providers that have none yet, so that the first
    /// caller need not wait. `false` if some cannot be had.
    pub async fn warm(&self) -> bool {
        let now = self.clock.unix_seconds();
        let all = self
            .providers
            .iter()
            .map(|provider| provider.keys.current(now));
        futures_util::future::join_all(all)
            .await
            .iter()
            .all(Result::is_ok)
    }

    /// Forgets all verified tokens: each is verified again when it comes.
    pub fn forget_all(&self) {
        self.verified.invalidate_all();
    }

    /// The provider of that id.
    pub(super) fn provider(&self, id: &ProviderId) -> Result<&Provider, IdentityFault> {
        let mut all = self.providers.iter();
        all.find(|provider| provider.rules.id == *id)
            .ok_or(IdentityFault::UnknownIssuer)
    }

    pub(super) fn now(&self) -> i64 {
        self.clock.unix_seconds()
    }

    async fn still_good(
        &self,
        verified: &Verified,
        own: Option<OwnIssuer<'_>>,
        now: i64,
    ) -> Result<bool, IdentityFault> {
        if verified.principal.expires_at() <= now {
            return Ok(false);
        }
        let provider = match verified.by {
            By::Provider(index) => self.providers.get(index),
            By::Ourselves => {
                let Some(own) = own else { return Ok(false) };
                return Ok(own.issuer == verified.principal.issuer().as_str()
                    && own.tokens.generation().await? == verified.generation);
            }
        };
        match provider {
            Some(provider) => {
                let keys = provider.keys.current(now).await?;
                Ok(keys.generation == verified.generation)
            }
            None => Ok(false),
        }
    }

    async fn verify_anew(
        &self,
        bearer: &str,
        resource: &str,
        own: Option<OwnIssuer<'_>>,
        now: i64,
    ) -> Result<Verified, IdentityFault> {
        let token = Token::parse(bearer)?;
        if let Some(own) = own.filter(|own| token.unverified_issuer() == Some(own.issuer)) {
            let verified = own.tokens.verify(&token, own.issuer, resource, now).await;
            let (principal, generation) = verified?;
            return Ok(Verified {
                principal: Arc::new(principal),
                by: By::Ourselves,
                generation,
                at: now,
            });
        }
        let (index, provider) = self.of_issuer(&token)?;
        let (claims, generation) = provider.check_signature(&token, now).await?;
        let typ = token.header().typ.as_deref();
        let principal = provider.rules.principal(typ, claims, resource, now)?;
        Ok(Verified {
            principal: Arc::new(principal),
            by: By::Provider(index),
            generation,
            at: now,
        })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({} providers)", self.providers.len())
    }
}

impl Provider {
    fn new(
        id: &ProviderId,
        config: &IdentityProvider,
        outgoing: &Arc<Outgoing>,
        clock: &SharedClock,
        timings: KeyTimings,
    ) -> Result<Self, IdentitySetupFault> {
        let source = Source::new(config, outgoing);
        let keys = ProviderKeys::new(id.clone(), source, timings, Arc::clone(clock));
        keys.load_file(clock.unix_seconds())
            .map_err(|fault| IdentitySetupFault::KeysFile {
                provider: id.clone(),
                path: config.jwks_file.clone().unwrap_or_default(),
                why: fault.to_string(),
            })?;
        Ok(Self {
            rules: ProviderRules::new(id, config),
            algorithms: config.algorithms.iter().copied().map(algorithm).collect(),
            keys: Arc::new(keys),
        })
    }
}

impl Provider {
    /// The token's claims, once its signature is found right, and the generation of
    /// the keys that it was found right with.
    pub(super) async fn check_signature<'t>(
        &self,
        token: &'t Token<'_>,
        now: i64,
    ) -> Result<(&'t Claims, u64), IdentityFault> {
        let header = token.header();
        if !self.algorithms.contains(&header.alg) {
            return Err(IdentityFault::AlgorithmRefused);
        }
        let known = self.keys.current(now).await?;
        let fault = match token.verify(&known.keys, &self.algorithms) {
            Ok(claims) => return Ok((claims, known.generation)),
            Err(fault) => fault,
        };
        // Without `kid` a wrong signature may be that of a newer key.
        let newer_may_help = match fault {
            JoseFault::UnknownKey => true,
            JoseFault::BadSignature => header.kid.is_none(),
            _ => false,
        };
        if newer_may_help
            && let Some(newer) = self.keys.for_unknown_key(known.generation, now).await?
        {
            let claims = token.verify(&newer.keys, &self.algorithms)?;
            return Ok((claims, newer.generation));
        }
        Err(fault.into())
    }
}

fn algorithm(configured: config::Algorithm) -> Algorithm {
    match configured {
        config::Algorithm::Rs256 => Algorithm::Rs256,
        config::Algorithm::Es256 => Algorithm::Es256,
        config::Algorithm::EdDsa => Algorithm::EdDsa,
    }
}

/// Forgets a token when it expires.
struct AtExpiry;

impl Expiry<[u8; 32], Verified> for AtExpiry {
    fn expire_after_create(
        &self,
        _: &[u8; 32],
        verified: &Verified,
        _: Instant,
    ) -> Option<Duration> {
        let left = verified.principal.expires_at().saturating_sub(verified.at);
        let left = Duration::from_secs(u64::try_from(left).unwrap_or(0));
        // A token that lives for ever is verified again once a day.
        Some(left.min(Duration::from_hours(24)))
    }
}
