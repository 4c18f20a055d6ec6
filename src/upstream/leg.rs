//! One request to a server and its answer, as traces and metrics see it
//! (OpenTelemetry conventions for MCP, Client).

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use tokio::time::Instant;

use super::{UpstreamError, UpstreamRequest};
use crate::ids::UpstreamId;
use crate::protocol::{Json, Version, codes};
use crate::telemetry::TraceContext;
use crate::telemetry::metrics::{Metrics, SentMessage};
use crate::telemetry::names::field;
use crate::telemetry::trace::Span;

/// What carries messages to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// Streamable HTTP.
    Http,
    /// A child's standard streams.
    Stdio,
}

impl Transport {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "tcp",
            Self::Stdio => "pipe",
        }
    }
}

/// Begins legs to one server.
pub(super) struct Legs {
    pub(super) upstream: UpstreamId,
    pub(super) transport: Transport,
    /// The host that is connected to, and its port.
    pub(super) address: Option<(String, u16)>,
    pub(super) metrics: Arc<Metrics>,
}

/// A request that is under way. Dropped before its end, it was given up.
pub(super) struct Leg<'a> {
    legs: &'a Legs,
    method: &'static str,
    tool: Option<&'a str>,
    span: Span,
    /// What the request carries.
    trace: Option<TraceContext>,
    begun: Instant,
    over: bool,
}

impl Legs {
    /// A caller's request under our id.
    pub(super) fn begin<'a>(
        &'a self,
        id: i64,
        request: &'a UpstreamRequest,
        version: Option<Version>,
        session: Option<&str>,
    ) -> Leg<'a> {
        let name = request.name.as_deref();
        let tool = name.filter(|_| request.method == "tools/call");
        let leg = self.leg(id, request.method, tool, request.trace.as_ref());
        if leg.span.records() {
            leg.describe(name, version, session);
        }
        leg
    }

    /// A session with the server is over.
    pub(super) fn session_over(&self, version: Version, lasted: Duration) {
        let (version, transport) = (version.as_str(), self.transport.as_str());
        self.metrics
            .upstream_session_ended(&self.upstream, version, transport, lasted);
    }

    /// A request of the gateway's own.
    pub(super) fn own(&self, id: i64, method: &'static str) -> Leg<'_> {
        self.leg(id, method, None, None)
    }

    fn leg<'a>(
        &'a self,
        id: i64,
        method: &'static str,
        tool: Option<&'a str>,
        trace: Option<&TraceContext>,
    ) -> Leg<'a> {
        let span = Span::client(method, None);
        if span.records() {
            span.note(field::METHOD, method);
            span.note(field::JSONRPC_ID, id.to_string());
            span.note(field::UPSTREAM, self.upstream.to_string());
            span.note(field::TRANSPORT, self.transport.as_str());
            if self.transport == Transport::Http {
                span.note(field::PROTOCOL, "http");
            }
            if let Some((host, port)) = &self.address {
                span.note(field::SERVER_ADDRESS, host.clone());
                span.note(field::SERVER_PORT, i64::from(*port));
            }
        }
        Leg {
            legs: self,
            method,
            tool,
            trace: span.place().or_else(|| trace.cloned()),
            span,
            begun: Instant::now(),
            over: false,
        }
    }
}

impl Leg<'_> {
    fn describe(&self, name: Option<&str>, version: Option<Version>, session: Option<&str>) {
        let named = match (self.method, name) {
            ("tools/call", Some(tool)) => {
                self.span.note(field::OPERATION, field::EXECUTE_TOOL);
                Some((field::TOOL, tool))
            }
            ("prompts/get", Some(prompt)) => Some((field::PROMPT, prompt)),
            _ => None,
        };
        if let Some((key, name)) = named {
            self.span.note(key, name.to_owned());
            self.span.rename(format!("{} {name}", self.method));
        }
        if let Some(uri) = name.filter(|_| self.method.starts_with("resources/")) {
            // What stands behind `?` may be anything.
            let uri = uri.split(['?', '#']).next().unwrap_or_default();
            self.span.note(field::RESOURCE, uri.to_owned());
        }
        if let Some(version) = version {
            self.span.note(field::VERSION, version.as_str());
        }
        if let Some(session) = session {
            self.span.note(field::SESSION, digest_of(session));
        }
    }

    /// What the request carries: the leg's own place, or the caller's where no traces
    /// are exported.
    pub(super) fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// Runs a future as part of it.
    pub(super) fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.span.around(work)
    }

    /// Does something as part of it.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        self.span.within(work)
    }

    /// It has been answered, or will not be.
    pub(super) fn end(mut self, outcome: Result<&Json, &UpstreamError>) {
        let error = match outcome {
            Ok(result) if is_error(result) => "tool_error",
            Ok(_) => "",
            Err(UpstreamError::Rpc { code, .. }) => {
                if self.span.records() {
                    self.span.note(field::RPC_STATUS, code.to_string());
                    self.span.fail(code.to_string());
                }
                self.over(codes::word(*code));
                return;
            }
            Err(fault) => word(fault),
        };
        if !error.is_empty() {
            self.span.fail(error);
        }
        self.over(error);
    }

    fn over(&mut self, error_type: &'static str) {
        self.over = true;
        let message = SentMessage {
            upstream: &self.legs.upstream,
            transport: self.legs.transport.as_str(),
            method: self.method,
            tool: self.tool,
            error_type,
        };
        let took = self.begun.elapsed();
        // The example is the request's own place.
        self.span.within(|| self.legs.metrics.sent(message, took));
    }
}

impl Drop for Leg<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.span.fail("cancelled");
            self.over("cancelled");
        }
    }
}

/// A session's id in a form that is no key to it.
fn digest_of(session: &str) -> String {
    let hash = digest(&SHA256, session.as_bytes());
    let head = hash.as_ref().first_chunk().copied().unwrap_or_default();
    format!("{:016x}", u64::from_be_bytes(head))
}

/// Whether a result tells of an error of the tool's. Looked for in the text first:
/// most results do not have the word.
fn is_error(result: &Json) -> bool {
    memchr::memmem::find(result.as_str().as_bytes(), b"\"isError\"").is_some()
        && result
            .get("isError")
            .is_some_and(|is| is.as_str() == "true")
}

fn word(fault: &UpstreamError) -> &'static str {
    match fault {
        UpstreamError::Unreachable => "unreachable",
        UpstreamError::TimedOut => "timeout",
        UpstreamError::Broken => "broken",
        UpstreamError::Garbage { .. } => "garbage",
        UpstreamError::TooLarge { .. } => "too_large",
        UpstreamError::Status { status: 500.., .. } => "http_5xx",
        UpstreamError::Status { .. } => "http_4xx",
        UpstreamError::Blocked => "blocked",
        UpstreamError::Busy => "busy",
        UpstreamError::Rpc { code, .. } => codes::word(*code),
    }
}
