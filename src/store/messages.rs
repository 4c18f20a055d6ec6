//! Table `messages`: what replicas tell each other. A message is a row; the
//! notification carries its id alone and is only a wake-up, so one that is
//! lost costs time and nothing else.

use time::OffsetDateTime;
use tokio::time::timeout;
use uuid::Uuid;

use super::connect::Store;
use super::error::StoreError;
use crate::ids::ReplicaId;

/// A row of `messages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id, chosen by the sender: sending it twice is sending it once.
    pub id: Uuid,
    /// Whom it is for.
    pub to_replica: ReplicaId,
    /// The exchange it belongs to, in the sender's and the receiver's words.
    pub exchange: String,
    /// What it says.
    pub body: Vec<u8>,
    /// When it was sent, by the database's clock.
    pub created_at: OffsetDateTime,
}

/// The channel that `replica` listens on.
pub(super) fn channel(replica: ReplicaId) -> String {
    format!("toolgate_{}", replica.0.simple())
}

impl Store {
    /// Sends a message to one replica and wakes it. The caller finds out
    /// beforehand whether that replica lives.
    #[tracing::instrument(name = "db.messages.insert", level = "debug", skip_all)]
    pub async fn insert_message(
        &self,
        id: Uuid,
        to_replica: ReplicaId,
        exchange: &str,
        body: &[u8],
    ) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "WITH sent AS (
                     INSERT INTO messages (message_id, to_replica, exchange, body, created_at)
                     VALUES ($1, $2, $3, $4, now())
                     ON CONFLICT ON CONSTRAINT messages_pkey DO NOTHING
                     RETURNING message_id
                 )
                 SELECT pg_notify($5, message_id::text) FROM sent",
                id,
                to_replica.0,
                exchange,
                body,
                channel(to_replica)
            )
            .execute(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Sends a message to every replica heard of within `seconds` but `from`,
    /// and wakes them. Returns how many those are.
    #[tracing::instrument(name = "db.messages.insert_for_all", level = "debug", skip_all)]
    pub async fn insert_message_for_all(
        &self,
        from: ReplicaId,
        seconds: u32,
        exchange: &str,
        body: &[u8],
    ) -> Result<u64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "WITH sent AS (
                     INSERT INTO messages (message_id, to_replica, exchange, body, created_at)
                     SELECT gen_random_uuid(), replica_id, $3, $4, now() FROM replicas
                     WHERE replica_id <> $1
                       AND heartbeat_at > now() - make_interval(secs => $2)
                     RETURNING message_id, to_replica
                 )
                 SELECT pg_notify('toolgate_' || replace(to_replica::text, '-', ''),
                                  message_id::text) FROM sent",
                from.0,
                f64::from(seconds),
                exchange,
                body
            )
            .execute(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.rows_affected())
    }

    /// Takes everything that waits for `replica`, oldest first. What is taken is gone.
    #[tracing::instrument(name = "db.messages.take", level = "debug", skip_all)]
    pub async fn delete_messages(&self, replica: ReplicaId) -> Result<Vec<Message>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "DELETE FROM messages WHERE to_replica = $1
                 RETURNING message_id, to_replica, exchange, body, created_at",
                replica.0
            )
            .fetch_all(lease.connection()),
        )
        .await;
        let mut messages: Vec<Message> = lease
            .settle(outcome)?
            .into_iter()
            .map(|row| Message {
                id: row.message_id,
                to_replica: ReplicaId(row.to_replica),
                exchange: row.exchange,
                body: row.body,
                created_at: row.created_at,
            })
            .collect();
        messages.sort_by_key(|message| (message.created_at, message.id));
        Ok(messages)
    }

    /// Throws away what nobody has taken for `seconds`, and says how much that was.
    #[tracing::instrument(name = "db.messages.delete_stale", level = "debug", skip_all)]
    pub async fn delete_stale_messages(&self, seconds: u32) -> Result<u64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "DELETE FROM messages WHERE created_at <= now() - make_interval(secs => $1)",
                f64::from(seconds)
            )
            .execute(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.rows_affected())
    }
}
