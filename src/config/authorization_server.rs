//! `authorization_server`: the built-in one. Who may register, and how long things last.

use std::collections::BTreeSet;
use std::time::Duration;

use indexmap::IndexMap;
use serde::Deserialize;

use super::check::Check;
use super::tools::{SCOPE_CHARACTERS, is_scope};
use super::{Bucket, Interval, Pattern, Rate};
use crate::ids::Scope;

/// `authorization_server`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizationServer {
    /// Whether there is one.
    pub enabled: bool,
    /// How clients become known.
    pub registration: Registration,
    /// What scopes mean, in words for people: `Change and delete customers`.
    pub scopes: IndexMap<Scope, String>,
    /// Broader scopes: who has the key has also what it lists, and what that lists.
    /// Holds for every token, whoever issued it.
    pub implied_scopes: IndexMap<Scope, Vec<Scope>>,
    /// How long an access token is good for.
    pub access_token_lifetime: Interval,
    /// How long a refresh token may lie unused.
    pub refresh_token_lifetime: Interval,
    /// How long a person stays signed in to a client at most.
    pub sign_in_lifetime: Interval,
    /// How long an authorization code waits to be exchanged.
    pub code_lifetime: Interval,
    /// How long a signing key signs before the next one takes over.
    pub key_rotation: Interval,
    /// What new signing keys sign with.
    pub signing_algorithm: SigningAlgorithm,
}

impl Default for AuthorizationServer {
    fn default() -> Self {
        Self {
            enabled: false,
            registration: Registration::default(),
            scopes: IndexMap::new(),
            implied_scopes: IndexMap::new(),
            access_token_lifetime: Interval::seconds(10 * 60),
            refresh_token_lifetime: Interval::seconds(30 * 24 * 3600),
            sign_in_lifetime: Interval::seconds(180 * 24 * 3600),
            code_lifetime: Interval::seconds(60),
            key_rotation: Interval::seconds(30 * 24 * 3600),
            signing_algorithm: SigningAlgorithm::Es256,
        }
    }
}

/// `authorization_server.registration`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Registration {
    /// Whether clients may register themselves (RFC 7591).
    pub dynamic: bool,
    /// Whether a client's id may be the URL of its metadata document.
    pub metadata_documents: bool,
    /// Schemes of redirects besides `https` and loopback `http`, such as `cursor`.
    pub private_use_schemes: Vec<String>,
    /// Names that may be registered, as globs. Empty: any.
    pub allow_names: Vec<Pattern>,
    /// Redirects that may be registered, as globs over the whole URI. Empty: any.
    pub allow_redirects: Vec<Pattern>,
    /// How fast clients may register, and documents be fetched, over all addresses.
    pub limit: Bucket,
    /// How many clients may be registered at the same time.
    pub most: u32,
    /// How long a registered client is kept that nobody has signed in through.
    pub unused_for: Interval,
}

impl Default for Registration {
    fn default() -> Self {
        Self {
            dynamic: true,
            metadata_documents: true,
            private_use_schemes: Vec::new(),
            allow_names: Vec::new(),
            allow_redirects: Vec::new(),
            limit: Bucket {
                rate: Rate {
                    count: 60,
                    per: Duration::from_mins(1),
                },
                burst: Some(120),
                concurrent: None,
                when_away: None,
            },
            most: 10_000,
            unused_for: Interval::seconds(24 * 3600),
        }
    }
}

/// `authorization_server.signing_algorithm`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SigningAlgorithm {
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl AuthorizationServer {
    /// Everything that a scope stands for, itself included.
    pub fn implied_by(&self, scope: &Scope) -> BTreeSet<Scope> {
        let mut all = BTreeSet::new();
        let mut open = vec![scope];
        while let Some(next) = open.pop() {
            if all.insert(next.clone()) {
                open.extend(self.implied_scopes.get(next).into_iter().flatten());
            }
        }
        all
    }

    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.within("registration", |check| self.registration.validate(check));
        check.within("scopes", |check| {
            for (scope, words) in &self.scopes {
                check.within(scope.as_str(), |check| {
                    if words.trim().is_empty() || words.chars().any(char::is_control) {
                        check.fault("says nothing", "write what a person may do with it");
                    }
                });
            }
        });
        check.within("implied_scopes", |check| {
            for (scope, implied) in &self.implied_scopes {
                check.within(scope.as_str(), |check| {
                    if !is_scope(scope) || !implied.iter().all(is_scope) {
                        check.fault("holds what is no scope", SCOPE_CHARACTERS);
                    }
                });
            }
        });
        for (key, interval) in [
            ("refresh_token_lifetime", self.refresh_token_lifetime),
            ("sign_in_lifetime", self.sign_in_lifetime),
        ] {
            check.lasting(key, interval);
        }
        for (key, interval, least, most, instead) in [
            (
                "access_token_lifetime",
                self.access_token_lifetime,
                Duration::from_secs(1),
                Duration::from_hours(1),
                "write at most `1h`; refresh tokens keep people signed in",
            ),
            (
                "code_lifetime",
                self.code_lifetime,
                Duration::from_secs(1),
                Duration::from_mins(10),
                "write at most `10m` (RFC 6749 §4.1.2)",
            ),
            (
                "key_rotation",
                self.key_rotation,
                Duration::from_mins(10),
                Duration::from_hours(24 * 366),
                "write between `10m` and `366d`",
            ),
        ] {
            if interval.0 < least || interval.0 > most {
                check.within(key, |check| check.fault("is out of bounds", instead));
            }
        }
    }
}

impl Registration {
    fn validate(&self, check: &mut Check<'_>) {
        check.each(
            "private_use_schemes",
            &self.private_use_schemes,
            |scheme, check| {
                let possible = scheme.starts_with(|c: char| c.is_ascii_lowercase())
                    && scheme.chars().all(|c| {
                        c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '+')
                    });
                if !possible {
                    check.fault(
                        "is no scheme",
                        "write one such as `cursor` or `com.example.app`",
                    );
                } else if matches!(
                    scheme.as_str(),
                    "http"
                        | "https"
                        | "javascript"
                        | "data"
                        | "file"
                        | "vbscript"
                        | "blob"
                        | "about"
                        | "ftp"
                        | "ws"
                        | "wss"
                ) {
                    check.fault(
                        "is no private-use scheme",
                        "`https` and loopback `http` are accepted anyway; the others never",
                    );
                }
            },
        );
        for (key, globs) in [
            ("allow_names", &self.allow_names),
            ("allow_redirects", &self.allow_redirects),
        ] {
            check.each(key, globs, |glob, check| {
                if glob.as_str().trim().is_empty() {
                    check.fault("matches nothing", "write a glob, or remove it");
                }
            });
        }
        check.positive("most", u64::from(self.most));
        check.lasting("unused_for", self.unused_for);
    }
}
