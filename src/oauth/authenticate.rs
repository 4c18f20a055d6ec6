//! How a client proves who it is at the token, revocation and introspection endpoints
//! (RFC 6749 §2.3, RFC 7523 §2.2, RFC 9700 §2.5).

use serde_json::Value;

use super::clients::{Client, ClientFault, ClientKeys, Proof};
use super::documents::DocumentFault;
use super::tokens::digest_of;
use super::{Site, TokenFault};
use crate::jose::{Algorithm, Claims, Token};
use crate::secret::{Secret, same};

/// `client_assertion_type` of RFC 7523 §2.2.
pub const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// How far clocks may differ, in seconds.
pub(super) const LEEWAY: i64 = 30;
/// Longest that an assertion may be good for, in seconds: its `jti` is kept as long.
pub(super) const LONGEST: i64 = 3600;

/// What a client sent to prove who it is.
#[derive(Debug, Default)]
pub struct Presented {
    /// `Authorization: Basic`, decoded: id and secret.
    pub basic: Option<(String, Secret<String>)>,
    /// `client_id`
    pub client_id: Option<String>,
    /// `client_secret`
    pub client_secret: Option<Secret<String>>,
    /// `client_assertion_type`
    pub assertion_type: Option<String>,
    /// `client_assertion`
    pub assertion: Option<String>,
}

impl Site<'_> {
    /// The client, once it has proved who it is as far as it can.
    ///
    /// # Errors
    /// `invalid_client` mostly; what was wrong is for the log alone.
    pub async fn authenticate(&self, presented: &Presented) -> Result<Client, TokenFault> {
        let ways = [
            presented.basic.is_some(),
            presented.client_secret.is_some(),
            presented.assertion.is_some(),
        ];
        if ways.into_iter().filter(|way| *way).count() > 1 {
            return Err(TokenFault::InvalidRequest(
                "only one way of client authentication may be used",
            ));
        }
        let id = Self::presented_id(presented)?;
        let client = self.client(&id).await.map_err(client_fault)?;
        self.check_proof(&client, presented).await?;
        Ok(client)
    }

    fn presented_id(presented: &Presented) -> Result<String, TokenFault> {
        let asserted = match &presented.assertion {
            Some(assertion) => {
                if presented.assertion_type.as_deref() != Some(ASSERTION_TYPE) {
                    return Err(TokenFault::InvalidClient(
                        "client_assertion_type is not supported",
                    ));
                }
                let token = Token::parse(assertion).map_err(|_| {
                    TokenFault::InvalidClient("client_assertion is not a signed JWT")
                })?;
                // Which client's keys to try; believed only when the signature is found right.
                token.unverified_issuer().map(str::to_owned)
            }
            None => None,
        };
        let proved = presented
            .basic
            .as_ref()
            .map(|(id, _)| id.clone())
            .or(asserted);
        match (proved, &presented.client_id) {
            (Some(proved), Some(named)) if proved != *named => Err(TokenFault::InvalidRequest(
                "client_id is not that of the client authentication",
            )),
            (Some(id), _) => Ok(id),
            (None, Some(id)) => Ok(id.clone()),
            (None, None) => Err(TokenFault::InvalidClient("client_id is missing")),
        }
    }

    async fn check_proof(&self, client: &Client, presented: &Presented) -> Result<(), TokenFault> {
        let secret = presented
            .basic
            .as_ref()
            .map(|(_, secret)| secret)
            .or(presented.client_secret.as_ref());
        let (digest, keys) = match &client.proof {
            Proof::None => {
                // Some clients send an empty secret; a real one is a mistake somewhere.
                return match (secret, &presented.assertion) {
                    (None, None) => Ok(()),
                    (Some(secret), None) if secret.expose().is_empty() => Ok(()),
                    _ => Err(TokenFault::InvalidClient(
                        "the client is public and has no secret",
                    )),
                };
            }
            Proof::Secret(digest) => (Some(digest), None),
            Proof::Keys(keys) => (None, Some(keys)),
            Proof::SecretOrKeys(digest, keys) => (Some(digest), Some(keys)),
        };
        match (secret, &presented.assertion) {
            (Some(secret), None) => {
                // Digests are compared: their length is the same for every secret.
                let fits = digest.is_some_and(|digest| same(digest, &digest_of(secret.expose())));
                fits.then_some(())
                    .ok_or(TokenFault::InvalidClient("the client's secret is wrong"))
            }
            (None, Some(assertion)) => match keys {
                Some(keys) => self.check_assertion(client, keys, assertion).await,
                None => Err(TokenFault::InvalidClient("the client has no keys")),
            },
            _ => Err(TokenFault::InvalidClient("the client must authenticate")),
        }
    }

    async fn check_assertion(
        &self,
        client: &Client,
        keys: &ClientKeys,
        assertion: &str,
    ) -> Result<(), TokenFault> {
        const WRONG: TokenFault = TokenFault::InvalidClient("the client assertion is not valid");
        let keys = match self.client_keys(keys).await {
            Ok(keys) => keys,
            Err(DocumentFault::Fetch | DocumentFault::Busy(_)) => {
                return Err(TokenFault::Unavailable);
            }
            Err(_) => return Err(WRONG),
        };
        let token = Token::parse(assertion).map_err(|_| WRONG)?;
        let claims = token
            .verify(
                &keys,
                &[Algorithm::Es256, Algorithm::Rs256, Algorithm::EdDsa],
            )
            .map_err(|_| WRONG)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let id = client.id.as_str();
        if text("iss") != Some(id) || text("sub") != Some(id) {
            return Err(WRONG);
        }
        // RFC 7523 §3 takes the token endpoint too; both are ours alone.
        let token_endpoint = self.endpoint("/oauth/token");
        if !names_audience(claims, &[self.issuer, &token_endpoint]) {
            return Err(TokenFault::InvalidClient(
                "aud of the client assertion must be the issuer",
            ));
        }
        let now = self.server.clock.unix_seconds();
        let until = lasting(claims, now).ok_or(WRONG)?;
        let jti =
            text("jti").ok_or(TokenFault::InvalidClient("the client assertion has no jti"))?;
        self.use_once("client", id, jti, until).await
    }

    /// Marks an assertion as used, over all replicas.
    pub(super) async fn use_once(
        &self,
        kind: &str,
        issuer: &str,
        jti: &str,
        until: i64,
    ) -> Result<(), TokenFault> {
        let named = format!("{kind}\0{}\0{issuer}\0{jti}", issuer.len());
        let until = time::OffsetDateTime::from_unix_timestamp(until.saturating_add(LEEWAY))
            .unwrap_or(self.server.clock.now() + std::time::Duration::from_hours(2));
        let fresh = self
            .server
            .store
            .insert_assertion(&digest_of(&named), until)
            .await?;
        match (fresh, kind) {
            (true, _) => Ok(()),
            (false, "client") => Err(TokenFault::InvalidClient(
                "the client assertion was used before",
            )),
            (false, _) => Err(TokenFault::InvalidGrant("the assertion was used before")),
        }
    }

    /// The URL of an endpoint of the authorization server.
    pub fn endpoint(&self, path: &str) -> String {
        format!("{}{path}", self.issuer.trim_end_matches('/'))
    }
}

/// Whether one of `known` is the audience, or one of the audiences.
pub(super) fn names_audience(claims: &Claims, known: &[&str]) -> bool {
    match claims.get("aud") {
        Some(Value::String(audience)) => known.contains(&audience.as_str()),
        Some(Value::Array(all)) => all
            .iter()
            .filter_map(Value::as_str)
            .any(|audience| known.contains(&audience)),
        _ => false,
    }
}

/// `exp` of an assertion that is good now and not for too long.
pub(super) fn lasting(claims: &Claims, now: i64) -> Option<i64> {
    let number = |name: &str| match claims.get(name) {
        None => Some(None),
        Some(value) => value
            .as_i64()
            .or_else(|| {
                #[expect(clippy::cast_possible_truncation, reason = "whole seconds are wanted")]
                value.as_f64().map(|seconds| seconds as i64)
            })
            .map(Some),
    };
    let expires = number("exp")??;
    let good = expires.saturating_add(LEEWAY) > now
        && expires <= now.saturating_add(LONGEST).saturating_add(LEEWAY)
        && number("nbf")?.is_none_or(|from| from <= now.saturating_add(LEEWAY))
        && number("iat")?.is_none_or(|at| at <= now.saturating_add(LEEWAY));
    good.then_some(expires)
}

fn client_fault(fault: ClientFault) -> TokenFault {
    match fault {
        ClientFault::Unknown => {
            TokenFault::InvalidClient("the client is not known; register again")
        }
        ClientFault::Document(DocumentFault::Fetch | DocumentFault::Busy(_)) => {
            TokenFault::Unavailable
        }
        ClientFault::Document(_) => {
            TokenFault::InvalidClient("the client's metadata document is not accepted")
        }
        ClientFault::Store(error) => TokenFault::Store(error),
    }
}
