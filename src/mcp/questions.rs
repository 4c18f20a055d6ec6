//! Requests that were sent to legacy clients from here and wait for their replies.
//! An id names the replica that holds the question, so that a reply that comes to
//! another one finds it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::ids::{ReplicaId, SessionId};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{
    Json, RequestMeta, ServerMethod, ServerRequest, Version, meta, notification_message,
    request_message,
};
use crate::telemetry::TraceContext;
use crate::telemetry::names::field;
use crate::telemetry::trace::Span;

use super::lowering;

/// Progress of a client that waits to be passed on.
const BACKLOG: usize = 8;

/// A client's reply: a result, or an error object.
pub(super) type ClientReply = Result<Json, Json>;

/// The questions that wait here.
pub(super) struct Questions {
    own: ReplicaId,
    asked: AtomicU64,
    open: Mutex<HashMap<(SessionId, String), Waiting>>,
}

struct Waiting {
    reply: oneshot::Sender<ClientReply>,
    progress: mpsc::Sender<Json>,
}

impl Questions {
    pub(super) fn new(own: ReplicaId) -> Arc<Self> {
        Arc::new(Self {
            own,
            asked: AtomicU64::new(1),
            open: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(SessionId, String), Waiting>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message that asks a client. Where the server takes its request back, `late` gets
    /// the message that says so.
    pub(super) fn ask(
        self: &Arc<Self>,
        session: SessionId,
        version: Version,
        request: ServerRequest,
        late: mpsc::UnboundedSender<Json>,
    ) -> Json {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}.{number}", self.own.0.simple());
        let ServerRequest {
            method,
            params,
            mut reply,
            ..
        } = request;
        let mut params = lowering::request(version, method, params, &id);
        let span = traced(&mut params, method, &id, session);
        span.note(field::VERSION, version.as_str());
        if reply.wants_progress() {
            let own = params.get("_meta").unwrap_or_else(Json::empty_object);
            let own = own.with_member(meta::PROGRESS_TOKEN, &Json::from_text(&id));
            params = params.with_member("_meta", &own);
        }
        let (sender, mut given) = oneshot::channel();
        let (said, mut heard) = mpsc::channel(BACKLOG);
        let waiting = Waiting {
            reply: sender,
            progress: said,
        };
        let key = (session, id.clone());
        self.lock().insert(key.clone(), waiting);
        let questions = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    Some(params) = heard.recv() => reply.progress(params),
                    given = &mut given => {
                        if let Ok(given) = given {
                            told(&span, &given);
                            reply.answer(given);
                        }
                        break;
                    }
                    () = reply.taken_back() => {
                        span.fail("cancelled");
                        let _ = late.send(taken_back(&key.1));
                        break;
                    }
                }
            }
            questions.lock().remove(&key);
        });
        message(&id, method, &params)
    }

    /// Which replica asked the question with this id; `None` where none of ours did.
    pub(super) fn owner(id: &str) -> Option<ReplicaId> {
        let (replica, number) = id.split_once('.')?;
        number.parse::<u64>().ok()?;
        Uuid::parse_str(replica).ok().map(ReplicaId)
    }

    /// Gives a reply. One that nobody waits for is dropped.
    pub(super) fn reply(&self, session: SessionId, id: &str, reply: ClientReply) {
        if let Some(waiting) = self.lock().remove(&(session, id.to_owned())) {
            let _ = waiting.reply.send(reply);
        }
    }

    /// Passes on what a client says on its way to a reply.
    pub(super) fn progress(&self, session: SessionId, id: &str, params: Json) {
        if let Some(waiting) = self.lock().get(&(session, id.to_owned())) {
            let _ = waiting.progress.try_send(params);
        }
    }
}

/// The request to the client, part of the trace that the server's request goes on at;
/// its place goes on in the params.
fn traced(params: &mut Json, method: ServerMethod, id: &str, session: SessionId) -> Span {
    let own = RequestMeta::of(Some(params));
    let within = TraceContext::read(own.traceparent.as_deref(), own.tracestate.as_deref());
    let span = Span::client(method.as_str(), within.as_ref());
    if let Some(place) = span.place() {
        *params = meta::with_trace(params, place.parent(), place.state());
    }
    if span.records() {
        span.note(field::METHOD, method.as_str());
        span.note(field::JSONRPC_ID, id.to_owned());
        span.note(field::SESSION, session.to_string());
        span.note(field::TRANSPORT, "tcp");
        span.note(field::PROTOCOL, "http");
    }
    span
}

/// Says in the trace what the client has answered.
fn told(span: &Span, given: &ClientReply) {
    let Err(error) = given else { return };
    let code = error.get("code").and_then(|code| code.integer());
    if let Some(code) = code.filter(|_| span.records()) {
        span.note(field::RPC_STATUS, code.to_string());
        span.fail(code.to_string());
    }
}

fn message(id: &str, method: ServerMethod, params: &Json) -> Json {
    match crate::protocol::RequestId::new(Json::from_text(id)) {
        Some(id) => request_message(&id, method.as_str(), params),
        // A string is an id.
        None => Json::empty_object(),
    }
}

fn taken_back(id: &str) -> Json {
    let params = ObjectBuilder::new()
        .text("requestId", id)
        .text("reason", "the server does not wait for it any more")
        .build();
    notification_message("notifications/cancelled", &params)
}
