//! The database away (C26): a chosen behaviour. Calls are refused quickly and
//! nothing runs unrecorded; everything else goes on; it heals by itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::support::answer::Answer;
use super::support::config::TOOLGATE;
use super::support::postgres::{self, OwnPostgres};
use super::support::process::Outcome;
use super::support::session::Session;
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

/// How long a refusal may take: two seconds, and some for a busy machine.
const QUICKLY: Duration = Duration::from_millis(3500);

pub(super) struct Stage {
    pub(super) postgres: Arc<OwnPostgres>,
    pub(super) hostile: Helper,
    pub(super) gateway: Gateway,
}

impl Stage {
    /// `acme` is strict, `globex` overlapped.
    pub(super) async fn set() -> Self {
        let postgres = tokio::task::spawn_blocking(OwnPostgres::start)
            .await
            .unwrap();
        Self::over(postgres).await
    }

    pub(super) async fn over(postgres: Arc<OwnPostgres>) -> Self {
        let hostile = Helper::example("upstream_hostile", &[]).await;
        let gateway = Setup::new()
            .yaml("tenants: { globex: { audit: { durability: overlapped } } }")
            .yaml("upstreams: { up: { concurrent: 1000 } }")
            .postgres(&postgres)
            .upstream("up", hostile.config_of("/modern"))
            .start()
            .await;
        Self {
            postgres,
            hostile,
            gateway,
        }
    }

    fn callers(&self) -> [super::support::client::Caller; 2] {
        [self.gateway.user("alice@acme"), self.gateway.other_tenant()]
    }

    /// Both eras and both kinds of durability.
    pub(super) async fn sessions(&self) -> Vec<Session> {
        let mut sessions = Vec::new();
        for caller in self.callers() {
            for era in both() {
                sessions.push(caller.connect(era).await);
            }
        }
        sessions
    }

    pub(super) async fn executed(&self) -> Vec<String> {
        let calls = self.hostile.calls().await;
        let id = |call: &Value| call["params"]["arguments"]["n"].as_str().map(str::to_owned);
        calls.iter().filter_map(id).collect()
    }
}

pub(super) fn refused(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.code(), 1503, "{answer:?}");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait), "{answer:?}");
    assert!(answer.error()["data"]["retryAfterMs"].as_u64().unwrap() <= wait * 1000);
    assert!(answer.message()["id"].is_number(), "the id is echoed");
}

/// What an outage must not touch.
async fn everything_else_answers(gateway: &Gateway, sessions: &mut [Session]) {
    for session in sessions {
        let begun = Instant::now();
        assert!(!session.names().await.is_empty());
        match session.era() {
            Era::Legacy => {
                assert_eq!(session.request("ping", json!({})).await.status, 200);
            }
            Era::Modern => {
                let discovered = session.request("server/discover", json!({})).await;
                assert_eq!(discovered.status, 200);
            }
        }
        let fresh = gateway.user("new@acme").connect(session.era()).await;
        drop(fresh);
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "{:?}",
            begun.elapsed()
        );
    }
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", gateway.url());
    let answer = gateway.http().get(metadata).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(gateway.admin_status("/healthz").await, Some(200));
    assert_eq!(gateway.admin_status("/readyz").await, Some(503));
}

/// Calls go on while `away` is in force; each is refused in time and none runs.
pub(super) async fn calls_are_refused(stage: &Stage, sessions: &[Session], label: &str) {
    let mut calls = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        let mut session = session.clone();
        let name = format!("{label}-{number}");
        calls.push(tokio::spawn(async move {
            for turn in 0..3 {
                let begun = Instant::now();
                let n = format!("{name}-{turn}");
                let answer = session.call("echo", json!({ "n": n })).await;
                let took = begun.elapsed();
                refused(&answer);
                assert!(took < QUICKLY, "{n} took {took:?}");
            }
        }));
    }
    for call in calls {
        call.await.unwrap();
    }
    let ran = stage.executed().await;
    let ran: Vec<_> = ran.iter().filter(|n| n.starts_with(label)).collect();
    assert!(ran.is_empty(), "dispatched without a record: {ran:?}");
}

/// It heals by itself, and a call is on record once.
pub(super) async fn heals(stage: &Stage, sessions: &mut [Session], label: &str) {
    stage.gateway.until_ready().await;
    for (number, session) in sessions.iter_mut().enumerate() {
        let n = format!("{label}-healed-{number}");
        eventually("calls pass again", async || {
            let answer = session.call("echo", json!({ "n": n })).await;
            (answer.status == 200).then_some(())
        })
        .await;
    }
}

/// What was executed is on record, what was answered is finished, nothing is there twice.
pub(super) async fn the_record_is_whole(stage: &Stage) {
    let executed = stage.executed().await;
    let distinct: BTreeSet<&String> = executed.iter().collect();
    assert_eq!(distinct.len(), executed.len(), "a call ran twice");
    let rows = stage
        .gateway
        .rows(
            "select call_id::text, event, count(*) as times from audit_events
             group by call_id, event having count(*) > 1",
        )
        .await;
    assert!(rows.is_empty(), "doubled: {rows:?}");
    let records = stage.gateway.audit(&["--limit", "5000", "--outcome", "ok"]);
    let recorded: BTreeSet<String> = records
        .iter()
        .filter_map(|record| {
            let arguments: Value = serde_json::from_str(record["arguments"].as_str()?).ok()?;
            arguments["n"].as_str().map(str::to_owned)
        })
        .collect();
    for n in executed {
        assert!(recorded.contains(&n), "{n} ran and is not on record");
    }
}

/// C26 a, d.
#[tokio::test]
async fn with_the_database_stopped_or_crashed_calls_are_refused_until_it_is_back() {
    let stage = Stage::set().await;
    let mut sessions = stage.sessions().await;
    heals(&stage, &mut sessions, "before").await;
    for (label, crash) in [("stopped", false), ("crashed", true)] {
        if crash {
            stage.postgres.crash();
        } else {
            stage.postgres.stop();
        }
        // Overlapped calls are let in until the outage is known: one finds out.
        let found_out = sessions[0]
            .call("echo", json!({"n": format!("{label}-first")}))
            .await;
        refused(&found_out);
        calls_are_refused(&stage, &sessions, label).await;
        everything_else_answers(&stage.gateway, &mut sessions).await;
        stage.postgres.resume();
        heals(&stage, &mut sessions, label).await;
    }
    the_record_is_whole(&stage).await;
}

/// C26 c: a database that takes connections and does not answer.
#[tokio::test]
async fn a_frozen_database_delays_nobody_for_long_and_loses_nothing() {
    let stage = Stage::set().await;
    let mut sessions = stage.sessions().await;
    heals(&stage, &mut sessions, "before").await;
    stage.postgres.freeze();
    let frozen = Instant::now();
    let first = sessions[0].call("echo", json!({"n": "frozen-first"})).await;
    refused(&first);
    assert!(frozen.elapsed() < QUICKLY, "{:?}", frozen.elapsed());
    everything_else_answers(&stage.gateway, &mut sessions).await;
    calls_are_refused(&stage, &sessions[..2], "frozen").await;
    stage.postgres.thaw();
    heals(&stage, &mut sessions, "thawed").await;
    the_record_is_whole(&stage).await;
    let refused: Vec<Value> = eventually(
        "the doubtful call says what its caller was told",
        async || {
            let all = stage.gateway.audit(&["--tool", "echo", "--limit", "1000"]);
            let doubtful: Vec<Value> = all
                .into_iter()
                .filter(|record| {
                    record["arguments"]
                        .as_str()
                        .is_some_and(|text| text.contains("frozen-"))
                })
                .collect();
            doubtful
                .iter()
                .all(|record| record["outcome"] == "refused:audit")
                .then_some(doubtful)
        },
    )
    .await;
    assert!(refused.len() <= 7, "{refused:?}");
}

/// A primary that became a standby refuses writes.
#[tokio::test]
async fn a_database_that_takes_no_writes_counts_as_away() {
    let stage = Stage::set().await;
    let mut sessions = stage.sessions().await;
    heals(&stage, &mut sessions, "before").await;
    let read_only = |on: &str| {
        let setting = format!("alter system set default_transaction_read_only = {on}");
        stage.postgres.psql("postgres", &setting);
        stage.postgres.psql("postgres", "select pg_reload_conf()");
    };
    read_only("on");
    eventually("not ready", async || {
        (stage.gateway.admin_status("/readyz").await == Some(503)).then_some(())
    })
    .await;
    refused(
        &sessions[0]
            .call("echo", json!({"n": "read-only-first"}))
            .await,
    );
    calls_are_refused(&stage, &sessions, "read-only").await;
    everything_else_answers(&stage.gateway, &mut sessions).await;
    read_only("off");
    heals(&stage, &mut sessions, "writable").await;
    the_record_is_whole(&stage).await;
}

/// The database dies between `started` and `finished`: strict and overlapped, both
/// eras, with the headers out and not.
#[tokio::test]
async fn an_outcome_that_cannot_be_recorded_is_withheld() {
    let stage = Stage::set().await;
    let mut calls = Vec::new();
    for (number, session) in stage.sessions().await.into_iter().enumerate() {
        for streamed in [true, false] {
            let mut session = session.clone();
            let n = format!("withheld-{number}-{streamed}");
            let params = json!({"name": "slow", "arguments": {"n": n, "ms": 1500}});
            let mut call = session.prepare("tools/call", params);
            if !streamed {
                call = call.header("accept", "application/json");
            }
            let answering = tokio::spawn(async move { call.send().await });
            calls.push((n, streamed, answering));
        }
    }
    eventually("the tools run", async || {
        (stage.executed().await.len() == calls.len()).then_some(())
    })
    .await;
    // Overlapped: `started` may still be on its way.
    tokio::time::sleep(Duration::from_millis(100)).await;
    stage.postgres.crash();
    let mut withheld = Vec::new();
    for (n, streamed, answering) in calls {
        let answer = answering.await.unwrap();
        assert_eq!(answer.streamed, streamed, "{n}: {answer:?}");
        assert_eq!(answer.status, if streamed { 200 } else { 503 }, "{n}");
        assert_eq!(answer.code(), 1503, "{n}");
        let words = answer.error()["message"].as_str().unwrap();
        assert_eq!(words, "executed, outcome withheld, do not retry");
        assert!(!answer.body.contains(&n), "a byte of the result left");
        assert_eq!(answer.header("retry-after"), None, "not to be retried");
        withheld.push(n);
    }
    stage.postgres.resume();
    stage.gateway.until_ready().await;
    let records = stage.gateway.audit(&["--tool", "slow"]);
    assert_eq!(records.len(), withheld.len());
    for n in withheld {
        let of_call = |record: &&Value| {
            let arguments = record["arguments"].as_str();
            arguments.is_some_and(|text| text.contains(&n))
        };
        let record = records.iter().find(of_call).unwrap();
        let outcome = record["outcome"].as_str().unwrap();
        assert!(["unknown", "withheld"].contains(&outcome), "{record:#}");
    }
}

/// C26: bounded memory under a stream of calls that cannot be recorded.
#[tokio::test]
async fn memory_stays_bounded_while_calls_are_refused() {
    let mut stage = Stage::set().await;
    let sessions = stage.sessions().await;
    stage.postgres.stop();
    let padding = "x".repeat(20_000);
    let flood = |turns: usize| {
        let callers: Vec<_> = (0..100)
            .map(|number| {
                let mut session = sessions[number % sessions.len()].clone();
                let padding = padding.clone();
                tokio::spawn(async move {
                    for _ in 0..turns {
                        let answer = session
                            .call("echo", json!({"n": "flood", "p": padding}))
                            .await;
                        assert_eq!(answer.code(), 1503, "{answer:?}");
                    }
                })
            })
            .collect();
        async move {
            for caller in callers {
                caller.await.unwrap();
            }
        }
    };
    flood(3).await;
    let (before, _) = stage.gateway.process().memory();
    flood(12).await;
    let (after, _) = stage.gateway.process().memory();
    assert!(after < before + 40, "{before} MiB, then {after} MiB");
    assert!(stage.executed().await.len() < 100, "calls ran");
    stage.postgres.resume();
    stage.gateway.until_ready().await;
}

#[tokio::test]
async fn a_service_that_starts_without_its_database_becomes_ready_by_itself() {
    let postgres = tokio::task::spawn_blocking(OwnPostgres::start)
        .await
        .unwrap();
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let mut gateway = Setup::new()
        .postgres(&postgres)
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    let mut known = gateway.user("alice@acme").connect(Era::Legacy).await;
    postgres.stop();
    gateway.kill();
    gateway.start_again_unready().await;
    let mut sessions = vec![
        gateway.user("alice@acme").modern(),
        // Nothing is known of this session here but its seal.
        known.clone(),
    ];
    let begun = Instant::now();
    assert!(!known.names().await.is_empty());
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    everything_else_answers(&gateway, &mut sessions).await;
    for session in &mut sessions {
        let begun = Instant::now();
        refused(&session.call("echo", json!({"n": "cold"})).await);
        assert!(begun.elapsed() < QUICKLY);
    }
    assert!(hostile.calls().await.is_empty());
    postgres.resume();
    gateway.until_ready().await;
    for session in &mut sessions {
        eventually("calls pass", async || {
            (session.call("echo", json!({})).await.status == 200).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_schema_that_is_behind_is_waited_for() {
    let database = postgres::shared().empty_database("behind");
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = Setup::new()
        .yaml(&json!({"database": {"url": database.url()}}).to_string())
        .upstream("up", hostile.config_of("/modern"))
        .start_unready()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("its tools are read", async || {
        let names = alice.request("tools/list", json!({})).await;
        (names.status == 200 && !names.result()["tools"].as_array()?.is_empty()).then_some(())
    })
    .await;
    refused(&alice.call("echo", json!({})).await);
    assert_eq!(gateway.admin_status("/readyz").await, Some(503));
    for _ in 0..2 {
        gateway.command(&["migrate"]);
    }
    gateway.until_ready().await;
    assert_eq!(alice.call("echo", json!({})).await.status, 200);
    drop(gateway);
}

/// C35 e, f.
#[tokio::test]
async fn a_newer_schema_is_lived_with_by_a_replica_that_runs_and_refused_by_one_that_starts() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let mut gateway = Setup::new()
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    gateway.database().psql(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (29990101000000, 'from the future', true, '\\x00', 1)",
    );
    let dump = |gateway: &Gateway| {
        let tables = [
            "audit_events",
            "audit_writers",
            "audit_names",
            "replicas",
            "_sqlx_migrations",
        ];
        let count = |table| {
            gateway.database().psql(&format!(
                "select md5(string_agg(t::text, '' order by t::text)) from {table} t"
            ))
        };
        tables.map(count)
    };
    assert_eq!(gateway.admin_status("/readyz").await, Some(200));
    let mut alice = gateway.user("alice@acme").modern();
    assert_eq!(alice.call("echo", json!({})).await.status, 200);
    assert!(gateway.sigterm_and_wait().await.success());
    let before = dump(&gateway);
    for args in [["serve"], ["migrate"]] {
        let file = gateway.config_file().to_str().unwrap();
        let mut command = std::process::Command::new(TOOLGATE);
        let outcome = Outcome::of(command.args(args).args(["--config", file]));
        assert_eq!(outcome.code, Some(1), "{args:?}: {outcome:?}");
        assert!(outcome.stderr.contains("newer"), "{args:?}: {outcome:?}");
    }
    assert_eq!(dump(&gateway), before, "nothing was changed");
}
