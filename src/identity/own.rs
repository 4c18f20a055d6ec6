//! Tokens of the built-in authorization server: verified with the keys of the store,
//! in process, and held against what was revoked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwapOption;
use serde_json::json;
use uuid::Uuid;

use super::claims::ProviderRules;
use super::{Identity, IdentityFault, Principal};
use crate::clock::SharedClock;
use crate::config;
use crate::ids::ProviderId;
use crate::jose::{Algorithm, JoseFault, KeySet, Token};
use crate::seal::Sealer;
use crate::store::{Store, StoreError};

/// Who vouches for the tokens of the built-in authorization server.
pub const OWN_PROVIDER: &str = "built-in";
/// Keys are read anew after so long (milliseconds): one that was withdrawn is
/// believed no longer.
const FRESH: i64 = 5_000;
/// With the database away they are believed so long.
const STALE: i64 = 3_600_000;
/// An unknown key id causes a look at the store at most so often.
const COOLDOWN: i64 = 1_000;
/// Revocations are asked for so much further back than the last time, in seconds:
/// rows become visible some time after the moment that stands in them.
const OVERLAP: u32 = 15;
/// Everything that can matter: no access token lives longer.
const ALL: u32 = 2 * 3600;

/// The keys and revocations of the built-in authorization server.
pub struct OwnTokens {
    store: Store,
    sealer: Sealer,
    clock: SharedClock,
    keys: ArcSwapOption<OwnKeys>,
    generation: AtomicU64,
    looked: AtomicI64,
    revoked: RwLock<HashMap<Uuid, i64>>,
    /// Milliseconds of the clock: when revocations were last heard of.
    heard: AtomicI64,
}

struct OwnKeys {
    keys: KeySet,
    generation: u64,
    /// Milliseconds of the clock.
    at: i64,
}

impl OwnTokens {
    /// Reads nothing yet. `sealer` opens the signing keys.
    pub fn new(store: Store, sealer: Sealer, clock: SharedClock) -> Self {
        Self {
            store,
            sealer,
            clock,
            keys: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
            looked: AtomicI64::new(i64::MIN),
            revoked: RwLock::default(),
            heard: AtomicI64::new(i64::MIN),
        }
    }

    /// Whether a caller's grant, family or token was revoked.
    pub fn is_revoked(&self, principal: &Principal) -> bool {
        let revoked = self.revoked.read().unwrap_or_else(PoisonError::into_inner);
        !revoked.is_empty()
            && [&principal.grant, &principal.family, &principal.token_id]
                .into_iter()
                .filter_map(|id| id.as_deref()?.parse::<Uuid>().ok())
                .any(|id| revoked.contains_key(&id))
    }

    /// Asks the store what was revoked since the last time. `true` where there is
    /// something new.
    ///
    /// # Errors
    /// When the database cannot be asked; the next time looks as far back as needed.
    pub async fn hear_revocations(&self) -> Result<bool, StoreError> {
        let now = self.clock.unix_millis();
        let heard = self.heard.load(Ordering::Relaxed);
        let back = if heard == i64::MIN {
            ALL
        } else {
            let seconds = u32::try_from(now.saturating_sub(heard).max(0) / 1000).unwrap_or(ALL);
            seconds.saturating_add(OVERLAP).min(ALL)
        };
        let found = self.store.list_revocations(back).await?;
        self.heard.store(now, Ordering::Relaxed);
        let mut revoked = self.revoked.write().unwrap_or_else(PoisonError::into_inner);
        let mut news = false;
        for one in found {
            let until = one.until.unix_timestamp();
            news |= revoked.insert(one.revoked_id, until).is_none();
        }
        let seconds = now / 1000;
        revoked.retain(|_, until| *until > seconds);
        Ok(news)
    }

    /// The principal of a token that says it is of `issuer`, our own.
    pub(super) async fn verify(
        &self,
        token: &Token<'_>,
        issuer: &str,
        resource: &str,
        now: i64,
    ) -> Result<(Principal, u64), IdentityFault> {
        const ALLOWED: [Algorithm; 2] = [Algorithm::Es256, Algorithm::EdDsa];
        let header = token.header();
        if !ALLOWED.contains(&header.alg) {
            return Err(IdentityFault::AlgorithmRefused);
        }
        // Ours always say which key and what kind of token they are.
        if header.kid.is_none() {
            return Err(IdentityFault::UnknownKey);
        }
        let typ = header.typ.as_deref();
        if typ != Some("at+jwt") {
            return Err(IdentityFault::WrongType);
        }
        let mut keys = self.current().await?;
        let mut verified = token.verify(&keys.keys, &ALLOWED);
        if verified == Err(JoseFault::UnknownKey)
            && let Some(newer) = self.for_unknown_key().await
        {
            keys = newer;
            verified = token.verify(&keys.keys, &ALLOWED);
        }
        let claims = verified?;
        let rules = ProviderRules::new(&ProviderId::from(OWN_PROVIDER), &provider(issuer));
        let mut principal = rules.principal(typ, claims, resource, now)?;
        let family = claims.get("family_id").and_then(serde_json::Value::as_str);
        principal.family = family.map(str::to_owned);
        Ok((principal, keys.generation))
    }

    /// Which keys are in force.
    pub(super) async fn generation(&self) -> Result<u64, IdentityFault> {
        Ok(self.current().await?.generation)
    }

    async fn current(&self) -> Result<Arc<OwnKeys>, IdentityFault> {
        let now = self.clock.unix_millis();
        let known = self.keys.load_full();
        match known {
            Some(known) if now - known.at < FRESH => Ok(known),
            Some(known) => {
                // One asks, the others go on with what is known.
                if !self.may_look(now) {
                    return Self::not_too_old(known, now);
                }
                match self.read().await {
                    Ok(keys) => Ok(keys),
                    Err(_) => Self::not_too_old(known, now),
                }
            }
            None => self.read().await.map_err(|_| unavailable()),
        }
    }

    fn not_too_old(known: Arc<OwnKeys>, now: i64) -> Result<Arc<OwnKeys>, IdentityFault> {
        (now - known.at < STALE)
            .then_some(known)
            .ok_or_else(unavailable)
    }

    async fn for_unknown_key(&self) -> Option<Arc<OwnKeys>> {
        if !self.may_look(self.clock.unix_millis()) {
            return None;
        }
        self.read().await.ok()
    }

    /// Whether it is time to look at the store; for one caller.
    fn may_look(&self, now: i64) -> bool {
        let looked = self.looked.load(Ordering::Relaxed);
        now.saturating_sub(looked) >= COOLDOWN
            && self
                .looked
                .compare_exchange(looked, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    async fn read(&self) -> Result<Arc<OwnKeys>, StoreError> {
        let now = self.clock.now();
        let rows = self.store.list_signing_keys().await?;
        let jwks: Vec<serde_json::Value> = rows
            .iter()
            .filter(|row| row.published_until > now)
            .filter_map(|row| row.open(&self.sealer).ok())
            .map(|key| key.public_jwk())
            .collect();
        let keys = KeySet::parse(&json!({ "keys": jwks }).to_string())
            .map_err(|_| StoreError::Inconsistent("signing key"))?;
        let same = self
            .keys
            .load_full()
            .filter(|known| known.keys.digest() == keys.digest());
        let generation = match same {
            Some(known) => known.generation,
            None => self.generation.fetch_add(1, Ordering::Relaxed) + 1,
        };
        let keys = Arc::new(OwnKeys {
            keys,
            generation,
            at: self.clock.unix_millis(),
        });
        self.keys.store(Some(Arc::clone(&keys)));
        Ok(keys)
    }
}

impl std::fmt::Debug for OwnTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnTokens").finish_non_exhaustive()
    }
}

fn unavailable() -> IdentityFault {
    IdentityFault::KeysUnavailable {
        provider: ProviderId::from(OWN_PROVIDER),
    }
}

/// Our own tokens by the rules of everybody's: any tenant, no other audience.
fn provider(issuer: &str) -> config::IdentityProvider {
    config::IdentityProvider {
        issuer: issuer.to_owned(),
        tenants: Vec::new(),
        audiences: Vec::new(),
        algorithms: Vec::new(),
        jwks_file: None,
        jwks_url: None,
        claims: config::Claims::default(),
        login: None,
        id_jag: false,
    }
}

/// A token that a configured provider signed, nothing else judged.
#[derive(Debug)]
pub struct Signed {
    /// The provider that its `iss` names.
    pub provider: ProviderId,
    /// `typ` of its header.
    pub typ: Option<String>,
    /// Its claims.
    pub claims: crate::jose::Claims,
}

impl Identity {
    /// The claims of a token that a configured provider signed: an assertion. What it
    /// says is for the caller to judge.
    ///
    /// # Errors
    /// [`IdentityFault`]
    pub async fn signed(&self, token: &str) -> Result<Signed, IdentityFault> {
        let token = Token::parse(token)?;
        let now = self.now();
        let (_, provider) = self.of_issuer(&token)?;
        let (claims, _) = provider.check_signature(&token, now).await?;
        Ok(Signed {
            provider: provider.rules.id.clone(),
            typ: token.header().typ.clone(),
            claims: claims.clone(),
        })
    }
}

/// The built-in issuer as an endpoint sees it.
#[derive(Clone, Copy, Debug)]
pub struct OwnIssuer<'a> {
    /// Its keys and revocations.
    pub tokens: &'a OwnTokens,
    /// Its name now.
    pub issuer: &'a str,
}
