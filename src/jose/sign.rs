//! Signing keys: made, kept as PKCS#8, published as JWK, used to sign. For
//! quickstart's tokens, the built-in authorization server and tests.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use thiserror::Error;

use super::{Algorithm, Claims};
use crate::secret::Secret;

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// A private key and what is published of it. Prints as its key id.
pub struct SigningKey {
    pair: Pair,
    pkcs8: Secret<Vec<u8>>,
    kid: String,
}

enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why a key cannot be made, read or used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SigningFault {
    /// Not a PKCS#8 private key of a supported kind.
    #[error(
        "not a private key of a supported kind: PKCS#8 with P-256, Ed25519 or RSA of at least 2048 bits is needed"
    )]
    NotAKey,
    /// The cryptographic library failed.
    #[error("the cryptographic library could not make a key or a signature")]
    Library,
}

impl SigningKey {
    /// A new key. RSA keys have 2048 bits.
    ///
    /// # Errors
    /// When the cryptographic library fails.
    pub fn generate(algorithm: Algorithm) -> Result<Self, SigningFault> {
        let library = |_| SigningFault::Library;
        let pkcs8 = match algorithm {
            Algorithm::Rs256 => {
                let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(library)?;
                let der: Pkcs8V1Der<'_> = pair.as_der().map_err(library)?;
                der.as_ref().to_vec()
            }
            Algorithm::Es256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
                .and_then(|pair| pair.to_pkcs8v1())
                .map_err(library)?
                .as_ref()
                .to_vec(),
            Algorithm::EdDsa => Ed25519KeyPair::generate()
                .and_then(|pair| pair.to_pkcs8v1())
                .map_err(library)?
                .as_ref()
                .to_vec(),
        };
        Self::from_pkcs8(&pkcs8)
    }

    /// The Ed25519 key of a seed (RFC 8032 §5.1.5): the same seed, the same key.
    ///
    /// # Errors
    /// When the cryptographic library fails.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, SigningFault> {
        let pkcs8 = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| SigningFault::Library)?
            .to_pkcs8v1()
            .map_err(|_| SigningFault::Library)?;
        Self::from_pkcs8(pkcs8.as_ref())
    }

    /// A key from PKCS#8 DER.
    ///
    /// # Errors
    /// When it is none, or of another kind.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, SigningFault> {
        let pair = Pair::from_pkcs8(der).ok_or(SigningFault::NotAKey)?;
        let kid = pair.thumbprint();
        Ok(Self {
            pair,
            pkcs8: Secret::new(der.to_vec()),
            kid,
        })
    }

    /// A key from PKCS#8 PEM (RFC 7468 §10).
    ///
    /// # Errors
    /// When it is none, or of another kind.
    pub fn from_pem(pem: &str) -> Result<Self, SigningFault> {
        let body = pem
            .split_once(BEGIN)
            .and_then(|(_, rest)| rest.split_once(END))
            .map(|(body, _)| body.split_whitespace().collect::<String>())
            .map(Secret::new)
            .ok_or(SigningFault::NotAKey)?;
        let der = STANDARD
            .decode(body.expose())
            .map(Secret::new)
            .map_err(|_| SigningFault::NotAKey)?;
        Self::from_pkcs8(der.expose())
    }

    /// The private key as PKCS#8 DER.
    pub fn to_pkcs8(&self) -> Secret<Vec<u8>> {
        self.pkcs8.clone()
    }

    /// The private key as PKCS#8 PEM.
    pub fn to_pem(&self) -> Secret<String> {
        let mut pem = format!("{BEGIN}\n");
        let body = STANDARD.encode(self.pkcs8.expose());
        let mut rest = body.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(64));
            pem.push_str(line);
            pem.push('\n');
            rest = after;
        }
        pem.push_str(END);
        pem.push('\n');
        Secret::new(pem)
    }

    /// The algorithm that it signs with.
    pub fn algorithm(&self) -> Algorithm {
        match self.pair {
            Pair::Rsa(_) => Algorithm::Rs256,
            Pair::P256(_) => Algorithm::Es256,
            Pair::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Its key id: the thumbprint of the public key (RFC 7638).
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public key as a JWK.
    pub fn public_jwk(&self) -> Value {
        let mut jwk = self.pair.jwk();
        if let Some(members) = jwk.as_object_mut() {
            members.insert("kid".to_owned(), self.kid.clone().into());
            members.insert("alg".to_owned(), self.algorithm().name().into());
            members.insert("use".to_owned(), "sig".into());
        }
        jwk
    }

    /// The key set that has this public key alone.
    pub fn public_jwks(&self) -> Value {
        json!({ "keys": [self.public_jwk()] })
    }

    /// A token with these claims.
    ///
    /// # Errors
    /// When the cryptographic library fails.
    pub fn sign(&self, claims: &Claims, typ: &str) -> Result<String, SigningFault> {
        let header = json!({ "alg": self.algorithm().name(), "typ": typ, "kid": self.kid });
        self.sign_with_header(&header, claims)
    }

    /// A token with this header as it is. What it says of `alg` and `kid` is not judged.
    ///
    /// # Errors
    /// When the cryptographic library fails.
    pub fn sign_with_header(
        &self,
        header: &Value,
        claims: &Claims,
    ) -> Result<String, SigningFault> {
        let claims = serde_json::to_string(claims).map_err(|_| SigningFault::Library)?;
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self
            .pair
            .sign(token.as_bytes())
            .ok_or(SigningFault::Library)?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, {})", self.algorithm().name(), self.kid)
    }
}

impl Pair {
    fn from_pkcs8(der: &[u8]) -> Option<Self> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der)
            .map(Self::P256)
            .or_else(|_| Ed25519KeyPair::from_pkcs8(der).map(Self::Ed25519))
            .or_else(|_| RsaKeyPair::from_pkcs8(der).map(Self::Rsa))
            .ok()
            .filter(|pair| match pair {
                Self::Rsa(rsa) => rsa.public_modulus_len() >= 256,
                _ => true,
            })
    }

    /// The members that a thumbprint is made of, in its order (RFC 7638 §3.2).
    fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Rsa(pair) => {
                let public = pair.public_key();
                json!({
                    "e": text(public.exponent().big_endian_without_leading_zero()),
                    "kty": "RSA",
                    "n": text(public.modulus().big_endian_without_leading_zero()),
                })
            }
            Self::P256(pair) => {
                let point = pair.public_key().as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                json!({ "crv": "P-256", "kty": "EC", "x": text(x), "y": text(y) })
            }
            Self::Ed25519(pair) => {
                json!({ "crv": "Ed25519", "kty": "OKP", "x": text(pair.public_key().as_ref()) })
            }
        }
    }

    fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.jwk().to_string().as_bytes()))
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .ok()?;
                Some(signature)
            }
            Self::P256(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
            Self::Ed25519(pair) => Some(pair.try_sign(message).ok()?.as_ref().to_vec()),
        }
    }
}
