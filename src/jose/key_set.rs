//! A JSON Web Key Set: the public keys of an issuer, parsed once.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::{Algorithm, JoseFault};

/// More keys than this in one set are not looked at: no issuer has them, and
/// each is work.
const MAX_KEYS: usize = 100;

/// The usable signature keys of a set.
#[derive(Clone, Default)]
pub struct KeySet {
    keys: Vec<Key>,
    digest: [u8; 32],
}

#[derive(Clone)]
struct Key {
    kid: Option<String>,
    algorithm: Algorithm,
    public: ParsedPublicKey,
    material: Vec<u8>,
}

/// Why a text is no key set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a JSON Web Key Set: an object with a list `keys` is needed")]
pub struct KeySetFault;

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    r#use: Option<String>,
    #[serde(default)]
    key_ops: Option<Vec<String>>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

impl KeySet {
    /// Reads a set. Keys that are not understood, are for encryption, or are too
    /// weak are left out, never a reason to refuse the others (RFC 7517 §5).
    ///
    /// # Errors
    /// When the text is not a key set at all.
    pub fn parse(json: &str) -> Result<Self, KeySetFault> {
        let document: Document = serde_json::from_str(json).map_err(|_| KeySetFault)?;
        let mut keys: Vec<Key> = document
            .keys
            .into_iter()
            .take(MAX_KEYS)
            .filter_map(|key| serde_json::from_value::<Jwk>(key).ok())
            .filter_map(|jwk| Key::from_jwk(&jwk))
            .collect();
        keys.sort_by(|a, b| (&a.kid, &a.material).cmp(&(&b.kid, &b.material)));
        keys.dedup_by(|a, b| a.kid == b.kid && a.material == b.material);
        let digest = digest_of(&keys);
        Ok(Self { keys, digest })
    }

    /// How many usable keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no token can be verified with this set.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Equal for two sets with the same usable keys, in whatever order they came.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        kid: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), JoseFault> {
        let mut fitting = self
            .keys
            .iter()
            .filter(|key| key.algorithm == algorithm)
            .filter(|key| kid.is_none() || key.kid.as_deref() == kid)
            .peekable();
        let first = fitting.next().ok_or(JoseFault::UnknownKey)?;
        if kid.is_none() && fitting.peek().is_some() {
            return Err(JoseFault::UnknownKey);
        }
        std::iter::once(first)
            .chain(fitting)
            .any(|key| key.public.verify_sig(message, signature).is_ok())
            .then_some(())
            .ok_or(JoseFault::BadSignature)
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({})", self.keys.len())
    }
}

impl Key {
    fn from_jwk(jwk: &Jwk) -> Option<Self> {
        let for_signatures = jwk.r#use.as_deref().is_none_or(|r#use| r#use == "sig")
            && jwk
                .key_ops
                .as_ref()
                .is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !for_signatures {
            return None;
        }
        let (algorithm, public, material) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => rsa(jwk)?,
            ("EC", Some("P-256")) => p256(jwk)?,
            ("OKP", Some("Ed25519")) => ed25519(jwk)?,
            _ => return None,
        };
        // RFC 9864 names the same algorithm `Ed25519` in keys of newer issuers.
        let fits = jwk.alg.as_deref().is_none_or(|alg| {
            alg == algorithm.name() || (algorithm == Algorithm::EdDsa && alg == "Ed25519")
        });
        fits.then(|| Self {
            kid: jwk.kid.clone(),
            algorithm,
            public,
            material,
        })
    }
}

type Parsed = (Algorithm, ParsedPublicKey, Vec<u8>);

fn rsa(jwk: &Jwk) -> Option<Parsed> {
    // Some issuers write a leading zero byte (RFC 7518 §6.3.1.1 forbids it).
    let strip =
        |bytes: Vec<u8>| -> Vec<u8> { bytes.into_iter().skip_while(|byte| *byte == 0).collect() };
    let n = strip(bytes(jwk.n.as_ref())?);
    let e = strip(bytes(jwk.e.as_ref())?);
    // 2048 to 8192 bits; the library checks it only at verification.
    if !(256..=1024).contains(&n.len()) {
        return None;
    }
    let public = RsaPublicKeyComponents { n: &n, e: &e }
        .to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256)
        .ok()?;
    let mut material = n;
    material.extend_from_slice(&e);
    Some((Algorithm::Rs256, public, material))
}

fn p256(jwk: &Jwk) -> Option<Parsed> {
    let x = bytes(jwk.x.as_ref()).filter(|x| x.len() == 32)?;
    let y = bytes(jwk.y.as_ref()).filter(|y| y.len() == 32)?;
    let mut point = vec![4];
    point.extend_from_slice(&x);
    point.extend_from_slice(&y);
    let public = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &point).ok()?;
    Some((Algorithm::Es256, public, point))
}

fn ed25519(jwk: &Jwk) -> Option<Parsed> {
    let x = bytes(jwk.x.as_ref()).filter(|x| x.len() == 32)?;
    let public = ParsedPublicKey::new(&ED25519, &x).ok()?;
    Some((Algorithm::EdDsa, public, x))
}

fn bytes(text: Option<&String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok()
}

fn digest_of(keys: &[Key]) -> [u8; 32] {
    let mut all = Vec::new();
    for key in keys {
        let kid = key.kid.as_deref().unwrap_or_default();
        for part in [
            kid.as_bytes(),
            key.algorithm.name().as_bytes(),
            &key.material,
        ] {
            all.extend_from_slice(&(part.len() as u64).to_be_bytes());
            all.extend_from_slice(part);
        }
    }
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, &all).as_ref());
    out
}
