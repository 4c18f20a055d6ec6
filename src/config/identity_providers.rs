//! `identity_providers`: whose tokens are believed, and for whom.

use std::path::PathBuf;

use serde::Deserialize;

use crate::ids::TenantId;

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
    /// (OpenID Connect Discovery §4, RFC 8414 §3).
    #[serde(default)]
    pub jwks_url: Option<String>,
    /// Which claims say what.
    #[serde(default)]
    pub claims: Claims,
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
