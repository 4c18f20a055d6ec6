//! Tokens: access tokens as signed JWTs (RFC 9068), codes, and refresh tokens, which
//! are a keyed function of family and generation and so need no place of their own.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use uuid::Uuid;

use super::keys::KeysFault;
use super::{Site, TokenFault};
use crate::clock;
use crate::ids::TenantId;
use crate::jose::Claims;
use crate::seal::Prf;
use crate::secret::Secret;

/// `typ` of access tokens (RFC 9068 §2.1).
pub(super) const ACCESS_TOKEN: &str = "at+jwt";

/// What the token endpoint answers with (RFC 6749 §5.1).
#[derive(Debug)]
pub struct Tokens {
    /// The access token.
    pub access_token: Secret<String>,
    /// How long it is good for.
    pub expires_in: Duration,
    /// The refresh token, where there is one.
    pub refresh_token: Option<Secret<String>>,
    /// What was granted.
    pub scope: String,
}

/// What an access token says.
#[derive(Debug)]
pub(super) struct AccessClaims<'a> {
    pub(super) subject: &'a str,
    pub(super) client: &'a str,
    pub(super) audience: &'a str,
    pub(super) tenant: &'a str,
    pub(super) roles: &'a [String],
    pub(super) scopes: &'a [String],
    /// Grant and family.
    pub(super) of: Option<(Uuid, Uuid)>,
}

impl Site<'_> {
    /// Signs an access token. It ends with `until` at the latest.
    pub(super) async fn access_token(
        &self,
        of: &AccessClaims<'_>,
    ) -> Result<(Secret<String>, Duration), TokenFault> {
        let lifetime = self.settings.server.access_token_lifetime.0;
        let now = self.server.clock.unix_seconds();
        let mut claims = Claims::new();
        let mut put = |name: &str, value: Value| {
            claims.insert(name.to_owned(), value);
        };
        put("iss", self.issuer.into());
        put("sub", of.subject.into());
        put("aud", of.audience.into());
        put("client_id", of.client.into());
        put("iat", now.into());
        put(
            "exp",
            now.saturating_add_unsigned(lifetime.as_secs().max(1))
                .into(),
        );
        put("jti", new_id().to_string().into());
        put("scope", of.scopes.join(" ").into());
        put("tenant", of.tenant.into());
        put("roles", of.roles.into());
        if let Some((grant, family)) = of.of {
            put("grant_id", grant.to_string().into());
            put("family_id", family.to_string().into());
        }
        let signing = self.server.signing_key(self.settings).await?;
        let key = signing.key().ok_or(KeysFault::Sealed)?;
        let token = key.sign(&claims, ACCESS_TOKEN).map_err(KeysFault::from)?;
        Ok((Secret::new(token), lifetime))
    }
}

/// A random id: of grants, families and tokens.
pub(super) fn new_id() -> Uuid {
    uuid::Builder::from_random_bytes(clock::random::<16>()).into_uuid()
}

/// 256 random bits as text: codes and client secrets.
pub(super) fn new_secret() -> Secret<String> {
    Secret::new(URL_SAFE_NO_PAD.encode(clock::random::<32>()))
}

/// What is stored of a random text.
pub(super) fn digest_of(text: &str) -> Vec<u8> {
    digest(&SHA256, text.as_bytes()).as_ref().to_vec()
}

/// S256 (RFC 7636 §4.6).
pub(super) fn s256(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

/// A refresh token: family, generation, and the tag over both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefreshToken {
    pub(super) family: Uuid,
    pub(super) generation: i64,
}

const NAMED: usize = 16 + 8;

impl RefreshToken {
    pub(super) fn text(self, prf: &Prf) -> Option<Secret<String>> {
        let named = self.bytes();
        let mut all = named.to_vec();
        all.extend_from_slice(&prf.tag(&named)?);
        Some(Secret::new(URL_SAFE_NO_PAD.encode(all)))
    }

    /// The token, if it is one that we made. Whether it is still good is another question.
    pub(super) fn read(text: &str, prf: &Prf) -> Option<Self> {
        // Longer ones are not worth decoding.
        if text.len() > 2 * (NAMED + Prf::TAG) {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (named, tag) = bytes.split_first_chunk::<NAMED>()?;
        if !prf.is_tag(named, tag) {
            return None;
        }
        let (family, generation) = named.split_first_chunk::<16>()?;
        Some(Self {
            family: Uuid::from_bytes(*family),
            generation: i64::from_be_bytes(generation.try_into().ok()?),
        })
    }

    fn bytes(self) -> [u8; NAMED] {
        let mut bytes = [0; NAMED];
        let (family, generation) = bytes.split_at_mut(16);
        family.copy_from_slice(self.family.as_bytes());
        generation.copy_from_slice(&self.generation.to_be_bytes());
        bytes
    }
}

/// The tenant of a row.
pub(super) fn tenant_of(text: &str) -> TenantId {
    TenantId::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::{Keys, Label};

    #[test]
    fn a_refresh_token_is_read_as_it_was_made_and_no_other_is() {
        let prf = Keys::parse(&Keys::generate_line())
            .unwrap()
            .prf(Label::RefreshToken);
        let token = RefreshToken {
            family: new_id(),
            generation: 7,
        };
        let text = token.text(&prf).unwrap();
        assert_eq!(RefreshToken::read(text.expose(), &prf), Some(token));
        let next = RefreshToken {
            generation: 8,
            ..token
        };
        assert_ne!(next.text(&prf).unwrap(), text);
        let bytes = URL_SAFE_NO_PAD.decode(text.expose()).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let changed = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(RefreshToken::read(&changed, &prf), None, "{at}");
        }
        for other in [
            "",
            "x",
            &"A".repeat(80),
            &"A".repeat(8000),
            &format!("{}=", text.expose()),
        ] {
            assert_eq!(RefreshToken::read(other, &prf), None);
        }
    }

    #[test]
    fn the_challenge_is_that_of_the_specification() {
        // RFC 7636 appendix B
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(
            s256(verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
