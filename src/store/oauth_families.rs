//! Table `oauth_families`: a code, and the refresh tokens that come of it. A code or a
//! refresh token is found before its tenant is known: it is itself the key that
//! nobody can guess, and says which tenant it is for.

use time::OffsetDateTime;
use tokio::time::timeout;
use uuid::Uuid;

use super::connect::Store;
use super::error::StoreError;
use crate::ids::TenantId;

/// What a new code's family begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFamily {
    /// Its id.
    pub family_id: Uuid,
    /// SHA-256 of the code.
    pub code_digest: Vec<u8>,
    /// Until when the code may be exchanged.
    pub code_expires_at: OffsetDateTime,
    /// The S256 challenge.
    pub code_challenge: String,
    /// The redirect, as the client sent it.
    pub redirect_uri: String,
    /// The `aud` of its access tokens.
    pub resource: String,
    /// What was granted.
    pub scopes: Vec<String>,
    /// The person's roles in the tenant.
    pub roles: Vec<String>,
    /// When the person has to sign in again in any case.
    pub ends_at: OffsetDateTime,
}

/// A row of `oauth_families` with what its grant says of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its id.
    pub family_id: Uuid,
    /// The grant that it belongs to.
    pub grant_id: Uuid,
    /// The tenant.
    pub tenant: String,
    /// The client.
    pub client_id: String,
    /// Our `sub`.
    pub subject: String,
    /// Until when the code may be exchanged.
    pub code_expires_at: OffsetDateTime,
    /// When it was.
    pub code_used_at: Option<OffsetDateTime>,
    /// The S256 challenge.
    pub code_challenge: String,
    /// The redirect, as the client sent it.
    pub redirect_uri: String,
    /// The `aud` of its access tokens.
    pub resource: String,
    /// What was granted.
    pub scopes: Vec<String>,
    /// The person's roles in the tenant.
    pub roles: Vec<String>,
    /// The newest refresh token's number.
    pub generation: i64,
    /// When the generations just before it were first used, the oldest first;
    /// milliseconds since the Unix epoch.
    pub uses: Vec<i64>,
    /// When it ends if it is not used.
    pub expires_at: OffsetDateTime,
    /// When it ends in any case.
    pub ends_at: OffsetDateTime,
}

/// How a family goes on after one of its tokens was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The generation that it had.
    pub from: i64,
    /// The new one.
    pub to: i64,
    /// See [`Family::uses`].
    pub uses: Vec<i64>,
    /// The person's roles now.
    pub roles: Vec<String>,
    /// Now.
    pub used_at: OffsetDateTime,
    /// When it ends if it is not used.
    pub expires_at: OffsetDateTime,
}

impl Store {
    /// The family of a code.
    #[tracing::instrument(name = "db.oauth_families.find_by_code", level = "debug", skip_all)]
    pub async fn find_family_by_code(&self, digest: &[u8]) -> Result<Option<Family>, StoreError> {
        self.fetch_optional(sqlx::query_as!(
            Family,
            "SELECT f.family_id, f.grant_id, f.tenant, f.client_id, g.subject,
                     f.code_expires_at, f.code_used_at, f.code_challenge, f.redirect_uri,
                     f.resource, f.scopes, f.roles, f.generation, f.uses, f.expires_at, f.ends_at
                 FROM oauth_families f JOIN oauth_grants g USING (grant_id)
                 WHERE f.code_digest = $1",
            digest
        ))
        .await
    }

    /// The family of a refresh token.
    #[tracing::instrument(name = "db.oauth_families.find", level = "debug", skip_all)]
    pub async fn find_family(&self, family_id: Uuid) -> Result<Option<Family>, StoreError> {
        self.fetch_optional(sqlx::query_as!(
            Family,
            "SELECT f.family_id, f.grant_id, f.tenant, f.client_id, g.subject,
                     f.code_expires_at, f.code_used_at, f.code_challenge, f.redirect_uri,
                     f.resource, f.scopes, f.roles, f.generation, f.uses, f.expires_at, f.ends_at
                 FROM oauth_families f JOIN oauth_grants g USING (grant_id)
                 WHERE f.family_id = $1",
            family_id
        ))
        .await
    }

    /// Exchanges a code; `false` where somebody has.
    #[tracing::instrument(name = "db.oauth_families.update_code_used", level = "debug", skip_all)]
    pub async fn update_code_used(
        &self,
        tenant: &TenantId,
        family_id: Uuid,
        now: OffsetDateTime,
        expires_at: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(sqlx::query!(
                "UPDATE oauth_families
                 SET code_used_at = $3, used_at = $3, expires_at = least($4, ends_at), generation = 1
                 WHERE tenant = $1 AND family_id = $2
                   AND code_used_at IS NULL AND code_expires_at > $3",
                tenant.as_str(),
                family_id,
                now,
                expires_at
            )).await? == 1)
    }

    /// Moves a family to its next refresh token; `false` where it has moved since it
    /// was read. The grant is marked as used.
    #[tracing::instrument(
        name = "db.oauth_families.update_generation",
        level = "debug",
        skip_all
    )]
    pub async fn update_generation(
        &self,
        tenant: &TenantId,
        family_id: Uuid,
        rotation: &Rotation,
    ) -> Result<bool, StoreError> {
        Ok(self
            .fetch_scalar(sqlx::query_scalar!(
                r#"WITH moved AS (
                     UPDATE oauth_families
                     SET generation = $4, uses = $5, roles = $6, used_at = $7,
                         expires_at = least($8, ends_at)
                     WHERE tenant = $1 AND family_id = $2 AND generation = $3
                     RETURNING grant_id
                 ), marked AS (
                     UPDATE oauth_grants SET used_at = $7
                     WHERE tenant = $1 AND grant_id IN (SELECT grant_id FROM moved)
                 )
                 SELECT count(*) AS "moved!" FROM moved"#,
                tenant.as_str(),
                family_id,
                rotation.from,
                rotation.to,
                &rotation.uses,
                &rotation.roles,
                rotation.used_at,
                rotation.expires_at
            ))
            .await?
            == 1)
    }

    /// Ends a family, and notes it for tokens that live until `until`. `false` where
    /// there is none.
    #[tracing::instrument(name = "db.oauth_families.delete", level = "debug", skip_all)]
    pub async fn delete_family(
        &self,
        tenant: &TenantId,
        family_id: Uuid,
        until: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        Ok(self
            .execute(sqlx::query!(
                "WITH gone AS (
                     DELETE FROM oauth_families WHERE tenant = $1 AND family_id = $2
                     RETURNING family_id, tenant
                 )
                 INSERT INTO oauth_revocations (revoked_id, tenant, revoked_at, until)
                 SELECT family_id, tenant, now(), $3 FROM gone
                 ON CONFLICT ON CONSTRAINT oauth_revocations_pkey DO NOTHING",
                tenant.as_str(),
                family_id,
                until
            ))
            .await?
            == 1)
    }

    /// Forgets families of all tenants that have ended at `now`: unused codes among them.
    #[tracing::instrument(name = "db.oauth_families.delete_expired", level = "debug", skip_all)]
    pub async fn delete_expired_families(&self, now: OffsetDateTime) -> Result<u64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!("DELETE FROM oauth_families WHERE expires_at < $1", now)
                .execute(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.rows_affected())
    }
}
