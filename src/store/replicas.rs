//! Table `replicas`: which processes live. Times are the database's own, so
//! that replicas with different clocks agree on who is gone.

use time::OffsetDateTime;
use tokio::time::timeout;

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
}

impl Store {
    /// Says that `replica` lives: enters it, or renews its heartbeat.
    #[tracing::instrument(name = "db.replicas.insert", level = "debug", skip_all)]
    pub async fn insert_replica(
        &self,
        replica: ReplicaId,
        address: Option<&str>,
        version: &str,
    ) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "INSERT INTO replicas (replica_id, started_at, heartbeat_at, address, version)
                 VALUES ($1, now(), now(), $2, $3)
                 ON CONFLICT ON CONSTRAINT replicas_pkey DO UPDATE SET heartbeat_at = now()",
                replica.0,
                address,
                version
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
            sqlx::query!(
                "SELECT replica_id, started_at, heartbeat_at, address, version FROM replicas
                 WHERE replica_id = $1 AND heartbeat_at > now() - make_interval(secs => $2)",
                replica.0,
                f64::from(seconds)
            )
            .fetch_optional(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.map(|row| Replica {
            id: ReplicaId(row.replica_id),
            started_at: row.started_at,
            heartbeat_at: row.heartbeat_at,
            address: row.address,
            version: row.version,
        }))
    }

    /// The replicas that have been heard of within `seconds`, oldest first.
    #[tracing::instrument(name = "db.replicas.list", level = "debug", skip_all)]
    pub async fn list_live_replicas(&self, seconds: u32) -> Result<Vec<Replica>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "SELECT replica_id, started_at, heartbeat_at, address, version FROM replicas
                 WHERE heartbeat_at > now() - make_interval(secs => $1) ORDER BY started_at",
                f64::from(seconds)
            )
            .fetch_all(lease.connection()),
        )
        .await;
        let rows = lease.settle(outcome)?;
        Ok(rows
            .into_iter()
            .map(|row| Replica {
                id: ReplicaId(row.replica_id),
                started_at: row.started_at,
                heartbeat_at: row.heartbeat_at,
                address: row.address,
                version: row.version,
            })
            .collect())
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
