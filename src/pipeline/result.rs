//! From what an upstream said to what a model may read: cleaning, the tool's
//! output schema, and failures in words that say what to do.

use std::time::Duration;

use crate::catalog::Tool;
use crate::config;
use crate::dispatch::DispatchFault;
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Json, Untrusted, codes};
use crate::sanitize::{CleanError, CleanResult, Sanitizer, Unclean};
use crate::upstream::UpstreamError;

use super::Refusal;
use super::record::Record;

/// Longest excerpt of an upstream's words in an error.
const EXCERPT: usize = 300;

/// Cleans a result and holds it against the tool's output schema.
pub(super) fn clean(
    untrusted: Untrusted<Json>,
    tool: &Tool,
    sanitizer: &Sanitizer,
    rules: &config::Sanitize,
    record: &mut Record,
) -> CleanResult {
    if untrusted.is_input_required() {
        record.upstream_failed("asked for input");
        return tool_error(
            "The tool asks for input that cannot be relayed to this client. Do not retry.",
        );
    }
    let accepts = |structured: &Json| tool.check_output(Some(structured)).is_ok();
    match sanitizer.result_fitting(untrusted, rules, &accepts) {
        Ok(result) => fitting(result, tool, record),
        Err(unclean) => kept_back(unclean, record),
    }
}

/// What is told instead of an answer that may not leave.
fn kept_back(unclean: Unclean, record: &mut Record) -> CleanResult {
    let reason = unclean.to_string();
    match unclean {
        Unclean::TooLarge { limit } => {
            record.upstream_failed(&reason);
            tool_error(&format!(
                "The tool's answer is larger than {limit} bytes and was not passed on. Ask for less: fewer rows, fewer fields, or a narrower range."
            ))
        }
        Unclean::Blocked { label, findings } => {
            record.withheld(&reason);
            record.found(findings);
            tool_error(&format!(
                "The tool's answer holds content ({label}) that may not leave. Repeating the call will not help."
            ))
        }
    }
}

/// A result that breaks its output schema becomes an error that keeps the text
/// (MCP tools, Output Schema: servers MUST conform).
fn fitting(result: CleanResult, tool: &Tool, record: &mut Record) -> CleanResult {
    if result.is_error() {
        return result;
    }
    let Err(broken) = tool.check_output(result.json().get("structuredContent").as_ref()) else {
        return result;
    };
    let words = if result.is_outgrown() {
        record.withheld("the output schema has no room for what was removed");
        "Values that may not leave were removed from the answer, and the tool's output schema asks for them. What is left follows as text; repeating the call will not help.".to_owned()
    } else {
        tracing::warn!(tool = tool.exposed.as_str(), upstream = tool.upstream.as_str(), rule = %broken, "A tool broke its output schema.");
        record.upstream_failed("broke its output schema");
        format!(
            "The tool broke its output schema: {broken}. Its answer follows; do not rely on its form."
        )
    };
    let mut content = ArrayBuilder::new();
    content.push(&text_block(&words));
    for block in result.json().get("content").iter().flat_map(Json::elements) {
        content.push(&block);
    }
    let json = ObjectBuilder::new()
        .json("content", &content.build())
        .boolean("isError", true)
        .build();
    CleanResult::ours(json, result.findings().clone())
}

/// A failure to get a result, in the model's terms where it can act on it.
pub(super) fn failed(
    fault: DispatchFault,
    tool: &Tool,
    sanitizer: &Sanitizer,
    rules: &config::Sanitize,
    record: &mut Record,
) -> Result<CleanResult, Refusal> {
    match fault {
        DispatchFault::Cancelled => {
            record.cancelled();
            Err(Refusal::Cancelled)
        }
        DispatchFault::Upstream(UpstreamError::Rpc {
            code,
            message,
            data,
        }) => {
            record.upstream_failed("JSON-RPC error");
            match sanitizer.error(message, data, rules, EXCERPT) {
                Ok(error) => {
                    record.found(error.findings.clone());
                    rpc(code, error, tool)
                }
                Err(unclean) => Ok(kept_back(unclean, record)),
            }
        }
        DispatchFault::Upstream(UpstreamError::TimedOut) => {
            record.timed_out();
            Ok(tool_error(&words(
                &DispatchFault::Upstream(UpstreamError::TimedOut),
                tool,
            )))
        }
        other => {
            record.upstream_failed(&other.to_string());
            let text = words_of(other, tool, sanitizer, record);
            Ok(tool_error(&text))
        }
    }
}

/// An upstream's JSON-RPC error: codes as `rules.md` §2.3 maps them.
fn rpc(code: i64, error: CleanError, tool: &Tool) -> Result<CleanResult, Refusal> {
    let name = tool.exposed.as_str();
    match code {
        codes::HEADER_MISMATCH
        | codes::UNSUPPORTED_PROTOCOL_VERSION
        | codes::MISSING_CLIENT_CAPABILITY
        | codes::LEGACY_URL_ELICITATION_REQUIRED => Ok(tool_error(&format!(
            "The server behind {name} and this gateway do not understand each other ({}). Do not retry; tell the operator.",
            error.message
        ))),
        code => Err(Refusal::Upstream {
            code: if is_reserved(code) {
                codes::INTERNAL_ERROR
            } else {
                code
            },
            message: error.message,
            data: error.data,
        }),
    }
}

/// Codes of JSON-RPC's implementation range mean nothing outside the server that made them.
fn is_reserved(code: i64) -> bool {
    (-32099..=-32000).contains(&code)
}

fn words(fault: &DispatchFault, tool: &Tool) -> String {
    let name = tool.exposed.as_str();
    let source = tool.upstream.as_str();
    match fault {
        DispatchFault::CircuitOpen { retry_after } => format!(
            "The server \"{source}\" behind {name} failed repeatedly and is left alone for now. Nothing was run. Retry in {} s, or go on without it.",
            seconds(*retry_after)
        ),
        DispatchFault::Gone => format!(
            "The server \"{source}\" behind {name} is no longer configured. Nothing was run; do not retry."
        ),
        DispatchFault::Credential(_) => format!(
            "The gateway cannot sign in to the server \"{source}\" behind {name}. Nothing was run; tell the operator."
        ),
        DispatchFault::Cancelled => "Cancelled.".to_owned(),
        DispatchFault::Upstream(fault) => upstream_words(fault, name, source),
    }
}

fn upstream_words(fault: &UpstreamError, name: &str, source: &str) -> String {
    let what = match fault {
        UpstreamError::Unreachable => {
            "cannot be reached. Nothing was run. Retry in a few seconds, or go on without it"
        }
        UpstreamError::TimedOut => {
            "did not answer in time. The call may have run: check before repeating it"
        }
        UpstreamError::Broken => {
            "broke off in the middle of its answer. The call may have run: check before repeating it"
        }
        UpstreamError::Garbage { .. } => {
            "answered something that is no MCP message. The call may have run. Do not retry; tell the operator"
        }
        UpstreamError::TooLarge { limit } => {
            return format!(
                "The server \"{source}\" behind {name} answered with more than {limit} bytes, which were not read. The call may have run. Ask for less: fewer rows, fewer fields, or a narrower range."
            );
        }
        UpstreamError::Blocked => {
            "is at an address that is not public (`mcp.allow_private`, `outgoing.allow_networks`). Nothing was run; tell the operator"
        }
        UpstreamError::Busy => {
            "has as many calls running as it may. Nothing was run. Retry in a few seconds"
        }
        UpstreamError::Status {
            status,
            retry_after,
            ..
        } => return status_words(*status, *retry_after, name, source),
        UpstreamError::Rpc { .. } => "refused the call",
    };
    format!("The server \"{source}\" behind {name} {what}.")
}

fn status_words(status: u16, retry_after: Option<Duration>, name: &str, source: &str) -> String {
    let advice = match (status, retry_after) {
        (_, Some(after)) => format!("Retry in {} s", seconds(after)),
        (401 | 403, None) => {
            "The gateway's credential was refused; do not retry, tell the operator".to_owned()
        }
        (429, None) => "It limits how often it is called; retry later".to_owned(),
        (500.., None) => "Retry once, then go on without it".to_owned(),
        _ => "Do not retry".to_owned(),
    };
    format!("The server \"{source}\" behind {name} answered with HTTP status {status}. {advice}.")
}

/// The words, and what the upstream said, cleaned and short.
fn words_of(
    fault: DispatchFault,
    tool: &Tool,
    sanitizer: &Sanitizer,
    record: &mut Record,
) -> String {
    let mut text = words(&fault, tool);
    if let DispatchFault::Upstream(UpstreamError::Status { excerpt, .. }) = fault {
        let excerpt = sanitizer.excerpt(excerpt, EXCERPT);
        record.found(excerpt.findings().clone());
        if !excerpt.as_str().is_empty() {
            text.push_str(" It said: ");
            text.push_str(excerpt.as_str());
        }
    }
    text
}

fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn text_block(text: &str) -> Json {
    ObjectBuilder::new()
        .text("type", "text")
        .text("text", text)
        .build()
}

/// A result that says, in words of ours, that the tool failed.
pub(super) fn tool_error(text: &str) -> CleanResult {
    let content = ArrayBuilder::from_iter([&text_block(text)]).build();
    let json = ObjectBuilder::new()
        .json("content", &content)
        .boolean("isError", true)
        .build();
    CleanResult::ours(json, crate::sanitize::Findings::default())
}
