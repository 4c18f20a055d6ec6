//! Tables `audit_checkpoints`, `audit_closings` and `audit_writers`: what was signed,
//! and by whom. Lanes insert, verification reads a day at a time, upkeep removes.

use time::{Date, OffsetDateTime};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::audit_events::{AuditConnection, limit};
use super::audit_scan::{AuditScan, fault};
use super::connect::Store;
use super::error::StoreError;

/// A row of `audit_checkpoints`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRow {
    /// The day, UTC, that it was signed on.
    pub day: Date,
    /// Who signed.
    pub writer: i32,
    /// Its number, from 1.
    pub number: i64,
    /// When.
    pub at: OffsetDateTime,
    /// The signed text.
    pub token: String,
}

/// A row of `audit_writers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterRow {
    /// Its id.
    pub writer: i32,
    /// The process.
    pub replica: Uuid,
    /// Its lane.
    pub lane: i16,
    /// When it was registered.
    pub started_at: OffsetDateTime,
    /// Whether its process has given a sign of life lately.
    pub alive: bool,
}

/// A row of `audit_closings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosingRow {
    /// Its number, from 1.
    pub number: i64,
    /// The day that was dropped.
    pub day: Date,
    /// The signed text.
    pub token: String,
}

impl AuditConnection {
    /// Writes a checkpoint, the same one as often as it takes, and says how many
    /// erasures there have been.
    #[tracing::instrument(name = "db.audit.insert_checkpoint", level = "debug", skip_all)]
    pub async fn insert_checkpoint(
        &mut self,
        row: &CheckpointRow,
        until: Instant,
    ) -> Result<i64, StoreError> {
        let connection = self.connect(until).await?;
        let outcome = limit(
            until,
            sqlx::query_scalar!(
                r#"WITH durable AS (
                       SELECT set_config('synchronous_commit', 'on', true)
                   ), signed AS (
                       INSERT INTO audit_checkpoints (day, writer_id, number, at, token)
                       SELECT $1, $2, $3, $4, $5 FROM durable ON CONFLICT DO NOTHING
                   )
                   SELECT audit_erasure_count() AS "erasures!""#,
                row.day,
                row.writer,
                row.number,
                row.at,
                row.token
            )
            .fetch_one(connection),
        )
        .await;
        self.settle(outcome)
    }

    /// How many erasures there have been.
    #[tracing::instrument(name = "db.audit.count_erasures", level = "debug", skip_all)]
    pub async fn count_erasures(&mut self, until: Instant) -> Result<i64, StoreError> {
        let connection = self.connect(until).await?;
        let outcome = limit(
            until,
            sqlx::query_scalar!(r#"SELECT audit_erasure_count() AS "erasures!""#)
                .fetch_one(connection),
        )
        .await;
        self.settle(outcome)
    }
}

impl Store {
    /// Every writer, in order of its id.
    #[tracing::instrument(name = "db.audit.list_writers", level = "debug", skip_all)]
    pub async fn list_writers(&self, alive_seconds: u32) -> Result<Vec<WriterRow>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(
                WriterRow,
                r#"SELECT writer_id AS writer, w.replica_id AS replica, lane, w.started_at,
                       coalesce(heartbeat_at > now() - make_interval(secs => $1), false) AS "alive!"
                   FROM audit_writers w LEFT JOIN replicas r ON r.replica_id = w.replica_id
                   ORDER BY writer_id"#,
                f64::from(alive_seconds)
            )
            .fetch_all(lease.connection()),
        )
        .await;
        lease.settle(outcome)
    }

    /// At most `limit` checkpoints of a day in order of writer and number, after `after`.
    #[tracing::instrument(name = "db.audit.list_checkpoints", level = "debug", skip_all)]
    pub async fn list_checkpoints(
        &self,
        day: Date,
        after: (i32, i64),
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(
                CheckpointRow,
                "SELECT day, writer_id AS writer, number, at, token FROM audit_checkpoints
                 WHERE day = $1 AND (writer_id, number) > ($2, $3)
                 ORDER BY writer_id, number LIMIT $4",
                day,
                after.0,
                after.1,
                i64::from(limit)
            )
            .fetch_all(lease.connection()),
        )
        .await;
        lease.settle(outcome)
    }

    /// Every closing, in order.
    #[tracing::instrument(name = "db.audit.list_closings", level = "debug", skip_all)]
    pub async fn list_closings(&self) -> Result<Vec<ClosingRow>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(
                ClosingRow,
                "SELECT number, day, token FROM audit_closings ORDER BY number"
            )
            .fetch_all(lease.connection()),
        )
        .await;
        lease.settle(outcome)
    }
}

impl AuditScan {
    /// Writes the closings of a day and removes its checkpoints, in one transaction.
    #[tracing::instrument(name = "db.audit.insert_closings", level = "debug", skip_all)]
    pub async fn insert_closings(
        &mut self,
        day: Date,
        closings: &[ClosingRow],
    ) -> Result<(), StoreError> {
        let numbers: Vec<i64> = closings.iter().map(|row| row.number).collect();
        let days: Vec<Date> = closings.iter().map(|row| row.day).collect();
        let tokens: Vec<&str> = closings.iter().map(|row| row.token.as_str()).collect();
        // No ON CONFLICT: two who close at once must not both believe that they did.
        sqlx::query!(
            "WITH durable AS (
                 SELECT set_config('synchronous_commit', 'on', true)
             ), gone AS (
                 DELETE FROM audit_checkpoints WHERE day = $1
             )
             INSERT INTO audit_closings (number, day, token)
             SELECT new.* FROM durable, UNNEST($2::int8[], $3::date[], $4::text[]) AS new",
            day,
            &numbers,
            &days,
            &tokens as &[&str]
        )
        .execute(self.connection())
        .await
        .map(drop)
        .map_err(fault)
    }
}
