//! Reaching the other replicas: a message for each of them in Postgres, woken by
//! `NOTIFY`. Losing one costs at most what `session::BELIEVED` bounds.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::ids::{ReplicaId, SessionId};
use crate::protocol::Json;
use crate::protocol::json::ObjectBuilder;
use crate::store::Store;

use super::Server;

/// A replica that has not been heard of for so long is gone.
const LIVE_SECONDS: u32 = 15;
/// The exchange that these messages belong to.
const EXCHANGE: &str = "sessions";

/// Announcements that may be on their way at the same time; with the database
/// away the next ones are lost.
const ANNOUNCING: usize = 1024;

/// Sends to the other replicas.
pub struct Relay {
    store: Store,
    own: ReplicaId,
    announcing: Arc<Semaphore>,
}

impl Relay {
    /// Speaks for the replica `own`.
    pub fn new(store: Store, own: ReplicaId) -> Self {
        Self {
            store,
            own,
            announcing: Arc::new(Semaphore::new(ANNOUNCING)),
        }
    }

    /// Like [`Relay::broadcast`], for what nobody need wait for.
    pub(super) fn announce(&self, message: Json) {
        let Ok(permit) = Arc::clone(&self.announcing).try_acquire_owned() else {
            return;
        };
        let (store, own) = (self.store.clone(), self.own);
        tokio::spawn(async move {
            send(&store, own, &message).await;
            drop(permit);
        });
    }

    /// Sends to every other live replica. A fault is logged: the caller's own
    /// replica has acted already.
    pub(super) async fn broadcast(&self, message: &Json) {
        send(&self.store, self.own, message).await;
    }
}

async fn send(store: &Store, own: ReplicaId, message: &Json) {
    let body = message.as_str().as_bytes();
    if let Err(error) = store
        .insert_message_for_all(own, LIVE_SECONDS, EXCHANGE, body)
        .await
    {
        tracing::warn!(%error, "Other replicas could not be told of a change in a session.");
    }
}

fn about(session: SessionId, what: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .text("kind", what)
        .text("session", &session.to_string())
}

/// A call is to be cancelled wherever it runs.
pub(super) fn cancelled(session: SessionId, request: &str) -> Json {
    about(session, "cancelled").text("request", request).build()
}

/// A session's row changed.
pub(super) fn session_changed(session: SessionId) -> Json {
    about(session, "session_changed").build()
}

/// A session ended.
pub(super) fn session_ended(session: SessionId) -> Json {
    about(session, "session_ended").build()
}

/// A session's GET stream is elsewhere now, opened at that time.
pub(super) fn stream_opened(session: SessionId, at: i64) -> Json {
    about(session, "stream_opened").integer("at", at).build()
}

/// Acts on a message. One that is not understood is of a newer release, and ignored.
pub(super) fn heard(server: &Server, message: &Json) {
    let text = |key: &str| {
        message
            .get(key)
            .and_then(|value| value.string().map(String::from))
    };
    let session = text("session")
        .and_then(|id| id.parse().ok())
        .map(SessionId);
    let (Some(kind), Some(session)) = (text("kind"), session) else {
        return;
    };
    match kind.as_str() {
        "cancelled" => {
            server
                .inflight
                .cancel(session, &text("request").unwrap_or_default());
        }
        "session_changed" => {
            server.sessions.forget(session);
            server.listeners.poke(session);
        }
        "session_ended" => {
            server.sessions.ended(session);
            server.listeners.close(session);
        }
        "stream_opened" => {
            // A message that took its time does not close a stream opened since.
            let at = message.get("at").and_then(|at| at.integer());
            server
                .listeners
                .close_older(session, at.unwrap_or(i64::MAX));
        }
        _ => {}
    }
}
