//! The handling of one message, as traces and metrics see it (OpenTelemetry
//! conventions for MCP, Server): a span from its arrival to its answer, and its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use crate::pipeline::Ending;
use crate::protocol::{Json, RequestId, RequestMeta, Version, codes};
use crate::telemetry::TraceContext;
use crate::telemetry::metrics::{CallOutcome, Metrics};
use crate::telemetry::names::field;
use crate::telemetry::trace::Span;

use super::answers::Reply;
use super::session::Session;
use super::{Answer, Inbound};

/// Methods that have names of their own in spans and metrics: a caller's text is no
/// name.
const METHODS: [&str; 22] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "logging/setLevel",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

/// Stays open as long as the answer does.
const LISTEN: &str = "subscriptions/listen";

/// One message. Its span ends with the last that holds it.
#[derive(Debug)]
pub(super) struct Handling {
    method: &'static str,
    span: Span,
    begun: Instant,
    measured: AtomicBool,
}

impl Handling {
    /// Begins. The place that the message names is its parent; that of the connection
    /// is linked, or is the parent where the message names none. From here on
    /// `inbound` is at the message's own place.
    pub(super) fn begin(
        inbound: &mut Inbound,
        method: &str,
        id: Option<&RequestId>,
        meta: &RequestMeta,
    ) -> Arc<Self> {
        let named = TraceContext::read(meta.traceparent.as_deref(), meta.tracestate.as_deref());
        let (parent, beside) = match named {
            Some(named) => (Some(named), inbound.trace.take()),
            None => (inbound.trace.take(), None),
        };
        let beside = beside.filter(|beside| Some(beside) != parent.as_ref());
        let method = METHODS.into_iter().find(|known| *known == method);
        let method = method.unwrap_or("_OTHER");
        let span = Span::server(method, parent.as_ref(), beside.as_ref());
        inbound.trace = span.place().or(parent);
        if let Some(place) = &inbound.trace {
            tracing::Span::current().record(field::TRACE, place.trace_digits());
        }
        let handling = Self {
            method,
            span,
            begun: Instant::now(),
            measured: AtomicBool::new(false),
        };
        handling.describe(inbound, id);
        Arc::new(handling)
    }

    /// A look of the gateway's own, in a client's place: no span and no measure, since
    /// nobody asked.
    pub(super) fn unseen(method: &'static str) -> Arc<Self> {
        Arc::new(Self {
            method,
            span: Span::default(),
            begun: Instant::now(),
            measured: AtomicBool::new(true),
        })
    }

    fn describe(&self, inbound: &Inbound, id: Option<&RequestId>) {
        if !self.span.records() {
            return;
        }
        self.span.note(field::METHOD, self.method);
        self.span.note(field::TRANSPORT, "tcp");
        self.span.note(field::PROTOCOL, "http");
        let tenant = inbound.context.tenant_id();
        self.span.note(field::TENANT, tenant.to_string());
        if let Some(address) = inbound.address {
            self.span.note(field::ADDRESS, address.to_string());
        }
        if self.method == "tools/call" {
            self.span.note(field::OPERATION, field::EXECUTE_TOOL);
        }
        if let Some(id) = id {
            self.span.note(field::JSONRPC_ID, shown(id));
        }
    }

    /// It is spoken in this revision.
    pub(super) fn speaks(&self, version: Version) {
        self.span.note(field::VERSION, version.as_str());
    }

    /// It is part of this session. The id is that of its rows: what the client has is
    /// a key.
    pub(super) fn within(&self, session: &Session) {
        if self.span.records() {
            self.span.note(field::SESSION, session.id.to_string());
            self.speaks(session.version);
        }
    }

    /// Runs a future as part of it.
    pub(super) fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.span.around(work)
    }

    /// Does something as part of it.
    pub(super) fn within_it<T>(&self, work: impl FnOnce() -> T) -> T {
        self.span.within(work)
    }

    /// A call of it is over and answered like this.
    pub(super) fn called(&self, ending: &Ending, reply: &Reply, metrics: &Metrics) {
        self.span.note(field::OUTCOME, ending.outcome.as_str());
        let error = match ending.outcome {
            _ if reply.is_error() => self.failed(reply),
            CallOutcome::Ok => "",
            CallOutcome::Cancelled => self.failed_as("cancelled"),
            // The conventions have one word for whatever a result tells of.
            _ => self.failed_as("tool_error"),
        };
        match &ending.tool {
            Some(tool) if self.is_first() => {
                tool.took(ending.outcome, error, self.begun.elapsed());
            }
            Some(_) => {}
            None => self.measure(metrics, error),
        }
    }

    /// It is answered like this, unless a call has told already.
    pub(super) fn answered(&self, answer: &Answer, metrics: &Metrics) {
        match answer {
            Answer::Reply(reply) => self.replied(reply, metrics),
            // A stream of a call is told of by the call.
            Answer::Stream(_) | Answer::Events(_) => {}
        }
    }

    /// The same of a single reply.
    pub(super) fn replied(&self, reply: &Reply, metrics: &Metrics) {
        let error = if reply.is_error() {
            self.failed(reply)
        } else {
            ""
        };
        self.measure(metrics, error);
    }

    fn failed_as(&self, word: &'static str) -> &'static str {
        self.span.fail(word);
        word
    }

    /// The word for a reply that tells of an error: the code, where it has one.
    fn failed(&self, reply: &Reply) -> &'static str {
        let error = reply.body.as_ref().and_then(|body| body.get("error"));
        let code = error.and_then(|error| error.get("code")?.integer());
        let Some(code) = code else {
            return self.failed_as("_OTHER");
        };
        if self.span.records() {
            self.span.note(field::RPC_STATUS, code.to_string());
            self.span.fail(code.to_string());
        }
        codes::word(code)
    }

    fn is_first(&self) -> bool {
        !self.measured.swap(true, Ordering::Relaxed)
    }

    fn measure(&self, metrics: &Metrics, error: &'static str) {
        if self.is_first() {
            let outcome = if error.is_empty() { "ok" } else { "refused" };
            metrics.operation(self.method, outcome, error, self.begun.elapsed());
        }
    }
}

/// Keeps a stream's handling open until the stream is over.
pub(super) fn kept_open(handling: Arc<Handling>, answer: Answer) -> Answer {
    use futures_util::StreamExt as _;
    match answer {
        Answer::Stream(messages) if handling.method == LISTEN => {
            Answer::Stream(Box::pin(messages.map(move |message| {
                let _open = &handling;
                message
            })))
        }
        answer => answer,
    }
}

fn shown(id: &RequestId) -> String {
    let json: &Json = id.json();
    let text = json
        .string()
        .map_or_else(|| json.as_str().to_owned(), Into::into);
    text.chars().take(128).collect()
}
