//! Tables `oauth_revocations` and `oauth_assertions`: what is good no more, and what
//! was used and may not be again.

use time::OffsetDateTime;
use uuid::Uuid;

use super::connect::Store;
use super::error::StoreError;
use crate::ids::TenantId;

/// A row of `oauth_revocations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The grant, the family or the token.
    pub revoked_id: Uuid,
    /// When every token of it has expired.
    pub until: OffsetDateTime,
}

impl Store {
    /// Notes that a single token is good no more.
    #[tracing::instrument(name = "db.oauth_revocations.insert", level = "debug", skip_all)]
    pub async fn insert_revocation(
        &self,
        tenant: &TenantId,
        revocation: Revocation,
    ) -> Result<bool, StoreError> {
        Ok(self
            .execute(sqlx::query!(
                "INSERT INTO oauth_revocations (revoked_id, tenant, revoked_at, until)
                 VALUES ($1, $2, now(), $3)
                 ON CONFLICT ON CONSTRAINT oauth_revocations_pkey DO NOTHING",
                revocation.revoked_id,
                tenant.as_str(),
                revocation.until
            ))
            .await?
            == 1)
    }

    /// Every revocation of all tenants within `seconds`: replicas keep them in memory,
    /// since no request may wait for a look-up. Times are the database's own.
    #[tracing::instrument(name = "db.oauth_revocations.list", level = "debug", skip_all)]
    pub async fn list_revocations(&self, seconds: u32) -> Result<Vec<Revocation>, StoreError> {
        self.fetch_all(sqlx::query_as!(
            Revocation,
            "SELECT revoked_id, until FROM oauth_revocations
                 WHERE revoked_at > now() - make_interval(secs => $1)",
            f64::from(seconds)
        ))
        .await
    }

    /// Whether any of these is revoked.
    #[tracing::instrument(name = "db.oauth_revocations.find", level = "debug", skip_all)]
    pub async fn is_any_revoked(
        &self,
        tenant: &TenantId,
        ids: &[Uuid],
    ) -> Result<bool, StoreError> {
        self.fetch_scalar(sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT 1 FROM oauth_revocations
                   WHERE tenant = $1 AND revoked_id = ANY($2)) AS "revoked!""#,
            tenant.as_str(),
            ids
        ))
        .await
    }

    /// Notes that an assertion was used; `false` where it had been.
    #[tracing::instrument(name = "db.oauth_assertions.insert", level = "debug", skip_all)]
    pub async fn insert_assertion(
        &self,
        digest: &[u8],
        until: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        Ok(self
            .execute(sqlx::query!(
                "INSERT INTO oauth_assertions (digest, until) VALUES ($1, $2)
                 ON CONFLICT ON CONSTRAINT oauth_assertions_pkey DO NOTHING",
                digest,
                until
            ))
            .await?
            == 1)
    }

    /// Forgets what has expired by itself at `now`.
    #[tracing::instrument(name = "db.oauth_revocations.delete", level = "debug", skip_all)]
    pub async fn delete_expired_revocations(&self, now: OffsetDateTime) -> Result<u64, StoreError> {
        Ok(u64::try_from(
            self.fetch_scalar(sqlx::query_scalar!(
                r#"WITH revocations AS (
                     DELETE FROM oauth_revocations WHERE until <= $1 RETURNING 1
                 ), assertions AS (
                     DELETE FROM oauth_assertions WHERE until <= $1 RETURNING 1
                 )
                 SELECT (SELECT count(*) FROM revocations)
                      + (SELECT count(*) FROM assertions) AS "gone!""#,
                now
            ))
            .await?,
        )
        .unwrap_or_default())
    }
}
