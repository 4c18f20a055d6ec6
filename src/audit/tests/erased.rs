//! Erasure: text and salt are gone from every table, and the chains still verify.

use super::*;
use crate::audit::act::Actor;
use crate::audit::checkpoint::{Verifier, public_keys};
use crate::audit::verify::{FindingKind, Quiet, Report, VerifyOptions, verify};
use crate::audit::{Erasure, Kinds, erase};
use crate::config::Durability;
use crate::store::audit_erasures::ErasureTarget;
use crate::store::testing::{TestDatabase, database, number, run};

async fn call_of(auditor: &Auditor, tenant: &str, subject: &str, arguments: &str) -> CallId {
    let facts = CallFacts {
        tenant: tenant.into(),
        subject: subject.into(),
        arguments: ArgumentsRecord::redacted(arguments, arguments.as_bytes()),
        ..facts()
    };
    let recorded = auditor.start(&facts, Durability::Strict).await.unwrap();
    let finish = Finish {
        reason: Some(format!("because {subject} said so")),
        ..ended(Outcome::ToolError)
    };
    let _ = auditor.finish(recorded, finish).await.unwrap();
    facts.call_id
}

const TABLES: [&str; 12] = [
    "audit_events",
    "audit_bodies",
    "audit_callers",
    "audit_names",
    "audit_writers",
    "audit_checkpoints",
    "audit_closings",
    "audit_erasures",
    "replicas",
    "messages",
    "session_states",
    "session_tombstones",
];

/// Rows of any table whose text, as a dump would have it, holds `needle`.
async fn rows_with(database: &TestDatabase, needle: &str) -> i64 {
    let mut found = 0;
    for table in TABLES {
        let sql = format!("SELECT count(*) FROM {table} t WHERE t::text LIKE '%{needle}%'");
        found += number(&database.url, &sql).await;
    }
    found
}

fn erasure(target: ErasureTarget) -> Erasure {
    Erasure {
        target,
        before: None,
        actor: Actor {
            subject: Some("operator".into()),
            ..Actor::default()
        },
        reason: Some("case 7".to_owned()),
    }
}

async fn verified(database: &TestDatabase) -> Report {
    let verifier = Verifier::parse(&public_keys(&keys()).unwrap().to_string()).unwrap();
    let options = VerifyOptions::new(&verifier, SystemClock.now());
    verify(&database.store, &options, &mut Quiet).await.unwrap()
}

async fn assert_clean(database: &TestDatabase) {
    let report = verified(database).await;
    assert!(!report.is_tampered(), "{report:#?}");
}

#[tokio::test]
async fn who_was_emptied_in_the_name_of_a_lawful_erasure_is_missed() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    call_of(&auditor, "acme", "alice", "{}").await;
    call_of(&auditor, "acme", "bob", "{}").await;
    let erasure = erasure(ErasureTarget {
        subject: Some("alice".to_owned()),
        ..ErasureTarget::default()
    });
    let counted = erasure.count(&database.store).await.unwrap();
    let now = SystemClock.now();
    erase(&database.store, &auditor, &erasure, &counted, now)
        .await
        .unwrap();
    auditor.close().await;
    assert_clean(&database).await;
    run(
        &database.url,
        "UPDATE audit_callers SET salt = NULL, issuer = NULL, subject = NULL, client = NULL,
             grant_id = NULL, token_id = NULL, address = NULL, client_info = NULL,
             erased_by = (SELECT erased_by FROM audit_callers WHERE erased_by IS NOT NULL LIMIT 1)
         WHERE subject = 'bob'",
    )
    .await;
    let report = verified(&database).await;
    let kinds: Vec<_> = report.counts.keys().collect();
    assert_eq!(kinds, [&FindingKind::UnrecordedErasure], "{report:#?}");
}

/// Keeps the salts of what alice did, to be looked for after they are erased.
async fn keep_salts(url: &crate::secret::Secret<String>) {
    run(
        url,
        "CREATE TABLE salts AS
         SELECT encode(salt, 'hex') AS salt FROM audit_callers WHERE subject = 'alice'
         UNION ALL SELECT encode(b.salt, 'hex') FROM audit_bodies b WHERE call_id IN (
             SELECT call_id FROM audit_events e JOIN audit_callers c USING (writer_id, caller_id)
             WHERE c.subject = 'alice')",
    )
    .await;
}

#[tokio::test]
async fn nothing_of_a_subject_is_left_anywhere_and_the_chains_verify() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    for n in 0..5 {
        call_of(
            &auditor,
            "acme",
            "alice",
            &format!(r#"{{"n":{n},"note":"zebra"}}"#),
        )
        .await;
    }
    let bob = call_of(&auditor, "acme", "bob", r#"{"note":"plain"}"#).await;
    let refused_of_alice = CallFacts {
        upstream: None,
        tool: "alice_wants".to_owned(),
        ..facts()
    };
    let refusal = refused("visibility", "no such tool");
    let _ = auditor.refuse(&refused_of_alice, refusal).await.unwrap();
    let salts = "SELECT count(*) FROM audit_callers WHERE subject = 'alice' AND salt IS NOT NULL";
    assert!(number(&database.url, salts).await > 0);
    keep_salts(&database.url).await;
    assert!(number(&database.url, "SELECT count(*) FROM salts").await >= 13);
    let erasure = erasure(ErasureTarget {
        subject: Some("alice".to_owned()),
        ..ErasureTarget::default()
    });
    let counted = erasure.count(&database.store).await.unwrap();
    let now = SystemClock.now();
    let erased = erase(&database.store, &auditor, &erasure, &counted, now)
        .await
        .unwrap();
    assert_eq!(
        (erased.callers, erased.bodies),
        (counted.callers, counted.bodies)
    );
    assert!(erased.callers >= 2 && erased.bodies == 11, "{erased:?}");
    for needle in ["alice", "zebra"] {
        assert_eq!(rows_with(&database, needle).await, 0, "{needle}");
    }
    for table in TABLES {
        let sql = format!(
            "SELECT count(*) FROM {table} t JOIN salts ON position(salts.salt IN t::text) > 0"
        );
        assert_eq!(number(&database.url, &sql).await, 0, "a salt in {table}");
    }
    let left = "SELECT count(*) FROM audit_bodies WHERE erased_by IS NOT NULL AND salt IS NOT NULL";
    assert_eq!(number(&database.url, left).await, 0);
    let entry = entry(&database.store, bob).await.unwrap();
    assert_eq!(entry.subject.as_deref(), Some("bob"));
    // What she does afterwards is on record as hers again: writers forget who was erased.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    let later = call_of(&auditor, "acme", "alice", "{}").await;
    let entry = self::entry(&database.store, later).await.unwrap();
    assert_eq!(entry.subject.as_deref(), Some("alice"));
    auditor.close().await;
    assert_clean(&database).await;
}

#[tokio::test]
async fn an_erasure_is_on_record_without_naming_who_was_erased() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    call_of(&auditor, "acme", "alice", "{}").await;
    call_of(&auditor, "globex", "alice", "{}").await;
    let erasure = erasure(ErasureTarget {
        subject: Some("alice".to_owned()),
        tenant: Some("acme".to_owned()),
        ..ErasureTarget::default()
    });
    let counted = erasure.count(&database.store).await.unwrap();
    assert_eq!(
        (counted.callers, counted.bodies),
        (1, 2),
        "one tenant's alone"
    );
    erase(
        &database.store,
        &auditor,
        &erasure,
        &counted,
        SystemClock.now(),
    )
    .await
    .unwrap();
    let filter = Filter {
        kinds: Kinds::of_word("administration").unwrap(),
        ..Filter::default()
    };
    let page = search(&database.store, &filter, None, 10).await.unwrap();
    let actions: Vec<_> = page.entries.iter().map(|e| e.action.as_deref()).collect();
    assert_eq!(actions, [Some("audit.erased"), Some("audit.erase")]);
    let [done, begun] = &page.entries[..] else {
        panic!("{page:?}")
    };
    assert_eq!(done.first_call_id, Some(begun.call_id));
    let details = begun.details.as_deref().unwrap();
    assert!(
        details.contains(r#""tenant":"acme""#) && !details.contains("alice"),
        "{details}"
    );
    assert_eq!(begun.subject.as_deref(), Some("operator"));
    auditor.close().await;
    assert_clean(&database).await;
}

#[tokio::test]
async fn text_is_found_wherever_it_stands() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    call_of(&auditor, "acme", "bob", r#"{"card":"4000 0566"}"#).await;
    call_of(&auditor, "acme", "bob", r#"{"card":"none"}"#).await;
    let erasure = erasure(ErasureTarget {
        text: Some("4000 0566".to_owned()),
        ..ErasureTarget::default()
    });
    let counted = erasure.count(&database.store).await.unwrap();
    assert_eq!((counted.callers, counted.bodies), (0, 1));
    erase(
        &database.store,
        &auditor,
        &erasure,
        &counted,
        SystemClock.now(),
    )
    .await
    .unwrap();
    assert_eq!(rows_with(&database, "4000 0566").await, 0);
    assert_eq!(rows_with(&database, "none").await, 1);
    auditor.close().await;
    assert_clean(&database).await;
}
