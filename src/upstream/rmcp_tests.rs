//! The HTTP kind against a server made with the official SDK, in both eras.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::*;
use crate::clock::SystemClock;
use crate::protocol::{LogLevel, UpstreamEvent};
use crate::telemetry::metrics::Metrics;

#[path = "../../examples/upstream_rmcp/server.rs"]
pub(super) mod rmcp_server;

use rmcp_server::{Era, Server};

async fn stage(era: Era) -> Arc<dyn Upstream> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(Server::new(era).serve_http(listener));
    let config: config::Upstream =
        serde_json::from_value(json!({ "mcp": { "url": url, "allow_private": true } })).unwrap();
    let outgoing = Outgoing::new(&config::Outgoing::default()).unwrap();
    let clock: SharedClock = Arc::new(SystemClock);
    let metrics = Arc::new(Metrics::new(0));
    build(
        UpstreamId::from("rmcp"),
        &config,
        &outgoing,
        &clock,
        &metrics,
    )
    .unwrap()
}

fn request(method: &'static str, params: &Value) -> UpstreamRequest {
    let deadline = Instant::now() + Duration::from_secs(10);
    UpstreamRequest::own(method, Json::from_value(params), deadline)
}

fn call(tool: &str, arguments: &Value) -> UpstreamRequest {
    UpstreamRequest {
        name: Some(tool.to_owned()),
        caller: CallerKey([1; 32]),
        ..request(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }
}

async fn ask(upstream: &Arc<dyn Upstream>, request: UpstreamRequest) -> (Value, Vec<String>) {
    let (sender, mut events) = mpsc::channel(100);
    let result = upstream.request(request, sender).await.unwrap();
    let mut heard = Vec::new();
    while let Ok(event) = events.try_recv() {
        heard.push(match event.open() {
            UpstreamEvent::Progress(json) => format!("progress {}", json.as_str()),
            UpstreamEvent::Log(level, json) => format!("{} {}", level.as_str(), json.as_str()),
            other => format!("{other:?}"),
        });
    }
    (result.open().to_value().unwrap(), heard)
}

async fn text(upstream: &Arc<dyn Upstream>, tool: &str, arguments: Value) -> String {
    let (result, _) = ask(upstream, call(tool, &arguments)).await;
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn both_eras_are_told_apart_and_answer_alike() {
    for (era, version) in [
        (Era::Legacy, Version::V2025_11_25),
        (Era::Modern, Version::V2026_07_28),
        (Era::Both, Version::V2026_07_28),
    ] {
        let upstream = stage(era).await;
        assert_eq!(upstream.version(), None);
        let (list, _) = ask(&upstream, request("tools/list", &json!({}))).await;
        assert!(list["tools"].as_array().unwrap().len() >= 9, "{era:?}");
        assert_eq!(upstream.version(), Some(version));
        assert_eq!(
            text(&upstream, "echo", json!({ "text": "hé ✅" })).await,
            "hé ✅"
        );
        assert_eq!(text(&upstream, "add", json!({ "a": 1, "b": 2 })).await, "3");
        assert_eq!(
            text(&upstream, "big", json!({ "kib": 300 })).await.len(),
            300 << 10
        );
        let (failed, _) = ask(&upstream, call("fail", &json!({}))).await;
        assert_eq!(failed["isError"], true);
        let (weather, _) = ask(&upstream, call("structured", &json!({ "city": "Oslo" }))).await;
        assert_eq!(weather["structuredContent"]["celsius"], 21.5);
        upstream.shutdown().await;
    }
}

#[tokio::test]
async fn progress_and_log_messages_arrive_while_the_server_works() {
    for era in [Era::Legacy, Era::Modern] {
        let upstream = stage(era).await;
        let mut slow = call("slow", &json!({ "ms": 400 }));
        slow.progress = true;
        slow.log_level = Some(LogLevel::Info);
        let (_, heard) = ask(&upstream, slow).await;
        let progress = heard.iter().filter(|event| event.starts_with("progress"));
        assert_eq!(progress.count(), 4, "{era:?} {heard:?}");
        let logs = heard.iter().filter(|event| event.starts_with("info"));
        assert_eq!(logs.count(), 4, "{era:?} {heard:?}");
        assert!(!heard.concat().contains("progressToken"));
        let (_, silence) = ask(&upstream, call("slow", &json!({ "ms": 40 }))).await;
        assert!(silence.is_empty(), "{era:?} {silence:?}");
    }
}

#[tokio::test]
async fn dropping_a_call_cancels_it_at_the_server() {
    for era in [Era::Legacy, Era::Modern] {
        let upstream = stage(era).await;
        text(&upstream, "echo", json!({ "text": "" })).await;
        let (sender, _events) = mpsc::channel(8);
        let slow = upstream.request(call("slow", &json!({ "ms": 20_000 })), sender);
        assert!(timeout(Duration::from_secs(1), slow).await.is_err());
        let mut cancelled = String::new();
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cancelled = text(&upstream, "cancelled", json!({})).await;
            if cancelled == "1" {
                break;
            }
        }
        assert_eq!(cancelled, "1", "{era:?}");
    }
}

#[tokio::test]
async fn a_changed_list_of_tools_is_announced() {
    for era in [Era::Legacy, Era::Modern] {
        let upstream = stage(era).await;
        let mut changed = upstream.list_changed();
        ask(&upstream, request("tools/list", &json!({}))).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        changed.mark_unchanged();
        text(&upstream, "change_tools", json!({})).await;
        let heard = timeout(Duration::from_secs(3), changed.changed()).await;
        assert!(heard.is_ok(), "{era:?}");
        upstream.shutdown().await;
    }
}

#[tokio::test]
async fn what_is_not_offered_to_a_legacy_server_is_refused_at_once() {
    let upstream = stage(Era::Legacy).await;
    let answer = text(&upstream, "ask", json!({})).await;
    assert!(answer.starts_with("no roots"), "{answer}");
}
