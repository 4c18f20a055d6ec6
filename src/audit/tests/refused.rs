//! Refusals: one by one up to the cap, counted beyond, and never in the way.

use super::*;
use crate::audit::ReceiptKind;
use crate::config::Durability;
use crate::store::testing::{database, number, run};

#[tokio::test]
async fn beyond_ten_a_second_refusals_are_counted_exactly() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let mut committed = 0;
    for _ in 0..500 {
        let finish = refused("limit", "client");
        let receipt = auditor.refuse(&facts(), finish).await.unwrap();
        committed += i64::from(receipt.kind() == ReceiptKind::Committed);
    }
    let other = CallFacts {
        client: "claude-code".into(),
        ..facts()
    };
    let receipt = auditor.refuse(&other, refused("limit", "client")).await;
    assert_eq!(receipt.unwrap().kind(), ReceiptKind::Committed);
    auditor.close().await;

    let rows = "SELECT count(*) FROM audit_calls WHERE client = 'codex'";
    let rows = number(&database.url, rows).await;
    let counted = "SELECT sum(calls)::bigint FROM audit_calls
                   WHERE client = 'codex' AND outcome = 'refused:limit' AND reason = 'client'";
    assert_eq!(number(&database.url, counted).await, 500);
    // One more row for each second that the loop touched.
    assert!(
        (committed..=committed + 5).contains(&rows),
        "{rows} rows, {committed} singly"
    );
    let counted = "SELECT count(*) FROM audit_calls WHERE calls > 1 AND subject IS NOT NULL";
    assert_eq!(number(&database.url, counted).await, 0);
    chained::assert_whole(&database.store, "acme").await;
}

#[tokio::test]
async fn a_refusal_is_one_record_with_all_that_was_known() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let facts = CallFacts {
        upstream: None,
        upstream_tool: None,
        definition_digest: None,
        tool: "crm_delete".to_owned(),
        arguments: ArgumentsRecord::none(b"{}"),
        ..facts()
    };
    let _ = auditor
        .refuse(&facts, refused("visibility", "no rule allows it"))
        .await
        .unwrap();
    let entry = entry(&database.store, facts.call_id).await.unwrap();
    assert_eq!(entry.outcome, "refused:visibility");
    assert_eq!(entry.decision, "refused");
    assert_eq!(entry.reason.as_deref(), Some("no rule allows it"));
    assert_eq!(entry.tool.as_deref(), Some("crm_delete"));
    assert_eq!((entry.upstream, entry.finished), (None, None));
    assert_eq!(entry.duration_ms, Some(0.09));
    assert_eq!(entry.arguments_mode, Some("none"));
}

#[tokio::test]
async fn refusals_do_not_make_a_call_wait() {
    let database = database().await;
    // Every refusal takes half a second.
    run(
        &database.url,
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END $$;
         CREATE TRIGGER slow BEFORE INSERT ON audit_events
         FOR EACH ROW WHEN (NEW.event = 3) EXECUTE FUNCTION slow()",
    )
    .await;
    let (auditor, _) = auditor(&database.store);
    let auditor = Arc::new(auditor);
    let _ = auditor.start(&facts(), Durability::Strict).await.unwrap();
    let refusing = Arc::clone(&auditor);
    let refusal = tokio::spawn(async move {
        let finish = refused("scope", "crm.admin");
        refusing.refuse(&facts(), finish).await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = tokio::time::Instant::now();
    let _ = auditor.start(&facts(), Durability::Strict).await.unwrap();
    assert!(begun.elapsed() < Duration::from_millis(250));
    assert!(!refusal.is_finished());
    assert!(refusal.await.unwrap().is_ok());
}
