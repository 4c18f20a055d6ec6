//! The end of a process: killed in the middle, or asked to stop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use tokio::task::JoinHandle;

use super::support::answer::Answer;
use super::support::sse::Events;
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

async fn gateway(hostile: &Helper, fragment: &str) -> Gateway {
    Setup::new()
        .yaml("upstreams: { up: { concurrent: 1000 } }")
        .yaml(fragment)
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await
}

fn number_of(call: &Value) -> Option<String> {
    call["params"]["arguments"]["n"].as_str().map(str::to_owned)
}

/// Nothing ran that is not on record, nothing was told that is not finished,
/// nothing is there twice.
#[tokio::test]
async fn a_process_killed_in_the_middle_leaves_a_true_record() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let mut gateway = gateway(&hostile, "").await;
    let mut asked = Vec::new();
    for number in 0..200 {
        let era = both()[number % 2];
        let mut session = gateway.user("alice@acme").connect(era).await;
        // Some are over by then, some have hardly begun, and every tenth certainly runs.
        let ms = if number % 10 == 9 {
            30_000
        } else {
            (number % 10) * 60
        };
        let arguments = json!({"n": format!("k{number}"), "ms": ms});
        let call = session.prepare(
            "tools/call",
            json!({"name": "slow", "arguments": arguments}),
        );
        asked.push((number, call));
    }
    let answered = Arc::new(AtomicUsize::new(0));
    let calls: Vec<_> = asked
        .into_iter()
        .map(|(number, call)| {
            let answered = Arc::clone(&answered);
            tokio::spawn(async move {
                // A call that is cut off panics in the kit: so it is asked by hand.
                let whole = call.try_send().await;
                let told = whole.is_some_and(|body| body.contains(&format!("k{number}\\\"")));
                answered.fetch_add(usize::from(told), Ordering::Relaxed);
                told.then(|| format!("k{number}"))
            })
        })
        .collect();
    eventually("some calls are over", async || {
        (answered.load(Ordering::Relaxed) >= 20).then_some(())
    })
    .await;
    gateway.kill();
    let mut told = BTreeSet::new();
    for call in calls {
        told.extend(call.await.unwrap());
    }
    assert!(
        (20..200).contains(&told.len()),
        "{} were answered",
        told.len()
    );
    let outcomes = judged(&gateway, &hostile, &told).await;
    assert!(
        outcomes.values().any(|outcome| outcome == "unknown"),
        "all had ended: kill earlier"
    );
    gateway.start_again().await;
    let again = judged(&gateway, &hostile, &told).await;
    assert_eq!(again, outcomes, "the next start invents no outcome");
}

/// Holds the record against what ran and what was told; gives the outcomes by call.
async fn judged(
    gateway: &Gateway,
    hostile: &Helper,
    told: &BTreeSet<String>,
) -> BTreeMap<String, String> {
    let executed: Vec<String> = hostile.calls().await.iter().filter_map(number_of).collect();
    let distinct: BTreeSet<&String> = executed.iter().collect();
    assert_eq!(distinct.len(), executed.len(), "a call ran twice");
    let records = gateway.audit(&["--limit", "1000", "--tool", "slow"]);
    let mut outcomes = BTreeMap::new();
    for record in &records {
        let arguments: Value = serde_json::from_str(record["arguments"].as_str().unwrap()).unwrap();
        let number = arguments["n"].as_str().unwrap().to_owned();
        let outcome = record["outcome"].as_str().unwrap().to_owned();
        let before = outcomes.insert(number.clone(), outcome);
        assert_eq!(before, None, "{number} is on record twice");
    }
    for number in &executed {
        let outcome = outcomes.get(number).map(String::as_str);
        let right = matches!(outcome, Some("ok" | "unknown"));
        assert!(right, "{number} ran and is on record as {outcome:?}");
    }
    for number in told {
        assert_eq!(
            outcomes.get(number).map(String::as_str),
            Some("ok"),
            "{number} was answered"
        );
    }
    for (number, outcome) in &outcomes {
        // Refused where a busy machine's commit took longer than a caller waits; none of these ran.
        let right = ["unknown", "ok", "refused:audit"].contains(&outcome.as_str());
        assert!(right, "{number}: {outcome}");
    }
    outcomes
}

/// Callers that go on while `ready` says so, and fail with the first call that does.
async fn load(
    gateway: &Gateway,
    ready: &Arc<AtomicBool>,
    done: &Arc<AtomicUsize>,
) -> Vec<JoinHandle<()>> {
    let mut load = Vec::new();
    for number in 0..8 {
        let mut session = gateway.user("alice@acme").connect(both()[number % 2]).await;
        let (ready, done) = (Arc::clone(ready), Arc::clone(done));
        load.push(tokio::spawn(async move {
            let mut turn = 0;
            while ready.load(Ordering::Relaxed) {
                let arguments = json!({"n": format!("d{number}-{turn}"), "ms": 20});
                let answer = session.call("slow", arguments).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                assert!(!answer.is_error(), "{answer:?}");
                done.fetch_add(1, Ordering::Relaxed);
                turn += 1;
            }
        }));
    }
    load
}

/// Four open calls that outlast the delay: as JSON and as streams.
async fn long_calls(gateway: &Gateway) -> Vec<JoinHandle<Answer>> {
    let mut long = Vec::new();
    for era in both() {
        for accept in ["application/json", "application/json, text/event-stream"] {
            let mut session = gateway.user("alice@acme").connect(era).await;
            let arguments = json!({"n": format!("long-{era:?}-{}", accept.len()), "ms": 4000});
            let params = json!({"name": "slow", "arguments": arguments});
            let call = session
                .prepare("tools/call", params)
                .header("accept", accept);
            long.push(tokio::spawn(async move { call.send().await }));
        }
    }
    long
}

async fn ends_gracefully(mut stream: Events) {
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = event.message().or(last);
    }
    assert_eq!(
        last.unwrap()["result"]["resultType"],
        "complete",
        "a graceful end"
    );
}

/// Traffic as a load balancer would send it: not to a replica that is not ready.
#[tokio::test]
async fn an_orderly_stop_fails_no_call_and_records_all() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let stop_after = "server: { drain_delay: 2s, drain_timeout: 10s }";
    let mut gateway = gateway(&hostile, stop_after).await;
    let ready = Arc::new(AtomicBool::new(true));
    let done = Arc::new(AtomicUsize::new(0));
    let load = load(&gateway, &ready, &done).await;
    let long = long_calls(&gateway).await;
    let mut listening = gateway.user("alice@acme").connect(Era::Modern).await;
    let stream = listening.listen().await;
    eventually("the load runs", async || {
        (done.load(Ordering::Relaxed) > 40).then_some(())
    })
    .await;
    let begun = Instant::now();
    gateway.process().signal(Signal::SIGTERM);
    eventually("readiness is off", async || {
        (gateway.admin_status("/readyz").await == Some(503)).then_some(())
    })
    .await;
    assert!(
        begun.elapsed() < Duration::from_millis(1800),
        "first of all"
    );
    assert_eq!(gateway.admin_status("/healthz").await, Some(200));
    let late = gateway
        .user("alice@acme")
        .modern()
        .call("echo", json!({"n": "late"}))
        .await;
    assert_eq!(late.status, 200, "served while the balancer finds out");
    ready.store(false, Ordering::Relaxed);
    for call in load {
        call.await.unwrap();
    }
    ends_gracefully(stream).await;
    eventually("new connections are refused", async || {
        let address = gateway.url().trim_start_matches("http://");
        tokio::net::TcpStream::connect(address).await.err()
    })
    .await;
    for call in long {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("long-"), "{answer:?}");
    }
    let status = gateway.process().wait(Duration::from_secs(10)).unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(12),
        "{:?}",
        begun.elapsed()
    );
    let executed = hostile.calls().await.len();
    assert_eq!(executed, done.load(Ordering::Relaxed) + 4 + 1);
    let records = gateway.audit(&["--limit", "10000"]);
    assert_eq!(records.len(), executed);
    let open = records.iter().find(|record| record["outcome"] != "ok");
    assert_eq!(open, None, "a call is not finished on record");
    // Whole, and every writer's last checkpoint is signed: nothing less has this code.
    let verified = gateway.outcome(&["audit", "verify", "--json"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
}

#[tokio::test]
async fn a_call_that_outlasts_the_drain_is_cut_and_reads_unknown() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let mut gateway = gateway(&hostile, "server: { drain_timeout: 1s }").await;
    let mut session = gateway.user("alice@acme").modern();
    let call = session.prepare(
        "tools/call",
        json!({"name": "hang", "arguments": {"n": "h"}}),
    );
    let asked = tokio::spawn(async move { call.try_send().await });
    eventually("it runs", async || {
        (hostile.calls().await.len() == 1).then_some(())
    })
    .await;
    let begun = Instant::now();
    let status = gateway.sigterm_and_wait().await;
    assert_eq!(status.code(), Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    asked.await.unwrap();
    let records = gateway.audit(&["--tool", "hang"]);
    assert_eq!(records[0]["outcome"], "unknown", "{records:?}");
}
