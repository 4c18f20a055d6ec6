//! Legacy sessions over restarts and replicas (C11): any replica serves them, the
//! token is checked each time, and what is gone is 404 everywhere.

use std::time::{Duration, Instant};

use super::support::answer::Answer;
use super::support::session::{LEGACY_VERSIONS, Session};
use super::support::{Era, Gateway, Helper, Setup, Value, eventually, json};

async fn pair() -> (Gateway, Gateway) {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let first = Setup::new().over("up", server).start().await;
    let second = first.replica().await;
    (first, second)
}

/// What a client sees of an answer, its own id aside.
fn seen(answer: &Answer) -> (u16, Vec<String>, String) {
    let names = answer.headers.keys().map(ToString::to_string);
    let id = format!("\"id\":{}", answer.message()["id"]);
    (
        answer.status.as_u16(),
        names.collect(),
        answer.body.replace(&id, ""),
    )
}

#[tokio::test]
async fn a_session_is_served_by_every_replica_and_outlives_them() {
    let (mut first, mut second) = pair().await;
    for version in LEGACY_VERSIONS {
        let caller = first.user("alice@acme");
        let mut here = caller.legacy(version).await;
        let mut there = here.used_by(caller.clone().through(&second));
        // C11 1
        assert!(
            there.names().await.contains(&"echo".to_owned()),
            "{version}"
        );
        let answer = there.call("echo", json!({"text": "x"})).await;
        assert_eq!(
            (answer.text().as_str(), answer.header("mcp-session-id")),
            ("x", None)
        );
        assert_eq!(here.call("echo", json!({"text": "y"})).await.text(), "y");
    }
    let caller = first.user("alice@acme");
    let mut here = caller.connect(Era::Legacy).await;
    let mut there = here.used_by(caller.clone().through(&second));
    // C11 2
    first.restart().await;
    second.restart().await;
    for session in [&mut here, &mut there] {
        assert!(session.names().await.contains(&"echo".to_owned()));
        assert_eq!(session.call("echo", json!({"text": "z"})).await.text(), "z");
        assert_eq!(session.request("ping", json!({})).await.status, 200);
    }
}

#[tokio::test]
async fn an_id_is_no_proof_of_who_calls() {
    let (first, _second) = pair().await;
    let caller = first.user("alice@acme");
    let mut alice = caller.connect(Era::Legacy).await;
    let unknown = alice
        .prepare("tools/list", json!({}))
        .header("mcp-session-id", "nonsense")
        .send()
        .await;
    assert_eq!(unknown.status, 404);
    // C11 4: another tenant, another user, another client of the same user.
    for foreign in [
        first.other_tenant(),
        first.user("carol@acme"),
        caller.clone().with(|token| token.client("another")),
    ] {
        let mut theirs = alice.used_by(foreign);
        let answer = theirs.request("tools/list", json!({})).await;
        assert_eq!(seen(&answer), seen(&unknown));
        assert_eq!(theirs.get(&[]).await.status(), 404);
        assert_eq!(theirs.delete().await.status, 404);
        let answer = theirs.notify("notifications/initialized", json!({})).await;
        assert_eq!(answer.status, 404);
    }
    for nobody in [first.anonymous(), first.anonymous().bearer("nonsense")] {
        let mut theirs = alice.used_by(nobody);
        assert_eq!(theirs.request("tools/list", json!({})).await.status, 401);
        assert_eq!(theirs.get(&[]).await.status(), 401);
        assert_eq!(theirs.delete().await.status, 401);
    }
    // C11 3
    let missing = alice.prepare("tools/list", json!({}));
    let missing = missing.without("mcp-session-id").send().await;
    assert_eq!((missing.status.as_u16(), missing.code()), (400, -32600));
    // The owner is untouched by all that.
    assert!(!alice.names().await.is_empty());
}

#[tokio::test]
async fn an_ended_session_is_gone_everywhere_and_its_stream_closes() {
    let (first, second) = pair().await;
    let caller = first.user("alice@acme");
    // C11 5
    let mut here = caller.connect(Era::Legacy).await;
    let mut there = here.used_by(caller.clone().through(&second));
    assert!(!there.names().await.is_empty());
    let mut stream = there.listen().await;
    assert_eq!(here.delete().await.status, 204);
    let ended = Instant::now();
    assert_eq!(here.request("tools/list", json!({})).await.status, 404);
    eventually("404 on the other replica", async || {
        let answer = there.request("ping", json!({})).await;
        assert!([200, 404].contains(&answer.status.as_u16()), "{answer:?}");
        (answer.status == 404).then_some(())
    })
    .await;
    assert!(
        ended.elapsed() < Duration::from_secs(3),
        "{:?}",
        ended.elapsed()
    );
    assert_eq!(stream.message().await, None);
    for session in [&mut here, &mut there] {
        assert_eq!(session.call("echo", json!({})).await.status, 404);
        assert_eq!(session.get(&[]).await.status(), 404);
        assert_eq!(session.delete().await.status, 404);
        let answer = session.notify("notifications/initialized", json!({})).await;
        assert_eq!(answer.status, 404);
    }
    // The stream may as well be on the replica that is asked to end the session.
    let mut here = caller.connect(Era::Legacy).await;
    let mut stream = here.listen().await;
    assert_eq!(here.delete().await.status, 204);
    assert_eq!(stream.message().await, None);
    // A batch is told the same, so that its client opens another session.
    let old = caller.legacy("2025-03-26").await;
    assert_eq!(old.delete().await.status, 204);
    let batch = old.clone().prepare("ping", json!({}));
    let answer = batch.open_with(format!("[{}]", batch.body)).await;
    assert_eq!(answer.status(), 404);
}

#[tokio::test]
async fn a_modern_request_has_no_session_whatever_it_carries() {
    let (first, _second) = pair().await;
    let caller = first.user("alice@acme");
    let ended = caller.connect(Era::Legacy).await;
    assert_eq!(ended.delete().await.status, 204);
    // C11 6
    let mut modern = caller.modern();
    for id in [ended.id().unwrap(), "nonsense"] {
        for method in ["server/discover", "tools/list"] {
            let request = modern.prepare(method, json!({}));
            let answer = request.header("mcp-session-id", id).send().await;
            assert_eq!(answer.status, 200, "{method}");
            assert_eq!(answer.header("mcp-session-id"), None, "{method}");
        }
    }
}

#[tokio::test]
async fn a_log_level_set_on_one_replica_counts_on_the_other() {
    let (first, second) = pair().await;
    let caller = first.user("alice@acme");
    let mut here = caller.connect(Era::Legacy).await;
    let mut there = here.used_by(caller.clone().through(&second));
    let logs = async |session: &mut Session| {
        let answer = session.call("slow", json!({"ms": 100})).await;
        let said = |message: &&Value| message["method"] == "notifications/message";
        answer.messages.iter().filter(said).count()
    };
    for (level, heard) in [("emergency", false), ("debug", true), ("error", false)] {
        let answer = here
            .request("logging/setLevel", json!({"level": level}))
            .await;
        assert_eq!(answer.status, 200);
        assert_eq!(logs(&mut here).await > 0, heard, "{level}");
        eventually(&format!("{level} counts elsewhere"), async || {
            (logs(&mut there).await > 0).eq(&heard).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_session_id_is_short_visible_and_ends_by_itself() {
    let gateway = Gateway::start("server: { session_lifetime: 3s }").await;
    let caller = gateway.user("alice@acme");
    let long = "é".repeat(5000);
    let params = json!({
        "protocolVersion": "2025-11-25", "clientInfo": {"name": long, "version": long},
        "capabilities": {"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}},
    });
    let mut alice = caller.connect(Era::Legacy).await;
    let opening = alice.prepare("initialize", params);
    let answer = opening.without("mcp-session-id").send().await;
    let id = answer.header("mcp-session-id").unwrap();
    assert!(id.len() <= 512, "{}", id.len());
    assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
    assert_eq!(alice.request("ping", json!({})).await.status, 200);
    let mut stream = alice.listen().await;
    eventually("the session's own end", async || {
        (alice.request("ping", json!({})).await.status == 404).then_some(())
    })
    .await;
    assert_eq!(stream.message().await, None);
}
