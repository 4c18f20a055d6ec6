//! What a server asks of a client while it works, and the slot for the reply.

use std::fmt;

use tokio::sync::{mpsc, oneshot};

use super::Untrusted;
use super::json::{Json, ObjectBuilder};

/// Progress of the client that waits to be passed on.
const BACKLOG: usize = 8;

/// A request that servers make of clients (MCP 2025-11-25 client features; in
/// 2026-07-28 the members of `inputRequests`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerMethod {
    /// `sampling/createMessage`
    Sample,
    /// `elicitation/create`
    Elicit,
    /// `roots/list`
    ListRoots,
}

impl ServerMethod {
    /// The method's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sample => "sampling/createMessage",
            Self::Elicit => "elicitation/create",
            Self::ListRoots => "roots/list",
        }
    }

    /// The method of that name.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Sample, Self::Elicit, Self::ListRoots];
        all.into_iter().find(|method| method.as_str() == name)
    }

    /// Whether a client's result for it has the members that it must have.
    pub fn is_answered_by(self, result: &Json) -> bool {
        let text = |key: &str| {
            result
                .get(key)
                .is_some_and(|value| value.string().is_some())
        };
        match self {
            Self::Sample => text("role") && text("model") && result.get("content").is_some(),
            Self::Elicit => {
                let action = result.get("action");
                let action = action.as_ref().and_then(Json::string);
                matches!(action.as_deref(), Some("accept" | "decline" | "cancel"))
            }
            Self::ListRoots => result
                .get("roots")
                .is_some_and(|roots| roots.as_str().starts_with('[')),
        }
    }

    /// The reply for a server whose question nobody has answered: a user who did
    /// not choose is a result of its own, the others have an error.
    pub fn unanswered(self, why: &str) -> Result<Json, Json> {
        match self {
            Self::Elicit => Ok(ObjectBuilder::new().text("action", "cancel").build()),
            Self::Sample | Self::ListRoots => Err(ObjectBuilder::new()
                .integer("code", super::codes::INTERNAL_ERROR)
                .text("message", why)
                .build()),
        }
    }
}

/// A server's request, and where the reply goes.
#[derive(Debug)]
pub struct ServerRequest {
    /// What is asked.
    pub method: ServerMethod,
    /// The server's own id for it, where that is a text.
    pub id: Option<Box<str>>,
    /// Its parameters, without a progress token: that is the gateway's to choose.
    pub params: Json,
    /// The page that it wants opened, as it came.
    pub destination: Option<Untrusted<String>>,
    /// Where the reply goes.
    pub reply: ReplySlot,
}

/// Where the reply to a server's request goes. Dropped unused, the server is told
/// that nobody answered.
pub struct ReplySlot {
    reply: oneshot::Sender<Result<Json, Json>>,
    /// Where the client's progress goes; `None` where the server wants none.
    progress: Option<mpsc::Sender<Json>>,
}

/// The server's end of a [`ReplySlot`]. Dropped, the request is taken back.
#[derive(Debug)]
pub struct PendingReply {
    reply: oneshot::Receiver<Result<Json, Json>>,
    progress: Option<mpsc::Receiver<Json>>,
}

impl ReplySlot {
    /// A slot and its other end. `progress`: whether the server wants to hear of it.
    pub fn new(progress: bool) -> (Self, PendingReply) {
        let (sender, receiver) = oneshot::channel();
        let (said, heard) = progress.then(|| mpsc::channel(BACKLOG)).unzip();
        let slot = Self {
            reply: sender,
            progress: said,
        };
        let pending = PendingReply {
            reply: receiver,
            progress: heard,
        };
        (slot, pending)
    }

    /// Gives the reply: a result, or an error object. A server that does not wait
    /// any more does not hear it.
    pub fn answer(self, reply: Result<Json, Json>) {
        let _ = self.reply.send(reply);
    }

    /// Whether progress of the reply is wanted.
    pub fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Passes the client's progress on, if there is room.
    pub fn progress(&self, params: Json) {
        if let Some(progress) = &self.progress {
            let _ = progress.try_send(params);
        }
    }

    /// Waits until the server takes its request back.
    pub async fn taken_back(&mut self) {
        self.reply.closed().await;
    }

    /// Whether the server has taken its request back.
    pub fn is_taken_back(&self) -> bool {
        self.reply.is_closed()
    }
}

/// What comes from the client while a reply is waited for.
#[derive(Debug)]
pub enum Replied {
    /// Progress: its params without a token.
    Progress(Json),
    /// The reply; `None` where nobody gives one any more.
    Reply(Option<Result<Json, Json>>),
}

impl PendingReply {
    /// The next that comes. Nothing comes behind the reply.
    pub async fn next(&mut self) -> Replied {
        let Some(progress) = &mut self.progress else {
            return Replied::Reply((&mut self.reply).await.ok());
        };
        tokio::select! {
            biased;
            Some(params) = progress.recv() => Replied::Progress(params),
            reply = &mut self.reply => Replied::Reply(reply.ok()),
        }
    }

    /// The reply; `None` where nobody gives one any more.
    pub async fn reply(self) -> Option<Result<Json, Json>> {
        self.reply.await.ok()
    }
}

impl fmt::Debug for ReplySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplySlot(..)")
    }
}
