//! Keys of an identity provider, and tokens signed with them: good ones by
//! default, and any kind of bad one by one more word.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Map;

use super::{Value, json, kept};

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

/// One key of each algorithm.
pub(crate) struct Keys {
    name: String,
    rsa: RsaKeyPair,
    ecdsa: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

impl Algorithm {
    /// Every one.
    pub(crate) const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl Keys {
    /// Fresh ones. The key ids begin with `name`.
    pub(crate) fn generate(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
            ecdsa: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            ed25519: Ed25519KeyPair::generate().unwrap(),
        })
    }

    /// The id of the key for an algorithm.
    pub(crate) fn id(&self, algorithm: Algorithm) -> String {
        format!("{}-{}", self.name, algorithm.name().to_lowercase())
    }

    /// The public keys as `keys` of a JWK set (RFC 7517 §5).
    pub(crate) fn public(&self) -> Vec<Value> {
        let key = |algorithm: Algorithm, parts: Value| {
            let mut key = json!({"use": "sig", "alg": algorithm.name(), "kid": self.id(algorithm)});
            super::config::merge(&mut key, &parts);
            key
        };
        let point = self.ecdsa.public_key().as_ref();
        vec![
            key(
                Algorithm::Rs256,
                json!({"kty": "RSA", "n": encode(self.modulus()), "e": "AQAB"}),
            ),
            key(
                Algorithm::Es256,
                json!({"kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..])}),
            ),
            key(
                Algorithm::EdDsa,
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(self.ed25519.public_key().as_ref())}),
            ),
        ]
    }

    /// The RSA public key as PEM's bytes: what an attacker signs an HMAC with.
    pub(crate) fn rsa_public_der(&self) -> Vec<u8> {
        let der: PublicKeyX509Der<'_> = self.rsa.public_key().as_der().unwrap();
        der.as_ref().to_vec()
    }

    /// The modulus out of `RSAPublicKey` (RFC 8017 §A.1.1), whose form is fixed
    /// for 2048 bits and exponent 65537.
    fn modulus(&self) -> &[u8] {
        let der = self.rsa.public_key().as_ref();
        assert_eq!(
            der[..9],
            [0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00]
        );
        &der[9..265]
    }

    fn sign(&self, algorithm: Algorithm, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match algorithm {
            Algorithm::Rs256 => {
                let mut signature = vec![0; self.rsa.public_modulus_len()];
                self.rsa
                    .sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Algorithm::Es256 => self.ecdsa.sign(&random, message).unwrap().as_ref().to_vec(),
            Algorithm::EdDsa => self.ed25519.sign(message).as_ref().to_vec(),
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.name)
    }
}

/// What stands where the signature should.
#[derive(Clone, Debug)]
enum Signing {
    Right,
    None,
    Hmac(Vec<u8>),
    Broken,
}

/// A token in the making.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    keys: Arc<Keys>,
    algorithm: Algorithm,
    header: Map<String, Value>,
    claims: Map<String, Value>,
    signing: Signing,
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .try_into()
        .unwrap()
}

impl Token {
    /// A good token for `subject` of `tenant`, valid for an hour.
    pub(crate) fn new(
        keys: &Arc<Keys>,
        issuer: &str,
        audience: &str,
        subject: &str,
        tenant: &str,
    ) -> Self {
        let claims = json!({
            "iss": issuer, "aud": audience, "sub": subject, "tenant": tenant,
            "client_id": "client-1", "scope": "mcp", "roles": [],
            "iat": now(), "nbf": now(), "exp": now() + 3600,
        });
        let Value::Object(claims) = claims else {
            unreachable!()
        };
        let token = Self {
            keys: Arc::clone(keys),
            algorithm: Algorithm::Es256,
            header: Map::new(),
            claims,
            signing: Signing::Right,
        };
        token.header("typ", "at+jwt").algorithm(Algorithm::Es256)
    }

    /// Signed by this algorithm's key.
    pub(crate) fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        let id = self.keys.id(algorithm);
        self.header("alg", algorithm.name()).header("kid", id)
    }

    /// Sets a claim; `null` removes it.
    pub(crate) fn claim(mut self, name: &str, value: impl Into<Value>) -> Self {
        set(&mut self.claims, name, value.into());
        self
    }

    /// Sets a member of the header; `null` removes it.
    pub(crate) fn header(mut self, name: &str, value: impl Into<Value>) -> Self {
        set(&mut self.header, name, value.into());
        self
    }

    /// Meant for this audience.
    pub(crate) fn audience(self, audience: impl Into<Value>) -> Self {
        self.claim("aud", audience)
    }

    /// With these roles.
    pub(crate) fn roles(self, roles: &[&str]) -> Self {
        self.claim("roles", roles)
    }

    /// With these scopes, separated by blanks.
    pub(crate) fn scope(self, scope: &str) -> Self {
        self.claim("scope", scope)
    }

    /// Issued to this client.
    pub(crate) fn client(self, client: &str) -> Self {
        self.claim("client_id", client)
    }

    /// Over in so many seconds, or since so many where negative.
    pub(crate) fn expires_in(self, seconds: i64) -> Self {
        self.claim("exp", now() + seconds)
    }

    /// Signed by other keys, under the key id that it had.
    pub(crate) fn forged_with(mut self, keys: &Arc<Keys>) -> Self {
        self.keys = Arc::clone(keys);
        self
    }

    /// Signed by other keys, under their own key id.
    pub(crate) fn signed_with(mut self, keys: &Arc<Keys>) -> Self {
        self.keys = Arc::clone(keys);
        let algorithm = self.algorithm;
        self.algorithm(algorithm)
    }

    /// `alg: none` without a signature.
    pub(crate) fn unsigned(mut self) -> Self {
        self.signing = Signing::None;
        self.header("alg", "none")
    }

    /// `HS256` with something public as the key.
    pub(crate) fn hmac(mut self, key: Vec<u8>) -> Self {
        self.signing = Signing::Hmac(key);
        self.header("alg", "HS256")
    }

    /// With one bit of the signature changed.
    pub(crate) fn broken(mut self) -> Self {
        self.signing = Signing::Broken;
        self
    }

    /// The claims so far.
    pub(crate) fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// The token as it is sent.
    pub(crate) fn sign(&self) -> String {
        let part = |map: &Map<String, Value>| encode(&serde_json::to_vec(map).unwrap());
        let message = format!("{}.{}", part(&self.header), part(&self.claims));
        let signature = match &self.signing {
            Signing::None => Vec::new(),
            Signing::Hmac(key) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, key);
                hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
            }
            Signing::Right => self.keys.sign(self.algorithm, message.as_bytes()),
            Signing::Broken => {
                let mut signature = self.keys.sign(self.algorithm, message.as_bytes());
                signature[9] ^= 1;
                signature
            }
        };
        let text = format!("{message}.{}", encode(&signature));
        if matches!(self.signing, Signing::Right) {
            kept::secret("token", &text);
        }
        text
    }
}

fn set(map: &mut Map<String, Value>, name: &str, value: Value) {
    if value.is_null() {
        map.shift_remove(name);
    } else {
        map.insert(name.to_owned(), value);
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
