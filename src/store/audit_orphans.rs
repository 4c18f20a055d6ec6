//! Calls that were started and have no end, and the marks of how far they have
//! been looked for. One replica looks at a time: the lock goes with the transaction.

use std::fmt;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions, Connection};
use time::OffsetDateTime;
use tokio::time::timeout;
use uuid::Uuid;

use super::audit_calls::floor_id;
use super::connect::Store;
use super::error::StoreError;
use crate::ids::{CallId, ReplicaId};

/// A call that was started and has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The call.
    pub call_id: CallId,
    /// When it was started.
    pub at: OffsetDateTime,
    /// Whose call.
    pub tenant: String,
}

/// Where orphans are looked for: a stretch of time, and perhaps one replica's calls alone.
#[derive(Clone, Copy, Debug)]
pub struct OrphanQuery {
    /// Started not before this.
    pub since: OffsetDateTime,
    /// Started before this.
    pub until: OffsetDateTime,
    /// Started by this replica.
    pub replica: Option<ReplicaId>,
}

/// How long one look may take.
const LOOK: Duration = Duration::from_secs(10);

/// Held while orphans are looked for and closed ("tgorphan" in ASCII).
const LOCK: i64 = 0x7467_6f72_7068_616e;

/// A call's id and its time are read from the clock one after the other.
const SLACK: time::Duration = time::Duration::seconds(2);

/// The right to look for orphans, for as long as this lasts. What is changed
/// through it is there once it is committed.
pub struct OrphanSearch {
    connection: PgConnection,
    limit: Duration,
}

impl Store {
    /// Begins to look for orphans. `None`: another replica is at it.
    #[tracing::instrument(name = "db.audit.lock_orphans", level = "debug", skip_all)]
    pub async fn orphan_search(&self) -> Result<Option<OrphanSearch>, StoreError> {
        // Statements in a row, and a lock over them: not through a transaction pooler.
        let options = self.direct().clone().application_name("toolgate recovery");
        let connection = match timeout(self.timeout(), options.connect()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(StoreError::of_connection(&error)),
            Err(_) => return Err(StoreError::Unavailable("no connection in time".to_owned())),
        };
        let mut search = OrphanSearch {
            connection,
            limit: self.timeout(),
        };
        let connection = &mut search.connection;
        let locking = async {
            sqlx::query("BEGIN").execute(&mut *connection).await?;
            // In the transaction, so that a pooler's other clients do not meet it.
            sqlx::query_scalar!(
                r#"SELECT pg_try_advisory_xact_lock($1) AND
                       set_config('idle_in_transaction_session_timeout', '30s', true) IS NOT NULL AND
                       set_config('statement_timeout', '10s', true) IS NOT NULL AS "locked!""#,
                LOCK
            )
            .fetch_one(&mut *connection)
            .await
        };
        let locked = limited(search.limit, locking).await?;
        if !locked {
            search.give_up().await;
            return Ok(None);
        }
        Ok(Some(search))
    }
}

impl OrphanSearch {
    /// At most `limit` orphans, oldest first.
    pub async fn list(
        &mut self,
        query: &OrphanQuery,
        limit: u32,
    ) -> Result<Vec<Orphan>, StoreError> {
        let rows = limited(
            LOOK,
            sqlx::query!(
                r#"SELECT s.call_id, s.at, tenant.name AS tenant
                   FROM audit_events s JOIN audit_names tenant ON tenant.name_id = s.tenant_id
                   WHERE s.event = 1 AND s.call_id >= $1 AND s.call_id < $2
                     AND s.at >= $3 AND s.at < $4
                     AND ($5::uuid IS NULL OR s.writer_id IN
                          (SELECT writer_id FROM audit_writers WHERE replica_id = $5))
                     AND NOT EXISTS (
                         SELECT FROM audit_events e
                         WHERE e.call_id = s.call_id AND e.event IN (2, 4, 5)
                           AND e.call_id >= $1 AND e.call_id < $2
                           AND e.at >= $3::timestamptz - interval '1 minute'
                     )
                   ORDER BY s.call_id LIMIT $6"#,
                floor_id(query.since - SLACK),
                floor_id(query.until + SLACK),
                query.since,
                query.until,
                query.replica.map(|replica| replica.0) as Option<Uuid>,
                i64::from(limit)
            )
            .fetch_all(&mut self.connection),
        )
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| Orphan {
                call_id: CallId(row.call_id),
                at: row.at,
                tenant: row.tenant,
            })
            .collect())
    }

    /// Up to when everything has been looked through.
    pub async fn find_mark(&mut self) -> Result<OffsetDateTime, StoreError> {
        limited(
            self.limit,
            sqlx::query_scalar!("SELECT through FROM recovery_marks")
                .fetch_one(&mut self.connection),
        )
        .await
    }

    /// When a call was started that is about the first one from `since` on, so that
    /// quiet times are passed over: calls are in order of their ids.
    pub async fn find_next(
        &mut self,
        since: OffsetDateTime,
    ) -> Result<Option<OffsetDateTime>, StoreError> {
        limited(
            LOOK,
            sqlx::query_scalar!(
                "SELECT at FROM audit_events WHERE call_id >= $1 AND at >= $2
                 ORDER BY call_id LIMIT 1",
                floor_id(since - SLACK),
                since
            )
            .fetch_optional(&mut self.connection),
        )
        .await
    }

    /// Moves the mark.
    pub async fn update_mark(&mut self, through: OffsetDateTime) -> Result<(), StoreError> {
        limited(
            self.limit,
            sqlx::query!("UPDATE recovery_marks SET through = $1", through)
                .execute(&mut self.connection),
        )
        .await
        .map(drop)
    }

    /// Takes a replica off the list whose calls are settled, with what was still
    /// to be told to it, unless it has been heard of meanwhile.
    pub async fn delete_replica(
        &mut self,
        replica: ReplicaId,
        heard: OffsetDateTime,
    ) -> Result<(), StoreError> {
        limited(
            self.limit,
            sqlx::query!(
                "WITH gone AS (
                     DELETE FROM replicas WHERE replica_id = $1 AND heartbeat_at = $2
                     RETURNING replica_id
                 )
                 DELETE FROM messages WHERE to_replica IN (SELECT replica_id FROM gone)",
                replica.0,
                heard
            )
            .execute(&mut self.connection),
        )
        .await
        .map(drop)
    }

    /// Keeps what was changed and lets others look.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        let committing = async { sqlx::query("COMMIT").execute(&mut self.connection).await };
        limited(self.limit, committing).await?;
        self.give_up().await;
        Ok(())
    }

    /// Lets others look; what was changed is undone.
    pub async fn give_up(self) {
        let _ = timeout(self.limit, self.connection.close()).await;
    }
}

// The driver's options print their password.
impl fmt::Debug for OrphanSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrphanSearch").finish_non_exhaustive()
    }
}

async fn limited<T>(
    limit: Duration,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    match timeout(limit, statement).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(StoreError::of_statement(&error)),
        Err(_) => Err(StoreError::InDoubt),
    }
}
