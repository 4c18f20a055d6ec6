//! Why a call has no result: the sum of what the steps say. No step knows it;
//! the edges render it.

use std::time::Duration;

use thiserror::Error;

use crate::arguments::{ArgumentFault, HeaderFault};
use crate::audit::AuditFault;
use crate::ids::Scope;
use crate::limits::{LimitFault, Limited};
use crate::protocol::{Json, JsonFault};
use crate::sanitize::CleanText;

/// Why a request was refused, or a call ended without a result.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The body is no JSON.
    #[error(transparent)]
    NotJson(#[from] JsonFault),
    /// The JSON is no message that may stand here.
    #[error("{0}")]
    InvalidRequest(String),
    /// A parameter has a wrong shape.
    #[error("{0}")]
    MalformedParams(String),
    /// No such tool for this caller, hidden or missing.
    #[error("Unknown tool: {name}")]
    UnknownTool {
        /// The name asked for, shortened.
        name: String,
    },
    /// No such resource for this caller, hidden or missing.
    #[error("Resource not found")]
    UnknownResource {
        /// The URI asked for.
        uri: String,
    },
    /// No such prompt for this caller, hidden or missing.
    #[error("Unknown prompt: {name}")]
    UnknownPrompt {
        /// The name asked for, shortened.
        name: String,
    },
    /// Nothing of that reference for this caller, hidden or missing.
    #[error("Unknown reference: `params.ref` names no prompt and no resource template")]
    UnknownReference,
    /// No such task of this caller: foreign, forged or out of reach now.
    #[error("Unknown task: `params.taskId` is no task of yours")]
    UnknownTask,
    /// The upstream failed, where no result can say so.
    #[error("{text}")]
    Failed {
        /// What is told.
        text: String,
    },
    /// The token lacks scopes.
    #[error("the token lacks a scope that this tool needs")]
    MissingScopes {
        /// All scopes that a token for this call needs.
        needed: Vec<Scope>,
        /// Those that the token has besides: a new one must not lose them.
        held: Vec<Scope>,
    },
    /// Over a limit.
    #[error("over the limit per {}", .0.policy)]
    Limited(Limited),
    /// Whether it is over a limit cannot be told, and may not be guessed.
    #[error("the store of the shared limits is away")]
    LimitsAway,
    /// A mirrored header disagrees with the arguments.
    #[error(transparent)]
    HeaderMismatch(#[from] HeaderFault),
    /// A header disagrees with the body.
    #[error("{0}")]
    StandardHeaderMismatch(String),
    /// The arguments do not fit the tool's schema.
    #[error(transparent)]
    Arguments(#[from] ArgumentFault),
    /// The call could not be put on record; nothing was dispatched.
    #[error("the audit cannot be written")]
    AuditUnavailable(AuditFault),
    /// The tool ran and its outcome could not be put on record.
    #[error("executed, outcome withheld, do not retry")]
    Withheld,
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The upstream needs something of the client that it cannot do.
    #[error("the server behind this needs a capability that the client did not declare")]
    MissingCapability {
        /// The capabilities, in the form in which a client declares them.
        needed: Json,
    },
    /// The upstream answered with a JSON-RPC error.
    #[error("the upstream refused the call")]
    Upstream {
        /// The code as callers may see it.
        code: i64,
        /// The upstream's words, cleaned.
        message: CleanText,
        /// The upstream's data, cleaned.
        data: Option<Json>,
    },
}

impl Refusal {
    /// The step that refused, for the record (`refused:<step>`).
    pub fn step(&self) -> &'static str {
        match self {
            Self::NotJson(_) | Self::InvalidRequest(_) | Self::MalformedParams(_) => "invalid",
            Self::UnknownTool { .. }
            | Self::UnknownResource { .. }
            | Self::UnknownPrompt { .. }
            | Self::UnknownReference
            | Self::UnknownTask => "visibility",
            Self::MissingScopes { .. } => "scope",
            Self::Limited(_) | Self::LimitsAway => "limit",
            Self::HeaderMismatch(_) | Self::StandardHeaderMismatch(_) => "headers",
            Self::Arguments(_) => "arguments",
            Self::AuditUnavailable(_) | Self::Withheld => "audit",
            Self::Cancelled => "cancelled",
            Self::MissingCapability { .. } => "capability",
            Self::Upstream { .. } | Self::Failed { .. } => "upstream",
        }
    }

    /// The reason for the record: no caller's text beyond what the steps shortened.
    pub fn reason(&self) -> String {
        match self {
            Self::Limited(limited) => limited.policy.to_owned(),
            Self::UnknownTool { .. }
            | Self::UnknownResource { .. }
            | Self::UnknownPrompt { .. }
            | Self::UnknownReference
            | Self::UnknownTask => "unknown or hidden".to_owned(),
            Self::Arguments(_) => "arguments do not fit".to_owned(),
            Self::HeaderMismatch(_) | Self::StandardHeaderMismatch(_) => {
                "header mismatch".to_owned()
            }
            Self::MissingScopes { needed, .. } => {
                let scopes: Vec<&str> = needed.iter().map(Scope::as_str).collect();
                format!("needs {}", scopes.join(" "))
            }
            other => other.to_string(),
        }
    }

    /// When it makes sense to come back.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limited(limited) => Some(limited.retry_after),
            Self::AuditUnavailable(_) | Self::LimitsAway => Some(Duration::from_secs(2)),
            _ => None,
        }
    }
}

impl From<LimitFault> for Refusal {
    fn from(fault: LimitFault) -> Self {
        match fault {
            LimitFault::Over(limited) => Self::Limited(limited),
            LimitFault::Away => Self::LimitsAway,
        }
    }
}
