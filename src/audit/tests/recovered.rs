//! Calls that have no end are closed, once, and by whoever lives.

use super::*;
use crate::audit::Recovery;
use crate::config::Durability;
use crate::ids::ReplicaId;
use crate::store::testing::{TestDatabase, connect, database, number};

struct Replica {
    id: ReplicaId,
    auditor: Auditor,
    recovery: Recovery,
}

/// How long a call may run here.
const LIMIT: Duration = Duration::from_mins(1);

/// A replica has connections of its own.
async fn replica(database: &TestDatabase) -> Replica {
    let store = connect(&database.url);
    let id = new_replica_id(&SystemClock);
    let auditor = Auditor::spawn(AuditSettings {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        replica: id,
        observer: Arc::new(Noted::default()),
        queue: 4_096,
        keys: Some(keys()),
    });
    store.insert_replica(id, None, "0", LIMIT).await.unwrap();
    Replica {
        id,
        auditor,
        recovery: Recovery::new(id),
    }
}

async fn closed(database: &TestDatabase) -> i64 {
    number(
        &database.url,
        "SELECT count(*) FROM audit_events WHERE event = 5",
    )
    .await
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn the_calls_of_a_replica_that_is_gone_are_closed_once_and_nobody_else_s() {
    let database = database().await;
    let store = &database.store;
    let (gone, mut alive, mut third) = (
        replica(&database).await,
        replica(&database).await,
        replica(&database).await,
    );
    let mut lost = Vec::new();
    for _ in 0..3 {
        let facts = facts();
        lost.push((
            facts.call_id,
            gone.auditor
                .start(&facts, Durability::Strict)
                .await
                .unwrap(),
        ));
    }
    let (ended_id, recorded) = lost.pop().unwrap();
    let _ = gone
        .auditor
        .finish(recorded, ended(Outcome::Ok))
        .await
        .unwrap();
    let running = facts();
    let going_on = alive
        .auditor
        .start(&running, Durability::Strict)
        .await
        .unwrap();

    let now = SystemClock.now();
    let looked = alive
        .recovery
        .look(store, &alive.auditor, now)
        .await
        .unwrap();
    assert_eq!(looked.closed, 0, "it may be alive");
    store.update_replica_stopped(gone.id).await.unwrap();
    let (first, second) = tokio::join!(
        alive.recovery.look(store, &alive.auditor, now),
        third.recovery.look(store, &third.auditor, now),
    );
    assert_eq!(first.unwrap().closed + second.unwrap().closed, 2);
    for _ in 0..2 {
        let again = third
            .recovery
            .look(store, &third.auditor, now)
            .await
            .unwrap();
        assert_eq!(again.closed, 0);
    }
    assert_eq!(closed(&database).await, 2);
    for (call_id, _) in &lost {
        assert_eq!(entry(store, *call_id).await.unwrap().outcome, "unknown");
    }
    assert_eq!(entry(store, ended_id).await.unwrap().outcome, "ok");
    assert!(
        !store
            .list_replicas()
            .await
            .unwrap()
            .iter()
            .any(|one| one.id == gone.id)
    );

    // It was only slow: how its call ended is what is read.
    let (call_id, recorded) = lost.pop().unwrap();
    let _ = gone
        .auditor
        .finish(recorded, ended(Outcome::ToolError))
        .await
        .unwrap();
    assert_eq!(entry(store, call_id).await.unwrap().outcome, "tool_error");
    let _ = alive
        .auditor
        .finish(going_on, ended(Outcome::Ok))
        .await
        .unwrap();
    assert_eq!(entry(store, running.call_id).await.unwrap().outcome, "ok");
    chained::assert_whole(store, "acme").await;
}

#[tokio::test]
async fn a_silent_replica_is_gone_only_while_hearts_beat() {
    let database = database().await;
    let store = &database.store;
    let (silent, mut alive) = (replica(&database).await, replica(&database).await);
    drop(
        silent
            .auditor
            .start(&facts(), Durability::Strict)
            .await
            .unwrap(),
    );
    let now = SystemClock.now();
    for look in 0..20 {
        // Nobody's heart beats: the database stood still.
        let looked = alive
            .recovery
            .look(store, &alive.auditor, now)
            .await
            .unwrap();
        assert_eq!(looked.closed, 0, "at look {look}");
    }
    let mut closed = 0;
    for _ in 0..5 {
        store
            .insert_replica(alive.id, None, "0", LIMIT)
            .await
            .unwrap();
        let looked = alive
            .recovery
            .look(store, &alive.auditor, now)
            .await
            .unwrap();
        closed += looked.closed;
    }
    assert_eq!(closed, 1);
}

#[tokio::test]
async fn a_call_beyond_its_deadline_is_closed_whoever_started_it() {
    let database = database().await;
    let store = &database.store;
    let mut alive = replica(&database).await;
    let (late, running) = (facts(), facts());
    drop(
        alive
            .auditor
            .start(&late, Durability::Strict)
            .await
            .unwrap(),
    );
    let open = alive
        .auditor
        .start(&running, Durability::Strict)
        .await
        .unwrap();
    let _ = alive
        .auditor
        .finish(open, ended(Outcome::Ok))
        .await
        .unwrap();
    let minutes = |minutes| SystemClock.now() + time::Duration::minutes(minutes);
    let looked = alive
        .recovery
        .look(store, &alive.auditor, minutes(2))
        .await
        .unwrap();
    assert_eq!(looked.closed, 0, "its outcome may be on its way");
    let mut next = Recovery::new(alive.id);
    let looked = next.look(store, &alive.auditor, minutes(4)).await.unwrap();
    assert_eq!(looked.closed, 1);
    let mut next = Recovery::new(alive.id);
    let looked = next.look(store, &alive.auditor, minutes(90)).await.unwrap();
    assert_eq!((looked.closed, closed(&database).await), (0, 1));
    assert_eq!(entry(store, late.call_id).await.unwrap().outcome, "unknown");
}

#[tokio::test]
async fn counts_of_refusals_are_exact_and_survive_an_orderly_stop() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    for number in 0..500 {
        let reason = ["per_user", "per_tenant"][number % 2];
        let _ = auditor
            .refuse(&facts(), refused("limit", reason))
            .await
            .unwrap();
    }
    auditor.close().await;
    for reason in ["per_user", "per_tenant"] {
        let counted = format!(
            "SELECT sum(calls)::bigint FROM audit_calls
             WHERE outcome = 'refused:limit' AND reason = '{reason}' AND client = 'codex'"
        );
        assert_eq!(number(&database.url, &counted).await, 250, "{reason}");
    }
    let rows = number(&database.url, "SELECT count(*) FROM audit_calls").await;
    assert!(rows < 100, "{rows} rows for 500 refusals");
    let lanes = "SELECT count(*) FROM audit_events e JOIN audit_writers w USING (writer_id)
                 WHERE e.event = 3 AND w.lane <> 3";
    assert_eq!(number(&database.url, lanes).await, 0);
}
