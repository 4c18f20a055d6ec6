//! Reaching the other replicas: messages in Postgres, woken by `NOTIFY`. Losing one
//! that tells all of a change costs at most what `session::BELIEVED` bounds. What
//! callers and upstreams say travels sealed.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::ids::{ReplicaId, SessionId, TenantId};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, JsonLimits, Request, RequestId, Version};
use crate::seal::Sealer;
use crate::store::Store;
use crate::upstream::CallerKey;

use super::{Server, notices, routed};

/// A replica that has not been heard of for so long is gone.
const LIVE_SECONDS: u32 = 15;
/// The exchange that these messages belong to.
const EXCHANGE: &str = "sessions";

/// What sealed messages are bound to.
const SEALED_FOR: &[u8] = b"between replicas";

/// Announcements that may be on their way at the same time; with the database
/// away the next ones are lost.
const ANNOUNCING: usize = 1024;

/// Sends to the other replicas.
pub struct Relay {
    store: Store,
    own: ReplicaId,
    sealer: Sealer,
    announcing: Arc<Semaphore>,
}

impl Relay {
    /// Speaks for the replica `own`.
    pub fn new(store: Store, own: ReplicaId, sealer: Sealer) -> Self {
        Self {
            store,
            own,
            sealer,
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

    /// Who this is.
    pub(super) fn own(&self) -> ReplicaId {
        self.own
    }

    /// Whether a replica has been heard of lately. While that cannot be asked, it is
    /// taken to live.
    pub(super) async fn lives(&self, replica: ReplicaId) -> bool {
        let found = self.store.find_live_replica(replica, LIVE_SECONDS).await;
        found.is_err() || found.is_ok_and(|found| found.is_some())
    }

    /// Sends to one replica, sealed.
    pub(super) async fn send(&self, to: ReplicaId, message: &Json) {
        let sealed = self.sealed(message);
        deliver(&self.store, to, &sealed).await;
    }

    /// Like [`Relay::send`], for what nobody need wait for.
    pub(super) fn tell(&self, to: ReplicaId, message: &Json) {
        let sealed = self.sealed(message);
        let store = self.store.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { deliver(&store, to, &sealed).await });
        }
    }

    fn sealed(&self, message: &Json) -> Json {
        let text = self.sealer.seal(message.as_str().as_bytes(), SEALED_FOR);
        ObjectBuilder::with_capacity(text.len() + 32)
            .text("kind", "sealed")
            .text("text", &text)
            .build()
    }

    fn opened(&self, message: &Json) -> Option<Json> {
        let text = message.get("text")?;
        let plain = self.sealer.open(&text.string()?, SEALED_FOR).ok()?;
        Json::parse(Bytes::from(plain), &JsonLimits::UPSTREAM).ok()
    }

    /// The beginning of a message about a line.
    pub(super) fn about_line(kind: &str, line: Uuid) -> ObjectBuilder {
        ObjectBuilder::new()
            .text("kind", kind)
            .text("line", &line.to_string())
    }
}

async fn deliver(store: &Store, to: ReplicaId, message: &Json) {
    let body = message.as_str().as_bytes();
    let id = uuid::Builder::from_random_bytes(crate::clock::random()).into_uuid();
    if let Err(error) = store.insert_message(id, to, EXCHANGE, body).await {
        tracing::warn!(%error, "Another replica could not be told of something that it waits for.");
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

/// A client's reply to a question that another replica asked.
pub(super) fn replied(session: SessionId, id: &str, reply: &Result<Json, Json>) -> Json {
    let (member, value) = match reply {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    about(session, "replied")
        .text("request", id)
        .json(member, value)
        .build()
}

/// A client's progress with a question that another replica asked.
pub(super) fn progressed(session: SessionId, id: &str, params: &Json) -> Json {
    about(session, "progressed")
        .text("request", id)
        .json("params", params)
        .build()
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

/// The roots of a session's client are others now.
pub(super) fn roots_changed(session: SessionId, tenant: &TenantId, key: CallerKey) -> Json {
    about(session, "roots_changed")
        .text("tenant", tenant.as_str())
        .text("key", &URL_SAFE_NO_PAD.encode(key.0))
        .build()
}

/// Acts on a message. One that is not understood is of a newer release, and ignored.
pub(super) fn heard(server: &Arc<Server>, message: &Json) {
    let text = |key: &str| {
        message
            .get(key)
            .and_then(|value| value.string().map(String::from))
    };
    let Some(kind) = text("kind") else { return };
    if kind == "sealed" {
        if let Some(message) = server.relay.opened(message) {
            heard(server, &message);
        }
        return;
    }
    let line = text("line").and_then(|line| line.parse().ok());
    let session = text("session").and_then(|id| id.parse().ok());
    match (line, session.map(SessionId)) {
        (Some(line), session) => heard_of_line(server, &kind, line, session, message),
        (None, Some(session)) => heard_of_session(server, &kind, session, message),
        (None, None) => {}
    }
}

fn heard_of_line(
    server: &Arc<Server>,
    kind: &str,
    line: Uuid,
    session: Option<SessionId>,
    message: &Json,
) {
    let text = |key: &str| {
        message
            .get(key)
            .and_then(|value| value.string().map(String::from))
    };
    match kind {
        "line" => server.lines.heard(line, message.clone()),
        "hung_up" => server.lines.hung_up(line),
        "call" => {
            let id = message.get("id").and_then(RequestId::new);
            if let (Some(line), Some(id)) = (routed::line_of(server, message), id) {
                let request = Request {
                    id,
                    method: text("method").unwrap_or_default(),
                    params: message.get("params"),
                };
                routed::go_on(server, line, request);
            }
        }
        "follow" => {
            let version = text("version").and_then(|version| Version::parse(&version));
            let line = routed::line_of(server, message);
            if let (Some(line), Some(session), Some(version)) = (line, session, version) {
                let behind = text("behind").unwrap_or_default();
                routed::tell(server, line, session, &behind, version);
            }
        }
        _ => {}
    }
}

fn heard_of_session(server: &Arc<Server>, kind: &str, session: SessionId, message: &Json) {
    let request = message.get("request");
    let request = request.as_ref().and_then(Json::string).unwrap_or_default();
    match kind {
        "cancelled" => {
            server.inflight.cancel(session, &request);
        }
        "replied" => {
            let result = message.get("result").map(Ok);
            if let Some(reply) = result.or_else(|| message.get("error").map(Err)) {
                server.questions.reply(session, &request, reply);
            }
        }
        "progressed" => {
            if let Some(params) = message.get("params") {
                server.questions.progress(session, &request, params);
            }
        }
        "roots_changed" => {
            let text = |key: &str| Some(message.get(key)?.string()?.into_owned());
            let key = text("key").and_then(|key| URL_SAFE_NO_PAD.decode(key).ok());
            let key = key.and_then(|key| <[u8; 32]>::try_from(key).ok());
            if let (Some(tenant), Some(key)) = (text("tenant"), key) {
                notices::roots_changed(server, TenantId::new(tenant), CallerKey(key));
            }
        }
        "session_changed" => {
            server.sessions.forget(session);
            server.listeners.poke(session);
        }
        "session_ended" => {
            server.sessions.ended(session);
            server.listeners.close(session);
            server.journals.close(session);
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
