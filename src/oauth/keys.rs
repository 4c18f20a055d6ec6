//! The keys that access tokens are signed with: made when they are due, the same
//! ones for all replicas, published before they sign and for as long after as
//! tokens of theirs live.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde_json::{Value, json};
use thiserror::Error;
use time::OffsetDateTime;

use super::{AuthorizationServer, Settings};
use crate::config::SigningAlgorithm;
use crate::jose::{Algorithm, KeySet, SigningFault, SigningKey};
use crate::seal::Sealer;
use crate::store::StoreError;
use crate::store::oauth_signing_keys::StoredKey;

/// A new key is published for so long before it signs: clients and resource servers
/// keep key sets for some minutes.
const ANNOUNCED: Duration = Duration::from_mins(10);
/// A key is published for so much longer than its tokens live.
const MARGIN: Duration = Duration::from_hours(1);
/// Replicas look at the table at least so often.
const BELIEVED: i64 = 30_000;
/// Where no key opens, a new one is made at most so often: replicas with different
/// keys files must not outbid each other.
const OUTBID: Duration = Duration::from_mins(1);

/// Why there is no key to sign with.
#[derive(Debug, Error)]
pub enum KeysFault {
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No key could be made.
    #[error(transparent)]
    Signing(#[from] SigningFault),
    /// No key of the table opens with this deployment's keys file.
    #[error("no signing key opens with the keys of keys_file")]
    Sealed,
}

/// What this process knows of the keys.
pub(super) struct SigningKeys {
    sealer: Sealer,
    known: ArcSwapOption<Known>,
}

struct Known {
    keys: Vec<(StoredKey, SigningKey)>,
    public: KeySet,
    document: String,
    /// Milliseconds of the clock.
    at: i64,
}

/// A key that signs now, and the set that holds it.
#[derive(Clone)]
pub(super) struct Signing(Arc<Known>, usize);

impl Signing {
    pub(super) fn key(&self) -> Option<&SigningKey> {
        self.0.keys.get(self.1).map(|(_, key)| key)
    }
}

impl SigningKeys {
    pub(super) fn new(sealer: Sealer) -> Self {
        Self {
            sealer,
            known: ArcSwapOption::empty(),
        }
    }
}

impl AuthorizationServer {
    /// Reads the keys, makes the next one where it is due, and says which are published.
    ///
    /// # Errors
    /// [`KeysFault`]
    pub async fn renew_keys(&self, settings: &Settings) -> Result<(), KeysFault> {
        let now = self.clock.now();
        let stored = self.store.list_signing_keys().await?;
        let plan = due(
            &stored,
            |key| key.open(&self.keys.sealer).is_ok(),
            settings,
            now,
        );
        let stored = match plan {
            None => stored,
            Some(next) => {
                self.make_key(settings, next, now).await?;
                self.store.list_signing_keys().await?
            }
        };
        self.learn(stored, now);
        Ok(())
    }

    /// Makes the next key now, without waiting until it is due. `at_once`: it signs
    /// now, and no token of earlier keys is believed any more.
    ///
    /// # Errors
    /// [`KeysFault`]
    pub async fn rotate_keys(
        &self,
        settings: &Settings,
        at_once: bool,
    ) -> Result<String, KeysFault> {
        let now = self.clock.now();
        let stored = self.store.list_signing_keys().await?;
        let number = stored.last().map_or(1, |key| key.number + 1);
        let signs_from = if at_once || stored.is_empty() {
            now
        } else {
            now + ANNOUNCED
        };
        let kid = self
            .make_key(settings, Next { number, signs_from }, now)
            .await?;
        if at_once {
            self.store.update_earlier_signing_keys(number, now).await?;
        }
        self.learn(self.store.list_signing_keys().await?, now);
        Ok(kid)
    }

    /// Every key of the table.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        self.store.list_signing_keys().await
    }

    /// The published key set as JSON.
    ///
    /// # Errors
    /// [`KeysFault`]
    pub async fn key_document(&self, settings: &Settings) -> Result<String, KeysFault> {
        Ok(self.known_keys(settings).await?.document.clone())
    }

    pub(super) async fn public_keys(&self, settings: &Settings) -> Result<KeySet, KeysFault> {
        Ok(self.known_keys(settings).await?.public.clone())
    }

    /// The key to sign with.
    pub(super) async fn signing_key(&self, settings: &Settings) -> Result<Signing, KeysFault> {
        let known = self.known_keys(settings).await?;
        let now = self.clock.now();
        let signs = |(stored, _): &(StoredKey, SigningKey)| {
            stored.signs_from <= now && now < stored.published_until
        };
        let at = known
            .keys
            .iter()
            .rposition(signs)
            .ok_or(KeysFault::Sealed)?;
        Ok(Signing(known, at))
    }

    async fn known_keys(&self, settings: &Settings) -> Result<Arc<Known>, KeysFault> {
        let fresh = |known: &Arc<Known>| self.clock.unix_millis() - known.at < BELIEVED;
        if let Some(known) = self.keys.known.load_full().filter(fresh) {
            return Ok(known);
        }
        match self.renew_keys(settings).await {
            Ok(()) => self.keys.known.load_full().ok_or(KeysFault::Sealed),
            // With the database away what is known is used on: a key that was published
            // a minute ago is still.
            Err(fault) => self.keys.known.load_full().ok_or(fault),
        }
    }

    async fn make_key(
        &self,
        settings: &Settings,
        next: Next,
        now: OffsetDateTime,
    ) -> Result<String, KeysFault> {
        let algorithm = match settings.server.signing_algorithm {
            SigningAlgorithm::Es256 => Algorithm::Es256,
            SigningAlgorithm::EdDsa => Algorithm::EdDsa,
        };
        let key = SigningKey::generate(algorithm)?;
        // It may sign for longer than planned where nothing renews it: twice as long.
        let until = next.signs_from
            + settings.server.key_rotation.0 * 2
            + settings.server.access_token_lifetime.0
            + MARGIN;
        let row = StoredKey::seal(
            &key,
            &self.keys.sealer,
            next.number,
            now,
            next.signs_from,
            until,
        );
        if self.store.insert_signing_key(&row).await? {
            tracing::info!(kid = %row.kid, signs_from = %row.signs_from, "A new signing key was made.");
        }
        Ok(row.kid)
    }

    fn learn(&self, stored: Vec<StoredKey>, now: OffsetDateTime) {
        let mut keys = Vec::new();
        for row in stored.into_iter().filter(|row| row.published_until > now) {
            match row.open(&self.keys.sealer) {
                Ok(key) => keys.push((row, key)),
                Err(error) => {
                    tracing::debug!(kid = %row.kid, %error, "A signing key does not open; it is left out.");
                }
            }
        }
        let jwks: Vec<Value> = keys.iter().map(|(_, key)| key.public_jwk()).collect();
        let document = json!({ "keys": jwks }).to_string();
        let Ok(public) = KeySet::parse(&document) else {
            return;
        };
        self.keys.known.store(Some(Arc::new(Known {
            keys,
            public,
            document,
            at: self.clock.unix_millis(),
        })));
    }
}

/// The next key's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Next {
    number: i64,
    signs_from: OffsetDateTime,
}

/// The next key, if it is time to make it.
fn due(
    stored: &[StoredKey],
    opens: impl Fn(&StoredKey) -> bool,
    settings: &Settings,
    now: OffsetDateTime,
) -> Option<Next> {
    let Some(newest) = stored.last() else {
        return Some(Next {
            number: 1,
            signs_from: now,
        });
    };
    let number = newest.number + 1;
    let usable = stored
        .iter()
        .any(|key| key.signs_from <= now && now < key.published_until && opens(key));
    if !usable {
        let outbid = now - newest.created_at < OUTBID;
        return (!outbid).then_some(Next {
            number,
            signs_from: now,
        });
    }
    let ends = newest.signs_from + settings.server.key_rotation.0;
    (ends - ANNOUNCED <= now).then(|| Next {
        number,
        signs_from: ends.max(now + ANNOUNCED.min(settings.server.key_rotation.0 / 2)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let mut config = crate::config::Config::default();
        config.authorization_server.key_rotation = "30d".parse().unwrap();
        Settings::new(&config).unwrap()
    }

    fn key(number: i64, created: i64, from: i64, until: i64) -> StoredKey {
        let at = |day: i64| OffsetDateTime::UNIX_EPOCH + time::Duration::days(day);
        StoredKey {
            kid: format!("k{number}"),
            number,
            sealed: String::new(),
            created_at: at(created),
            signs_from: at(from),
            published_until: at(until),
        }
    }

    #[test]
    fn keys_are_made_first_at_once_then_ahead_of_their_time() {
        let settings = settings();
        let at = |day: i64| OffsetDateTime::UNIX_EPOCH + time::Duration::days(day);
        let next = |keys: &[StoredKey], opens: bool, now| due(keys, |_| opens, &settings, now);

        let first = Next {
            number: 1,
            signs_from: at(0),
        };
        assert_eq!(next(&[], true, at(0)), Some(first));
        let one = [key(1, 0, 0, 61)];
        assert_eq!(next(&one, true, at(29)), None);
        let early = at(30) - time::Duration::minutes(9);
        let second = next(&one, true, early).unwrap();
        assert_eq!(second.number, 2);
        assert!(second.signs_from >= early + time::Duration::minutes(9));
        // All replicas were away for a while: the old key signs until the new one is known.
        let late = next(&one, true, at(40)).unwrap();
        assert_eq!(late.signs_from, at(40) + time::Duration::minutes(10));
        // Nothing opens: a new key, but no race of two deployments.
        assert_eq!(next(&one, false, at(0) + time::Duration::seconds(59)), None);
        let anew = next(&one, false, at(0) + time::Duration::seconds(60)).unwrap();
        assert_eq!(
            (anew.number, anew.signs_from),
            (2, at(0) + time::Duration::seconds(60))
        );
        // Two keys, the newer one announced: nothing is due.
        assert_eq!(
            next(&[key(1, 0, 0, 61), key(2, 29, 30, 91)], true, at(30)),
            None
        );
        // All have expired.
        let after = next(&one, true, at(70)).unwrap();
        assert_eq!((after.number, after.signs_from), (2, at(70)));
    }
}
