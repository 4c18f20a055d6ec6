//! Tables `session_tombstones` and `session_states`: what changes of a legacy
//! session. The session itself is a sealed token and has no row.

use time::OffsetDateTime;
use tokio::time::timeout;

use super::connect::Store;
use super::error::StoreError;
use crate::ids::{SessionId, TenantId};
use crate::protocol::LogLevel;

/// A row of `session_states`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// What the client asked for by `logging/setLevel`.
    pub log_level: Option<LogLevel>,
    /// What the client subscribed to by `resources/subscribe`.
    pub subscriptions: Vec<String>,
    /// When it last changed.
    pub updated_at: OffsetDateTime,
}

/// A row of `session_tombstones`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The session that was ended.
    pub session: SessionId,
    /// When its token expires and the tombstone may go.
    pub until: OffsetDateTime,
}

impl Store {
    /// Ends a session of `tenant` for every replica, and forgets its state.
    #[tracing::instrument(name = "db.sessions.insert_tombstone", level = "debug", skip_all)]
    pub async fn insert_tombstone(
        &self,
        tenant: &TenantId,
        session: SessionId,
        until: OffsetDateTime,
    ) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "WITH forgotten AS (
                     DELETE FROM session_states WHERE session_id = $1 AND tenant = $2
                 )
                 INSERT INTO session_tombstones (session_id, tenant, until) VALUES ($1, $2, $3)
                 ON CONFLICT ON CONSTRAINT session_tombstones_pkey DO NOTHING",
                session.0,
                tenant.as_str(),
                until
            )
            .execute(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Whether a session of `tenant` was ended.
    #[tracing::instrument(name = "db.sessions.find_tombstone", level = "debug", skip_all)]
    pub async fn find_tombstone(
        &self,
        tenant: &TenantId,
        session: SessionId,
    ) -> Result<Option<Tombstone>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "SELECT session_id, until FROM session_tombstones
                 WHERE session_id = $1 AND tenant = $2",
                session.0,
                tenant.as_str()
            )
            .fetch_optional(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.map(|row| Tombstone {
            session: SessionId(row.session_id),
            until: row.until,
        }))
    }

    /// Every tombstone that still counts at `now`, of all tenants: a replica
    /// keeps them in memory, since no request may wait for a look-up.
    #[tracing::instrument(name = "db.sessions.list_tombstones", level = "debug", skip_all)]
    pub async fn list_tombstones(&self, now: OffsetDateTime) -> Result<Vec<Tombstone>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "SELECT session_id, until FROM session_tombstones WHERE until > $1",
                now
            )
            .fetch_all(lease.connection()),
        )
        .await;
        let rows = lease.settle(outcome)?;
        Ok(rows
            .into_iter()
            .map(|row| Tombstone {
                session: SessionId(row.session_id),
                until: row.until,
            })
            .collect())
    }

    /// Keeps the log level that a session of `tenant` asked for.
    #[tracing::instrument(name = "db.sessions.update_log_level", level = "debug", skip_all)]
    pub async fn update_log_level(
        &self,
        tenant: &TenantId,
        session: SessionId,
        level: LogLevel,
        now: OffsetDateTime,
    ) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "INSERT INTO session_states (session_id, tenant, log_level, updated_at)
                 VALUES ($1, $2, $3, $4)
                 ON CONFLICT ON CONSTRAINT session_states_pkey
                 DO UPDATE SET log_level = excluded.log_level, updated_at = excluded.updated_at
                 WHERE session_states.tenant = excluded.tenant",
                session.0,
                tenant.as_str(),
                level.as_str(),
                now
            )
            .execute(lease.connection()),
        )
        .await;
        match lease.settle(outcome)?.rows_affected() {
            1 => Ok(()),
            _ => Err(StoreError::Inconsistent("session state")),
        }
    }

    /// Adds a subscription to those of a session of `tenant`, or removes it. Gives
    /// those that it has then.
    #[tracing::instrument(name = "db.sessions.update_subscription", level = "debug", skip_all)]
    pub async fn update_subscription(
        &self,
        tenant: &TenantId,
        session: SessionId,
        uri: &str,
        subscribed: bool,
        now: OffsetDateTime,
    ) -> Result<Vec<String>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "INSERT INTO session_states (session_id, tenant, subscriptions, updated_at)
                 VALUES ($1, $2, CASE WHEN $4 THEN ARRAY[$3::text] ELSE '{}'::text[] END, $5)
                 ON CONFLICT ON CONSTRAINT session_states_pkey
                 DO UPDATE SET subscriptions
                     = array_remove(session_states.subscriptions, $3) || excluded.subscriptions,
                     updated_at = excluded.updated_at
                 WHERE session_states.tenant = excluded.tenant
                 RETURNING subscriptions",
                session.0,
                tenant.as_str(),
                uri,
                subscribed,
                now
            )
            .fetch_optional(lease.connection()),
        )
        .await;
        let row = lease.settle(outcome)?;
        row.map(|row| row.subscriptions)
            .ok_or(StoreError::Inconsistent("session state"))
    }

    /// What changed of a session of `tenant`, if anything did.
    #[tracing::instrument(name = "db.sessions.find_state", level = "debug", skip_all)]
    pub async fn find_session_state(
        &self,
        tenant: &TenantId,
        session: SessionId,
    ) -> Result<Option<SessionState>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "SELECT log_level, subscriptions, updated_at FROM session_states
                 WHERE session_id = $1 AND tenant = $2",
                session.0,
                tenant.as_str()
            )
            .fetch_optional(lease.connection()),
        )
        .await;
        let Some(row) = lease.settle(outcome)? else {
            return Ok(None);
        };
        let log_level = row
            .log_level
            .map(|text| LogLevel::parse(&text).ok_or(StoreError::Inconsistent("session state")))
            .transpose()?;
        Ok(Some(SessionState {
            log_level,
            subscriptions: row.subscriptions,
            updated_at: row.updated_at,
        }))
    }

    /// Deletes tombstones whose sessions have expired at `now`, and states that
    /// nobody has touched since `untouched_since`. Returns how many rows went.
    #[tracing::instrument(name = "db.sessions.delete_expired", level = "debug", skip_all)]
    pub async fn delete_expired_sessions(
        &self,
        now: OffsetDateTime,
        untouched_since: OffsetDateTime,
    ) -> Result<u64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_scalar!(
                r#"WITH stones AS (
                     DELETE FROM session_tombstones WHERE until <= $1 RETURNING 1
                 ), states AS (
                     DELETE FROM session_states WHERE updated_at < $2 RETURNING 1
                 )
                 SELECT (SELECT count(*) FROM stones) + (SELECT count(*) FROM states) AS "gone!""#,
                now,
                untouched_since
            )
            .fetch_one(lease.connection()),
        )
        .await;
        Ok(u64::try_from(lease.settle(outcome)?).unwrap_or_default())
    }
}
