//! Table `replicas`: which processes live. Times are the database's own, so
//! that replicas with different clocks agree on who is gone.

use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::timeout;
use uuid::Uuid;

use super::connect::Store;
use super::error::StoreError;
use crate::ids::ReplicaId;

/// A row of `replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The process.
    pub id: ReplicaId,
    /// When it came up, by the database's clock.
    pub started_at: OffsetDateTime,
    /// When it was last heard of, by the database's clock.
    pub heartbeat_at: OffsetDateTime,
    /// Where the others would reach it, if anywhere.
    pub address: Option<String>,
    /// Its release.
    pub version: String,
    /// How long a call of it may run.
    pub call_limit: Duration,
    /// Whether it ended in an orderly way.
    pub stopped: bool,
}

struct ReplicaRow {
    replica_id: Uuid,
    started_at: OffsetDateTime,
    heartbeat_at: OffsetDateTime,
    address: Option<String>,
    version: String,
    call_limit_seconds: i32,
    stopped_at: Option<OffsetDateTime>,
}

impl From<ReplicaRow> for Replica {
    fn from(row: ReplicaRow) -> Self {
        Self {
            id: ReplicaId(row.replica_id),
            started_at: row.started_at,
            heartbeat_at: row.heartbeat_at,
            address: row.address,
            version: row.version,
            call_limit: Duration::from_secs(row.call_limit_seconds.try_into().unwrap_or_default()),
            stopped: row.stopped_at.is_some(),
        }
    }
}

impl Store {
    /// Says that `replica` lives: enters it, or renews its heartbeat. Its calls
    /// may run for the longest `call_limit` that it ever named.
    #[tracing::instrument(name = "db.replicas.insert", level = "debug", skip_all)]
    pub async fn insert_replica(
        &self,
        replica: ReplicaId,
        address: Option<&str>,
        version: &str,
        call_limit: Duration,
    ) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "INSERT INTO replicas (replica_id, started_at, heartbeat_at, address, version,
                     call_limit_seconds)
                 VALUES ($1, now(), now(), $2, $3, $4)
                 ON CONFLICT ON CONSTRAINT replicas_pkey DO UPDATE SET heartbeat_at = now(),
                     call_limit_seconds = greatest(replicas.call_limit_seconds, $4)",
                replica.0,
                address,
                version,
                i32::try_from(call_limit.as_secs()).unwrap_or(i32::MAX)
            )
            .execute(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Whether `replica` has been heard of within `seconds`.
    #[tracing::instrument(name = "db.replicas.find", level = "debug", skip_all)]
    pub async fn find_live_replica(
        &self,
        replica: ReplicaId,
        seconds: u32,
    ) -> Result<Option<Replica>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(
                ReplicaRow,
                "SELECT replica_id, started_at, heartbeat_at, address, version, call_limit_seconds,
                     stopped_at FROM replicas
                 WHERE replica_id = $1 AND heartbeat_at > now() - make_interval(secs => $2)
                   AND stopped_at IS NULL",
                replica.0,
                f64::from(seconds)
            )
            .fetch_optional(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.map(Replica::from))
    }

    /// The replicas that have been heard of within `seconds`, oldest first.
    #[tracing::instrument(name = "db.replicas.list", level = "debug", skip_all)]
    pub async fn list_live_replicas(&self, seconds: u32) -> Result<Vec<Replica>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(
                ReplicaRow,
                "SELECT replica_id, started_at, heartbeat_at, address, version, call_limit_seconds,
                     stopped_at FROM replicas
                 WHERE heartbeat_at > now() - make_interval(secs => $1) AND stopped_at IS NULL
                 ORDER BY started_at",
                f64::from(seconds)
            )
            .fetch_all(lease.connection()),
        )
        .await;
        let rows = lease.settle(outcome)?;
        Ok(rows.into_iter().map(Replica::from).collect())
    }

    /// Every replica that is on the list, living or not, oldest first.
    #[tracing::instrument(name = "db.replicas.list_all", level = "debug", skip_all)]
    pub async fn list_replicas(&self) -> Result<Vec<Replica>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(
                ReplicaRow,
                "SELECT replica_id, started_at, heartbeat_at, address, version, call_limit_seconds,
                     stopped_at FROM replicas ORDER BY started_at"
            )
            .fetch_all(lease.connection()),
        )
        .await;
        let rows = lease.settle(outcome)?;
        Ok(rows.into_iter().map(Replica::from).collect())
    }

    /// Says that `replica` ended in an orderly way: whatever call of it has no end gets none.
    #[tracing::instrument(name = "db.replicas.update_stopped", level = "debug", skip_all)]
    pub async fn update_replica_stopped(&self, replica: ReplicaId) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "UPDATE replicas SET stopped_at = now() WHERE replica_id = $1",
                replica.0
            )
            .execute(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Takes `replica` off the list, with what was still to be told to it.
    #[tracing::instrument(name = "db.replicas.delete", level = "debug", skip_all)]
    pub async fn delete_replica(&self, replica: ReplicaId) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "WITH unheard AS (DELETE FROM messages WHERE to_replica = $1)
                 DELETE FROM replicas WHERE replica_id = $1",
                replica.0
            )
            .execute(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Takes off the list every replica that has not been heard of for `seconds`,
    /// with what was still to be told to it, and says how many those were.
    #[tracing::instrument(name = "db.replicas.delete_dead", level = "debug", skip_all)]
    pub async fn delete_dead_replicas(&self, seconds: u32) -> Result<u64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "WITH dead AS (
                     SELECT replica_id FROM replicas
                     WHERE heartbeat_at <= now() - make_interval(secs => $1)
                 ), unheard AS (
                     DELETE FROM messages WHERE to_replica IN (SELECT replica_id FROM dead)
                 )
                 DELETE FROM replicas WHERE replica_id IN (SELECT replica_id FROM dead)",
                f64::from(seconds)
            )
            .execute(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.rows_affected())
    }
}
