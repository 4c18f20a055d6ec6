//! Tables `audit_events`, `audit_bodies`, `audit_callers`, `audit_names` and
//! `audit_writers`, as their writers see them: insert, and nothing else.

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection;
use time::OffsetDateTime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use super::audit_role::restrict;
use super::audit_rows::{EventBatch, EventKey};
use super::connect::{AuditAccess, Store};
use super::error::StoreError;
use super::session::OwnSession;
use crate::ids::ReplicaId;

/// A connection of the audit's own: held by one lane, made when it is needed,
/// dropped whenever it is in doubt.
pub struct AuditConnection {
    access: Arc<AuditAccess>,
    slots: Arc<Semaphore>,
    timeout: Duration,
    live: Option<(OwnSession, OwnedSemaphorePermit)>,
    generation: u64,
}

impl Store {
    /// A connection for one lane of the audit; not connected yet.
    pub fn audit_connection(&self) -> AuditConnection {
        AuditConnection {
            access: self.audit_access(),
            slots: self.audit_slots(),
            timeout: self.timeout(),
            live: None,
            generation: 0,
        }
    }
}

impl AuditConnection {
    /// Connects if need be, and says which connection it is: another number is
    /// another connection, and perhaps another server, which after a failover
    /// need not have everything that the one before had.
    pub async fn ready(&mut self, until: Instant) -> Result<u64, StoreError> {
        self.connect(until).await?;
        Ok(self.generation)
    }

    /// The id of the writer that `lane` of `replica` is, and whether it had to be registered.
    #[tracing::instrument(name = "db.audit.insert_writer", level = "debug", skip_all)]
    pub async fn insert_writer(
        &mut self,
        replica: ReplicaId,
        lane: i16,
        started_at: OffsetDateTime,
        until: Instant,
    ) -> Result<(i32, bool), StoreError> {
        let connection = self.connect(until).await?;
        let outcome = limit(until, async {
            let registered = sqlx::query!(
                "INSERT INTO audit_writers (replica_id, lane, started_at) VALUES ($1, $2, $3)
                 ON CONFLICT DO NOTHING",
                replica.0,
                lane,
                started_at
            )
            .execute(&mut *connection)
            .await?;
            let id = sqlx::query_scalar!(
                "SELECT writer_id FROM audit_writers WHERE replica_id = $1 AND lane = $2",
                replica.0,
                lane
            )
            .fetch_one(&mut *connection)
            .await?;
            Ok((id, registered.rows_affected() == 1))
        })
        .await;
        self.settle(outcome)
    }

    /// Whether an event is there, by its key.
    #[tracing::instrument(name = "db.audit.find", level = "debug", skip_all)]
    pub async fn has_event(&mut self, key: EventKey, until: Instant) -> Result<bool, StoreError> {
        let connection = self.connect(until).await?;
        let outcome = limit(
            until,
            sqlx::query_scalar!(
                r#"SELECT EXISTS (
                       SELECT FROM audit_events WHERE call_id = $1 AND event = $2 AND at = $3
                   ) AS "there!""#,
                key.call_id.0,
                key.event,
                key.at
            )
            .fetch_one(connection),
        )
        .await;
        self.settle(outcome)
    }

    /// The ids of `names`; inserts those that are new.
    #[tracing::instrument(name = "db.audit.insert_names", level = "debug", skip_all)]
    pub async fn insert_names(
        &mut self,
        names: &[String],
        until: Instant,
    ) -> Result<Vec<(String, i32)>, StoreError> {
        let connection = self.connect(until).await?;
        let outcome = limit(until, async {
            // In order, so that two lanes which bring the same names cannot deadlock.
            sqlx::query!(
                "INSERT INTO audit_names (name)
                 SELECT name FROM UNNEST($1::text[]) AS new (name)
                 WHERE NOT EXISTS (SELECT FROM audit_names old WHERE old.name = new.name)
                 ORDER BY name ON CONFLICT DO NOTHING",
                names
            )
            .execute(&mut *connection)
            .await?;
            sqlx::query!(
                "SELECT name, name_id FROM audit_names WHERE name = ANY($1)",
                names
            )
            .fetch_all(&mut *connection)
            .await
        })
        .await;
        let rows = self.settle(outcome)?;
        Ok(rows
            .into_iter()
            .map(|row| (row.name, row.name_id))
            .collect())
    }

    /// Writes a batch in one statement and one commit, and says how many events
    /// were new. The same batch may be given again when the first time is in
    /// doubt: what is there already is left alone.
    #[tracing::instrument(name = "db.audit.insert", level = "debug", skip_all)]
    pub async fn insert_events(
        &mut self,
        batch: &EventBatch,
        until: Instant,
    ) -> Result<u64, StoreError> {
        let connection = self.connect(until).await?;
        let outcome = limit(until, async {
            let new = insert(&mut *connection, batch).await?;
            if new < batch.events.len() as u64 {
                confirm(connection).await?;
            }
            Ok(new)
        })
        .await;
        self.settle(outcome)
    }

    /// Drops the connection without a farewell, whatever it is doing.
    pub fn discard(&mut self) {
        self.live = None;
    }

    /// Says good-bye to the server.
    pub async fn close(&mut self) {
        if let Some((session, _slot)) = self.live.take() {
            let _ = timeout(self.timeout, session.into_inner().close()).await;
        }
    }

    pub(super) async fn connect(&mut self, until: Instant) -> Result<&mut OwnSession, StoreError> {
        if self.live.is_none() {
            let connecting = async {
                let slot = Arc::clone(&self.slots)
                    .acquire_owned()
                    .await
                    .map_err(|_| sqlx::Error::PoolClosed)?;
                let mut connection = self.access.connect().await?;
                let separated = restrict(&mut connection, &self.access).await?;
                Ok::<_, sqlx::Error>((separated.then_some(connection), slot))
            };
            self.live = match timeout_at(until, connecting).await {
                Ok(Ok((Some(connection), slot))) => {
                    self.generation += 1;
                    Some((connection, slot))
                }
                Ok(Ok((None, _))) => {
                    return Err(StoreError::Unavailable(
                        "no role that may only insert".to_owned(),
                    ));
                }
                Ok(Err(error)) => return Err(StoreError::of_connection(&error)),
                Err(_) => return Err(StoreError::Unavailable("no connection in time".to_owned())),
            };
        }
        match &mut self.live {
            Some((connection, _slot)) => Ok(connection),
            None => Err(StoreError::Unavailable("no connection".to_owned())),
        }
    }

    pub(super) fn settle<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if outcome.as_ref().is_err_and(StoreError::ends_connection) {
            self.discard();
        }
        outcome
    }
}

// The driver's options print their password.
impl fmt::Debug for AuditConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditConnection").finish_non_exhaustive()
    }
}

pub(super) async fn limit<T>(
    until: Instant,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    match timeout_at(until, statement).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(StoreError::of_statement(&error)),
        Err(_) => Err(StoreError::InDoubt),
    }
}

/// What was there already may be there on this server alone: visible after a
/// crash, but not yet at the standby that commits have to wait for. A commit
/// behind it waits for both; one that wrote nothing would wait for neither.
async fn confirm(connection: &mut OwnSession) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"SELECT set_config('synchronous_commit', 'on', true) AS durable,
                  pg_logical_emit_message(true, 'toolgate', '')::text AS place"#
    )
    .fetch_one(connection)
    .await
    .map(drop)
}

/// One array a column.
fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// Durability is our promise: no default of a role or a database decides it,
/// nor what a pooler makes of a session. So the statement itself says so.
#[expect(
    clippy::too_many_lines,
    reason = "one statement, one line a column: cut up it would only be harder to check"
)]
async fn insert(connection: &mut OwnSession, batch: &EventBatch) -> Result<u64, sqlx::Error> {
    let (events, bodies, callers) = (&batch.events, &batch.bodies, &batch.callers);
    let done = sqlx::query!(
        "WITH durable AS (
             SELECT set_config('synchronous_commit', 'on', true)
         ), new_callers AS (
             INSERT INTO audit_callers (day, writer_id, caller_id, salt, digest, issuer, subject,
                 client, grant_id, token_id, address, client_info, tenant_id)
             SELECT * FROM UNNEST($26::date[], $27::int4[], $28::int4[], $29::bytea[], $30::bytea[],
                 $31::text[], $32::text[], $33::text[], $34::text[], $35::text[],
                 $36::text[], $37::text[], $49::int4[])
             ON CONFLICT DO NOTHING
         ), new_bodies AS (
             INSERT INTO audit_bodies (call_id, day, event, marks, salt, digest,
                 arguments_digest, arguments, tool, reason, findings, tenant_id)
             SELECT * FROM UNNEST($38::uuid[], $39::date[], $40::int2[], $41::int2[], $42::bytea[],
                 $43::bytea[], $44::bytea[], $45::text[], $46::text[], $47::text[],
                 $48::text[], $50::int4[])
             ON CONFLICT DO NOTHING
         )
         INSERT INTO audit_events (at, sequence, call_id, linked_call_id, upstream_micros,
             total_micros, refused_count, writer_id, tenant_id, caller_id, version_id, tool_id,
             upstream_id, upstream_tool_id, definition_id, configuration_id, outcome_id,
             request_bytes, arguments_bytes, response_bytes, event, arguments_mode, trace_id, leaf, link)
         SELECT new.* FROM durable, UNNEST($1::timestamptz[], $2::int8[], $3::uuid[], $4::uuid[], $5::int8[],
                 $6::int8[], $7::int8[], $8::int4[], $9::int4[], $10::int4[],
                 $11::int4[], $12::int4[], $13::int4[], $14::int4[], $15::int4[],
                 $16::int4[], $17::int4[], $18::int4[], $19::int4[], $20::int4[],
                 $21::int2[], $22::int2[], $23::bytea[], $24::bytea[], $25::bytea[])
         AS new ON CONFLICT DO NOTHING",
        &column(events, |row| row.at),
        &column(events, |row| row.sequence),
        &column(events, |row| row.call_id.0),
        &column(events, |row| row.linked_call_id.map(|id| id.0)) as &[Option<Uuid>],
        &column(events, |row| row.measures.upstream_micros) as &[Option<i64>],
        &column(events, |row| row.measures.total_micros) as &[Option<i64>],
        &column(events, |row| row.measures.refused_count) as &[Option<i64>],
        &column(events, |row| row.writer),
        &column(events, |row| row.tenant),
        &column(events, |row| row.caller) as &[Option<i32>],
        &column(events, |row| row.version) as &[Option<i32>],
        &column(events, |row| row.tool) as &[Option<i32>],
        &column(events, |row| row.upstream) as &[Option<i32>],
        &column(events, |row| row.upstream_tool) as &[Option<i32>],
        &column(events, |row| row.definition) as &[Option<i32>],
        &column(events, |row| row.configuration) as &[Option<i32>],
        &column(events, |row| row.outcome) as &[Option<i32>],
        &column(events, |row| row.measures.request_bytes) as &[Option<i32>],
        &column(events, |row| row.measures.arguments_bytes) as &[Option<i32>],
        &column(events, |row| row.measures.response_bytes) as &[Option<i32>],
        &column(events, |row| row.event),
        &column(events, |row| row.arguments_mode) as &[Option<i16>],
        &column(events, |row| row.trace_id.as_deref()) as &[Option<&[u8]>],
        &column(events, |row| row.leaf.as_slice()) as &[&[u8]],
        &column(events, |row| row.link.as_slice()) as &[&[u8]],
        &column(callers, |row| row.day),
        &column(callers, |row| row.writer),
        &column(callers, |row| row.caller),
        &column(callers, |row| row.stored.salt.as_deref()) as &[Option<&[u8]>],
        &column(callers, |row| row.stored.digest.as_slice()) as &[&[u8]],
        &column(callers, |row| row.stored.issuer.as_deref()) as &[Option<&str>],
        &column(callers, |row| row.stored.subject.as_deref()) as &[Option<&str>],
        &column(callers, |row| row.stored.client.as_deref()) as &[Option<&str>],
        &column(callers, |row| row.stored.grant.as_deref()) as &[Option<&str>],
        &column(callers, |row| row.stored.token_id.as_deref()) as &[Option<&str>],
        &column(callers, |row| row.stored.address.as_deref()) as &[Option<&str>],
        &column(callers, |row| row.stored.client_info.as_deref()) as &[Option<&str>],
        &column(bodies, |row| row.call_id.0),
        &column(bodies, |row| row.day),
        &column(bodies, |row| row.event),
        &column(bodies, |row| row.body.marks),
        &column(bodies, |row| row.body.salt.as_deref()) as &[Option<&[u8]>],
        &column(bodies, |row| row.body.digest.as_slice()) as &[&[u8]],
        &column(bodies, |row| row.body.arguments_digest.as_deref()) as &[Option<&[u8]>],
        &column(bodies, |row| row.body.arguments.as_deref()) as &[Option<&str>],
        &column(bodies, |row| row.body.tool.as_deref()) as &[Option<&str>],
        &column(bodies, |row| row.body.reason.as_deref()) as &[Option<&str>],
        &column(bodies, |row| row.body.findings.as_deref()) as &[Option<&str>],
        &column(callers, |row| row.tenant),
        &column(bodies, |row| row.tenant),
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}
