//! The JSON-RPC messages that go to an upstream, written without a tree in
//! between: the caller's parameters are put in as they came.

use bytes::Bytes;

use super::UpstreamRequest;
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Era, Json, RequestId, Version, meta, notification_message};

fn client_info() -> Json {
    ObjectBuilder::new()
        .text("name", "toolgate")
        .text("version", env!("CARGO_PKG_VERSION"))
        .build()
}

/// The caller's request under our id. Our id is the progress token too, so that
/// tokens of two callers never meet.
pub(super) fn call(id: i64, request: &UpstreamRequest, era: Era) -> Bytes {
    let meta = request_meta(id, request, era);
    let own;
    let params = if request.params.get("_meta").is_some() {
        own = request.params.without_members(|name| name == "_meta");
        &own
    } else {
        &request.params
    };
    let mut text = String::with_capacity(
        params.as_str().len() + meta.as_str().len() + request.method.len() + 80,
    );
    text.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    text.push_str(&id.to_string());
    text.push_str(",\"method\":\"");
    text.push_str(request.method);
    text.push_str("\",\"params\":{");
    let members = inner(params);
    if meta.as_str() != "{}" {
        text.push_str("\"_meta\":");
        text.push_str(meta.as_str());
        if !members.is_empty() {
            text.push(',');
        }
    }
    text.push_str(members);
    text.push_str("}}");
    Bytes::from(text)
}

/// An object's text without its braces.
fn inner(object: &Json) -> &str {
    let text = object.as_str();
    text.strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
        .unwrap_or_default()
        .trim()
}

fn request_meta(id: i64, request: &UpstreamRequest, era: Era) -> Json {
    let mut out = ObjectBuilder::with_capacity(256);
    if era == Era::Modern {
        out = out
            .text(meta::PROTOCOL_VERSION, Version::MODERN.as_str())
            .json(meta::CLIENT_INFO, &client_info())
            .json(meta::CLIENT_CAPABILITIES, request.capabilities.json());
        if let Some(level) = request.log_level {
            out = out.text(meta::LOG_LEVEL, level.as_str());
        }
    }
    if request.progress {
        out = out.integer(meta::PROGRESS_TOKEN, id);
    }
    if let Some(trace) = &request.trace {
        out = out.text("traceparent", trace);
    }
    for (key, value) in &request.meta {
        if !is_ours(key) {
            out = out.json(key, value);
        }
    }
    out.build()
}

/// `_meta` members that the gateway writes itself, or that never go on.
fn is_ours(key: &str) -> bool {
    matches!(
        key,
        meta::PROTOCOL_VERSION
            | meta::CLIENT_INFO
            | meta::CLIENT_CAPABILITIES
            | meta::LOG_LEVEL
            | meta::PROGRESS_TOKEN
            | meta::SERVER_INFO
            | meta::SUBSCRIPTION_ID
            | "traceparent"
            | "baggage"
    )
}

/// A request of the gateway's own, in modern form.
fn own_modern(id: i64, method: &str, more: Option<(&str, &Json)>) -> Bytes {
    let meta = ObjectBuilder::new()
        .text(meta::PROTOCOL_VERSION, Version::MODERN.as_str())
        .json(meta::CLIENT_INFO, &client_info())
        .json(meta::CLIENT_CAPABILITIES, &Json::empty_object())
        .build();
    let mut params = ObjectBuilder::new().json("_meta", &meta);
    if let Some((key, value)) = more {
        params = params.json(key, value);
    }
    request(id, method, &params.build())
}

fn request(id: i64, method: &str, params: &Json) -> Bytes {
    ObjectBuilder::new()
        .text("jsonrpc", "2.0")
        .integer("id", id)
        .text("method", method)
        .json("params", params)
        .build()
        .into_bytes()
}

/// `server/discover`: what the server speaks and can do.
pub(super) fn discover(id: i64) -> Bytes {
    own_modern(id, "server/discover", None)
}

/// `subscriptions/listen` for what this filter says.
pub(super) fn listen(id: i64, filter: &Json) -> Bytes {
    own_modern(id, "subscriptions/listen", Some(("notifications", filter)))
}

/// `initialize` of the newest legacy revision, for a client that can do this.
pub(super) fn initialize(id: i64, capabilities: &Json) -> Bytes {
    let params = ObjectBuilder::new()
        .text("protocolVersion", Version::NEWEST_LEGACY.as_str())
        .json("capabilities", capabilities)
        .json("clientInfo", &client_info())
        .build();
    request(id, "initialize", &params)
}

/// `notifications/initialized`
pub(super) fn initialized() -> Bytes {
    Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
}

/// `notifications/roots/list_changed`
pub(super) fn roots_changed() -> Bytes {
    Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#)
}

/// `ping`
pub(super) fn ping(id: i64) -> Bytes {
    request(id, "ping", &Json::empty_object())
}

/// `logging/setLevel`
pub(super) fn set_level(id: i64, level: &str) -> Bytes {
    request(
        id,
        "logging/setLevel",
        &ObjectBuilder::new().text("level", level).build(),
    )
}

/// `notifications/cancelled` for a request of ours.
pub(super) fn cancelled(id: i64) -> Bytes {
    let params = ObjectBuilder::new()
        .integer("requestId", id)
        .text("reason", "the caller is gone or the time is over")
        .build();
    ObjectBuilder::new()
        .text("jsonrpc", "2.0")
        .text("method", "notifications/cancelled")
        .json("params", &params)
        .build()
        .into_bytes()
}

/// The answer to a request that a legacy server made.
pub(super) fn reply(id: &RequestId, outcome: &Result<Json, Json>) -> Bytes {
    let (member, value) = match outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    ObjectBuilder::with_capacity(value.as_str().len() + 96)
        .text("jsonrpc", "2.0")
        .json("id", id.json())
        .json(member, value)
        .build()
        .into_bytes()
}

/// `notifications/progress` about a request that a legacy server made.
pub(super) fn progress(params: &Json) -> Bytes {
    notification_message("notifications/progress", params).into_bytes()
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::protocol::{JsonLimits, LogLevel};

    fn asked(params: &'static str) -> UpstreamRequest {
        UpstreamRequest::own("tools/call", Json::from_checked(params), Instant::now())
    }

    fn text(bytes: Bytes) -> String {
        let json = Json::parse(bytes, &JsonLimits::CALLER).unwrap();
        json.as_str().to_owned()
    }

    #[test]
    fn the_callers_parameters_go_on_as_they_came() {
        let request = asked(r#"{ "name":"x","arguments":{"n":1.0e2,"s":"\u0041"} }"#);
        assert_eq!(
            text(call(7, &request, Era::Legacy)),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0e2,"s":"\u0041"}}}"#
        );
    }

    #[test]
    fn the_meta_is_ours_and_the_callers_other_members_follow() {
        let mut request = asked(r#"{"_meta":{"evil":1},"name":"x"}"#);
        request.progress = true;
        request.log_level = Some(LogLevel::Warning);
        request.trace = Some("00-a-b-01".into());
        request.meta = vec![
            ("com.example/a".into(), Json::from_integer(1)),
            (meta::PROTOCOL_VERSION.into(), Json::null()),
            ("progressToken".into(), Json::from_integer(99)),
            ("baggage".into(), Json::from_text("b")),
        ];
        let body = text(call(7, &request, Era::Modern));
        insta::assert_snapshot!(
            body.replace(env!("CARGO_PKG_VERSION"), "VERSION"),
            @r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"toolgate","version":"VERSION"},"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"warning","progressToken":7,"traceparent":"00-a-b-01","com.example/a":1},"name":"x"}}"#
        );
    }

    #[test]
    fn empty_parameters_stay_an_object() {
        assert_eq!(
            text(call(1, &asked("{}"), Era::Legacy)),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#
        );
        text(call(1, &asked("{}"), Era::Modern));
    }

    #[test]
    fn a_servers_request_is_answered_under_its_own_id() {
        let id = RequestId::new(Json::from_text("s1")).unwrap();
        assert_eq!(
            text(reply(&id, &Ok(Json::empty_object()))),
            r#"{"jsonrpc":"2.0","id":"s1","result":{}}"#
        );
        let error = Err(Json::from_checked(r#"{"code":-1,"message":"no"}"#));
        assert_eq!(
            text(reply(&id, &error)),
            r#"{"jsonrpc":"2.0","id":"s1","error":{"code":-1,"message":"no"}}"#
        );
    }
}
