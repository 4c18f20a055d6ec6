//! Ending a token (RFC 7009) and asking about one (RFC 7662).

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::authorize::{Parameters, only};
use super::clients::Client;
use super::exchange::REPEATED;
use super::ledger::make;
use super::tokens::{ACCESS_TOKEN, RefreshToken, tenant_of};
use super::{Event, Ledger, Site, TokenFault};
use crate::ids::{ClientId, Subject};
use crate::jose::{Algorithm, Claims, Token};
use crate::store::oauth_revocations::Revocation;

/// What is told of a token that is not good, or not the asker's business.
const INACTIVE: &str = r#"{"active":false}"#;

impl Site<'_> {
    /// Ends the client's token: of a refresh token the whole family, of an access
    /// token that one. A token that nobody knows is ended already (RFC 7009 §2.2).
    ///
    /// # Errors
    /// When the token is another client's, it cannot be put on record, or the database
    /// is away.
    pub async fn revoke(
        &self,
        client: &Client,
        parameters: &Parameters,
        ledger: &dyn Ledger,
    ) -> Result<(), TokenFault> {
        let token = Self::token_of(parameters)?;
        if let Some(token) = RefreshToken::read(token, &self.server.refresh_tokens) {
            let Some(family) = self.server.store.find_family(token.family).await? else {
                return Ok(());
            };
            if family.client_id != client.id.as_str() {
                return Err(TokenFault::UnauthorizedClient);
            }
            return self.end_family(&family, "client_revoked", ledger).await;
        }
        let Some(claims) = self.own_claims(token).await? else {
            return Ok(());
        };
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("client_id") != client.id.as_str() {
            return Err(TokenFault::UnauthorizedClient);
        }
        let Ok(id) = text("jti").parse::<Uuid>() else {
            return Ok(());
        };
        let (tenant, store) = (tenant_of(text("tenant")), &self.server.store);
        if store.is_any_revoked(&tenant, &[id]).await? {
            return Ok(());
        }
        let revoked = Event::Revoked {
            tenant: tenant.clone(),
            subject: Subject::from(text("sub")),
            client: ClientId::from(text("client_id")),
            revoked: id,
            reason: "token_revoked",
        };
        let revocation = Revocation {
            revoked_id: id,
            until: self.server.tokens_end(self.settings),
        };
        let noted = store.insert_revocation(&tenant, revocation);
        if make::<TokenFault>(ledger, revoked, noted).await? {
            self.server.tell_revoked().await;
        }
        Ok(())
    }

    /// What is to be known of a token, for a resource server that has authenticated.
    ///
    /// # Errors
    /// When the client may not ask, or the database is away.
    pub async fn introspect(
        &self,
        client: &Client,
        parameters: &Parameters,
    ) -> Result<String, TokenFault> {
        if !(client.introspection && client.is_confidential()) {
            return Err(TokenFault::UnauthorizedClient);
        }
        let token = Self::token_of(parameters)?;
        let own = client.machine.as_ref().map(|(tenant, _)| tenant.as_str());
        if let Some(token) = RefreshToken::read(token, &self.server.refresh_tokens) {
            return self.introspect_refresh(token, own).await;
        }
        let Some(claims) = self.own_claims(token).await? else {
            return Ok(INACTIVE.to_owned());
        };
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
        if own.is_some_and(|own| own != text("tenant")) {
            return Ok(INACTIVE.to_owned());
        }
        let now = self.server.clock.unix_seconds();
        let expires = claims
            .get("exp")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        let ids: Vec<Uuid> = ["jti", "grant_id", "family_id"]
            .into_iter()
            .filter_map(|name| text(name).parse().ok())
            .collect();
        let tenant = tenant_of(text("tenant"));
        if expires <= now || self.server.store.is_any_revoked(&tenant, &ids).await? {
            return Ok(INACTIVE.to_owned());
        }
        let mut document: Map<String, Value> = claims;
        document.insert("active".to_owned(), true.into());
        document.insert("token_type".to_owned(), "Bearer".into());
        Ok(Value::Object(document).to_string())
    }

    async fn introspect_refresh(
        &self,
        token: RefreshToken,
        own: Option<&str>,
    ) -> Result<String, TokenFault> {
        let family = self.server.store.find_family(token.family).await?;
        let now = self.server.clock.now();
        let live = family.filter(|family| {
            token.generation == family.generation
                && now < family.expires_at.min(family.ends_at)
                && own.is_none_or(|own| own == family.tenant)
        });
        Ok(match live {
            Some(family) => json!({
                "active": true,
                "client_id": family.client_id,
                "sub": family.subject,
                "scope": family.scopes.join(" "),
                "aud": family.resource,
                "iss": self.issuer,
                "tenant": family.tenant,
                "grant_id": family.grant_id.to_string(),
                "exp": family.expires_at.min(family.ends_at).unix_timestamp(),
            })
            .to_string(),
            None => INACTIVE.to_owned(),
        })
    }

    fn token_of(parameters: &Parameters) -> Result<&str, TokenFault> {
        only(parameters, "token")
            .map_err(|()| REPEATED)?
            .ok_or(TokenFault::InvalidRequest("token is missing"))
    }

    /// The claims of an access token that this server signed.
    async fn own_claims(&self, token: &str) -> Result<Option<Claims>, TokenFault> {
        let Ok(token) = Token::parse(token) else {
            return Ok(None);
        };
        if token.header().typ.as_deref() != Some(ACCESS_TOKEN)
            || token.header().kid.is_none()
            || token.unverified_issuer() != Some(self.issuer)
        {
            return Ok(None);
        }
        let keys = self.server.public_keys(self.settings).await?;
        let claims = token
            .verify(&keys, &[Algorithm::Es256, Algorithm::EdDsa])
            .ok();
        Ok(claims.cloned())
    }
}
