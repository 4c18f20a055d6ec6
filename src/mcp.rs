//! The MCP server that callers see, in both eras: which era a request is of,
//! sessions, streams, lists and calls. Answers are data; `http` puts them on the
//! wire. Nothing outside this module knows eras, and nothing here knows HTTP
//! beyond the status numbers that MCP itself assigns.

mod answers;
mod batch;
mod call;
mod capabilities;
mod cursor;
mod declared;
mod era;
mod handling;
mod inflight;
mod journal;
mod legacy;
mod lines;
mod listen;
mod listeners;
mod lists;
mod lowering;
mod modern;
mod notices;
mod notifications;
mod questions;
mod relay;
mod replies;
mod routed;
mod session;
mod subscriptions;
mod task_news;
mod watching;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::SharedClock;
use crate::credentials::Credentials;
use crate::identity::Principal;
use crate::limits::StreamCaps;
use crate::oauth::continuations::Visitor;
use crate::pipeline::Pipeline;
use crate::protocol::Json;
use crate::seal::Sealer;
use crate::telemetry::TraceContext;
use crate::tenancy::TenantContext;

pub use answers::{Reply, unavailable};
pub use relay::Relay;
pub use session::{SessionFault, Sessions};

use inflight::InFlight;
use journal::Journals;
use lines::Lines;
use listeners::Listeners;
use questions::Questions;
use routed::Waiting;

/// Who the service says it is.
pub const SERVER_NAME: &str = "toolgate";

/// Finds a principal's context under the configuration of now; `None` where it has none any more.
pub type Resolver = Arc<dyn Fn(&Arc<Principal>) -> Option<TenantContext> + Send + Sync>;

/// One request of a known caller.
pub struct Inbound {
    /// Who calls, and as which tenant.
    pub context: TenantContext,
    /// Finds the caller's context again later, for streams that outlive a configuration.
    pub resolver: Resolver,
    /// The configuration's credentials for upstreams.
    pub credentials: Arc<Credentials>,
    /// Digest of the configuration in force.
    pub config_digest: [u8; 32],
    /// The caller's address.
    pub address: Option<IpAddr>,
    /// The headers that MCP gives a meaning.
    pub headers: McpHeaders,
    /// The place in a trace that the connection names; then the message's own.
    pub trace: Option<TraceContext>,
    /// Whom a link of ours is for, where the caller is a person who can sign in here.
    pub visitor: Option<Visitor>,
    /// Which media types the caller takes.
    pub accept: Accept,
    /// Bumped when the configuration changes.
    pub epoch: tokio::sync::watch::Receiver<u64>,
    /// Extensions of the protocol that hold for how callers are authorized.
    pub extensions: Extensions,
}

/// Names of extensions of the protocol.
pub type Extensions = &'static [&'static str];

impl Inbound {
    /// The same request's surroundings once more, for another member of a batch.
    fn again(&self) -> Self {
        Self {
            context: self.context.clone(),
            resolver: Arc::clone(&self.resolver),
            credentials: Arc::clone(&self.credentials),
            config_digest: self.config_digest,
            address: self.address,
            headers: self.headers.clone(),
            trace: self.trace.clone(),
            visitor: self.visitor.clone(),
            accept: self.accept,
            epoch: self.epoch.clone(),
            extensions: self.extensions,
        }
    }
}

/// The headers that MCP gives a meaning, as text.
#[derive(Clone, Debug, Default)]
pub struct McpHeaders {
    /// `MCP-Protocol-Version`
    pub protocol_version: Option<String>,
    /// `Mcp-Method`
    pub method: Option<String>,
    /// `Mcp-Name`
    pub name: Option<String>,
    /// `Mcp-Session-Id`
    pub session: Option<String>,
    /// `Mcp-Param-*`: the name behind the prefix in lower case, and the value.
    pub params: Vec<(String, String)>,
    /// `Last-Event-ID`
    pub last_event_id: Option<String>,
}

/// Which of the two media types the caller takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// `application/json`
    pub json: bool,
    /// `text/event-stream`
    pub stream: bool,
}

/// Messages that go out one by one.
pub type Messages = Pin<Box<dyn Stream<Item = Json> + Send>>;

/// One server-sent event.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// The message; an event without one says where the stream stands.
    pub message: Option<Json>,
    /// By what a client names it when it takes the stream up again.
    pub id: Option<String>,
    /// How long a client waits before it does.
    pub retry: Option<Duration>,
}

/// Events that go out one by one.
pub type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// What goes back.
pub enum Answer {
    /// One reply.
    Reply(Reply),
    /// A stream of JSON-RPC messages.
    Stream(Messages),
    /// A stream that can be taken up again.
    Events(Events),
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

/// The server's parts; one for the whole process.
pub struct Server {
    pipeline: Arc<Pipeline>,
    sessions: Sessions,
    relay: Relay,
    inflight: Arc<InFlight>,
    questions: Arc<Questions>,
    journals: Arc<Journals>,
    lines: Lines,
    waiting: Waiting,
    listeners: Listeners,
    cursors: Sealer,
    streams: Arc<StreamCaps>,
    clock: SharedClock,
    page_size: usize,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// What a [`Server`] is made of.
pub struct Parts {
    /// The steps of a call.
    pub pipeline: Arc<Pipeline>,
    /// Legacy sessions.
    pub sessions: Sessions,
    /// Reaches the other replicas.
    pub relay: Relay,
    /// Seals cursors.
    pub cursors: Sealer,
    /// Caps on open streams.
    pub streams: Arc<StreamCaps>,
    /// Time.
    pub clock: SharedClock,
    /// Most tools on one page of a list.
    pub page_size: usize,
    /// Fires when streams are to end gracefully.
    pub closing: CancellationToken,
}

impl Server {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let own = parts.relay.own();
        Self {
            questions: Questions::new(own),
            journals: Journals::new(own),
            lines: Lines::default(),
            waiting: Waiting::new(parts.pipeline.rounds.patience()),
            pipeline: parts.pipeline,
            sessions: parts.sessions,
            relay: parts.relay,
            inflight: Arc::default(),
            listeners: Listeners::default(),
            cursors: parts.cursors,
            streams: parts.streams,
            clock: parts.clock,
            page_size: parts.page_size,
            tasks: TaskTracker::new(),
            closing: parts.closing,
        }
    }

    /// Answers the body of a POST.
    pub async fn post(self: &Arc<Self>, inbound: Inbound, body: Bytes) -> Answer {
        era::post(self, inbound, body).await
    }

    /// Opens a legacy session's GET stream, or says why not.
    pub async fn get(self: &Arc<Self>, inbound: Inbound) -> Answer {
        legacy::get(self, inbound).await
    }

    /// Ends a legacy session.
    pub async fn delete(&self, inbound: Inbound) -> Answer {
        legacy::delete(self, inbound).await
    }

    /// Waits until every call that runs has been recorded.
    pub async fn finish_calls(&self) {
        self.tasks.close();
        // Nobody who comes back with input finds this replica any more.
        self.pipeline.rounds.give_up();
        self.tasks.wait().await;
    }

    /// Acts on a message from another replica.
    pub fn heard(self: &Arc<Self>, message: &Json) {
        relay::heard(self, message);
    }
}
