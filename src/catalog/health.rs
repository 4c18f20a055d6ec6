//! How upstreams fare, for probes, metrics and the console.

use std::sync::Arc;

use super::judge::LeftOut;
use crate::upstream::UpstreamError;

/// How an upstream fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Its list was not read yet.
    Starting,
    /// Its list was read, and the next reading is not due.
    Up,
    /// Its list cannot be read; what it offered last is still shown.
    Stale,
    /// Its list cannot be read, and nothing of it is shown.
    Down,
}

impl State {
    /// The word for metrics and the console.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Stale => "stale",
            Self::Down => "down",
        }
    }
}

/// An upstream's condition.
#[derive(Clone, Debug)]
pub struct Health {
    /// How it fares.
    pub state: State,
    /// Why its list cannot be read, in our words.
    pub reason: Option<&'static str>,
    /// How many tools it offered last.
    pub tools: usize,
    /// Which of them are not in the catalogue, and why.
    pub left_out: Arc<[LeftOut]>,
    /// Whether the service is ready only with it.
    pub required: bool,
}

/// A failure in a few words of ours.
pub(super) fn word(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Unreachable => "it cannot be reached",
        UpstreamError::TimedOut => "it did not answer in time",
        UpstreamError::Broken => "it broke off in the middle",
        UpstreamError::Garbage { what } => what,
        UpstreamError::TooLarge { .. } => "its answer is too large",
        UpstreamError::Status { .. } => "it answered with an HTTP error",
        UpstreamError::Rpc { .. } => "it answered with an error",
        UpstreamError::Blocked => {
            "its address is not public: `mcp.allow_private` or `outgoing.allow_networks` would allow it"
        }
        UpstreamError::Busy => "it has too many requests in flight",
    }
}
