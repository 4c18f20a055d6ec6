//! The tables against a real Postgres.

use std::time::Duration;

use sqlx::{Connection, PgConnection};
use time::macros::date;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::audit_partitions::{PARTITION_DAYS, Placed, days_ahead};
use super::embedded::{Embedded, EmbeddedFault};
use super::listen::Wake;
use super::testing::{
    connect, database, database_settings, fresh_name, named, now, number, run, scratch, server,
    settings, watchdog,
};
use super::{SchemaState, StoreError, migrate};
use crate::clock::{SystemClock, new_replica_id, new_session_id};
use crate::ids::TenantId;
use crate::protocol::LogLevel;

#[tokio::test]
async fn an_empty_database_is_behind_until_it_is_migrated_even_by_two_at_once() {
    let database = database().await;
    let name = fresh_name();
    run(&database.url, &format!("CREATE DATABASE {name}")).await;
    let url = named(&database.url, &name);
    let store = connect(&url);
    assert_eq!(store.schema_state().await, Ok(SchemaState::Behind));
    let today = now().date();
    let settings = database_settings(&url);
    let (first, second) = tokio::join!(migrate(&settings, today), migrate(&settings, today));
    assert_eq!((first, second), (Ok(None), Ok(None)));
    assert_eq!(store.schema_state().await, Ok(SchemaState::Current));
}

#[tokio::test]
async fn a_newer_schema_is_told_and_not_touched() {
    let database = database().await;
    run(
        &database.url,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99990101000000, 'later', true, '', 0)",
    )
    .await;
    assert_eq!(database.store.schema_state().await, Ok(SchemaState::Newer));
    let refused = migrate(&database_settings(&database.url), now().date()).await;
    assert!(matches!(
        refused,
        Err(StoreError::SchemaNewer {
            found: 99_990_101_000_000,
            ..
        })
    ));
}

#[tokio::test]
async fn partitions_are_made_once_by_whoever_comes_first() {
    let database = database().await;
    let day = date!(2031 - 02 - 27);
    let make = async || {
        let mut upkeep = database.store.partition_upkeep().await.unwrap().unwrap();
        for day in days_ahead(day) {
            assert_eq!(upkeep.insert_day(day).await, Ok(Placed::Moved(0)));
        }
        upkeep.list_days().await.unwrap()
    };
    let (first, second) = tokio::join!(make(), make());
    assert_eq!(first, second);
    assert_eq!(
        first.len(),
        2 * usize::from(PARTITION_DAYS),
        "with those of today"
    );
    // The last microsecond of a day lies in that day, and a day that nobody made in the default.
    for (at, table) in [
        ("2031-02-28 23:59:59.999999+00", "audit_events_20310228"),
        ("2031-03-01 00:00:00+00", "audit_events_20310301"),
        ("2044-01-01 00:00:00+00", "audit_events_default"),
    ] {
        run(
            &database.url,
            &format!(
                "INSERT INTO audit_events (at, sequence, call_id, writer_id, tenant_id, event, leaf, link)
                 VALUES ('{at}', 1, gen_random_uuid(), 1, 1, 1, '', '')"
            ),
        )
        .await;
        let found = format!("SELECT count(*) FROM {table} WHERE at = '{at}'");
        assert_eq!(number(&database.url, &found).await, 1, "{at}");
    }
}

#[tokio::test]
async fn a_day_that_lies_in_the_default_partition_is_moved_whole() {
    let database = database().await;
    run(
        &database.url,
        "INSERT INTO audit_events (at, sequence, call_id, writer_id, tenant_id, event, leaf, link)
         SELECT '2032-05-02 12:00:00+00', n, gen_random_uuid(), 1, 1, 1, '', ''
         FROM generate_series(1, 3) AS n;
         INSERT INTO audit_bodies (call_id, day, event, marks, digest)
         SELECT call_id, '2032-05-02', 1, 0, '' FROM audit_events_default;
         INSERT INTO audit_events (at, sequence, call_id, writer_id, tenant_id, event, leaf, link)
         VALUES ('2032-05-03 00:00:00+00', 4, gen_random_uuid(), 1, 1, 1, '', '')",
    )
    .await;
    let mut upkeep = database.store.partition_upkeep().await.unwrap().unwrap();
    let (day, next) = (date!(2032 - 05 - 02), date!(2032 - 05 - 03));
    assert_eq!(upkeep.list_default_days().await, Ok(vec![day, next]));
    assert_eq!(upkeep.insert_day(day).await, Ok(Placed::Moved(6)));
    assert_eq!(upkeep.list_default_days().await, Ok(vec![next]));
    for (table, rows) in [
        ("audit_events_20320502", 3),
        ("audit_bodies_20320502", 3),
        ("audit_events", 4),
        ("audit_events_default", 1),
    ] {
        let found = format!("SELECT count(*) FROM {table}");
        assert_eq!(number(&database.url, &found).await, rows, "{table}");
    }
}

/// Moving makes whoever writes that day wait.
#[tokio::test]
async fn a_great_day_that_is_still_being_written_waits_until_it_is_over() {
    let database = database().await;
    let today = now().date();
    run(
        &database.url,
        "SELECT audit_drop_partition((now() AT TIME ZONE 'UTC')::date);
         INSERT INTO audit_bodies (call_id, day, event, marks, digest)
         SELECT gen_random_uuid(), (now() AT TIME ZONE 'UTC')::date, 1, 0, ''
         FROM generate_series(1, 50001)",
    )
    .await;
    let mut upkeep = database.store.partition_upkeep().await.unwrap().unwrap();
    assert_eq!(upkeep.insert_day(today).await, Ok(Placed::Waits));
    let figures = database.store.partition_figures().await.unwrap();
    assert_eq!(figures.in_default, 10_001);
    assert!(!figures.days.contains(&today));
    run(&database.url, "DELETE FROM audit_bodies_default WHERE ctid IN (SELECT ctid FROM audit_bodies_default LIMIT 1)").await;
    assert_eq!(upkeep.insert_day(today).await, Ok(Placed::Moved(50_000)));
}

#[tokio::test]
async fn replicas_come_and_go() {
    let store = database().await.store;
    let (here, gone) = (new_replica_id(&SystemClock), new_replica_id(&SystemClock));
    store
        .insert_replica(here, Some("10.0.0.7:8080"), "0.1.0", Duration::from_mins(1))
        .await
        .unwrap();
    store
        .insert_replica(here, None, "0.1.0", Duration::from_mins(1))
        .await
        .unwrap();
    let found = store.find_live_replica(here, 30).await.unwrap().unwrap();
    assert_eq!(found.address.as_deref(), Some("10.0.0.7:8080"));
    assert_eq!(store.find_live_replica(gone, 30).await, Ok(None));
    assert_eq!(store.list_live_replicas(30).await.unwrap().len(), 1);
    assert_eq!(store.delete_dead_replicas(0).await, Ok(1));
    assert_eq!(store.list_live_replicas(30).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_message_wakes_its_replica_and_is_taken_once() {
    let store = database().await.store;
    let (here, there) = (new_replica_id(&SystemClock), new_replica_id(&SystemClock));
    store
        .insert_replica(here, None, "0.1.0", Duration::from_mins(1))
        .await
        .unwrap();
    store
        .insert_replica(there, None, "0.1.0", Duration::from_mins(1))
        .await
        .unwrap();
    let mut listener = store.listen(here, Duration::from_secs(20));
    assert_eq!(listener.next().await, Wake::Poll);

    let id = fresh();
    for _ in 0..2 {
        store
            .insert_message(id, here, "call-1", b"\0cancel")
            .await
            .unwrap();
    }
    let woken = timeout(Duration::from_secs(5), listener.next()).await;
    assert_eq!(woken, Ok(Wake::Message(id)));
    let taken = store.delete_messages(here).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].exchange, "call-1");
    assert_eq!(taken[0].body, b"\0cancel");
    assert_eq!(store.delete_messages(here).await, Ok(Vec::new()));

    let told = store
        .insert_message_for_all(there, 30, "pins", b"x")
        .await
        .unwrap();
    assert_eq!(told, 1);
    let woken = timeout(Duration::from_secs(5), listener.next()).await;
    assert!(matches!(woken, Ok(Wake::Message(_))));
    assert_eq!(store.delete_stale_messages(60).await, Ok(0));
    assert_eq!(store.delete_stale_messages(0).await, Ok(1));
}

#[tokio::test]
async fn a_listener_that_loses_its_connection_listens_again() {
    let database = database().await;
    let here = new_replica_id(&SystemClock);
    let mut listener = database.store.listen(here, Duration::from_secs(20));
    assert_eq!(listener.next().await, Wake::Poll);
    run(
        &database.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'toolgate listen'",
    )
    .await;
    assert_eq!(
        timeout(Duration::from_secs(5), listener.next()).await,
        Ok(Wake::Poll)
    );
    let id = fresh();
    database
        .store
        .insert_message(id, here, "call-2", b"")
        .await
        .unwrap();
    let mut woken = Wake::Poll;
    while woken == Wake::Poll {
        woken = timeout(Duration::from_secs(5), listener.next())
            .await
            .unwrap();
    }
    assert_eq!(woken, Wake::Message(id));
}

#[tokio::test]
async fn what_changes_of_a_session_belongs_to_its_tenant() {
    let store = database().await.store;
    let (acme, globex) = (TenantId::from("acme"), TenantId::from("globex"));
    let session = new_session_id(&SystemClock);
    let at = now();
    store
        .update_log_level(&acme, session, LogLevel::Warning, at)
        .await
        .unwrap();
    let stolen = store
        .update_log_level(&globex, session, LogLevel::Debug, at)
        .await;
    assert_eq!(stolen, Err(StoreError::Inconsistent("session state")));
    let state = store.find_session_state(&acme, session).await.unwrap();
    assert_eq!(state.unwrap().log_level, Some(LogLevel::Warning));
    assert_eq!(store.find_session_state(&globex, session).await, Ok(None));

    let until = at + time::Duration::hours(1);
    store.insert_tombstone(&acme, session, until).await.unwrap();
    assert_eq!(store.find_session_state(&acme, session).await, Ok(None));
    assert!(
        store
            .find_tombstone(&acme, session)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(store.find_tombstone(&globex, session).await, Ok(None));
    assert_eq!(store.list_tombstones(at).await.unwrap().len(), 1);
    assert_eq!(store.delete_expired_sessions(until, at).await, Ok(1));
}

#[tokio::test]
async fn a_statement_that_hangs_ends_in_time() {
    let database = database().await;
    let mut holder = PgConnection::connect(database.url.expose()).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE replicas IN ACCESS EXCLUSIVE MODE")
        .execute(&mut holder)
        .await
        .unwrap();
    let begun = Instant::now();
    let replica = new_replica_id(&SystemClock);
    let outcome = database
        .store
        .insert_replica(replica, None, "0", Duration::from_mins(1))
        .await;
    assert!(outcome.is_err());
    assert!(begun.elapsed() < Duration::from_millis(2_500));
    holder.close().await.unwrap();
    database
        .store
        .insert_replica(replica, None, "0", Duration::from_mins(1))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_store_starts_while_the_database_is_away() {
    let url = crate::secret::Secret::new("postgres://nobody:hunter2@127.0.0.1:9/none".to_owned());
    let store = connect(&url);
    let begun = Instant::now();
    let away = store.ping().await.unwrap_err();
    assert!(matches!(away, StoreError::Unavailable(_)));
    assert!(!format!("{away} {away:?} {store:?}").contains("hunter2"));
    assert!(begun.elapsed() < Duration::from_millis(2_500));
}

#[tokio::test]
async fn data_outlives_a_stop_and_a_second_process_is_kept_out() {
    let server = server().await;
    let url = server.embedded.url().clone();
    migrate(&database_settings(&url), now().date())
        .await
        .unwrap();
    let replica = new_replica_id(&SystemClock);
    connect(&url)
        .insert_replica(replica, None, "0.1.0", Duration::from_mins(1))
        .await
        .unwrap();
    let second = Embedded::start(&settings(&server.directory)).await;
    assert!(matches!(second, Err(EmbeddedFault::InUse(_))));

    server.embedded.stop().await.unwrap();
    assert_eq!(server.embedded.server_id(), None);
    let directory = server.directory.clone();
    drop(server.embedded);
    // A stranger has the number of the server that was: this very process.
    let mark = directory.join("data/postmaster.pid");
    std::fs::write(&mark, format!("{}\n", std::process::id())).unwrap();
    let again = Embedded::start(&settings(&directory)).await.unwrap();
    assert_eq!(again.url(), &url);
    let found = connect(&url)
        .find_live_replica(replica, 3600)
        .await
        .unwrap();
    assert!(found.is_some());
    again.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_outlived_its_process_is_ended_and_its_data_kept() {
    let directory = scratch();
    let _watchdog = watchdog(&directory);
    let first = Embedded::start(&settings(&directory)).await.unwrap();
    let left_over = first.server_id().unwrap();
    let url = first.url().clone();
    run(
        &url,
        "CREATE TABLE kept (n integer); INSERT INTO kept VALUES (7)",
    )
    .await;
    // As if killed: the lock goes, the server stays.
    drop(first);
    let second = Embedded::start(&settings(&directory)).await.unwrap();
    assert_ne!(second.server_id(), Some(left_over));
    assert_eq!(number(&url, "SELECT n::bigint FROM kept").await, 7);
    second.stop().await.unwrap();
}

#[tokio::test]
async fn the_server_runs_as_nobody_special_and_keeps_its_password_to_itself() {
    use std::os::unix::fs::MetadataExt;
    let server = server().await;
    let password = std::fs::metadata(server.directory.join("password")).unwrap();
    assert_eq!(password.mode() & 0o777, 0o600);
    let process = format!("/proc/{}", server.embedded.server_id().unwrap());
    assert_ne!(std::fs::metadata(process).unwrap().uid(), 0);
    assert!(!format!("{:?}", server.embedded).contains(server.embedded.url().expose()));
    let sync = "SELECT count(*) FROM pg_settings WHERE name = 'fsync' AND setting = 'on'";
    assert_eq!(number(server.embedded.url(), sync).await, 1);
    server.embedded.stop().await.unwrap();
}

#[tokio::test]
async fn a_directory_whose_socket_path_would_be_too_long_is_met_on_loopback() {
    let base = scratch();
    let _watchdog = watchdog(&base);
    let directory = base.join("d".repeat(100));
    let embedded = Embedded::start(&settings(&directory)).await.unwrap();
    assert!(embedded.url().expose().contains("@127.0.0.1:"));
    embedded.stop().await.unwrap();
}

fn fresh() -> Uuid {
    new_session_id(&SystemClock).0
}
