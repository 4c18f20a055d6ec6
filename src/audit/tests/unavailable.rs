//! Postgres stopped, frozen, slow, or no primary: calls are refused in time,
//! nothing is told that is not so, and all goes on by itself.

use std::process::Command;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::*;
use crate::audit::AuditFault;
use crate::config::Durability;
use crate::secret::Secret;
use crate::store::migrate;
use crate::store::testing::{
    TestServer, connect, database, database_settings, named, number, run, server,
};

async fn migrated_server() -> (TestServer, Store) {
    let server = server().await;
    let url = server.embedded.url();
    migrate(&database_settings(url), SystemClock.now().date())
        .await
        .unwrap();
    let store = connect(url);
    (server, store)
}

/// A call that starts once the audit is back.
async fn until_it_starts(auditor: &Auditor) -> CallFacts {
    let patience = Instant::now() + Duration::from_secs(10);
    loop {
        let facts = facts();
        match auditor.start(&facts, Durability::Strict).await {
            Ok(recorded) => {
                let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
                return facts;
            }
            Err(fault) => assert!(Instant::now() < patience, "{fault}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_database_that_stops_refuses_calls_in_time_and_serves_again_by_itself() {
    let (server, store) = migrated_server().await;
    let (auditor, noted) = auditor(&store);
    let recorded = auditor.start(&facts(), Durability::Strict).await.unwrap();
    let over = auditor
        .start(&facts(), Durability::Overlapped)
        .await
        .unwrap();
    server.embedded.stop().await.unwrap();

    let begun = Instant::now();
    let calls: Vec<CallFacts> = (0..20).map(|_| facts()).collect();
    let started = calls
        .iter()
        .map(|facts| auditor.start(facts, Durability::Strict));
    for outcome in join_all(started).await {
        assert_eq!(outcome.unwrap_err(), AuditFault::Unavailable);
    }
    let withheld = auditor.finish(recorded, ended(Outcome::Ok)).await;
    assert_eq!(withheld.unwrap_err(), AuditFault::Unavailable);
    assert!(begun.elapsed() < Duration::from_millis(4_500));
    // Known to be away: refused at once, overlapped too.
    let begun = Instant::now();
    for durability in [Durability::Strict, Durability::Overlapped] {
        let refused = auditor.start(&facts(), durability).await;
        assert_eq!(refused.unwrap_err(), AuditFault::Unavailable);
    }
    assert!(begun.elapsed() < Duration::from_millis(500));
    drop(over);

    server.embedded.restart().await.unwrap();
    let facts = until_it_starts(&auditor).await;
    assert_eq!(entry(&store, facts.call_id).await.unwrap().outcome, "ok");
    assert!(!noted.failures.lock().unwrap().is_empty());
    auditor.close().await;
    chained::assert_whole(&store, "acme").await;
    server.embedded.stop().await.unwrap();
}

/// Stops or continues the server process that `lane` of the audit talks to.
async fn signal(url: &Secret<String>, signal: &str, pids: &mut Vec<i64>) {
    if pids.is_empty() {
        let most = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                    AND application_name = 'toolgate audit'";
        for at in 0..number(url, most).await {
            let pid = format!(
                "SELECT pid::bigint FROM pg_stat_activity WHERE datname = current_database()
                 AND application_name = 'toolgate audit' ORDER BY pid OFFSET {at} LIMIT 1"
            );
            pids.push(number(url, &pid).await);
        }
    }
    for pid in pids {
        let status = Command::new("kill")
            .args([signal, &pid.to_string()])
            .status();
        assert!(status.unwrap().success());
    }
}

#[tokio::test]
async fn a_commit_in_doubt_is_settled_once_and_the_record_says_what_the_caller_was_told() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let finished = facts();
    let recorded = auditor.start(&finished, Durability::Strict).await.unwrap();
    let warm = facts();
    let other = auditor.start(&warm, Durability::Strict).await.unwrap();
    let _ = auditor.finish(other, ended(Outcome::Ok)).await.unwrap();

    let mut pids = Vec::new();
    signal(&database.url, "-STOP", &mut pids).await;
    let begun = Instant::now();
    let started = facts();
    let (start, finish) = tokio::join!(
        auditor.start(&started, Durability::Strict),
        auditor.finish(recorded, ended(Outcome::Ok)),
    );
    assert_eq!(start.unwrap_err(), AuditFault::Unavailable);
    assert_eq!(finish.unwrap_err(), AuditFault::Unavailable);
    assert!(begun.elapsed() < Duration::from_millis(2_500));
    // What was sent before the server froze commits after all.
    signal(&database.url, "-CONT", &mut pids).await;

    until_it_starts(&auditor).await;
    auditor.close().await;
    let told = |entry: Option<Entry>| entry.map(|entry| entry.outcome);
    assert_eq!(
        told(entry(&database.store, started.call_id).await).as_deref(),
        Some("refused:audit")
    );
    assert_eq!(
        told(entry(&database.store, finished.call_id).await).as_deref(),
        Some("withheld")
    );
    let twice = "SELECT count(*) FROM (SELECT FROM audit_events
                 GROUP BY call_id, event HAVING count(*) > 1) AS twice";
    assert_eq!(number(&database.url, twice).await, 0);
    chained::assert_whole(&database.store, "acme").await;
}

#[tokio::test]
async fn a_server_that_no_longer_takes_writes_is_left_for_one_that_does() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    until_it_starts(&auditor).await;
    // A demoted primary: it lives on and refuses with 25006.
    let name = database.url.expose().rsplit_once("/t").unwrap().1;
    let name = format!("t{}", name.split_once('?').unwrap().0);
    let other = named(&database.url, "postgres");
    let read_only = format!("ALTER DATABASE {name} SET default_transaction_read_only");
    run(&other, &format!("{read_only} = on")).await;
    let drop_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = 'toolgate audit'";
    run(&database.url, drop_all).await;
    let begun = Instant::now();
    let refused = auditor.start(&facts(), Durability::Strict).await;
    assert_eq!(refused.unwrap_err(), AuditFault::Unavailable);
    assert!(begun.elapsed() < Duration::from_millis(2_500));
    run(&other, &format!("{read_only} = off")).await;
    until_it_starts(&auditor).await;
    auditor.close().await;
    chained::assert_whole(&database.store, "acme").await;
}

#[tokio::test]
async fn a_connection_that_breaks_once_costs_nobody_a_call() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    until_it_starts(&auditor).await;
    run(
        &database.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'toolgate audit'",
    )
    .await;
    let recorded = auditor.start(&facts(), Durability::Strict).await.unwrap();
    let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
    chained::assert_whole(&database.store, "acme").await;
}

#[tokio::test]
async fn a_server_that_took_over_without_the_latest_names_gets_them_again() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    until_it_starts(&auditor).await;
    run(
        &database.url,
        "TRUNCATE audit_names, audit_writers, audit_events, audit_bodies, audit_callers;
         INSERT INTO audit_names (name) SELECT 'other ' || n FROM generate_series(1, 9) AS n;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'toolgate audit'",
    )
    .await;
    let facts = until_it_starts(&auditor).await;
    let entry = entry(&database.store, facts.call_id).await.unwrap();
    assert_eq!(entry.tool.as_deref(), Some("crm_find"));
    assert_eq!(entry.subject.as_deref(), Some("alice"));
    assert_eq!(entry.outcome, "ok");
    chained::assert_whole(&database.store, "acme").await;
}

#[tokio::test]
async fn a_batch_that_is_sent_twice_is_there_once() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let facts = facts();
    let event = crate::audit::event::Event::started(&facts);
    auditor.close().await;
    let until = Instant::now() + Duration::from_secs(5);
    let mut connection = database.store.audit_connection();
    let replica = new_replica_id(&SystemClock);
    let (writer, _) = connection
        .insert_writer(replica, 1, SystemClock.now(), until)
        .await
        .unwrap();
    let again = connection
        .insert_writer(replica, 1, SystemClock.now(), until)
        .await;
    assert_eq!(again, Ok((writer, false)));
    let mut ledger = crate::audit::compose::Ledger::new(writer);
    let names = ledger.unknown_names([&event].into_iter());
    ledger.learn(connection.insert_names(&names, until).await.unwrap());
    let composed = ledger.compose([&event].into_iter()).unwrap();
    for new in [1, 0, 0] {
        let inserted = connection.insert_events(&composed.batch, until).await;
        assert_eq!(inserted, Ok(new));
    }
    for table in ["audit_events", "audit_bodies", "audit_callers"] {
        let rows = format!("SELECT count(*) FROM {table}");
        assert_eq!(number(&database.url, &rows).await, 1, "{table}");
    }
}

#[tokio::test]
async fn a_full_queue_refuses_at_once() {
    let url = Secret::new("postgres://nobody@127.0.0.1:9/none".to_owned());
    let store = connect(&url);
    let (auditor, _) = auditor_with(&store, 1);
    let calls: Vec<CallFacts> = (0..4).map(|_| facts()).collect();
    let begun = Instant::now();
    let mut faults = 0;
    let starts = calls
        .iter()
        .map(|facts| auditor.start(facts, Durability::Strict));
    for outcome in join_all(starts).await {
        assert_eq!(outcome.unwrap_err(), AuditFault::Unavailable);
        faults += 1;
    }
    assert_eq!(faults, 4);
    assert!(begun.elapsed() < Duration::from_millis(2_500));
}
