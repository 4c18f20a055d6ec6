//! From what an upstream said to what a model may read: cleaning, the tool's
//! output schema, and failures in words that say what to do.

use std::time::Duration;

use crate::catalog::Tool;
use crate::dispatch::{DispatchFault, Errand};
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Json, Method, Untrusted, codes};
use crate::sanitize::{CleanError, CleanResult, Unclean};
use crate::telemetry::names::span;
use crate::telemetry::trace;
use crate::upstream::UpstreamError;

use super::Refusal;
use super::converse::Talk;
use super::record::Record;

/// Longest excerpt of an upstream's words in an error.
const EXCERPT: usize = 300;

/// Cleans a result and holds it against the tool's output schema.
pub(super) fn clean(
    talk: &mut Talk<'_>,
    untrusted: Untrusted<Json>,
) -> Result<CleanResult, Refusal> {
    let (sanitizer, rules) = (&talk.pipeline.sanitizer, talk.rules());
    let Some(tool) = &talk.ready.tool else {
        let cleaned = trace::step(span::SANITIZE, || sanitizer.result(untrusted, rules));
        return cleaned.or_else(|unclean| kept_back(talk, unclean));
    };
    let accepts = |structured: &Json| tool.check_output(Some(structured)).is_ok();
    match trace::step(span::SANITIZE, || {
        sanitizer.result_fitting(untrusted, rules, &accepts)
    }) {
        Ok(result) => Ok(fitting(result, tool, talk.record)),
        Err(unclean) => kept_back(talk, unclean),
    }
}

/// What is told instead of an answer that may not leave.
pub(super) fn kept_back(talk: &mut Talk<'_>, unclean: Unclean) -> Result<CleanResult, Refusal> {
    let reason = unclean.to_string();
    let words = match unclean {
        Unclean::TooLarge { limit } => {
            talk.record.upstream_failed(&reason);
            format!(
                "The tool's answer is larger than {limit} bytes and was not passed on. Ask for less: fewer rows, fewer fields, or a narrower range."
            )
        }
        Unclean::Blocked { label, findings } => {
            talk.record.withheld(&reason);
            talk.record.found(findings);
            format!(
                "The tool's answer holds content ({label}) that may not leave. Repeating the call will not help."
            )
        }
    };
    say(talk.call.ask.method, &words)
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
pub(super) fn failed(talk: &mut Talk<'_>, fault: DispatchFault) -> Result<CleanResult, Refusal> {
    let method = talk.call.ask.method;
    match fault {
        DispatchFault::Cancelled => {
            talk.record.cancelled();
            Err(Refusal::Cancelled)
        }
        DispatchFault::Upstream(UpstreamError::Rpc {
            code,
            message,
            data,
        }) => {
            talk.record.upstream_failed("JSON-RPC error");
            let sanitizer = &talk.pipeline.sanitizer;
            match sanitizer.error(message, data, talk.rules(), EXCERPT) {
                Ok(error) => {
                    talk.record.found(error.findings.clone());
                    rpc(talk, code, error)
                }
                Err(unclean) => kept_back(talk, unclean),
            }
        }
        DispatchFault::Upstream(UpstreamError::TimedOut) => {
            talk.record.timed_out();
            let fault = DispatchFault::Upstream(UpstreamError::TimedOut);
            say(method, &words_about(&fault, &talk.ready.errand))
        }
        other => {
            talk.record.upstream_failed(&other.to_string());
            let text = words_of(talk, other);
            say(method, &text)
        }
    }
}

/// An upstream's JSON-RPC error: codes as `rules.md` §2.3 maps them.
pub(super) fn rpc(
    talk: &mut Talk<'_>,
    code: i64,
    error: CleanError,
) -> Result<CleanResult, Refusal> {
    let needed = error.data.as_ref();
    let needed = needed.and_then(|data| data.get("requiredCapabilities"));
    let lacking = needed.filter(|needed| !talk.call.capabilities.cover(needed));
    match (code, lacking) {
        (codes::MISSING_CLIENT_CAPABILITY, Some(needed)) => talk.lacks(needed),
        (
            codes::HEADER_MISMATCH
            | codes::UNSUPPORTED_PROTOCOL_VERSION
            | codes::MISSING_CLIENT_CAPABILITY,
            _,
        ) => say(
            talk.call.ask.method,
            &format!(
                "The server behind {} and this gateway do not understand each other ({}). Do not retry; tell the operator.",
                talk.ready.errand.shown(),
                error.message
            ),
        ),
        (code, _) => Err(Refusal::Upstream {
            code: told(code),
            message: error.message,
            data: error.data,
        }),
    }
}

/// An upstream's code as callers may see it.
pub(super) fn told(code: i64) -> i64 {
    if is_reserved(code) {
        codes::INTERNAL_ERROR
    } else {
        code
    }
}

/// Codes of JSON-RPC's implementation range mean nothing outside the server that made them.
fn is_reserved(code: i64) -> bool {
    (-32099..=-32000).contains(&code)
}

pub(super) fn words(fault: &DispatchFault, name: &str, source: &str) -> String {
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

fn words_about(fault: &DispatchFault, errand: &Errand) -> String {
    words(fault, errand.shown(), errand.upstream().as_str())
}

/// The words, and what the upstream said, cleaned and short.
fn words_of(talk: &mut Talk<'_>, fault: DispatchFault) -> String {
    let mut text = words_about(&fault, &talk.ready.errand);
    if let DispatchFault::Upstream(UpstreamError::Status { excerpt, .. }) = fault {
        let excerpt = talk.pipeline.sanitizer.excerpt(excerpt, EXCERPT);
        talk.record.found(excerpt.findings().clone());
        if !excerpt.as_str().is_empty() {
            text.push_str(" It said: ");
            text.push_str(excerpt.as_str());
        }
    }
    text
}

/// Words of ours in place of an answer: for a tool a result that the model reads.
pub(super) fn say(method: Method, words: &str) -> Result<CleanResult, Refusal> {
    match method {
        Method::CallTool => Ok(tool_error(words)),
        _ => Err(Refusal::Failed {
            text: words.to_owned(),
        }),
    }
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
