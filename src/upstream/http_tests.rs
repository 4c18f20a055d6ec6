//! The HTTP kind against servers that behave and servers that do not.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::clock::SystemClock;
use crate::protocol::{LogLevel, UpstreamEvent};
use crate::secret::Secret;
use crate::telemetry::TraceContext;
use crate::telemetry::metrics::Metrics;

#[path = "../../examples/upstream_hostile/server.rs"]
mod hostile;

struct Stage {
    server: hostile::Hostile,
    upstream: Arc<dyn Upstream>,
}

fn upstream_at(url: &str) -> Arc<dyn Upstream> {
    let config: config::Upstream = serde_json::from_value(serde_json::json!({
        "mcp": { "url": url, "allow_private": true },
        "max_answer": "1MiB",
        "concurrent": 4,
    }))
    .unwrap();
    let outgoing = Arc::new(Outgoing::new(&config::Outgoing::default()).unwrap());
    let clock: SharedClock = Arc::new(SystemClock);
    let metrics = Arc::new(Metrics::new(0));
    build(
        UpstreamId::from("test"),
        &config,
        &outgoing,
        &clock,
        &metrics,
    )
    .unwrap()
}

async fn stage(path: &str) -> Stage {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}{path}", listener.local_addr().unwrap());
    let server = hostile::Hostile::default();
    tokio::spawn(server.clone().serve(listener));
    Stage {
        server,
        upstream: upstream_at(&url),
    }
}

fn call(tool: &str) -> UpstreamRequest {
    let params = Json::from_value(&serde_json::json!({ "name": tool, "arguments": {} }));
    let deadline = Instant::now() + Duration::from_secs(5);
    UpstreamRequest {
        name: Some(tool.to_owned()),
        caller: CallerKey([1; 32]),
        ..UpstreamRequest::own("tools/call", params, deadline)
    }
}

async fn ask(
    upstream: &Arc<dyn Upstream>,
    request: UpstreamRequest,
) -> (Result<Value, UpstreamError>, Vec<UpstreamEvent>) {
    let (sender, mut events) = mpsc::channel(1000);
    let result = upstream.request(request, sender).await;
    let mut heard = Vec::new();
    while let Ok(event) = events.try_recv() {
        heard.push(event.open());
    }
    (result.map(|json| json.open().to_value().unwrap()), heard)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

impl Stage {
    async fn call(&self, tool: &str) -> Result<Value, UpstreamError> {
        ask(&self.upstream, call(tool)).await.0
    }

    fn posts(&self, method: &str) -> usize {
        let seen = self.server.seen();
        let bodies = seen.iter().filter_map(|entry| entry["body"].as_str());
        bodies
            .filter(|body| body.contains(&format!("\"method\":\"{method}\"")))
            .count()
    }
}

impl Stage {
    async fn until(&self, done: impl Fn(&Self) -> bool) {
        for _ in 0..200 {
            if done(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it never came to it: {:?}", self.server.seen());
    }
}

const BOTH: [&str; 2] = ["/modern", "/legacy"];

#[tokio::test]
async fn answers_arrive_as_they_were_sent_whatever_cut_them() {
    for path in BOTH {
        let stage = stage(path).await;
        let result = stage.call("split_emoji").await.unwrap();
        assert_eq!(text(&result), "done ✅ fine");
        let result = stage.call("line_ends").await.unwrap();
        assert_eq!(text(&result), "a\u{2028}b\u{85}c");
        let result = stage.call("bad_utf8").await.unwrap();
        assert_eq!(text(&result), "caf\u{fffd}");
        let result = stage.call("lone_surrogate").await.unwrap();
        assert_eq!(text(&result), "a\u{fffd}b");
        let result = stage.call("batch").await.unwrap();
        assert_eq!(text(&result), "batched");
        let result = stage.call("tool_error").await.unwrap();
        assert_eq!(result["isError"], true);
    }
}

#[tokio::test]
async fn each_misbehaviour_has_its_own_fault() {
    for path in BOTH {
        let stage = stage(path).await;
        for (tool, expected) in [
            ("die", "Broken"),
            ("die_sse", "Broken"),
            ("garbage", "Garbage"),
            ("not_rpc", "Garbage"),
            ("wrong_id", "Garbage"),
            ("nothing", "Garbage"),
            ("too_deep", "Garbage"),
            ("endless_json", "TooLarge"),
            ("endless_line", "TooLarge"),
            ("announced_huge", "TooLarge"),
            ("unauthorized", "Status { status: 401, retry_after: None"),
            ("redirect", "Status { status: 302"),
            ("html_500", "Status { status: 500"),
            (
                "rate_limited",
                "Status { status: 429, retry_after: Some(30s)",
            ),
            ("rpc_error", "Rpc { code: -32602"),
        ] {
            let fault = stage.call(tool).await.unwrap_err();
            let shown = format!("{fault:?}");
            assert!(shown.starts_with(expected), "{path} {tool}: {shown}");
        }
        let seen = serde_json::to_string(&stage.server.seen()).unwrap();
        assert!(!seen.contains("elsewhere"));
    }
}

#[tokio::test]
async fn a_server_that_hangs_costs_no_more_than_the_deadline() {
    for path in BOTH {
        let stage = stage(path).await;
        for tool in ["hang", "slow_headers", "endless_sse"] {
            let mut request = call(tool);
            request.deadline = Instant::now() + Duration::from_millis(400);
            let began = Instant::now();
            let (result, _) = ask(&stage.upstream, request).await;
            assert!(matches!(result, Err(UpstreamError::TimedOut)), "{tool}");
            assert!(began.elapsed() < Duration::from_secs(2), "{tool}");
        }
    }
}

#[tokio::test]
async fn a_server_that_hangs_from_the_start_is_given_up_in_time() {
    for mode in ["hang", "slow_headers"] {
        let stage = stage(&format!("/all/{mode}")).await;
        let mut request = call("echo");
        request.deadline = Instant::now() + Duration::from_millis(400);
        let (result, _) = ask(&stage.upstream, request).await;
        assert!(matches!(result, Err(UpstreamError::TimedOut)), "{mode}");
    }
}

#[tokio::test]
async fn dropping_a_call_ends_the_work_at_the_server() {
    for path in BOTH {
        let stage = stage(path).await;
        let upstream = Arc::clone(&stage.upstream);
        let hanging = tokio::spawn(async move { ask(&upstream, call("hang")).await.0 });
        stage.until(|stage| stage.posts("tools/call") == 1).await;
        hanging.abort();
        let closed = |stage: &Stage| {
            let seen = stage.server.seen();
            seen.iter().any(|entry| entry["closed"] == "hang")
        };
        stage.until(closed).await;
        let cancelled = usize::from(path == "/legacy");
        stage
            .until(|stage| stage.posts("notifications/cancelled") == cancelled)
            .await;
    }
}

#[tokio::test]
async fn nothing_is_sent_upstream_but_what_was_given() {
    for path in BOTH {
        let stage = stage(path).await;
        let mut request = call("echo");
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        request.trace = TraceContext::read(Some(parent), None);
        request.credential = Some(Credential {
            name: "Authorization".into(),
            value: Secret::new("Bearer UP2".into()),
        });
        ask(&stage.upstream, request).await.0.unwrap();
        let seen = stage.server.seen();
        let last = seen.last().unwrap();
        let headers = last["headers"].as_object().unwrap();
        assert_eq!(headers["authorization"], "Bearer UP2");
        let allowed = [
            "host",
            "accept",
            "accept-encoding",
            "authorization",
            "content-length",
            "content-type",
            "mcp-method",
            "mcp-name",
            "mcp-protocol-version",
            "mcp-session-id",
            "traceparent",
            "user-agent",
        ];
        for name in headers.keys() {
            assert!(allowed.contains(&name.as_str()), "{path} sent {name}");
        }
        assert_eq!(headers.contains_key("mcp-name"), path == "/modern");
    }
}

#[tokio::test]
async fn names_and_parameters_go_into_headers_in_their_safe_form() {
    let stage = stage("/modern").await;
    let mut request = call("echo");
    request.name = Some("größe".into());
    request.param_headers = vec![
        ("Mcp-Param-Region".into(), "us-west1".into()),
        ("Mcp-Param-Text".into(), " padded ".into()),
        ("Bad Name\r\nX".into(), "x".into()),
    ];
    ask(&stage.upstream, request).await.0.unwrap();
    let seen = stage.server.seen();
    let headers = &seen.last().unwrap()["headers"];
    assert_eq!(headers["mcp-name"], "=?base64?Z3LDtsOfZQ==?=");
    assert_eq!(headers["mcp-method"], "tools/call");
    assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
    assert_eq!(headers["mcp-param-region"], "us-west1");
    assert_eq!(headers["mcp-param-text"], "=?base64?IHBhZGRlZCA=?=");
}

#[tokio::test]
async fn a_header_mismatch_is_retried_once_after_a_second_look() {
    let stage = stage("/modern").await;
    let changes = stage.upstream.list_changed();
    stage.call("mismatch_once").await.unwrap();
    assert_eq!(stage.posts("server/discover"), 2);
    assert_eq!(*changes.borrow(), 1);
}

#[tokio::test]
async fn a_lost_session_is_opened_again_once() {
    let stage = stage("/lost").await;
    let fault = stage.call("echo").await.unwrap_err();
    assert!(matches!(fault, UpstreamError::Status { status: 404, .. }));
    assert_eq!(stage.posts("initialize"), 2);
    assert_eq!(stage.posts("tools/call"), 2);
}

#[tokio::test]
async fn callers_do_not_share_a_session_and_sessions_are_closed() {
    let stage = stage("/legacy").await;
    for caller in [1, 2, 1] {
        let mut request = call("echo");
        request.caller = CallerKey([caller; 32]);
        ask(&stage.upstream, request).await.0.unwrap();
    }
    assert_eq!(stage.posts("initialize"), 2);
    assert_eq!(stage.posts("notifications/initialized"), 2);
    let seen = stage.server.seen();
    let calls = seen.iter().filter(|entry| {
        let body = entry["body"].as_str().unwrap_or_default();
        body.contains("tools/call")
    });
    let sessions: Vec<&Value> = calls
        .map(|entry| &entry["headers"]["mcp-session-id"])
        .collect();
    assert_eq!(sessions[0], sessions[2]);
    assert_ne!(sessions[0], sessions[1]);
    stage.upstream.shutdown().await;
    let seen = stage.server.seen();
    let closed = seen
        .iter()
        .filter(|entry| entry["method"] == "DELETE")
        .count();
    assert_eq!(closed, 2);
}

#[tokio::test]
async fn a_legacy_servers_requests_are_answered_at_once() {
    let stage = stage("/legacy").await;
    let result = stage.call("asks").await.unwrap();
    let replies = text(&result);
    assert!(replies.contains(r#""id":"s1","result":{}"#), "{replies}");
    assert!(replies.contains("-32601"), "{replies}");
}

#[tokio::test]
async fn a_stream_with_event_ids_is_taken_up_where_it_broke() {
    let stage = stage("/legacy").await;
    let result = stage.call("resume").await.unwrap();
    assert_eq!(text(&result), "resumed");
    let seen = stage.server.seen();
    let resumed = seen.iter().find(|entry| entry["method"] == "GET").unwrap();
    assert_eq!(resumed["headers"]["last-event-id"], "resume-1");
    assert!(resumed["headers"]["mcp-session-id"].is_string());
}

#[tokio::test]
async fn at_most_so_many_requests_are_in_flight() {
    let stage = stage("/modern").await;
    stage.call("echo").await.unwrap();
    let hanging = (0..4).map(|_| {
        let upstream = Arc::clone(&stage.upstream);
        tokio::spawn(async move { ask(&upstream, call("hang")).await.0 })
    });
    let hanging: Vec<_> = hanging.collect();
    stage.until(|stage| stage.posts("tools/call") == 5).await;
    let mut request = call("echo");
    request.deadline = Instant::now() + Duration::from_millis(200);
    let (result, _) = ask(&stage.upstream, request).await;
    assert!(matches!(result, Err(UpstreamError::Busy)));
    for task in hanging {
        task.abort();
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    stage.call("echo").await.unwrap();
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let upstream = upstream_at(&url);
    let (result, _) = ask(&upstream, call("echo")).await;
    assert!(matches!(result, Err(UpstreamError::Unreachable)));
}

#[tokio::test]
async fn a_server_asked_to_log_is_told_the_level_once_per_session() {
    let stage = stage("/legacy").await;
    for level in [LogLevel::Info, LogLevel::Error, LogLevel::Debug] {
        let mut request = call("echo");
        request.log_level = Some(level);
        ask(&stage.upstream, request).await.0.unwrap();
    }
    // Told `info`, which covers `error`; then `debug`.
    assert_eq!(stage.posts("logging/setLevel"), 2);
}

#[tokio::test]
async fn a_connection_is_used_again_after_an_event_stream_too() {
    for path in BOTH {
        let stage = stage(path).await;
        for _ in 0..20 {
            stage.call("split_emoji").await.unwrap();
        }
        let result = stage.call("connections").await.unwrap();
        let connections: u32 = text(&result).parse().unwrap();
        assert!(connections <= 4, "{path}: {connections}");
    }
}

#[tokio::test]
async fn what_a_session_says_aside_reaches_the_call_that_wants_it() {
    let stage = stage("/legacy").await;
    let mut request = call("aside");
    request.log_level = Some(LogLevel::Info);
    let (result, events) = ask(&stage.upstream, request).await;
    result.unwrap();
    assert!(
        matches!(&events[..], [UpstreamEvent::Log(LogLevel::Info, _)]),
        "{events:?}"
    );
    stage.upstream.shutdown().await;
}

#[tokio::test]
async fn a_server_that_changes_its_era_is_looked_at_again() {
    let stage = stage("/turns").await;
    for version in [
        Version::V2025_11_25,
        Version::V2026_07_28,
        Version::V2025_11_25,
    ] {
        stage.call("echo").await.unwrap();
        assert_eq!(stage.upstream.version(), Some(version));
        stage.call("turn").await.unwrap();
    }
}

async fn concrete(path: &str) -> (hostile::Hostile, HttpUpstream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}{path}", listener.local_addr().unwrap());
    let server = hostile::Hostile::default();
    tokio::spawn(server.clone().serve(listener));
    let config: config::Upstream = serde_json::from_value(serde_json::json!({
        "mcp": { "url": url, "allow_private": true },
    }))
    .unwrap();
    let Some(UpstreamKind::Mcp(kind)) = config.kind() else {
        panic!("another kind")
    };
    let outgoing = Outgoing::new(&config::Outgoing::default()).unwrap();
    let clock: SharedClock = Arc::new(SystemClock);
    let id = UpstreamId::from("test");
    let metrics = Arc::new(Metrics::new(0));
    let upstream = HttpUpstream::new(id, kind, &config, &outgoing, clock, metrics).unwrap();
    (server, upstream)
}

async fn deletions(server: &hostile::Hostile) -> usize {
    tokio::time::sleep(Duration::from_millis(100)).await;
    let seen = server.seen();
    seen.iter()
        .filter(|entry| entry["method"] == "DELETE")
        .count()
}

#[tokio::test]
async fn idle_sessions_and_too_many_sessions_are_closed() {
    let (server, upstream) = concrete("/legacy").await;
    // One lock holds 64 sessions: two of these are too many.
    for caller in 0..66 {
        let mut request = call("echo");
        request.caller = CallerKey([16; 32]);
        request.caller.0[1] = caller;
        let (sender, _events) = mpsc::channel(1);
        upstream.request(request, sender).await.unwrap();
    }
    assert_eq!(deletions(&server).await, 2);
    upstream.http.sessions.sweep(Duration::from_mins(1));
    assert_eq!(deletions(&server).await, 2);
    upstream.http.sessions.sweep(Duration::ZERO);
    assert_eq!(deletions(&server).await, 66);
}
