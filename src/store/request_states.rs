//! Table `request_states`: what is too long to travel with a client that was asked
//! for input. Bodies are sealed by whoever stores them.

use time::OffsetDateTime;
use tokio::time::timeout;
use uuid::Uuid;

use super::connect::Store;
use super::error::StoreError;
use crate::ids::TenantId;

impl Store {
    /// Keeps a state of `tenant` for the caller with this digest.
    #[tracing::instrument(name = "db.request_states.insert", level = "debug", skip_all)]
    pub async fn insert_request_state(
        &self,
        tenant: &TenantId,
        id: Uuid,
        owner: &[u8],
        body: &[u8],
        until: OffsetDateTime,
    ) -> Result<(), StoreError> {
        self.execute(sqlx::query!(
            "INSERT INTO request_states (request_state_id, tenant, owner, body, until)
                 VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT ON CONSTRAINT request_states_pkey DO NOTHING",
            id,
            tenant.as_str(),
            owner,
            body,
            until
        ))
        .await
        .map(drop)
    }

    /// The state of `tenant` with that id, where it is this caller's and its time is
    /// not over by the database's clock.
    #[tracing::instrument(name = "db.request_states.find", level = "debug", skip_all)]
    pub async fn find_request_state(
        &self,
        tenant: &TenantId,
        id: Uuid,
        owner: &[u8],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.fetch_optional_scalar(sqlx::query_scalar!(
            "SELECT body FROM request_states
                 WHERE request_state_id = $1 AND tenant = $2 AND owner = $3 AND until > now()",
            id,
            tenant.as_str(),
            owner
        ))
        .await
    }

    /// Deletes what is over at `now`, and says how much that was.
    #[tracing::instrument(name = "db.request_states.delete_expired", level = "debug", skip_all)]
    pub async fn delete_expired_request_states(
        &self,
        now: OffsetDateTime,
    ) -> Result<u64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!("DELETE FROM request_states WHERE until <= $1", now)
                .execute(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.rows_affected())
    }
}
