//! What is asked of an upstream, and by whom. Nothing here knows a transport.

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::protocol::{ClientCapabilities, Json, LogLevel, Untrusted, UpstreamEvent};
use crate::secret::Secret;

/// Where an upstream's progress, log messages and questions go while it works. Bounded: a
/// receiver that is slow slows the upstream down; one that is gone does not.
pub type EventSender = mpsc::Sender<Untrusted<UpstreamEvent>>;

/// Whose state at an upstream a request may touch: a digest of tenant, principal
/// and client session. Two callers never share an upstream session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallerKey(pub [u8; 32]);

impl CallerKey {
    /// The gateway itself: reads the lists and hears of their changes.
    pub const GATEWAY: Self = Self([0; 32]);
}

impl fmt::Debug for CallerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::GATEWAY {
            "CallerKey(gateway)"
        } else {
            "CallerKey(..)"
        })
    }
}

/// A header that proves to an upstream who calls. Never the caller's own token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The header's name.
    pub name: String,
    /// The header's value.
    pub value: Secret<String>,
}

/// One request to an upstream, in modern form.
#[derive(Clone, Debug)]
pub struct UpstreamRequest {
    /// The method.
    pub method: &'static str,
    /// The upstream's own name of the tool, prompt or resource, for `Mcp-Name`.
    pub name: Option<String>,
    /// The parameters, an object without `_meta`.
    pub params: Json,
    /// The caller's `_meta` members that are not the protocol's own.
    pub meta: Vec<(String, Json)>,
    /// Whether progress is wanted.
    pub progress: bool,
    /// The least severe log message wanted. Without it: none.
    pub log_level: Option<LogLevel>,
    /// What the client can do, and can be asked for meanwhile.
    pub capabilities: ClientCapabilities,
    /// Whether the caller has no session of its own: what belongs to a session at
    /// the upstream is then lent to one request at a time.
    pub pooled: bool,
    /// How long the upstream may wait for what it asks of the client.
    pub patience: Duration,
    /// Whose state at the upstream is touched.
    pub caller: CallerKey,
    /// What proves to the upstream who calls.
    pub credential: Option<Credential>,
    /// `Mcp-Param-*` headers: whole name and plain value; encoded where they are sent.
    pub param_headers: Vec<(String, String)>,
    /// `traceparent` (W3C Trace Context), for the header and for `_meta` (SEP-414).
    pub trace: Option<String>,
    /// When an answer is of no use any more.
    pub deadline: Instant,
}

impl UpstreamRequest {
    /// A request of the gateway itself.
    pub fn own(method: &'static str, params: Json, deadline: Instant) -> Self {
        Self {
            method,
            name: None,
            params,
            meta: Vec::new(),
            progress: false,
            log_level: None,
            capabilities: ClientCapabilities::none(),
            pooled: false,
            patience: Duration::ZERO,
            caller: CallerKey::GATEWAY,
            credential: None,
            param_headers: Vec::new(),
            trace: None,
            deadline,
        }
    }
}

impl UpstreamRequest {
    /// What a legacy server is told that the client can do.
    pub(super) fn declared(&self) -> Json {
        self.capabilities.relayed(!self.pooled)
    }

    /// Whether the client can be asked for anything while this is under way.
    pub(super) fn may_be_asked(&self) -> bool {
        self.caller != CallerKey::GATEWAY && self.capabilities.may_be_asked()
    }

    /// Whether nobody else may use the session meanwhile: its caller has none of his
    /// own, and something is wanted of it that does not say whom it is for.
    pub(super) fn alone(&self) -> bool {
        self.pooled && (self.may_be_asked() || self.log_level.is_some())
    }
}
