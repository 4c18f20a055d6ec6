//! The table of answers: what a caller is told in each situation, as HTTP
//! status, JSON-RPC code and words. Answers are the client's control flow, so
//! they stand in this one place.

use std::time::Duration;

use crate::arguments::ArgumentFault;
use crate::audit::AuditReceipt;
use crate::ids::Scope;
use crate::limits::{LimitFault, Limited, StreamsFull};
use crate::pipeline::{Answered, Refusal};
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Era, Json, RequestId, Version, codes, error_message, result_message};

/// When to ask again for a stream that there is no room for.
const STREAMS_RETRY: Duration = Duration::from_secs(10);

/// When to ask again while the limits' store is away.
const LIMITS_RETRY: Duration = Duration::from_secs(2);

/// One reply: a status, and a JSON-RPC message where there is one.
#[derive(Debug, Default)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The JSON-RPC message.
    pub body: Option<Json>,
    /// A new `Mcp-Session-Id`.
    pub session: Option<String>,
    /// For `Retry-After`.
    pub retry_after: Option<Duration>,
    /// For `RateLimit` and `RateLimit-Policy`.
    pub limited: Option<Limited>,
    /// For the `insufficient_scope` challenge.
    pub needs_scopes: Option<Vec<Scope>>,
    /// For `Allow`.
    pub allow: Option<&'static str>,
}

impl Reply {
    /// A reply without a body.
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// A JSON-RPC result, HTTP 200.
    pub fn result(id: &RequestId, result: &Json) -> Self {
        Self {
            status: 200,
            body: Some(result_message(id, result)),
            ..Self::default()
        }
    }

    /// Whether it tells of an error.
    pub(super) fn is_error(&self) -> bool {
        self.status >= 400
            || self
                .body
                .as_ref()
                .is_some_and(|body| body.get("error").is_some())
    }

    /// A JSON-RPC error.
    pub fn error(
        status: u16,
        id: Option<&RequestId>,
        code: i64,
        message: &str,
        data: Option<&Json>,
    ) -> Self {
        Self {
            status,
            body: Some(error_message(id, code, message, data)),
            ..Self::default()
        }
    }
}

/// How answers are written for one caller.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    /// Some codes differ.
    pub(super) era: Era,
    /// From the modern form to the caller's.
    pub(super) lower: fn(Json) -> Json,
}

impl Manner {
    /// For answers that have the caller's form already.
    pub(super) fn plain(era: Era) -> Self {
        Self {
            era,
            lower: |json| json,
        }
    }
}

/// What a finished call is answered with.
pub(super) fn of_call(id: &RequestId, answered: Answered, manner: Manner) -> Reply {
    match answered {
        Answered::Recorded {
            outcome: Ok(clean),
            receipt,
        } => of_result(id, &(manner.lower)(clean.into_json()), receipt),
        Answered::Recorded {
            outcome: Err(refusal),
            ..
        }
        | Answered::Unrecorded(refusal) => of_refusal(Some(id), refusal, manner),
    }
}

/// A tool's result as a reply. No receipt, no answer.
fn of_result(id: &RequestId, result: &Json, _receipt: AuditReceipt) -> Reply {
    Reply::result(id, result)
}

/// What a refusal is answered with.
pub(super) fn of_refusal(id: Option<&RequestId>, refusal: Refusal, manner: Manner) -> Reply {
    let retry_after = refusal.retry_after();
    let words = refusal.to_string();
    match refusal {
        Refusal::NotJson(_) => Reply::error(400, None, codes::PARSE_ERROR, &words, None),
        Refusal::InvalidRequest(_) => Reply::error(400, id, codes::INVALID_REQUEST, &words, None),
        Refusal::MalformedParams(_)
        | Refusal::UnknownTool { .. }
        | Refusal::UnknownPrompt { .. }
        | Refusal::UnknownReference
        | Refusal::UnknownTask
        | Refusal::Arguments(ArgumentFault::NotAnObject { .. }) => {
            Reply::error(200, id, codes::INVALID_PARAMS, &words, None)
        }
        Refusal::Arguments(ArgumentFault::Invalid { message }) => match id {
            Some(id) => Reply::result(id, &(manner.lower)(tool_error(&message))),
            None => Reply::error(200, id, codes::INVALID_PARAMS, &message, None),
        },
        Refusal::UnknownResource { uri } => unknown_resource(id, &words, &uri, manner.era),
        Refusal::Failed { .. } => Reply::error(200, id, codes::INTERNAL_ERROR, &words, None),
        Refusal::HeaderMismatch(_) => Reply::error(400, id, codes::HEADER_MISMATCH, &words, None),
        Refusal::StandardHeaderMismatch(_) => Reply::error(
            400,
            id,
            codes::HEADER_MISMATCH,
            &format!("Header mismatch: {words}"),
            None,
        ),
        Refusal::MissingScopes { needed, held } => missing_scopes(id, needed, held),
        Refusal::Limited(limited) => over_limit(id, limited),
        Refusal::LimitsAway => limits_away(id),
        Refusal::AuditUnavailable(_) => unavailable(
            id,
            "The call could not be put on record, so nothing was run. Retry shortly.",
            retry_after,
        ),
        Refusal::Withheld => unavailable(id, "executed, outcome withheld, do not retry", None),
        Refusal::Cancelled => Reply::empty(202),
        Refusal::MissingCapability { needed } => {
            let data = ObjectBuilder::new()
                .json("requiredCapabilities", &needed)
                .build();
            let code = codes::MISSING_CLIENT_CAPABILITY;
            Reply::error(400, id, code, &words, Some(&data))
        }
        Refusal::Upstream {
            code,
            message,
            data,
        } => Reply::error(200, id, code, message.as_str(), data.as_ref()),
    }
}

/// Hidden and missing resources alike (MCP 2026-07-28 resources, Error Handling; the
/// older revisions have a code of their own).
fn unknown_resource(id: Option<&RequestId>, words: &str, uri: &str, era: Era) -> Reply {
    let code = match era {
        Era::Modern => codes::INVALID_PARAMS,
        Era::Legacy => codes::LEGACY_RESOURCE_NOT_FOUND,
    };
    let shown: String = uri.chars().take(2048).collect();
    let data = ObjectBuilder::new().text("uri", &shown).build();
    Reply::error(200, id, code, words, Some(&data))
}

/// What the token has is asked for again with what it lacks: many clients take the
/// challenge as the whole of their next request (MCP 2025-11-25, Scope Challenge Handling).
fn missing_scopes(id: Option<&RequestId>, mut needed: Vec<Scope>, held: Vec<Scope>) -> Reply {
    let names: Vec<&str> = needed.iter().map(Scope::as_str).collect();
    let words = format!(
        "This tool needs a token with the scopes: {}.",
        names.join(" ")
    );
    for scope in held {
        if !needed.contains(&scope) {
            needed.push(scope);
        }
    }
    Reply {
        needs_scopes: Some(needed),
        ..Reply::error(403, id, codes::REFUSED, &words, None)
    }
}

/// Not let in by the limits.
pub(super) fn not_admitted(id: Option<&RequestId>, fault: LimitFault) -> Reply {
    match fault {
        LimitFault::Over(limited) => over_limit(id, limited),
        LimitFault::Away => limits_away(id),
    }
}

/// The limits cannot be told.
fn limits_away(id: Option<&RequestId>) -> Reply {
    let words =
        "How much this caller has left cannot be told now, so nothing was run. Retry shortly.";
    unavailable(id, words, Some(LIMITS_RETRY))
}

/// Over a limit: the request's id, and when to come back, in the body and in headers.
fn over_limit(id: Option<&RequestId>, limited: Limited) -> Reply {
    let words = if limited.concurrent {
        format!(
            "Too many calls at the same time for this {} (at most {}). Wait for one to end.",
            limited.policy, limited.quota
        )
    } else {
        format!(
            "Over the limit for this {}: {} per {} s. Retry in {} ms.",
            limited.policy,
            limited.quota,
            limited.window.as_secs_f64(),
            limited.retry_after.as_millis()
        )
    };
    let data = retry_data(limited.retry_after);
    let retry_after = Some(limited.retry_after);
    Reply {
        limited: Some(limited),
        retry_after,
        ..Reply::error(429, id, codes::LIMITED, &words, Some(&data))
    }
}

/// No room for another stream.
pub(super) fn streams_full(id: Option<&RequestId>, full: StreamsFull) -> Reply {
    let retry_after = Some(STREAMS_RETRY);
    let data = retry_data(STREAMS_RETRY);
    Reply {
        retry_after,
        ..Reply::error(429, id, codes::LIMITED, &full.to_string(), Some(&data))
    }
}

/// Not now: 503 and JSON-RPC error 1503.
pub fn unavailable(id: Option<&RequestId>, words: &str, retry_after: Option<Duration>) -> Reply {
    let data = retry_after.map(retry_data);
    Reply {
        retry_after,
        ..Reply::error(503, id, codes::UNAVAILABLE, words, data.as_ref())
    }
}

fn retry_data(after: Duration) -> Json {
    ObjectBuilder::new()
        .integer(
            "retryAfterMs",
            i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        )
        .build()
}

/// No such method: modern 404, legacy 200 (MCP 2026-07-28 transports, Protocol Version Header).
pub(super) fn unknown_method(id: &RequestId, method: &str, modern: bool) -> Reply {
    let shown: String = method.chars().take(64).collect();
    let status = if modern { 404 } else { 200 };
    Reply::error(
        status,
        Some(id),
        codes::METHOD_NOT_FOUND,
        &format!("Method not found: {shown}"),
        None,
    )
}

/// A modern version that is not spoken here.
pub(super) fn unsupported_version(id: Option<&RequestId>, requested: &str) -> Reply {
    let supported: Vec<Json> = Version::ALL
        .iter()
        .map(|version| Json::from_text(version.as_str()))
        .collect();
    let shown: String = requested.chars().take(64).collect();
    let data = ObjectBuilder::new()
        .json("supported", &ArrayBuilder::from_iter(&supported).build())
        .text("requested", &shown)
        .build();
    Reply::error(
        400,
        id,
        codes::UNSUPPORTED_PROTOCOL_VERSION,
        "Unsupported protocol version",
        Some(&data),
    )
}

/// A result that tells the model what to mend.
fn tool_error(text: &str) -> Json {
    let block = ObjectBuilder::new()
        .text("type", "text")
        .text("text", text)
        .build();
    ObjectBuilder::new()
        .json("content", &ArrayBuilder::from_iter([&block]).build())
        .boolean("isError", true)
        .build()
}
