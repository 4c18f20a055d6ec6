//! Three replicas behind a real load balancer (Debian's haproxy), with Postgres and
//! Redis: one limit, and what becomes of calls, streams, sessions and sign-ins while
//! replicas are exchanged, killed, or lose what they stand on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::support::answer::Answer;
use super::support::asking::{self, able};
use super::support::browser::Browser;
use super::support::fleet::Fleet;
use super::support::load::Load;
use super::support::oauth::{self, body, signed_in, status_at, text};
use super::support::postgres::OwnPostgres;
use super::support::redis::Redis;
use super::support::sign_in::{LOOPBACK, desk, is_out, local_setup, refresh, tokens};
use super::support::{Era, Helper, Setup, Value, both, eventually, eventually_within, json};

/// Nobody waits while a busy machine takes its time.
const PATIENT: &str =
    "{ database: { timeout: 10s }, server: { drain_delay: 1s, drain_timeout: 10s } }";

fn over_redis(redis: &Redis) -> String {
    json!({"redis": {"url": redis.url(), "timeout": "2s"}}).to_string()
}

async fn hostile() -> Helper {
    Helper::example("upstream_hostile", &[]).await
}

async fn until_shared(fleet: &Fleet) {
    for replica in &fleet.replicas {
        eventually("limits are counted together", async || {
            let metrics = replica.metrics().await;
            metrics.contains("toolgate_limits_store_up 1").then_some(())
        })
        .await;
    }
}

/// So many users of acme, through the balancer.
fn users(fleet: &Fleet, count: usize) -> Vec<super::support::client::Caller> {
    let user = |number| fleet.user(&format!("user{number}@acme"));
    (0..count).map(user).collect()
}

/// Every call that ran is on record with its end, once; nothing is there that did not run.
async fn record_is_whole(fleet: &Fleet, hostile: &Helper, passed: usize) {
    let front = fleet.front();
    let twice =
        "select call_id, event from audit_events group by call_id, event having count(*) > 1";
    assert_eq!(front.rows(twice).await, Vec::<Value>::new());
    let counted = front
        .rows("select outcome, count(*) as calls from audit_calls where tool in ('slow', 'h_slow') group by 1")
        .await;
    let of = |outcome: &str| {
        let row = counted.iter().find(|row| row["outcome"] == outcome);
        row.map_or(0, |row| row["calls"].as_i64().unwrap())
    };
    let ran = hostile.calls().await;
    let slow = ran
        .iter()
        .filter(|call| call["params"]["name"] == "slow")
        .count();
    let (ok, untold) = (of("ok"), of("unknown") + of("withheld"));
    assert!(
        ok >= i64::try_from(passed).unwrap(),
        "{passed} were answered: {counted:?}"
    );
    assert!(
        ok + untold >= i64::try_from(slow).unwrap(),
        "{slow} ran: {counted:?}"
    );
}

#[tokio::test]
async fn a_limit_is_exact_to_one_percent_over_three_replicas() {
    let (redis, hostile) = (Redis::start(&[]), hostile().await);
    let fleet = Fleet::start(
        Setup::new()
            .yaml(&over_redis(&redis))
            .yaml("tenants: { acme: { limits: { per_tenant: { rate: 1/h, burst: 400 } } } }")
            .yaml("tenants: { globex: { limits: { per_tenant: { rate: 60/s, burst: 120 } } } }")
            .upstream("up", hostile.config_of("/modern")),
    )
    .await;
    until_shared(&fleet).await;
    // A burst, asked for by many at once.
    let load = Load::start(users(&fleet, 12), "slow", Duration::ZERO).await;
    load.until(400).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let sum = load.stop().await;
    assert_eq!(sum.failed, Vec::<String>::new());
    assert_eq!(sum.passed, 400, "of {} more than that", sum.limited);
    assert!(sum.limited > 0);
    // A rate, over six seconds.
    let callers = (0..12).map(|number| fleet.user(&format!("user{number}@globex")));
    let load = Load::start(callers, "echo", Duration::ZERO).await;
    load.until_more(160).await;
    let (begun, before) = (Instant::now(), load.passed());
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (passed, took) = (load.passed() - before, begun.elapsed());
    let sum = load.stop().await;
    assert!(sum.limited > 0, "more was asked for than the rate");
    let right = 60.0 * took.as_secs_f64();
    let off = f64::from(u32::try_from(passed).unwrap()) - right;
    eprintln!(
        "{passed} passed in {took:?}: {:+.2} % off",
        off * 100.0 / right
    );
    // Two calls may be on their way to us at either end.
    assert!(
        off.abs() < right * 0.01 + 2.0,
        "{passed} passed, {right:.1} would be right"
    );
}

/// A roll-out under load: open streams, sessions of both eras, sign-ins half done.
#[tokio::test]
async fn a_roll_out_under_load_fails_no_call_loses_no_record_and_logs_nobody_out() {
    let (redis, hostile) = (Redis::start(&[]), hostile().await);
    let setup = local_setup()
        .await
        .yaml(PATIENT)
        .yaml(&over_redis(&redis))
        .yaml("upstreams: { hostile: { prefix: h_ } }")
        .upstream("hostile", hostile.config_of("/modern"));
    let mut fleet = Fleet::start(setup).await;
    until_shared(&fleet).await;
    let front = fleet.front();
    let mut held = signed_in(front, &desk(front), "desk", "alice@acme.test").await;
    // Three people are on the consent page, each on whatever replica.
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let browser = Browser::new();
        let page = browser.open(&desk(front)).await;
        waiting.push((browser, page));
    }
    let mut listening = Vec::new();
    for number in 0..6 {
        let caller = fleet.user(&format!("listener{number}@acme"));
        let mut session = caller.connect(Era::Modern).await;
        listening.push(tokio::spawn(async move {
            let mut stream = session.listen().await;
            let mut last = None;
            while let Some(event) = stream.within(Duration::from_mins(1)).await {
                last = event.message().or(last);
                if last.as_ref().is_some_and(|last| last["result"].is_object()) {
                    break;
                }
            }
            last
        }));
    }
    let load = Load::start(users(&fleet, 8), "h_slow", Duration::from_millis(20)).await;
    load.until_more(40).await;
    for number in 0..3 {
        fleet.roll(number).await;
        load.until_more(20).await;
        // Who is signed in stays so, wherever the refresh goes.
        let page = refresh(fleet.front(), "desk", &held).await;
        assert_eq!(page.status, 200, "{page:?}");
        held = body(&page);
    }
    let sum = load.stop().await;
    assert_eq!(sum.failed, Vec::<String>::new(), "{} passed", sum.passed);
    assert_eq!((sum.limited, sum.unavailable), (0, 0));
    for stream in listening {
        let last = stream.await.unwrap().expect("a last word");
        assert_eq!(
            last["result"]["resultType"], "complete",
            "a graceful end: {last}"
        );
    }
    for (browser, page) in waiting {
        let page = browser.press(&page, "approve", &[]).await;
        let mut out = browser.sign_in(&page, "alice@acme.test").await;
        if !is_out(&out) {
            out = browser.press(&out, "approve", &[]).await;
        }
        tokens(fleet.front(), "desk", &out, LOOPBACK).await;
    }
    let access = text(&held, "access_token");
    assert_eq!(status_at(fleet.front(), "/mcp", access).await, 200);
    record_is_whole(&fleet, &hostile, sum.passed).await;
    let open = fleet
        .front()
        .rows("select outcome from audit_calls where outcome not in ('ok')")
        .await;
    assert_eq!(open, Vec::<Value>::new());
    let verified = fleet.front().outcome(&["audit", "verify", "--json"]);
    assert_eq!(
        verified.stdout.matches("\"altered\"").count(),
        0,
        "{}",
        verified.stdout
    );
}

/// What the balancer says of a replica that died.
fn died(words: &str) -> bool {
    words == "the connection broke"
        || words.contains("502 Bad Gateway")
        || words.contains("503 Service")
}

#[tokio::test]
async fn a_killed_replica_takes_its_own_calls_with_it_and_nothing_else() {
    let (redis, hostile) = (Redis::start(&[]), hostile().await);
    let mut fleet = Fleet::start(
        Setup::new()
            .yaml(PATIENT)
            .yaml(&over_redis(&redis))
            .yaml("upstreams: { up: { concurrent: 500 } }")
            .upstream("up", hostile.config_of("/modern")),
    )
    .await;
    until_shared(&fleet).await;
    let mut known = fleet.user("alice@acme").connect(Era::Legacy).await;
    let load = Load::start(users(&fleet, 9), "slow", Duration::from_millis(5)).await;
    load.until_more(50).await;
    fleet.replicas[1].kill();
    fleet.until_up(2).await;
    load.until_more(100).await;
    let sum = load.stop().await;
    assert!(
        sum.failed.iter().all(|words| died(words)),
        "{:?}",
        sum.failed
    );
    assert!(
        sum.failed.len() <= 9,
        "each caller lost one call at most: {:?}",
        sum.failed
    );
    assert_eq!(known.call("slow", json!({"n": "after"})).await.status, 200);
    record_is_whole(&fleet, &hostile, sum.passed).await;
    // What nobody knows the end of is closed by those that live.
    let open = "select s.call_id from audit_events s where s.event = 1 and not exists
         (select from audit_events e where e.call_id = s.call_id and e.event in (2, 4, 5))";
    eventually_within(
        Duration::from_secs(90),
        "every call has an end",
        async || fleet.front().rows(open).await.is_empty().then_some(()),
    )
    .await;
    fleet.replicas[1].start_again().await;
    fleet.until_up(3).await;
}

#[tokio::test]
async fn a_restart_of_postgres_refuses_calls_for_a_while_and_loses_nothing() {
    let (redis, hostile) = (Redis::start(&[]), hostile().await);
    let postgres = tokio::task::spawn_blocking(OwnPostgres::start)
        .await
        .unwrap();
    let fleet = Fleet::start(
        Setup::new()
            .postgres(&postgres)
            .yaml(&over_redis(&redis))
            .upstream("up", hostile.config_of("/modern")),
    )
    .await;
    until_shared(&fleet).await;
    let load = Load::start(users(&fleet, 6), "slow", Duration::from_millis(20)).await;
    load.until_more(30).await;
    let restarting = Arc::clone(&postgres);
    tokio::task::spawn_blocking(move || {
        restarting.stop();
        restarting.resume();
    })
    .await
    .unwrap();
    fleet.until_up(3).await;
    load.until_more(30).await;
    let sum = load.stop().await;
    let others: Vec<_> = sum.failed.iter().filter(|words| !died(words)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(sum.slowest < Duration::from_secs(10), "{:?}", sum.slowest);
    record_is_whole(&fleet, &hostile, sum.passed).await;
}

/// Redis away and back under load: `local` goes on, `refuse` refuses, then both count
/// together again.
#[tokio::test]
async fn redis_may_go_and_come_back_under_load() {
    let (redis, hostile) = (Redis::start(&[]), hostile().await);
    let fleet = Fleet::start(
        Setup::new()
            .yaml(&json!({"redis": {"url": redis.url(), "timeout": "500ms"}}).to_string())
            .yaml("tenants: { globex: { limits: { per_user: { rate: 1000/s, when_away: refuse } } } }")
            .upstream("up", hostile.config_of("/modern")),
    )
    .await;
    until_shared(&fleet).await;
    let callers = (0..4).map(|number| fleet.user(&format!("user{number}@globex")));
    let strict = Load::start(callers, "slow", Duration::from_millis(20)).await;
    let local = Load::start(users(&fleet, 4), "slow", Duration::from_millis(20)).await;
    local.until_more(20).await;
    redis.stop();
    local.until_more(40).await;
    let before = strict.passed();
    local.until_more(40).await;
    assert_eq!(strict.passed(), before, "refused while it is away");
    redis.resume();
    until_shared(&fleet).await;
    strict.until_more(20).await;
    local.until_more(20).await;
    let (strict, local) = (strict.stop().await, local.stop().await);
    assert_eq!((strict.failed, local.failed), (vec![], vec![]));
    assert!(strict.unavailable > 0);
    assert_eq!(
        (local.unavailable, local.limited),
        (0, 0),
        "{local_passed} passed",
        local_passed = local.passed
    );
    assert!(
        local.slowest < Duration::from_secs(5),
        "{:?}",
        local.slowest
    );
}

#[tokio::test]
async fn a_revocation_and_a_changed_configuration_reach_every_replica() {
    let redis = Redis::start(&[]);
    let mut fleet = Fleet::start(local_setup().await.yaml(&over_redis(&redis))).await;
    let front = fleet.front();
    // Over the balancer the steps of a sign-in land on whichever replica.
    let one = signed_in(front, &desk(front), "desk", "alice@acme.test").await;
    let access = text(&one, "access_token");
    let at = |number: usize| {
        fleet
            .front()
            .anonymous()
            .bearer(access)
            .to(&format!("http://{}", fleet.replicas[number].addresses().0))
    };
    for number in 0..3 {
        let answer = at(number).modern().request("tools/list", json!({})).await;
        assert_eq!(answer.status, 200);
    }
    let token = text(&one, "refresh_token");
    let fields = [("token", token), ("client_id", "desk")];
    assert_eq!(
        oauth::post(front, "/oauth/revoke", &fields).await.status,
        200
    );
    let begun = Instant::now();
    for number in 0..3 {
        eventually("the replica knows", async || {
            let answer = at(number).modern().request("tools/list", json!({})).await;
            (answer.status == 401).then_some(())
        })
        .await;
    }
    eprintln!("every replica knew after {:?}", begun.elapsed());
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "on a busy machine too"
    );
    for replica in &mut fleet.replicas {
        replica.reload("tenants: { acme: { tools: { deny: [\"echo\"] } } }");
    }
    for number in 0..3 {
        let mut session = fleet.user_at(number, "alice@acme").modern();
        eventually("the changed file is in force", async || {
            let names = session.names().await;
            (!names.is_empty() && !names.contains(&"echo".to_owned())).then_some(())
        })
        .await;
    }
}

/// The question and the state of an answer that asks.
fn retry(answer: &Answer, tool: &str) -> Value {
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{answer:?}");
    let (key, _) = result["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    json!({
        "name": tool, "arguments": {}, "requestState": result["requestState"],
        "inputResponses": {key: asking::answer(tool)},
    })
}

/// Behind a balancer that takes turns, what belongs to a call comes to some other replica.
#[tokio::test]
async fn retries_cancellations_and_ends_of_sessions_find_their_call() {
    for upstream in both() {
        let server = asking::server(upstream);
        let fleet = Fleet::start(Setup::new().upstream("up", server.config())).await;
        let mut lister = fleet.user("alice@acme").modern();
        eventually("the tools are listed", async || {
            (!lister.names().await.is_empty()).then_some(())
        })
        .await;
        for from in 0..3 {
            let mut here = fleet
                .user_at(from, "alice@acme")
                .able(Era::Modern, able())
                .await;
            let params = json!({"name": "elicit", "arguments": {}});
            let first = here.request("tools/call", params).await;
            let mut there = here.used_by(fleet.user_at((from + 1) % 3, "alice@acme"));
            let last = there.request("tools/call", retry(&first, "elicit")).await;
            assert!(last.text().contains("Ada"), "{last:?}");
        }
    }
    let hostile = hostile().await;
    let fleet = Fleet::start(Setup::new().upstream("up", hostile.config_of("/modern"))).await;
    let mut session = fleet.user_at(0, "alice@acme").connect(Era::Legacy).await;
    let call = session.prepare("tools/call", json!({"name": "hang", "arguments": {}}));
    let id = call.id();
    let answering = tokio::spawn(async move { call.try_send().await });
    eventually("it runs", async || {
        (hostile.calls().await.len() == 1).then_some(())
    })
    .await;
    let elsewhere = session.used_by(fleet.user_at(2, "alice@acme"));
    let word = json!({"requestId": id});
    let taken = elsewhere.notify("notifications/cancelled", word).await;
    assert_eq!(taken.status, 202);
    answering.await.unwrap();
    fleet
        .front()
        .audit_of(&["--tool", "hang", "--outcome", "cancelled"], 1)
        .await;
    assert_eq!(elsewhere.delete().await.status, 204);
    for number in 0..3 {
        let mut ended = session.used_by(fleet.user_at(number, "alice@acme"));
        eventually("the session has ended everywhere", async || {
            let answer = ended.request("tools/list", json!({})).await;
            (answer.status == 404).then_some(())
        })
        .await;
    }
}

/// Readiness off, wait, finish, the graceful end of streams, exit: seen from outside.
#[tokio::test]
async fn a_replica_that_is_asked_to_stop_is_missed_by_nobody() {
    let hostile = hostile().await;
    let mut fleet = Fleet::start(
        Setup::new()
            .yaml("server: { drain_delay: 1500ms, drain_timeout: 10s }")
            .upstream("up", hostile.config_of("/modern")),
    )
    .await;
    let mut streams = Vec::new();
    for number in 0..6 {
        let era = both()[number % 2];
        let mut session = fleet.user(&format!("user{number}@acme")).connect(era).await;
        streams.push((era, session.listen().await));
    }
    let mut long = Vec::new();
    for number in 0..6 {
        let mut session = fleet.user(&format!("user{number}@acme")).modern();
        let arguments = json!({"n": format!("load-{number}"), "ms": 4000});
        let call = session.prepare(
            "tools/call",
            json!({"name": "slow", "arguments": arguments}),
        );
        long.push(tokio::spawn(async move { call.send().await }));
    }
    eventually("they run", async || {
        (hostile.calls().await.len() == 6).then_some(())
    })
    .await;
    let load = Load::start(users(&fleet, 6), "slow", Duration::from_millis(10)).await;
    let begun = Instant::now();
    fleet.replicas[2].process().signal(Signal::SIGTERM);
    fleet.until_up(2).await;
    assert!(
        begun.elapsed() < Duration::from_millis(1400),
        "readiness first: {:?}",
        begun.elapsed()
    );
    assert_eq!(fleet.replicas[2].admin_status("/healthz").await, Some(200));
    let ended = fleet.replicas[2]
        .process()
        .wait(Duration::from_secs(15))
        .unwrap();
    assert_eq!(ended.code(), Some(0));
    assert!(
        begun.elapsed() < Duration::from_millis(1500 + 10_000),
        "within its grace"
    );
    for call in long {
        let answer = call.await.unwrap();
        assert!(answer.text().contains("load-"), "{answer:?}");
    }
    load.until_more(30).await;
    let sum = load.stop().await;
    assert_eq!(sum.failed, Vec::<String>::new());
    assert_eq!((sum.limited, sum.unavailable), (0, 0));
    // A third of the streams were there: they had a graceful end, the others go on.
    let mut ends = 0;
    for (era, mut stream) in streams {
        let mut last = None;
        let mut open = true;
        let until = Instant::now() + Duration::from_millis(1500);
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let Ok(event) = tokio::time::timeout(left, stream.next()).await else {
                break;
            };
            let Some(event) = event else {
                open = false;
                break;
            };
            last = event.message().or(last);
        }
        if !open {
            ends += 1;
            if era == Era::Modern {
                let last = last.expect("a last word");
                assert_eq!(last["result"]["resultType"], "complete", "{last}");
            }
        }
    }
    assert_eq!(ends, 2, "of six streams over three replicas");
}
