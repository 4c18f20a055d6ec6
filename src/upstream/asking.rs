//! Requests that a legacy server makes of the client while it works: taken for the
//! request in flight that they belong to, answered under the server's own id and
//! token.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::hearing::Ear;
use super::message;
use super::patience::{Hold, Patience};
use crate::protocol::json::Kind;
use crate::protocol::{
    ClientCapabilities, Json, PendingReply, Replied, ReplySlot, Request, RequestId, ServerMethod,
    ServerRequest, UpstreamEvent, codes, destination, error_object, meta,
};

/// Questions of one request that may be open at the same time.
const MOST: usize = 16;
/// How long a server may take to show that it has asked all it asks at once.
const SHOWS: Duration = Duration::from_secs(1);
/// What it said before may be on its way on another connection for so long.
const ON_ITS_WAY: Duration = Duration::from_millis(50);

/// What a request in flight can be asked, and what it has been.
#[derive(Debug)]
pub(super) struct Asks {
    capabilities: ClientCapabilities,
    patience: Arc<Patience>,
    /// How long a reply is waited for.
    limit: Duration,
    open: Mutex<HashMap<String, CancellationToken>>,
    /// The client is asked by an answer: for all that is asked at once.
    by_answer: bool,
    /// Somebody finds out whether more is asked at the moment.
    gathering: AtomicBool,
}

/// A question that waits for its reply.
pub(super) struct Question {
    id: RequestId,
    method: ServerMethod,
    /// The server's token for progress.
    token: Option<Json>,
    pending: PendingReply,
    taken_back: CancellationToken,
    until: Instant,
    over: bool,
    asks: Arc<Asks>,
    _hold: Hold,
}

/// What becomes of a server's request.
pub(super) enum Taken {
    /// It is answered with this.
    Answered(Bytes),
    /// It goes to the caller.
    Asks(UpstreamEvent, Box<Question>),
}

impl Asks {
    pub(super) fn new(
        capabilities: ClientCapabilities,
        patience: Arc<Patience>,
        limit: Duration,
        by_answer: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            capabilities,
            patience,
            limit,
            open: Mutex::default(),
            by_answer,
            gathering: AtomicBool::new(false),
        })
    }

    /// Whether it is now to be found out if more is asked at the same time; true once
    /// until [`Asks::gather`] is over.
    pub(super) fn begins_to_gather(&self) -> bool {
        self.by_answer && !self.gathering.swap(true, Ordering::Relaxed)
    }

    /// Waits until the server has asked all that it asks at once. Nothing in the legacy
    /// protocol says so, but `pinged` does: the answer to a `ping` that was sent behind
    /// the first question comes of a server that has gone on to something else. A server
    /// that does not answer it has a second.
    pub(super) async fn gather(&self, pinged: impl Future<Output = ()>) {
        let _ = timeout(SHOWS, pinged).await;
        sleep(ON_ITS_WAY).await;
        self.gathering.store(false, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller can be asked this.
    fn takes(&self, method: ServerMethod, params: &Json) -> bool {
        self.capabilities.lacking(method, params).is_none()
    }

    /// The server takes a question back; nothing where it asked none under this id.
    pub(super) fn take_back(&self, id: &str) {
        if let Some(token) = self.lock().get(id) {
            token.cancel();
        }
    }
}

/// Takes a server's request for the first of the requests in flight that can be
/// asked it. A request that belongs to none is refused at once: the server goes on.
pub(super) fn take<'a>(
    ears: impl IntoIterator<Item = &'a Ear>,
    request: &Request,
) -> (Option<&'a Ear>, Taken) {
    let answered = |outcome: Result<Json, Json>| {
        (None, Taken::Answered(message::reply(&request.id, &outcome)))
    };
    if request.method == "ping" {
        return answered(Ok(Json::empty_object()));
    }
    let refused = |words: &str| answered(Err(error_object(codes::METHOD_NOT_FOUND, words, None)));
    let Some(method) = ServerMethod::parse(&request.method) else {
        return refused("not supported by this client");
    };
    let params = request.params.clone().filter(Json::is_object);
    let params = params.unwrap_or_else(Json::empty_object);
    let found = ears.into_iter().find_map(|ear| {
        let asks = ear.asks().filter(|asks| asks.takes(method, &params))?;
        Some((ear, Arc::clone(asks)))
    });
    let Some((ear, asks)) = found else {
        return refused("not supported by this client, or asked outside of a request of its own");
    };
    let (params, token) = without_token(params);
    let (reply, pending) = ReplySlot::new(token.is_some());
    let taken_back = CancellationToken::new();
    {
        let mut open = asks.lock();
        if open.len() >= MOST || open.contains_key(&request.id.key()) {
            drop(open);
            return refused("too many requests of this server wait for an answer");
        }
        open.insert(request.id.key(), taken_back.clone());
    }
    let question = Question {
        id: request.id.clone(),
        method,
        token,
        pending,
        taken_back,
        until: Instant::now() + asks.limit,
        over: false,
        _hold: asks.patience.hold(),
        asks,
    };
    let own = request.id.json().string();
    let event = UpstreamEvent::Request(ServerRequest {
        method,
        id: own.map(|id| id.into_owned().into_boxed_str()),
        destination: destination(method, &params),
        params,
        reply,
    });
    (Some(ear), Taken::Asks(event, Box::new(question)))
}

/// The params without a progress token, and the token.
fn without_token(params: Json) -> (Json, Option<Json>) {
    let Some(own) = params.get("_meta") else {
        return (params, None);
    };
    let token = own
        .get(meta::PROGRESS_TOKEN)
        .filter(|token| matches!(token.kind(), Kind::String | Kind::Number));
    let rest = own.without_members(|name| name == meta::PROGRESS_TOKEN);
    let params = if rest.as_str() == "{}" {
        params.without_members(|name| name == "_meta")
    } else {
        params.with_member("_meta", &rest)
    };
    (params, token)
}

impl Question {
    /// The next message for the server: progress of the client, or the reply.
    /// `None` behind it, and where the server does not wait any more.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let replied = tokio::select! {
            biased;
            () = self.taken_back.cancelled() => None,
            replied = timeout_at(self.until, self.pending.next()) => {
                Some(replied.unwrap_or(Replied::Reply(None)))
            }
        };
        match (replied, &self.token) {
            (Some(Replied::Progress(params)), Some(token)) => Some(message::progress(
                &params.with_member(meta::PROGRESS_TOKEN, token),
            )),
            (Some(Replied::Progress(_)), None) => None,
            (Some(Replied::Reply(reply)), _) => {
                self.over = true;
                let none = || self.method.unanswered("the client gave no answer");
                Some(message::reply(&self.id, &reply.unwrap_or_else(none)))
            }
            (None, _) => {
                self.over = true;
                None
            }
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.asks.lock().remove(&self.id.key());
    }
}
