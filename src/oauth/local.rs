//! People with a password in the configuration, for development.
//!
//! Who does not exist costs the same time and gets the same words as a wrong
//! password. Wrong ones are counted per account and per address, on each replica
//! by itself: an attacker with n replicas has n times the tries, and each is slow.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::{PasswordHash, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::digest::{SHA256, digest};
use indexmap::IndexMap;
use moka::sync::Cache;
use thiserror::Error;
use tokio::sync::Semaphore;

use super::{Membership, Person};
use crate::clock::SharedClock;
use crate::config::{LOCAL_PROVIDER, User};
use crate::ids::{Issuer, ProviderId, Subject};
use crate::secret::Secret;

/// Wrong passwords for one account within [`WINDOW`] before it has to wait.
const PER_ACCOUNT: u32 = 10;
/// Wrong passwords from one address within [`WINDOW`] before it has to wait.
const PER_ADDRESS: u32 = 40;
/// Seconds in which wrong passwords are counted.
const WINDOW: i64 = 15 * 60;
/// Accounts and addresses that are remembered.
const REMEMBERED: u64 = 100_000;
/// Hashes that are computed at the same time: each takes some 19 MiB.
const AT_ONCE: usize = 2;
/// Longest password that is looked at.
const MAX_PASSWORD: usize = 1024;

/// Checks passwords and counts wrong ones.
pub struct Passwords {
    clock: SharedClock,
    wrong: Cache<[u8; 32], Count>,
    hashing: Arc<Semaphore>,
}

#[derive(Clone, Copy)]
struct Count {
    times: u32,
    since: i64,
}

/// Why somebody is not signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PasswordFault {
    /// There is no such user, or the password is another one.
    #[error("user name or password is wrong")]
    Wrong,
    /// Too many wrong ones before, for this account or from this address.
    #[error("too many wrong passwords")]
    TooMany {
        /// When to come back.
        wait: Duration,
    },
}

impl Passwords {
    /// Nobody has been wrong yet.
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            wrong: Cache::new(REMEMBERED),
            hashing: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// The person of that name and password. `address` is whose tries are counted
    /// together; `issuer` is ours.
    ///
    /// # Errors
    /// [`PasswordFault`]
    pub async fn check(
        &self,
        users: &IndexMap<String, User>,
        issuer: &str,
        given: (&str, Secret<String>),
        address: &str,
    ) -> Result<Person, PasswordFault> {
        let (name, password) = given;
        let now = self.clock.unix_seconds();
        let keys = [
            (key("account", name), PER_ACCOUNT),
            (key("address", address), PER_ADDRESS),
        ];
        for (key, most) in &keys {
            self.may_try(key, *most, now)?;
        }
        let user = users.get_key_value(name);
        // A known user's hash stands in for that of an unknown one: same parameters, same time.
        let hash = user
            .or_else(|| users.first())
            .map_or(String::new(), |(_, user)| user.password_hash.clone());
        let right = self.verify(hash, password).await;
        match user {
            Some((name, user)) if right => Ok(person(name, user, issuer)),
            _ => {
                for (key, _) in keys {
                    self.count(key, now);
                }
                Err(PasswordFault::Wrong)
            }
        }
    }

    async fn verify(&self, hash: String, password: Secret<String>) -> bool {
        let Ok(permit) = Arc::clone(&self.hashing).acquire_owned().await else {
            return false;
        };
        let check = move || {
            let _permit = permit;
            let password = password.expose().as_bytes();
            let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::default());
            password.len() <= MAX_PASSWORD
                && PasswordHash::new(&hash)
                    .is_ok_and(|hash| argon2.verify_password(password, &hash).is_ok())
        };
        tokio::task::spawn_blocking(check).await.unwrap_or(false)
    }

    fn may_try(&self, key: &[u8; 32], most: u32, now: i64) -> Result<(), PasswordFault> {
        let Some(count) = self.wrong.get(key) else {
            return Ok(());
        };
        let left = count.since + WINDOW - now;
        if left <= 0 || count.times < most {
            return Ok(());
        }
        Err(PasswordFault::TooMany {
            wait: Duration::from_secs(u64::try_from(left).unwrap_or(1)),
        })
    }

    fn count(&self, key: [u8; 32], now: i64) {
        self.wrong.entry(key).and_upsert_with(|known| {
            let known = known.map(moka::Entry::into_value);
            match known.filter(|known| known.since + WINDOW > now) {
                Some(known) => Count {
                    times: known.times.saturating_add(1),
                    ..known
                },
                None => Count {
                    times: 1,
                    since: now,
                },
            }
        });
    }
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passwords(…)")
    }
}

/// The person that an entry of `users` describes.
pub fn person(name: &str, user: &User, issuer: &str) -> Person {
    Person {
        provider: ProviderId::from(LOCAL_PROVIDER),
        issuer: Issuer::from(issuer),
        subject: Subject::from(name),
        name: user.name.clone(),
        email: name.contains('@').then(|| name.to_owned()),
        memberships: user
            .tenants
            .iter()
            .map(|(tenant, roles)| Membership {
                tenant: tenant.clone(),
                roles: roles.clone(),
            })
            .collect(),
        // Read from the configuration whenever it is asked for.
        admin_claims: Vec::new(),
        refresh_token: None,
    }
}

/// What wrong passwords are counted by. Texts of any length and case are one size.
fn key(kind: &str, text: &str) -> [u8; 32] {
    let text = format!("{kind}\0{}", text.trim().to_lowercase());
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::{PasswordHasher, SaltString};

    use super::*;
    use crate::clock::{Clock as _, ManualClock};

    /// Cheap to compute: time is not what these tests are about.
    fn users() -> IndexMap<String, User> {
        let cheap = Params::new(64, 1, 1, None).unwrap();
        let salt = SaltString::from_b64("c2FsdHNhbHRzYWx0").unwrap();
        let hash = Argon2::new(Algorithm::Argon2id, Version::V0x13, cheap)
            .hash_password(b"right", &salt)
            .unwrap()
            .to_string();
        let user = serde_json::json!({"password_hash": hash, "tenants": {"acme": ["support"]}});
        let user: User = serde_json::from_value(user).unwrap();
        [("alice@acme.test".to_owned(), user)].into()
    }

    struct Desk {
        passwords: Passwords,
        clock: Arc<ManualClock>,
    }

    impl Desk {
        fn new() -> Self {
            let start = time::OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
            let clock = Arc::new(ManualClock::new(start));
            Self {
                passwords: Passwords::new(clock.clone()),
                clock,
            }
        }

        async fn check(
            &self,
            name: &str,
            password: &str,
            at: &str,
        ) -> Result<Person, PasswordFault> {
            let given = (name, Secret::new(password.to_owned()));
            let issuer = "https://gw.example.com";
            self.passwords.check(&users(), issuer, given, at).await
        }
    }

    #[tokio::test]
    async fn the_right_password_makes_a_person() {
        let desk = Desk::new();
        let alice = desk.check("alice@acme.test", "right", "a").await.unwrap();
        assert_eq!(alice.subject, Subject::from("alice@acme.test"));
        assert_eq!(alice.memberships[0].roles, ["support".into()]);
        for (name, password) in [
            ("alice@acme.test", "wrong"),
            ("alice@acme.test", ""),
            ("ALICE@acme.test", "right"),
            ("bob@acme.test", "right"),
            ("", ""),
        ] {
            let fault = desk.check(name, password, "a").await.unwrap_err();
            assert_eq!(fault, PasswordFault::Wrong, "{name} {password}");
        }
    }

    #[tokio::test]
    async fn wrong_passwords_are_limited_per_account_whoever_tries() {
        let desk = Desk::new();
        for name in ["alice@acme.test", "nobody@acme.test"] {
            for at in 0..PER_ACCOUNT {
                let fault = desk.check(name, "wrong", &at.to_string()).await;
                assert_eq!(fault.unwrap_err(), PasswordFault::Wrong);
            }
            let fault = desk.check(&name.to_uppercase(), "right", "x").await;
            assert!(
                matches!(fault, Err(PasswordFault::TooMany { .. })),
                "{name}"
            );
        }
        desk.clock
            .advance(Duration::from_secs(WINDOW.unsigned_abs() + 1));
        assert!(desk.clock.unix_seconds() > 0);
        assert!(desk.check("alice@acme.test", "right", "x").await.is_ok());
    }

    #[tokio::test]
    async fn wrong_passwords_are_limited_per_address_whatever_is_tried() {
        let desk = Desk::new();
        for user in 0..PER_ADDRESS {
            let _ = desk.check(&format!("u{user}"), "wrong", "a").await;
        }
        let fault = desk.check("alice@acme.test", "right", "a").await;
        assert!(matches!(fault, Err(PasswordFault::TooMany { .. })));
        assert!(desk.check("alice@acme.test", "right", "b").await.is_ok());
    }
}
