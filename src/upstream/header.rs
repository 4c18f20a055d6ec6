//! Header values as the modern transport wants them (MCP 2026-07-28
//! Streamable HTTP, Value Encoding), and the place in a trace.

use std::borrow::Cow;

use ::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::link::add;
use crate::telemetry::TraceContext;

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A text as the value of `Mcp-Name` or `Mcp-Param-*`: as it is where that is
/// safe, in the Base64 form otherwise.
pub fn encode_header_value(text: &str) -> Cow<'_, str> {
    let safe = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && !text.starts_with([' ', '\t'])
        && !text.ends_with([' ', '\t']);
    let looks_encoded = text.starts_with(OPEN) && text.ends_with(CLOSE);
    if safe && !looks_encoded {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(text)))
}

/// Adds the place in a trace that a message is at.
pub(super) fn add_trace(headers: &mut HeaderMap, trace: Option<&TraceContext>) {
    if let Some(trace) = trace {
        add(headers, TRACE_PARENT, trace.parent());
        if let Some(state) = trace.state() {
            add(headers, TRACE_STATE, state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_hold() {
        for (plain, encoded) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ] {
            assert_eq!(encode_header_value(plain), encoded);
        }
    }
}
