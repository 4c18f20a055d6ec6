//! A token in compact form, taken apart, and the check of its signature.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::{Algorithm, Claims, JoseFault, KeySet};

/// Longest token that is looked at. Tokens with hundreds of groups stay below;
/// HTTP servers cap a header at about the same size.
pub const MAX_TOKEN: usize = 16 * 1024;

/// What a token's header says of its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHeader {
    /// The algorithm.
    pub alg: Algorithm,
    /// Which of the issuer's keys.
    pub kid: Option<String>,
    /// What kind of token.
    pub typ: Option<String>,
}

/// A token that is well formed. Its claims are out of reach until
/// [`Token::verify`] has passed, but for `iss`, which chooses the keys.
pub struct Token<'a> {
    header: TokenHeader,
    claims: Claims,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Token<'a> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// Everything that can be wrong before a key is needed, an `alg` that is not
    /// one of [`Algorithm`] included.
    pub fn parse(token: &'a str) -> Result<Self, JoseFault> {
        if token.len() > MAX_TOKEN {
            return Err(JoseFault::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(JoseFault::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(JoseFault::Malformed)?;
        Ok(Self {
            header: header_of(&object(header)?)?,
            claims: object(claims)?,
            signed,
            signature: decode(signature)?,
        })
    }

    /// The header.
    pub fn header(&self) -> &TokenHeader {
        &self.header
    }

    /// The `iss` claim, not verified: for choosing whose keys to try, nothing else.
    pub fn unverified_issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }

    /// Checks the signature. With `kid` the keys of that id are tried, without it
    /// the only one of the set that fits (RFC 7515 §4.1.4).
    ///
    /// # Errors
    /// `AlgorithmRefused`, `UnknownKey` or `BadSignature`.
    pub fn verify(&self, keys: &KeySet, allowed: &[Algorithm]) -> Result<&Claims, JoseFault> {
        if !allowed.contains(&self.header.alg) {
            return Err(JoseFault::AlgorithmRefused);
        }
        keys.verify(
            self.header.alg,
            self.header.kid.as_deref(),
            self.signed.as_bytes(),
            &self.signature,
        )?;
        Ok(&self.claims)
    }

    /// The claims. Call [`Token::verify`] first.
    pub(super) fn into_claims(self) -> Claims {
        self.claims
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("alg", &self.header.alg)
            .finish_non_exhaustive()
    }
}

fn header_of(header: &Map<String, Value>) -> Result<TokenHeader, JoseFault> {
    let text = |name: &str| match header.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(JoseFault::Malformed),
    };
    let alg = text("alg")?.ok_or(JoseFault::Malformed)?;
    let alg = Algorithm::from_name(&alg).ok_or(JoseFault::AlgorithmRefused)?;
    if header.contains_key("crit") || header.contains_key("b64") {
        return Err(JoseFault::Critical);
    }
    Ok(TokenHeader {
        alg,
        kid: text("kid")?,
        typ: text("typ")?,
    })
}

fn decode(part: &str) -> Result<Vec<u8>, JoseFault> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| JoseFault::Malformed)
}

fn object(part: &str) -> Result<Map<String, Value>, JoseFault> {
    serde_json::from_slice::<Unique>(&decode(part)?)
        .map(|unique| unique.0)
        .map_err(|_| JoseFault::Malformed)
}

/// An object whose names are unique (RFC 7519 §4: a parser that picks one of two
/// and a parser that picks the other are two opinions on who calls).
struct Unique(Map<String, Value>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Unique;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Unique, A::Error> {
                let mut map = Map::new();
                while let Some((name, value)) = access.next_entry::<String, Value>()? {
                    if map.insert(name, value).is_some() {
                        return Err(A::Error::custom("a name occurs twice"));
                    }
                }
                Ok(Unique(map))
            }
        }
        deserializer.deserialize_map(Members)
    }
}
