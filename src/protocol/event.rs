//! What an upstream says while it works, besides its answer.

use std::time::Duration;

use super::ask::ServerRequest;
use super::json::Json;

/// Severity of a log message (RFC 5424 §6.2.1), least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Detailed debugging information.
    Debug,
    /// General information.
    Info,
    /// Normal but significant.
    Notice,
    /// Warnings.
    Warning,
    /// Errors.
    Error,
    /// Critical conditions.
    Critical,
    /// Action must be taken at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// All levels, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level named by `text` on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// The level's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

/// Something an upstream said about a request in flight. Progress tokens and
/// subscription ids have been taken out: the gateway puts the caller's own in.
#[derive(Debug)]
pub enum UpstreamEvent {
    /// `notifications/progress`: its params without `progressToken`.
    Progress(Json),
    /// `notifications/message`: its level and params.
    Log(LogLevel, Json),
    /// Something that it needs of the client to go on. It waits for the reply.
    Request(ServerRequest),
    /// `notifications/elicitation/complete` (2025-11-25): its params.
    ElicitationComplete(Json),
    /// All that it asks at the same time has been asked; told where the client is asked
    /// by an answer, and so once.
    AskedAll,
    /// It has closed its stream and goes on working; the stream is taken up again
    /// after that time (MCP 2025-11-25 Streamable HTTP, `retry`).
    Pausing(Duration),
}
