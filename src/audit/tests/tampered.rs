//! Every way of altering the record that the tables' owner has, and what verification
//! says to it. Each runs on a copy of one small world: two replicas, two tenants, two days.

use std::sync::Arc;

use time::Date;
use tokio::sync::OnceCell;

use super::*;
use crate::audit::act::{Act, ActKind, Actor};
use crate::audit::chain::{Leaf, link};
use crate::audit::checkpoint::{Verifier, public_keys};
use crate::audit::closing::{ClosingFault, close_partition};
use crate::audit::event::hexadecimal;
use crate::audit::verify::{FindingKind, Quiet, Report, VerifyOptions, verify};
use crate::clock::{ManualClock, call_id_at};
use crate::config::Durability;
use crate::ids::TenantId;
use crate::secret::Secret;
use crate::store::testing::{connect, database, fresh_name, named, number, run};

/// A database that was written and left alone.
struct World {
    url: Secret<String>,
    /// What its writers logged.
    log: Vec<String>,
}

static WORLD: OnceCell<World> = OnceCell::const_new();

/// A process that writes, at some time.
fn replica(store: &Store, clock: Arc<ManualClock>) -> Auditor {
    Auditor::spawn(AuditSettings {
        store: store.clone(),
        replica: new_replica_id(&*clock),
        clock,
        observer: Arc::<Noted>::default(),
        queue: 4_096,
        keys: Some(keys()),
    })
}

/// Calls of two tenants, a refusal and an act.
async fn work(auditor: &Auditor, clock: &ManualClock) {
    for (n, tenant) in (0..).zip(["acme", "acme", "globex", "acme", "acme", "globex"]) {
        clock.advance(Duration::from_millis(7));
        let at = clock.now();
        let facts = CallFacts {
            call_id: call_id_at(at),
            at,
            tenant: tenant.into(),
            subject: if n % 2 == 0 { "alice" } else { "bob" }.into(),
            tool: if n == 4 { "crm_count" } else { "crm_find" }.to_owned(),
            ..facts()
        };
        let recorded = auditor.start(&facts, Durability::Strict).await.unwrap();
        let outcome = if n == 3 {
            Outcome::ToolError
        } else {
            Outcome::Ok
        };
        let _ = auditor.finish(recorded, ended(outcome)).await.unwrap();
    }
    let at = clock.now();
    let again = CallFacts {
        call_id: call_id_at(at),
        at,
        ..facts()
    };
    let _ = auditor
        .refuse(&again, refused("scope", "no"))
        .await
        .unwrap();
    let actor = Actor {
        subject: Some("root".into()),
        ..Actor::default()
    };
    let act = Act::new(ActKind::ADMINISTRATION, "audit.open").actor(actor);
    let _ = auditor.act(act.detail("entries", 3)).await.unwrap();
}

async fn world() -> &'static World {
    WORLD
        .get_or_init(async || {
            let database = database().await;
            let now = SystemClock.now();
            let clock = Arc::new(ManualClock::new(now - time::Duration::days(1)));
            let first = replica(&database.store, Arc::clone(&clock));
            work(&first, &clock).await;
            // A checkpoint in between, and an end on the next day.
            tokio::time::sleep(Duration::from_millis(1_300)).await;
            clock.advance(Duration::from_hours(24));
            work(&first, &clock).await;
            first.close().await;
            let second = replica(&database.store, Arc::clone(&clock));
            work(&second, &clock).await;
            second.close().await;
            let log = tokens(&database.store, now).await;
            database.store.close().await;
            World {
                url: database.url,
                log,
            }
        })
        .await
}

async fn tokens(store: &Store, now: time::OffsetDateTime) -> Vec<String> {
    let mut tokens = Vec::new();
    for day in [now.date().previous_day().unwrap(), now.date()] {
        let rows = store.list_checkpoints(day, (i32::MIN, 0), 1_000).await;
        tokens.extend(rows.unwrap().into_iter().map(|row| row.token));
    }
    tokens
}

/// A copy of the world, to be altered.
async fn copy() -> (Secret<String>, Store) {
    static COPYING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let world = world().await;
    let name = fresh_name();
    let original = world.url.expose();
    let original = original
        .split_once('?')
        .unwrap()
        .0
        .rsplit_once('/')
        .unwrap()
        .1;
    let _one = COPYING.lock().await;
    run(
        &named(&world.url, "postgres"),
        &format!("CREATE DATABASE {name} TEMPLATE {original}"),
    )
    .await;
    let url = named(&world.url, &name);
    let store = connect(&url);
    (url, store)
}

fn verifier() -> Verifier {
    Verifier::parse(&public_keys(&keys()).unwrap().to_string()).unwrap()
}

async fn verified(store: &Store, log: &[String]) -> Report {
    let verifier = verifier();
    let options = VerifyOptions {
        logged: log.to_vec(),
        ..VerifyOptions::new(&verifier, SystemClock.now())
    };
    verify(store, &options, &mut Quiet).await.unwrap()
}

async fn verified_days(store: &Store, since: Option<Date>, until: Option<Date>) -> Report {
    let verifier = verifier();
    let options = VerifyOptions {
        since,
        until,
        ..VerifyOptions::new(&verifier, SystemClock.now())
    };
    verify(store, &options, &mut Quiet).await.unwrap()
}

#[tokio::test]
async fn an_untouched_record_is_whole_over_days_replicas_and_tenants_in_any_range() {
    let world = world().await;
    let (_, store) = copy().await;
    let report = verified(&store, &world.log).await;
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.events, 3 * (6 * 2 + 2));
    assert!(report.checkpoints >= 9 && report.chains >= 12, "{report:?}");
    let today = SystemClock.now().date();
    let yesterday = today.previous_day();
    for (since, until) in [
        (None, yesterday),
        (yesterday, yesterday),
        (Some(today), None),
        (yesterday, Some(today)),
    ] {
        let report = verified_days(&store, since, until).await;
        assert!(report.is_clean(), "{since:?} {until:?} {report:#?}");
    }
    let verifier = verifier();
    let options = VerifyOptions {
        tenant: Some("globex".to_owned()),
        ..VerifyOptions::new(&verifier, SystemClock.now())
    };
    let report = verify(&store, &options, &mut Quiet).await.unwrap();
    assert!(report.is_clean() && report.events == 12, "{report:#?}");
}

/// One event of today's: `started` of acme's last call to `crm_find` of the last replica.
const EVENT: &str = "(SELECT call_id FROM audit_events WHERE event = 1 AND sequence = 3 \
    AND tenant_id = (SELECT name_id FROM audit_names WHERE name = 'acme') \
    ORDER BY at DESC LIMIT 1)";

const TAMPERINGS: [(&str, &str, FindingKind); 22] = [
    (
        "an outcome is made to look better",
        "UPDATE audit_events SET outcome_id = (SELECT name_id FROM audit_names WHERE name = 'ok')
         WHERE (call_id, event) IN (SELECT call_id, 2::smallint FROM audit_events e JOIN audit_names o
             ON o.name_id = e.outcome_id WHERE o.name = 'tool_error' LIMIT 1) AND event = 2",
        FindingKind::AlteredEvent,
    ),
    (
        "a size is changed",
        "UPDATE audit_events SET request_bytes = 1 WHERE call_id = EVENT AND event = 1",
        FindingKind::AlteredEvent,
    ),
    (
        "arguments are replaced",
        "UPDATE audit_bodies SET arguments = '{}' WHERE call_id = EVENT",
        FindingKind::AlteredBody,
    ),
    (
        "a body is removed",
        "DELETE FROM audit_bodies WHERE call_id = EVENT AND event = 1",
        FindingKind::AlteredBody,
    ),
    (
        "a body is shown to another tenant",
        "UPDATE audit_bodies SET tenant_id = (SELECT name_id FROM audit_names WHERE name = 'globex')
         WHERE call_id = EVENT",
        FindingKind::AlteredBody,
    ),
    (
        "somebody else is made the caller",
        "UPDATE audit_callers SET subject = 'mallory' WHERE subject = 'bob'",
        FindingKind::AlteredCaller,
    ),
    (
        "a caller is removed",
        "DELETE FROM audit_callers WHERE subject = 'bob'",
        FindingKind::AlteredCaller,
    ),
    (
        "a tool is renamed",
        "UPDATE audit_names SET name = 'crm_fund' WHERE name = 'crm_find'",
        FindingKind::AlteredName,
    ),
    (
        "a tenant is renamed",
        "UPDATE audit_names SET name = 'initech' WHERE name = 'globex'",
        FindingKind::AlteredName,
    ),
    (
        "an event is removed",
        "DELETE FROM audit_events WHERE call_id = EVENT AND event = 1",
        FindingKind::MissingEvents,
    ),
    (
        "the last events of a chain are removed",
        "DELETE FROM audit_events e USING (SELECT max(writer_id) AS w FROM audit_events) m
         WHERE e.writer_id = m.w AND e.sequence >= 1 AND e.tenant_id =
             (SELECT name_id FROM audit_names WHERE name = 'acme')",
        FindingKind::TruncatedTail,
    ),
    (
        "an event is there twice",
        "INSERT INTO audit_events (at, sequence, call_id, writer_id, tenant_id, caller_id, event, leaf, link)
         SELECT at, sequence, gen_random_uuid(), writer_id, tenant_id, caller_id, event, leaf, link
         FROM audit_events WHERE call_id = EVENT AND event = 1",
        FindingKind::DuplicatedEvent,
    ),
    (
        "two events change places",
        "UPDATE audit_events e SET sequence = 5 - e.sequence FROM audit_events k
         WHERE k.call_id = EVENT AND k.event = 1 AND e.writer_id = k.writer_id
           AND e.tenant_id = k.tenant_id AND e.sequence IN (2, 3)",
        FindingKind::ReorderedEvent,
    ),
    (
        "an event is back-dated by hours",
        "UPDATE audit_events SET at = at - interval '3 hours' WHERE call_id = EVENT AND event = 1",
        FindingKind::BackDatedEvent,
    ),
    (
        "an event is back-dated by less than a millisecond",
        "UPDATE audit_events SET at = at - interval '150 microseconds' WHERE call_id = EVENT AND event = 1",
        FindingKind::BackDatedEvent,
    ),
    (
        "an event is moved to another tenant",
        "UPDATE audit_events SET tenant_id = (SELECT name_id FROM audit_names WHERE name = 'globex')
         WHERE call_id = EVENT AND event = 1",
        FindingKind::MovedEvent,
    ),
    (
        "an event is moved to another writer",
        "UPDATE audit_events e SET writer_id = (SELECT min(writer_id) FROM audit_writers w
             WHERE w.lane = 1 AND w.writer_id <> e.writer_id)
         WHERE call_id = EVENT AND event = 1",
        FindingKind::MovedEvent,
    ),
    (
        "a link is changed",
        "UPDATE audit_events SET link = sha256('x') WHERE call_id = EVENT AND event = 1",
        FindingKind::BrokenChain,
    ),
    (
        "a signature is changed",
        "UPDATE audit_checkpoints SET token = left(token, -4) || 'AAAA' WHERE number = 1",
        FindingKind::ForgedCheckpoint,
    ),
    (
        "a checkpoint is put in the place of another",
        "UPDATE audit_checkpoints c SET token = (SELECT token FROM audit_checkpoints o
             WHERE o.writer_id <> c.writer_id LIMIT 1)
         WHERE number = 1 AND writer_id = (SELECT max(writer_id) FROM audit_checkpoints)",
        FindingKind::AlteredCheckpoint,
    ),
    (
        "a checkpoint is removed",
        "DELETE FROM audit_checkpoints WHERE number = 1
         AND writer_id = (SELECT min(writer_id) FROM audit_checkpoints)",
        FindingKind::MissingCheckpoint,
    ),
    (
        "text and salt are removed without an erasure",
        "UPDATE audit_bodies SET salt = NULL, arguments = NULL, arguments_digest = NULL, tool = NULL,
             reason = NULL, findings = NULL WHERE call_id = EVENT",
        FindingKind::UnrecordedErasure,
    ),
];

const MORE: [(&str, &str, FindingKind); 8] = [
    (
        "an erasure is named that never was",
        "UPDATE audit_callers SET salt = NULL, issuer = NULL, subject = NULL, client = NULL,
             grant_id = NULL, token_id = NULL, address = NULL, client_info = NULL,
             erased_by = gen_random_uuid() WHERE subject = 'bob'",
        FindingKind::UnrecordedErasure,
    ),
    (
        "a salt is removed to hide a change",
        "UPDATE audit_callers SET salt = NULL, subject = 'mallory' WHERE subject = 'bob'",
        FindingKind::AlteredCaller,
    ),
    (
        "a writer is unregistered",
        "DELETE FROM audit_writers WHERE writer_id = (SELECT max(writer_id) FROM audit_writers)",
        FindingKind::UnknownWriter,
    ),
    (
        "a writer is registered as older than its process",
        "UPDATE audit_writers SET started_at = started_at - interval '2 days'",
        FindingKind::UnknownWriter,
    ),
    (
        "a writer is registered as newer than what it signed",
        "UPDATE audit_writers SET started_at = started_at + interval '2 days'",
        FindingKind::UnknownWriter,
    ),
    (
        "a final checkpoint is removed",
        "DELETE FROM audit_checkpoints c WHERE number = (SELECT max(number) FROM audit_checkpoints m
             WHERE m.writer_id = c.writer_id)",
        FindingKind::WriterNeverClosed,
    ),
    (
        "all checkpoints are removed",
        "DELETE FROM audit_checkpoints",
        FindingKind::UnsignedTail,
    ),
    (
        "all that a writer wrote is removed",
        "DELETE FROM audit_events WHERE writer_id = (SELECT max(writer_id) FROM audit_writers);
         DELETE FROM audit_checkpoints WHERE writer_id = (SELECT max(writer_id) FROM audit_writers)",
        FindingKind::EmptyWriter,
    ),
];

#[tokio::test]
async fn every_tampering_is_found_and_named_with_its_place() {
    let mut unnoticed = Vec::new();
    for (what, sql, expected) in TAMPERINGS.iter().chain(&MORE) {
        let (url, store) = copy().await;
        run(&url, &sql.replace("EVENT", EVENT)).await;
        let report = verified(&store, &[]).await;
        let named = report.findings.iter().any(|finding| {
            finding.kind == *expected && (finding.writer.is_some() || finding.call_id.is_some())
        });
        if !named {
            unnoticed.push(format!("{what}: {report:#?}"));
        }
        store.close().await;
    }
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}

/// The owner computes everything anew: every digest fits, no signature does.
#[tokio::test]
async fn a_chain_that_was_rewritten_with_all_its_digests_is_found() {
    let (url, store) = copy().await;
    let writer = number(
        &url,
        "SELECT max(writer_id)::int8 FROM audit_writers WHERE lane = 2",
    )
    .await;
    let writer = i32::try_from(writer).unwrap();
    let events = store
        .list_chain(&TenantId::from("acme"), writer, 0, 100)
        .await
        .unwrap();
    let mut previous = crate::audit::chain::GENESIS;
    let mut sql = String::new();
    for event in &events {
        let mut event = event.clone();
        if event.sequence == 2 {
            event.outcome = Some("timeout".to_owned());
            sql.push_str(
                "INSERT INTO audit_names (name) VALUES ('timeout') ON CONFLICT DO NOTHING;",
            );
        }
        let leaf = Leaf::from(&event).digest();
        previous = link(&previous, &leaf);
        let place = format!(
            "WHERE writer_id = {writer} AND sequence = {} AND call_id = '{}';",
            event.sequence, event.call_id
        );
        if event.sequence == 2 {
            sql += "UPDATE audit_events SET outcome_id = (SELECT name_id FROM audit_names WHERE name = 'timeout') ";
            sql += &place;
        }
        let (leaf, head) = (hexadecimal(&leaf), hexadecimal(&previous));
        let set = format!("UPDATE audit_events SET leaf = '\\x{leaf}', link = '\\x{head}' {place}");
        sql += &set;
    }
    run(&url, &sql).await;
    let report = verified(&store, &[]).await;
    let kinds: Vec<_> = report.counts.keys().collect();
    assert_eq!(kinds, [&FindingKind::RewrittenChain], "{report:#?}");
}

/// Tables, checkpoints and registry gone: only the log knows.
#[tokio::test]
async fn the_log_catches_a_table_that_was_rewritten_as_a_whole() {
    let world = world().await;
    let (url, store) = copy().await;
    run(
        &url,
        "DELETE FROM audit_events WHERE writer_id > 3;
         DELETE FROM audit_checkpoints WHERE writer_id > 3;
         DELETE FROM audit_writers WHERE writer_id > 3",
    )
    .await;
    let report = verified(&store, &[]).await;
    assert!(
        !report.is_tampered(),
        "nothing is left to tell: {report:#?}"
    );
    let report = verified(&store, &world.log).await;
    for kind in [FindingKind::MissingCheckpoint, FindingKind::TruncatedTail] {
        assert!(report.counts.contains_key(&kind), "{report:#?}");
    }
}

#[tokio::test]
async fn an_event_that_is_gone_is_missed_in_whatever_range_is_looked_at() {
    let (url, store) = copy().await;
    // The last of yesterday's and the first of today's, on either side of midnight.
    run(
        &url,
        "DELETE FROM audit_events WHERE (writer_id, tenant_id, sequence) IN (
             SELECT writer_id, tenant_id, max(sequence) FROM audit_events
             WHERE at < (now() AT TIME ZONE 'UTC')::date::timestamp AT TIME ZONE 'UTC' AND event = 2
             GROUP BY 1, 2)",
    )
    .await;
    let today = SystemClock.now().date();
    for (since, until) in [(None, today.previous_day()), (Some(today), None)] {
        let report = verified_days(&store, since, until).await;
        assert!(report.is_tampered(), "{since:?} {until:?} {report:#?}");
    }
}

#[tokio::test]
async fn a_day_is_verified_and_closed_before_it_goes_and_what_is_left_verifies() {
    let (url, store) = copy().await;
    let now = SystemClock.now();
    let yesterday = now.date().previous_day().unwrap();
    let drop_day = format!(
        "DELETE FROM audit_events WHERE at < '{0}'::timestamp AT TIME ZONE 'UTC';
         DELETE FROM audit_bodies WHERE day < '{0}'; DELETE FROM audit_callers WHERE day < '{0}'",
        now.date()
    );
    close_partition(&store, &keys(), yesterday, now, false)
        .await
        .unwrap();
    // Closed and not dropped yet, and dropped.
    let report = verified(&store, &[]).await;
    assert!(report.is_clean(), "{report:#?}");
    run(&url, &drop_day).await;
    let report = verified(&store, &world().await.log).await;
    assert!(report.is_clean() && report.dropped_days == 1, "{report:#?}");
    run(&url, "DELETE FROM audit_closings").await;
    let report = verified(&store, &[]).await;
    assert!(
        report.counts.contains_key(&FindingKind::MissingEvents),
        "{report:#?}"
    );
    assert!(
        report.counts.contains_key(&FindingKind::MissingCheckpoint),
        "{report:#?}"
    );
}

#[tokio::test]
async fn a_day_that_does_not_verify_is_not_closed() {
    let (url, store) = copy().await;
    let now = SystemClock.now();
    let yesterday = now.date().previous_day().unwrap();
    run(
        &url,
        "UPDATE audit_events SET request_bytes = 1 WHERE request_bytes IS NOT NULL",
    )
    .await;
    let refused = close_partition(&store, &keys(), yesterday, now, false).await;
    assert!(
        matches!(refused, Err(ClosingFault::Tampered(_))),
        "{refused:?}"
    );
    assert!(store.list_closings().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_writer_that_was_killed_is_named_and_told_apart_from_tampering() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let recorded = auditor.start(&facts(), Durability::Strict).await.unwrap();
    let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
    // Never closed, and no heartbeat of it.
    let report = verified(&database.store, &[]).await;
    assert!(!report.is_tampered() && !report.is_clean(), "{report:#?}");
    assert_eq!(report.counts.get(&FindingKind::WriterNeverClosed), Some(&2));
    drop(auditor);
}
