//! JSON Web Tokens and key sets, as far as Toolgate needs them: RS256, ES256 and
//! `EdDSA` (Ed25519), signed compact form only (RFC 7515, 7517, 7519, 8037, 8725).
//!
//! Pure: it knows no clock, no issuer's rules and no place that keys come from.
//! What a token says about its own key beyond `kid` (`jku`, `x5u`, `jwk`) is not
//! looked at.

mod key_set;
mod sign;
mod token;

use serde_json::{Map, Value};
use thiserror::Error;

pub use key_set::{KeySet, KeySetFault};
pub use sign::{SigningFault, SigningKey};
pub use token::{MAX_TOKEN, Token, TokenHeader};

/// The claims of a token.
pub type Claims = Map<String, Value>;

/// The claim at a dotted path. Names with dots in them (`https://idp.example.com/tenant`)
/// are found too.
pub fn claim_at<'a>(claims: &'a Claims, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    path.match_indices('.').find_map(|(dot, _)| {
        let (name, rest) = (path.get(..dot)?, path.get(dot + 1..)?);
        claim_at(claims.get(name)?.as_object()?, rest)
    })
}

/// The algorithms that exist here: asymmetric ones only, so that no public key
/// can ever serve as a shared secret (RFC 8725 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 §3.3).
    Rs256,
    /// ECDSA on P-256 with SHA-256 (RFC 7518 §3.4).
    Es256,
    /// Ed25519 (RFC 8037 §3.1).
    EdDsa,
}

impl Algorithm {
    /// The name in `alg`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Rs256, Self::Es256, Self::EdDsa]
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
    }
}

/// Why a token is refused. No text of the token is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JoseFault {
    /// Longer than [`MAX_TOKEN`].
    #[error("the token is longer than {MAX_TOKEN} bytes")]
    TooLong,
    /// Not a signed token in compact form, or its JSON is wrong.
    #[error("the token is not a signed JWT")]
    Malformed,
    /// `alg` is `none`, symmetric, unknown, or not allowed here.
    #[error("the token's signature algorithm is not accepted")]
    AlgorithmRefused,
    /// The header has `crit` or `b64`: extensions that are not understood here
    /// (RFC 7515 §4.1.11).
    #[error("the token's header needs an extension that is not supported")]
    Critical,
    /// No key of the set is the one that signed, or without `kid` more than one may be.
    #[error("the token's signing key is not known")]
    UnknownKey,
    /// The key is known and the signature is not its.
    #[error("the token's signature is wrong")]
    BadSignature,
}

/// The header of a token, nothing verified.
///
/// # Errors
/// As [`Token::parse`].
pub fn header(token: &str) -> Result<TokenHeader, JoseFault> {
    Token::parse(token).map(|token| token.header().clone())
}

/// The claims of a token whose signature one of `keys` made, by an algorithm of
/// `allowed`. What the claims say (issuer, audience, times) is for the caller to judge.
///
/// # Errors
/// [`JoseFault`]; `UnknownKey` where newer keys may help.
pub fn verify(token: &str, keys: &KeySet, allowed: &[Algorithm]) -> Result<Claims, JoseFault> {
    let token = Token::parse(token)?;
    token.verify(keys, allowed)?;
    Ok(token.into_claims())
}

#[cfg(test)]
mod tests;
