//! `identity_providers`: whose tokens are believed, and for whom.

use std::collections::HashMap;
use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Deserialize;

use super::Interval;
use super::check::Check;
use crate::ids::{ProviderId, TenantId};

/// One entry of `identity_providers`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentityProvider {
    /// The `iss` of its tokens, byte for byte.
    pub issuer: String,
    /// The tenants that its tokens may speak for. Required when there are several providers.
    #[serde(default)]
    pub tenants: Vec<TenantId>,
    /// Values of `aud` that are accepted beside the endpoint's own URL.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// Signature algorithms that are accepted.
    #[serde(default = "algorithms")]
    pub algorithms: Vec<Algorithm>,
    /// Its keys, from a file that is read again when it changes.
    #[serde(default)]
    pub jwks_file: Option<PathBuf>,
    /// Its keys, from this URL. Without either the keys are discovered
    /// (`OpenID` Connect Discovery §4, RFC 8414 §3).
    #[serde(default)]
    pub jwks_url: Option<String>,
    /// Which claims say what.
    #[serde(default)]
    pub claims: Claims,
    /// How people sign in through it. Without it nobody does.
    #[serde(default)]
    pub login: Option<Login>,
    /// Whether its identity assertions for clients (ID-JAG) are exchanged for access tokens.
    #[serde(default)]
    pub id_jag: bool,
}

/// `identity_providers.*.login`: the gateway as the provider's `OpenID` client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The `client_id` that the provider knows the gateway by.
    pub client_id: String,
    /// File with the secret that goes with it.
    #[serde(default)]
    pub client_secret_file: Option<PathBuf>,
    /// What is asked of the provider. Add `offline_access` where it gives refresh
    /// tokens only for that, so that a person's standing can be asked for later.
    #[serde(default = "login_scopes")]
    pub scopes: Vec<String>,
    /// Domains of the e-mail addresses of its people, to choose by on the sign-in page.
    #[serde(default)]
    pub email_domains: Vec<String>,
    /// How long a person stays signed in to a client whose standing cannot be asked
    /// for, because the provider gave no refresh token.
    #[serde(default = "unchecked_lifetime")]
    pub unchecked_lifetime: Interval,
}

fn unchecked_lifetime() -> Interval {
    Interval::seconds(7 * 24 * 3600)
}

fn login_scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).to_vec()
}

fn algorithms() -> Vec<Algorithm> {
    vec![Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa]
}

/// A JWS algorithm (RFC 7518 §3.1, RFC 8037 §3.1). Only asymmetric ones exist here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

/// `identity_providers.*.claims`: dotted paths into the token's claims.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Claims {
    /// The tenant. A provider with one tenant needs no such claim in its tokens.
    pub tenant: String,
    /// The roles: a string, a list, or a space-separated string.
    pub roles: String,
    /// The client. Without this claim `azp`, then `client_id`, are taken.
    pub client: String,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            tenant: "tenant".to_owned(),
            roles: "roles".to_owned(),
            client: "client_id".to_owned(),
        }
    }
}

impl IdentityProvider {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.within("issuer", |check| self.validate_issuer(check));
        check.each("tenants", &self.tenants, |tenant, check| {
            check.refers("tenants", tenant.as_str());
        });
        check.each("audiences", &self.audiences, |audience, check| {
            if audience.trim().is_empty() {
                check.fault("is empty", "write the `aud` of the provider's tokens");
            }
        });
        if self.algorithms.is_empty() {
            check.within("algorithms", |check| {
                check.fault("is empty", "write RS256, ES256 or EdDSA, or remove the key");
            });
        }
        check.within("jwks_url", |check| self.validate_jwks_url(check));
        if let Some(login) = &self.login {
            check.within("login", |check| login.validate(check));
        }
        check.within("claims", |check| {
            for (key, claim) in [
                ("tenant", &self.claims.tenant),
                ("roles", &self.claims.roles),
                ("client", &self.claims.client),
            ] {
                if claim.split('.').any(str::is_empty) {
                    check.within(key, |check| {
                        check.fault("is no claim", "write one such as `org_id` or `realm.roles`");
                    });
                }
            }
        });
    }

    /// The issuer is compared as text (RFC 9207 §2.4); only where keys are
    /// discovered must it be a URL that can be fetched.
    fn validate_issuer(&self, check: &mut Check<'_>) {
        if self.issuer.is_empty()
            || self
                .issuer
                .contains(|c: char| c.is_whitespace() || c.is_control())
        {
            check.fault("is no issuer", "write the `iss` of the provider's tokens");
        } else if self.jwks_file.is_none() && self.jwks_url.is_none() {
            let Some(url) = check.url(&self.issuer, "https://login.example.com") else {
                return;
            };
            if url.query {
                check.fault(
                    "has a query (`?…`), with which no keys can be discovered",
                    "write the issuer alone, or add `jwks_url`",
                );
            }
            check.secure(url);
        }
    }

    fn validate_jwks_url(&self, check: &mut Check<'_>) {
        let Some(text) = &self.jwks_url else { return };
        if self.jwks_file.is_some() {
            check.key_fault("stands beside `jwks_file`", "keep one of them");
        }
        if let Some(url) = check.url(text, "https://login.example.com/keys") {
            check.secure(url);
        }
    }
}

impl Login {
    fn validate(&self, check: &mut Check<'_>) {
        if self.client_id.trim().is_empty() {
            check.within("client_id", |check| {
                check.fault(
                    "is empty",
                    "write the id that the provider gave the gateway",
                );
            });
        }
        if !self.scopes.iter().any(|scope| scope == "openid") {
            check.within("scopes", |check| {
                check.fault("lacks `openid`", "add it: without it nobody is signed in");
            });
        }
        check.lasting("unchecked_lifetime", self.unchecked_lifetime);
        check.each("email_domains", &self.email_domains, |domain, check| {
            if !domain.contains('.') || domain.contains(['@', '/', ' ']) {
                check.fault("is no domain", "write one such as `example.com`");
            }
        });
    }
}

/// The rules between providers.
pub(super) fn validate_together(
    providers: &IndexMap<ProviderId, IdentityProvider>,
    others_sign_in: bool,
    check: &mut Check<'_>,
) {
    if providers.is_empty() && !others_sign_in {
        check.warning("is empty: nobody can call", "add who issues your tokens");
    }
    let mut issuers: HashMap<&str, &ProviderId> = HashMap::new();
    for (id, provider) in providers {
        check.within(id.as_str(), |check| {
            if providers.len() > 1 && provider.tenants.is_empty() {
                check.within("tenants", |check| {
                    check.fault(
                        "is missing, and there are several providers",
                        "list the tenants that this provider's tokens may speak for",
                    );
                });
            }
            if let Some(first) = issuers.insert(&provider.issuer, id) {
                let line = check.line_of(&["identity_providers", first.as_str(), "issuer"]);
                let at = line.map_or_else(String::new, |line| format!(" on line {line}"));
                check.within("issuer", |check| {
                    check.fault(
                        format!("is the issuer of `{first}`{at} too"),
                        "keep one of the two providers",
                    );
                });
            }
        });
    }
}
