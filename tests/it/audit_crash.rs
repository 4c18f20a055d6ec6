//! `kill -9` in the middle of many calls, over and over, with two replicas: what
//! was answered is finished on record, what ran is on record, nothing is there
//! twice. `make soak` runs it at full size.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::support::{Gateway, Helper, Setup, Value, both, eventually, eventually_within, json};

/// Rounds, and calls in flight in each.
async fn rounds(rounds: usize, calls: usize) {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let mut first = Setup::new()
        .yaml("upstreams: { up: { concurrent: 5000 } }")
        .yaml("tenants: { acme: { limits: { per_user: { rate: 100000/s, burst: 100000, concurrent: 5000 } } } }")
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    let mut second = first.replica().await;
    let mut told = BTreeSet::new();
    for round in 0..rounds {
        told.extend(killed(&mut first, &mut second, round, calls).await);
        first.start_again().await;
        if round % 2 == 1 {
            second.start_again().await;
        }
    }
    assert!(!told.is_empty());
    judge(&first, &hostile, &told).await;
    // The living close what the dead left, each call once, and invent nothing.
    // A replica is gone when four heartbeats of the others went by without its own.
    let patience = Duration::from_mins(2);
    eventually_within(patience, "every call has an end", async || {
        let open = first
            .rows(
                "select s.call_id from audit_events s where s.event = 1 and not exists
                 (select from audit_events e where e.call_id = s.call_id and e.event in (2, 4, 5))",
            )
            .await;
        open.is_empty().then_some(())
    })
    .await;
    judge(&first, &hostile, &told).await;
}

/// One round: calls over both replicas, one of them killed in the middle, every
/// second time both. What clients saw answered.
async fn killed(
    first: &mut Gateway,
    second: &mut Gateway,
    round: usize,
    calls: usize,
) -> BTreeSet<String> {
    let answered = Arc::new(AtomicUsize::new(0));
    let mut sessions = Vec::new();
    for gateway in [&*first, &*second] {
        for era in both() {
            sessions.push(gateway.user("alice@acme").connect(era).await);
        }
    }
    let asked: Vec<_> = (0..calls)
        .map(|number| {
            let name = format!("r{round}-{number}");
            let ms = (number % 10) * 60;
            let params = json!({"name": "slow", "arguments": {"n": name, "ms": ms}});
            let call = sessions[number % 4].prepare("tools/call", params);
            let answered = Arc::clone(&answered);
            tokio::spawn(async move {
                let body = call.try_send().await;
                let told = body.is_some_and(|body| body.contains(&format!("{name}\\\"")));
                answered.fetch_add(usize::from(told), Ordering::Relaxed);
                told.then_some(name)
            })
        })
        .collect();
    eventually("some calls are over", async || {
        (answered.load(Ordering::Relaxed) >= calls / 10).then_some(())
    })
    .await;
    first.kill();
    if round % 2 == 1 {
        second.kill();
    }
    let mut told = BTreeSet::new();
    for call in asked {
        told.extend(call.await.unwrap());
    }
    told
}

async fn judge(gateway: &Gateway, hostile: &Helper, told: &BTreeSet<String>) {
    let name = |call: &Value| call["params"]["arguments"]["n"].as_str().map(str::to_owned);
    let executed: Vec<String> = hostile.calls().await.iter().filter_map(name).collect();
    let distinct: BTreeSet<&String> = executed.iter().collect();
    assert_eq!(distinct.len(), executed.len(), "a call ran twice");
    let doubled =
        "select call_id, event from audit_events group by call_id, event having count(*) > 1";
    assert_eq!(gateway.rows(doubled).await, Vec::<Value>::new());
    let records = gateway
        .rows("select arguments, outcome from audit_calls where tool = 'slow'")
        .await;
    let mut outcomes = BTreeMap::new();
    for record in &records {
        let arguments: Value = serde_json::from_str(record["arguments"].as_str().unwrap()).unwrap();
        let before = outcomes.insert(
            arguments["n"].as_str().unwrap().to_owned(),
            record["outcome"].as_str().unwrap().to_owned(),
        );
        assert_eq!(before, None, "on record twice: {arguments}");
    }
    for n in &executed {
        let outcome = outcomes.get(n).map(String::as_str);
        let right = matches!(outcome, Some("ok" | "unknown"));
        assert!(right, "{n} ran and is on record as {outcome:?}");
    }
    for n in told {
        assert_eq!(
            outcomes.get(n).map(String::as_str),
            Some("ok"),
            "{n} was answered"
        );
    }
    for (n, outcome) in &outcomes {
        // Refused where a busy machine's commit took longer than a caller waits; none of these ran.
        let right = ["ok", "unknown", "refused:audit"].contains(&outcome.as_str());
        assert!(right, "{n}: {outcome}");
    }
}

#[tokio::test]
async fn replicas_killed_in_the_middle_leave_a_true_record() {
    rounds(2, 200).await;
}

#[tokio::test]
#[ignore = "takes minutes: make soak"]
async fn replicas_killed_twenty_times_among_a_thousand_calls_leave_a_true_record() {
    rounds(20, 1000).await;
}
