//! What a call leaves behind, and that nothing it says gets in the way.

use futures_util::future::join_all;

use super::*;
use crate::audit::{AuditFault, ReceiptKind};
use crate::config::Durability;
use crate::store::DatabaseSettings;
use crate::store::testing::{database, database_settings, number, run};

#[tokio::test]
async fn a_call_is_on_record_before_it_runs_and_its_outcome_before_it_is_told() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let facts = CallFacts {
        trace_id: Some([0xab; 16]),
        ..facts()
    };
    let recorded = auditor.start(&facts, Durability::Strict).await.unwrap();
    let open = entry(&database.store, facts.call_id).await.unwrap();
    assert_eq!((open.outcome.as_str(), open.finished), ("unknown", None));

    let finish = Finish {
        findings: "email 2 at /content/0/text".to_owned(),
        ..ended(Outcome::ToolError)
    };
    let receipt = auditor.finish(recorded, finish).await.unwrap();
    assert_eq!(receipt.kind(), ReceiptKind::Committed);
    let mut seen = entry(&database.store, facts.call_id).await.unwrap();
    assert!(seen.finished.unwrap() >= seen.time);
    let at = time::OffsetDateTime::UNIX_EPOCH;
    (seen.time, seen.finished, seen.call_id) = (at, Some(at), CallId(uuid::Uuid::nil()));
    insta::assert_snapshot!(serde_json::to_string_pretty(&seen).unwrap(), @r#"
    {
      "time": "1970-01-01T00:00:00.000000Z",
      "call_id": "00000000-0000-0000-0000-000000000000",
      "kind": "call",
      "tenant": "acme",
      "issuer": "https://login.example.com",
      "subject": "alice",
      "client": "codex",
      "token_id": "7d9f1c0a",
      "address": "10.0.0.7",
      "client_info": "codex 0.40",
      "era": "modern",
      "version": "2026-07-28",
      "upstream": "crm",
      "tool": "crm_find",
      "upstream_tool": "find",
      "decision": "allowed",
      "outcome": "tool_error",
      "count": 1,
      "finished": "1970-01-01T00:00:00.000000Z",
      "duration_ms": 2.5,
      "upstream_duration_ms": 1.5,
      "request_bytes": 240,
      "response_bytes": 512,
      "findings": "email 2 at /content/0/text",
      "arguments_mode": "redacted",
      "arguments": "{\"customer\":\"Joe\",\"since\":\"2026-01-01\"}",
      "arguments_bytes": 39,
      "arguments_digest": "de597047bd63fdb502ff404d0334dfb6a50e9367213d4f1e80df21c82f962b59",
      "trace_id": "abababababababababababababababab",
      "definition_digest": "d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1",
      "config_digest": "c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0"
    }
    "#);
}

#[tokio::test]
async fn a_proof_that_is_dropped_leaves_a_call_that_reads_unknown() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    for durability in [Durability::Strict, Durability::Overlapped] {
        let facts = facts();
        drop(auditor.start(&facts, durability).await.unwrap());
        while entry(&database.store, facts.call_id).await.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let entry = entry(&database.store, facts.call_id).await.unwrap();
        assert_eq!(entry.outcome, "unknown");
    }
    auditor.close().await;
    // Nothing was invented.
    let events = "SELECT count(*) FROM audit_events";
    assert_eq!(number(&database.url, events).await, 2);
}

#[tokio::test]
async fn overlapped_needs_both_before_the_answer_and_nothing_before_the_call() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let facts = facts();
    let recorded = auditor.start(&facts, Durability::Overlapped).await.unwrap();
    let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
    let entry = entry(&database.store, facts.call_id).await.unwrap();
    assert_eq!((entry.outcome.as_str(), entry.decision), ("ok", "allowed"));
}

#[tokio::test]
async fn odd_text_loses_neither_its_row_nor_its_batch() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let odd = "{\"a\\u0000b\":\"x\0y\",\"z\":\"\\ud800\",\"n\":1e400}";
    let strange = CallFacts {
        upstream: None,
        tool: format!("n\0{}", "é".repeat(200)),
        subject: "ali\0ce".into(),
        client_info: Some("agent/\0 \u{fffd}".to_owned()),
        arguments: ArgumentsRecord::redacted(odd, odd.as_bytes()),
        ..facts()
    };
    let nul_name = CallFacts {
        tool: "crm_\0".to_owned(),
        tenant: "ac\0me".into(),
        ..facts()
    };
    let good: Vec<CallFacts> = (0..100).map(|_| facts()).collect();
    let all = good.iter().chain([&strange, &nul_name]);
    let started = join_all(all.map(|facts| auditor.start(facts, Durability::Strict))).await;
    assert!(started.iter().all(Result::is_ok), "{started:?}");
    let finish = Finish {
        reason: Some("said \0".to_owned()),
        ..ended(Outcome::UpstreamError)
    };
    for recorded in started.into_iter().flatten() {
        let _ = auditor.finish(recorded, finish.clone()).await.unwrap();
    }
    let count = "SELECT count(*) FROM audit_calls WHERE outcome = 'upstream_error'";
    assert_eq!(number(&database.url, count).await, 102);

    let entry = entry(&database.store, strange.call_id).await.unwrap();
    assert!(entry.escaped && entry.cut);
    let tool = entry.tool.unwrap();
    assert!(tool.starts_with("n\\u0000é") && tool.len() <= 128);
    assert_eq!(entry.subject.as_deref(), Some("ali\\u0000ce"));
    assert_eq!(
        entry.arguments_bytes,
        Some(i32::try_from(odd.len()).unwrap())
    );
    assert_eq!(
        entry.arguments.as_deref(),
        Some("{\"a\\u0000b\":\"x\\u0000y\",\"z\":\"\\ud800\",\"n\":1e400}")
    );
    assert_eq!(entry.reason.as_deref(), Some("said \\u0000"));
    // A caller's text is no name of the dictionary.
    let names = "SELECT count(*) FROM audit_names WHERE name LIKE 'n%é%'";
    assert_eq!(number(&database.url, names).await, 0);
}

#[tokio::test]
async fn one_row_that_the_database_refuses_takes_no_other_along() {
    let database = database().await;
    run(
        &database.url,
        "ALTER TABLE audit_events ADD CONSTRAINT poison CHECK (request_bytes <> 666)",
    )
    .await;
    let (auditor, _) = auditor(&database.store);
    let calls: Vec<CallFacts> = (0..64)
        .map(|at| CallFacts {
            request_bytes: if at == 37 { 666 } else { 240 },
            ..facts()
        })
        .collect();
    let started = calls
        .iter()
        .map(|facts| auditor.start(facts, Durability::Strict));
    let started = join_all(started).await;
    for (at, recorded) in started.into_iter().enumerate() {
        match recorded {
            Ok(recorded) => {
                let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
            }
            Err(fault) => assert_eq!((at, fault), (37, AuditFault::Rejected)),
        }
    }
    let calls = "SELECT count(*) FROM audit_calls WHERE outcome = 'ok'";
    assert_eq!(number(&database.url, calls).await, 63);
    chained::assert_whole(&database.store, "acme").await;
}

#[tokio::test]
async fn what_gathers_while_a_commit_runs_is_the_next_batch() {
    let database = database().await;
    let (auditor, noted) = auditor(&database.store);
    let calls: Vec<CallFacts> = (0..600).map(|_| facts()).collect();
    let started = calls
        .iter()
        .map(|facts| auditor.start(facts, Durability::Strict));
    let started = join_all(started).await;
    assert!(started.iter().all(Result::is_ok));
    let sizes = noted.sizes(LaneName::Started);
    assert_eq!(sizes.iter().sum::<usize>(), 600);
    assert!(sizes.len() <= 4, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 512), "{sizes:?}");
}

#[tokio::test]
async fn an_auditor_that_is_closed_has_written_everything_and_takes_no_more() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let first = facts();
    let recorded = auditor.start(&first, Durability::Overlapped).await.unwrap();
    auditor.close().await;
    assert!(entry(&database.store, first.call_id).await.is_some());
    let late = auditor.start(&facts(), Durability::Strict).await;
    assert_eq!(late.unwrap_err(), AuditFault::Closed);
    let late = auditor.finish(recorded, ended(Outcome::Ok)).await;
    assert_eq!(late.unwrap_err(), AuditFault::Closed);
}

#[tokio::test]
async fn no_default_of_the_database_makes_a_commit_less_durable() {
    let database = database().await;
    run(
        &database.url,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off',
             current_database()); END $$;
         CREATE FUNCTION durable() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF current_setting('synchronous_commit') <> 'on' THEN
                 RAISE EXCEPTION SQLSTATE '23514';
             END IF; RETURN NEW; END $$;
         CREATE TRIGGER durable BEFORE INSERT ON audit_events
         FOR EACH ROW EXECUTE FUNCTION durable()",
    )
    .await;
    // Straight, and as through a pooler, where sessions cannot be asked for anything.
    let pooled = DatabaseSettings {
        direct_url: Some(&database.url),
        audit_roles_required: false,
        ..database_settings(&database.url)
    };
    for store in [database.store, Store::connect(&pooled).unwrap()] {
        let (auditor, _) = auditor(&store);
        let recorded = auditor.start(&facts(), Durability::Strict).await.unwrap();
        let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
    }
}
