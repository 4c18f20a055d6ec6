//! One connection that waits for wake-ups. It goes over the direct connection
//! string: a transaction pooler swallows `LISTEN`.

use std::fmt;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::connect::Store;
use super::messages::channel;
use crate::ids::ReplicaId;

/// Why the listener woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A message with this id was sent.
    Message(Uuid),
    /// Look for messages anyway: time has passed, or a notification may have been missed.
    Poll,
}

/// Waits for the messages of one replica. Reconnects by itself, for as long as
/// it takes; while it cannot, it still wakes to poll.
pub struct Listener {
    connections: PgPool,
    channel: String,
    poll: Duration,
    connected: Option<PgListener>,
    limit: Duration,
}

/// Between two attempts to connect.
const RETRY: Duration = Duration::from_millis(500);

impl Store {
    /// Listens for `replica`, and wakes every `poll` whatever happens. Connects
    /// when it is first waited for.
    pub fn listen(&self, replica: ReplicaId, poll: Duration) -> Listener {
        let connections = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.timeout())
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(self.direct().clone().application_name("toolgate listen"));
        Listener {
            connections,
            channel: channel(replica),
            poll,
            connected: None,
            limit: self.timeout(),
        }
    }
}

impl Listener {
    /// The next reason to look at the messages. Safe to drop and call again:
    /// what a dropped wait might have missed is found by the next poll.
    pub async fn next(&mut self) -> Wake {
        let Some(waiting) = &mut self.connected else {
            self.connect().await;
            return Wake::Poll;
        };
        match timeout(self.poll, waiting.try_recv()).await {
            Ok(Ok(Some(notification))) => {
                Uuid::parse_str(notification.payload()).map_or(Wake::Poll, Wake::Message)
            }
            Ok(Ok(None) | Err(_)) => {
                tracing::warn!("The connection that listens for messages was lost; reconnecting.");
                self.connected = None;
                self.connect().await;
                Wake::Poll
            }
            Err(_) => Wake::Poll,
        }
    }

    async fn connect(&mut self) {
        let connecting = async {
            let mut fresh = PgListener::connect_with(&self.connections).await?;
            fresh.eager_reconnect(false);
            fresh.listen(&self.channel).await?;
            Ok::<_, sqlx::Error>(fresh)
        };
        match timeout(self.limit, connecting).await {
            Ok(Ok(listener)) => self.connected = Some(listener),
            // Polling goes on meanwhile, at the pace of the attempts.
            Ok(Err(_)) | Err(_) => sleep(RETRY).await,
        }
    }
}

// The driver's options print their password.
impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}
