//! Why an upstream gave no result. The texts are for logs: what an upstream
//! said of itself stays `Untrusted` and is in none of them.

use std::time::Duration;

use thiserror::Error;

use crate::protocol::{Json, Untrusted};

/// Why there is no result.
#[derive(Debug, Error)]
pub enum UpstreamError {
    /// No connection, or no running child. The request was not executed.
    #[error("the upstream cannot be reached")]
    Unreachable,
    /// No answer in time. The request may have been executed.
    #[error("the upstream did not answer in time")]
    TimedOut,
    /// The connection or the child died before the answer was whole. The request
    /// may have been executed.
    #[error("the upstream broke off before its answer was complete")]
    Broken,
    /// What came is no answer.
    #[error("the upstream answered with {what}")]
    Garbage {
        /// What came instead, in our words.
        what: &'static str,
    },
    /// The answer is larger than is read.
    #[error("the upstream's answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The upstream refused over HTTP.
    #[error("the upstream answered with HTTP status {status}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// When to come back, where it said so (RFC 9110 §10.2.3).
        retry_after: Option<Duration>,
        /// The beginning of what it said.
        excerpt: Untrusted<String>,
    },
    /// The upstream answered with a JSON-RPC error.
    #[error("the upstream answered with JSON-RPC error {code}")]
    Rpc {
        /// The code, as it came.
        code: i64,
        /// The message, as it came.
        message: Untrusted<String>,
        /// `data`, as it came.
        data: Option<Untrusted<Json>>,
    },
    /// Its address may not be connected to. The request was not executed.
    #[error("the upstream's address is refused by the guard against private addresses")]
    Blocked,
    /// Too many requests are in flight there. The request was not executed.
    #[error("the upstream has as many requests in flight as it may")]
    Busy,
}

impl UpstreamError {
    /// Whether it is certain that the upstream did not act on the request, so that
    /// it may be sent again whatever it does.
    pub fn not_executed(&self) -> bool {
        matches!(self, Self::Unreachable | Self::Blocked | Self::Busy)
    }

    /// The same fault for another caller who waited for the same thing; what the
    /// upstream said to the first one is not repeated.
    pub(super) fn echo(&self) -> Self {
        match self {
            Self::Unreachable => Self::Unreachable,
            Self::TimedOut => Self::TimedOut,
            Self::Broken => Self::Broken,
            Self::Garbage { what } => Self::Garbage { what },
            Self::TooLarge { limit } => Self::TooLarge { limit: *limit },
            Self::Status {
                status,
                retry_after,
                ..
            } => Self::Status {
                status: *status,
                retry_after: *retry_after,
                excerpt: Untrusted::new(String::new()),
            },
            Self::Rpc { code, .. } => Self::Rpc {
                code: *code,
                message: Untrusted::new(String::new()),
                data: None,
            },
            Self::Blocked => Self::Blocked,
            Self::Busy => Self::Busy,
        }
    }
}
