//! Streams of answers: what arrives while a tool works, the form of an answer,
//! quiet streams, and what going away or cancelling does (C12, C15).

use std::time::{Duration, Instant};

use super::support::answer::Answer;
use super::support::session::Session;
use super::support::sse::{Events, is_stream};
use super::support::upstream::stdio_example;
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

/// Longer than any test waits: a call that is not cancelled does not end.
const FOREVER: u64 = 120_000;

/// A gateway over the Rust SDK's server in both eras, by both ways.
async fn gateway(yaml: &str) -> Gateway {
    let helper = async |era| Helper::example("upstream_rmcp", &["--era", era]).await;
    let stdio = |era| stdio_example("upstream_rmcp", &["--stdio", "--era", era]);
    let prefixes = r"
        upstreams:
          old: { prefix: old_ }
          new: { prefix: new_ }
          pipe_old: { prefix: pipe_old_ }
          pipe_new: { prefix: pipe_new_ }
    ";
    let gateway = Setup::new()
        .over("old", helper("legacy").await)
        .over("new", helper("modern").await)
        .upstream("pipe_old", stdio("legacy"))
        .upstream("pipe_new", stdio("modern"))
        .yaml(prefixes)
        .yaml(yaml)
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("all upstreams are listed", async || {
        let names = alice.names().await;
        let listed = |prefix| names.contains(&format!("{prefix}slow"));
        UPSTREAMS.into_iter().all(listed).then_some(())
    })
    .await;
    gateway
}

const UPSTREAMS: [&str; 4] = ["old_", "new_", "pipe_old_", "pipe_new_"];

/// The params of a call of `slow`.
fn slow(prefix: &str, millis: u64, meta: &Value) -> Value {
    json!({"name": format!("{prefix}slow"), "arguments": {"ms": millis}, "_meta": meta})
}

fn of<'a>(messages: &'a [Value], method: &str) -> Vec<&'a Value> {
    let found = messages
        .iter()
        .filter(|message| message["method"] == method);
    found.map(|message| &message["params"]).collect()
}

fn logs(answer: &Answer) -> usize {
    of(&answer.messages, "notifications/message").len()
}

#[tokio::test]
async fn progress_and_log_messages_arrive_while_the_tool_works() {
    let gateway = gateway("").await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for prefix in UPSTREAMS {
            let what = format!("{era:?} {prefix}");
            let mut meta = json!({"progressToken": "mine"});
            if era == Era::Modern {
                meta["io.modelcontextprotocol/logLevel"] = json!("info");
            }
            let call = alice.prepare("tools/call", slow(prefix, 800, &meta));
            let mut events = call.stream().await;
            let first = events.message().await.unwrap();
            let begun = Instant::now();
            let mut messages = vec![first];
            messages.extend(events.until_response(&call.id()).await);
            assert!(begun.elapsed() > Duration::from_millis(400), "{what}");
            let steps: Vec<_> = of(&messages, "notifications/progress")
                .into_iter()
                .map(|params| {
                    assert_eq!(params["progressToken"], "mine", "{what}");
                    params["progress"].as_f64().unwrap()
                })
                .collect();
            assert_eq!(steps, [1.0, 2.0, 3.0, 4.0], "{what}");
            let said = of(&messages, "notifications/message");
            assert!(!said.is_empty(), "{what}: {messages:?}");
            assert!(said.iter().all(|log| log["level"] == "info"), "{what}");
            let result = &messages.last().unwrap()["result"];
            assert_eq!(result["content"][0]["text"], "done", "{what}");
        }
    }
}

#[tokio::test]
async fn log_messages_come_only_from_the_level_on_that_was_asked_for() {
    let gateway = gateway("").await;
    let mut modern = gateway.user("alice@acme").modern();
    let mut legacy = gateway.user("alice@acme").connect(Era::Legacy).await;
    for prefix in UPSTREAMS {
        for (level, heard) in [(None, false), (Some("error"), false), (Some("debug"), true)] {
            let mut meta = json!({});
            if let Some(level) = level {
                meta["io.modelcontextprotocol/logLevel"] = json!(level);
            }
            let answer = modern.request("tools/call", slow(prefix, 200, &meta)).await;
            assert_eq!(logs(&answer) > 0, heard, "{prefix} {level:?}: {answer:?}");
        }
        // Without a word of the client: from `info` on.
        for (level, heard) in [(None, true), (Some("error"), false), (Some("info"), true)] {
            if let Some(level) = level {
                let set = legacy.request("logging/setLevel", json!({"level": level}));
                assert_eq!(*set.await.result(), json!({}));
            }
            // A child that all callers share is not believed to speak of one of
            // them until the others have been silent for a while.
            eventually(&format!("{prefix} {level:?}: {heard}"), async || {
                let call = slow(prefix, 200, &json!({}));
                let answer = legacy.request("tools/call", call).await;
                (logs(&answer) > 0).eq(&heard).then_some(())
            })
            .await;
        }
    }
    let wrong = legacy.request("logging/setLevel", json!({"level": "loud"}));
    assert_eq!(wrong.await.code(), -32602);
    let meta = json!({"io.modelcontextprotocol/logLevel": "loud"});
    let wrong = modern.request("tools/call", slow("old_", 1, &meta)).await;
    assert_eq!((wrong.status.as_u16(), wrong.code()), (400, -32602));
}

#[tokio::test]
async fn an_answer_that_comes_first_is_json_and_else_there_is_a_stream() {
    let gateway = gateway("").await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let quick = alice.call("new_echo", json!({"text": "x"})).await;
        assert!(!quick.streamed, "{era:?}");
        assert_eq!(quick.header("content-type"), Some("application/json"));
        let meta = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "info"});
        // One that takes only JSON is told nothing on the way and gets one answer.
        for prefix in ["old_", "pipe_new_"] {
            let answer = alice
                .prepare("tools/call", slow(prefix, 1300, &meta))
                .header("accept", "application/json")
                .send()
                .await;
            assert!(!answer.streamed, "{era:?} {prefix}");
            assert_eq!(answer.messages.len(), 1, "{era:?} {prefix}");
            assert_eq!(answer.text(), "done", "{era:?} {prefix}");
        }
        // One that takes only streams gets a stream of one message.
        let answer = alice
            .prepare(
                "tools/call",
                json!({"name": "new_echo", "arguments": {"text": "x"}}),
            )
            .header("accept", "text/event-stream")
            .send()
            .await;
        assert!(answer.streamed && answer.messages.len() == 1, "{answer:?}");
    }
    // A refusal before anything runs is no stream, however slow the tool would be.
    let mut alice = gateway.user("alice@acme").modern();
    let wrong = json!({"name": "new_slow", "arguments": {"ms": "long"}});
    let answer = alice.request("tools/call", wrong).await;
    assert!(!answer.streamed && answer.is_error(), "{answer:?}");
}

/// C12: what every stream has.
fn assert_stream_headers(what: &str, response: &reqwest::Response) {
    assert!(is_stream(response), "{what}: {response:?}");
    let header = |name| {
        response
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap())
    };
    assert_eq!(header("content-type"), Some("text/event-stream"), "{what}");
    assert!(
        header("cache-control").unwrap().contains("no-cache"),
        "{what}"
    );
    assert_eq!(header("x-accel-buffering"), Some("no"), "{what}");
    assert_eq!(header("content-encoding"), None, "{what}");
}

#[tokio::test]
async fn a_quiet_stream_has_headers_at_once_and_comments_to_live_on() {
    let gateway = gateway("").await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let silent = json!({"io.modelcontextprotocol/logLevel": "emergency"});
        if era == Era::Legacy {
            let level = json!({"level": "emergency"});
            assert_eq!(alice.request("logging/setLevel", level).await.status, 200);
        }
        // C12 1: a call that says nothing for longer than anybody waits.
        let begun = Instant::now();
        let call = alice
            .prepare("tools/call", slow("new_", 4500, &silent))
            .header("accept-encoding", "gzip, br");
        let response = call.open().await;
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(4), "{era:?}: {took:?}");
        assert_stream_headers("call", &response);
        let mut events = Events::new(response).await;
        let mut comments = 0;
        while let Some(event) = events.next().await {
            if event.comment.is_some() {
                comments += 1;
                assert_eq!((event.data.as_str(), event.name), ("", None));
            } else if event.data.is_empty() {
                // The event that a stream begins with, so that it can be taken up.
                assert!(event.id.is_some() && era == Era::Legacy, "{event:?}");
            } else {
                assert_eq!(event.name.as_deref(), Some("message"));
                assert_eq!(event.message().unwrap()["id"], call.id());
            }
        }
        assert!(comments >= 2, "{era:?}: {comments}");
        // C12 2 and 3: nothing happens at all.
        let begun = Instant::now();
        let response = match era {
            Era::Legacy => alice.get(&[("accept-encoding", "gzip")]).await,
            Era::Modern => {
                let wanted = json!({"notifications": {"toolsListChanged": true}});
                let listen = alice.prepare("subscriptions/listen", wanted);
                listen.header("accept-encoding", "gzip").open().await
            }
        };
        assert!(begun.elapsed() < Duration::from_secs(1), "{era:?}");
        assert_stream_headers("quiet", &response);
        let mut events = Events::new(response).await;
        let mut comments = 0;
        let mut messages = Vec::new();
        while comments < 3 {
            let event = events.next().await.expect("the stream goes on");
            assert_ne!(event.name.as_deref(), Some("keepalive"));
            comments += usize::from(event.comment.is_some());
            messages.extend(event.message());
        }
        let acknowledged = usize::from(era == Era::Modern);
        assert_eq!(messages.len(), acknowledged, "{era:?}: {messages:?}");
    }
}

/// How many calls of `slow` an upstream saw cancelled. A refusal by a cap counts
/// as nothing seen yet.
async fn cancelled(session: &mut Session, prefix: &str) -> Option<u64> {
    let answer = session.call(&format!("{prefix}cancelled"), json!({})).await;
    (answer.status == 200).then(|| answer.text().parse().unwrap())
}

/// Waits until the upstream has seen `count` cancelled calls and its only place
/// is free again. How long that takes is bounded, since C15 says 2 s.
async fn until_cancelled(session: &mut Session, prefix: &str, count: u64) {
    let begun = Instant::now();
    eventually(&format!("{prefix}: {count} cancelled"), async || {
        (cancelled(session, prefix).await? == count).then_some(())
    })
    .await;
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{prefix}: {:?}",
        begun.elapsed()
    );
}

/// Waits until a call runs, and a little, so that the upstream has it.
async fn until_running(gateway: &Gateway) {
    eventually("a call in flight", async || {
        let metrics = gateway.metrics().await;
        let line = metrics
            .lines()
            .find(|line| line.starts_with("toolgate_inflight_calls"))?;
        (!line.ends_with(" 0")).then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// One call at a time: of the user, and at each upstream.
const ONE_PLACE: &str = r"
    tenants:
      acme: { limits: { per_user: { rate: 10000/s, burst: 10000, concurrent: 1 } } }
    upstreams:
      old: { concurrent: 1 }
      new: { concurrent: 1 }
      pipe_old: { concurrent: 1 }
      pipe_new: { concurrent: 1 }
";

#[tokio::test]
async fn a_modern_client_that_goes_away_cancels_its_call() {
    let gateway = gateway(ONE_PLACE).await;
    let mut alice = gateway.user("alice@acme").modern();
    for prefix in UPSTREAMS {
        // C15 a: the stream is closed.
        let call = slow(prefix, FOREVER, &json!({"progressToken": 1}));
        let mut events = alice.stream("tools/call", call).await;
        events.notification("notifications/progress").await;
        drop(events);
        until_cancelled(&mut alice, prefix, 1).await;
        // C15 b: the client hangs up while the answer is pending.
        let pending = alice
            .prepare("tools/call", slow(prefix, FOREVER, &json!({})))
            .header("accept", "application/json");
        let waiting = tokio::spawn(async move { pending.open().await });
        until_running(&gateway).await;
        waiting.abort();
        until_cancelled(&mut alice, prefix, 2).await;
        let tool = format!("{prefix}slow");
        let filters = ["--tool", &tool, "--outcome", "cancelled"];
        assert_eq!(gateway.audit_of(&filters, 2).await.len(), 2, "{prefix}");
    }
}

#[tokio::test]
async fn a_legacy_client_that_goes_away_cancels_nothing_and_a_time_limit_holds() {
    let gateway = gateway("upstreams: { new: { timeout: { call: 2s } } }").await;
    let mut alice = gateway.user("alice@acme").connect(Era::Legacy).await;
    // C15 c: the tool ends by itself, …
    for accept in ["application/json", "application/json, text/event-stream"] {
        let call = alice
            .prepare(
                "tools/call",
                slow("old_", 1500, &json!({"progressToken": 1})),
            )
            .header("accept", accept);
        let waiting = tokio::spawn(async move { call.stream().await });
        until_running(&gateway).await;
        waiting.abort();
    }
    gateway
        .audit_of(&["--tool", "old_slow", "--outcome", "ok"], 2)
        .await;
    assert_eq!(cancelled(&mut alice, "old_").await, Some(0));
    // … or by its time limit.
    let call = slow("new_", FOREVER, &json!({"progressToken": 1}));
    drop(alice.stream("tools/call", call).await);
    gateway
        .audit_of(&["--tool", "new_slow", "--outcome", "timeout"], 1)
        .await;
}

#[tokio::test]
async fn a_legacy_client_cancels_by_notification_through_any_replica() {
    let gateway = gateway(ONE_PLACE).await;
    let replica = gateway.replica().await;
    let caller = gateway.user("alice@acme");
    let mut alice = caller.connect(Era::Legacy).await;
    let elsewhere = alice.used_by(caller.clone().through(&replica));
    let stranger = caller.connect(Era::Legacy).await;
    for prefix in UPSTREAMS {
        for (count, (messenger, streams)) in [
            (&elsewhere, true),
            (&alice.clone(), true),
            (&elsewhere, false),
        ]
        .into_iter()
        .enumerate()
        {
            let what = format!("{prefix} {count}");
            let mut call = alice.prepare(
                "tools/call",
                slow(prefix, FOREVER, &json!({"progressToken": 1})),
            );
            if !streams {
                call = call.header("accept", "application/json");
            }
            let id = call.id();
            let answering = tokio::spawn(async move { call.send().await });
            until_running(&gateway).await;
            // Neither another session nor another id means this call.
            let reason = json!({"requestId": id, "reason": "enough"});
            let other = json!({"requestId": id.to_string()});
            for (session, params) in [(&stranger, reason.clone()), (messenger, other)] {
                let answer = session.notify("notifications/cancelled", params).await;
                assert_eq!((answer.status.as_u16(), answer.body.as_str()), (202, ""));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(!answering.is_finished(), "{what}");
            let answer = messenger.notify("notifications/cancelled", reason).await;
            assert_eq!(answer.status, 202, "{what}");
            // No response to what was cancelled (MCP 2025-11-25 cancellation).
            let answer = answering.await.unwrap();
            let responses = answer.messages.iter().filter(|said| !said["id"].is_null());
            assert_eq!(responses.count(), 0, "{what}: {answer:?}");
            until_cancelled(&mut alice, prefix, count as u64 + 1).await;
        }
        let tool = format!("{prefix}slow");
        let filters = ["--tool", &tool, "--outcome", "cancelled"];
        assert_eq!(gateway.audit_of(&filters, 3).await.len(), 3, "{prefix}");
    }
}

/// C15 d and e.
#[tokio::test]
async fn broken_answers_end_and_a_thousand_calls_share_a_few_connections() {
    let mut hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = Setup::new()
        .upstream("old", hostile.config_of("/legacy"))
        .upstream("new", hostile.config_of("/modern"))
        .yaml(
            r"
            upstreams:
              old: { prefix: old_, breaker: { failures: 1000 } }
              new: { prefix: new_, breaker: { failures: 1000 } }
            ",
        )
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for prefix in ["old_", "new_"] {
            for way in ["die", "die_sse"] {
                let params = json!({"name": format!("{prefix}{way}"), "arguments": {}});
                let call = alice.prepare("tools/call", params);
                let answer = call.send().await;
                assert_eq!(answer.message()["id"], call.id());
                assert!(answer.is_error(), "{era:?} {prefix}{way}: {answer:?}");
            }
        }
    }
    let mut alice = gateway.user("alice@acme").modern();
    for prefix in ["old_", "new_"] {
        let connections = format!("{prefix}connections");
        let before = alice.call(&connections, json!({})).await.text();
        let before: u64 = before.parse().unwrap();
        for _ in 0..500 {
            let answer = alice.call(&format!("{prefix}echo"), json!({})).await;
            assert_eq!(answer.status, 200);
        }
        let after: u64 = alice
            .call(&connections, json!({}))
            .await
            .text()
            .parse()
            .unwrap();
        assert!(after - before < 10, "{prefix}: {before} to {after}");
    }
    assert!(hostile.process().ended().is_none());
}
