//! Acts, sealed arguments, export.

use super::*;
use crate::audit::act::{Act, ActKind, Actor};
use crate::audit::{Export, FIELDS, Kinds, cells, open};
use crate::config::Durability;
use crate::seal::Label;
use crate::store::testing::{database, number};

fn of_kind(kind: ActKind) -> Filter {
    Filter {
        kinds: Kinds::Acts(kind),
        ..Filter::default()
    }
}

#[tokio::test]
async fn an_act_is_found_by_its_kind_with_all_that_it_says() {
    let store = database().await.store;
    let (auditor, _) = auditor(&store);
    let act = Act::new(ActKind::CONSENT, "approve")
        .tenant(&"acme".into())
        .actor(Actor {
            issuer: Some("https://login.example.com".into()),
            subject: Some("alice".into()),
            client: Some("codex".into()),
            ..Actor::default()
        })
        .configuration([7; 32])
        .detail("scopes", "mcp crm\0read");
    let _ = auditor.act(act).await.unwrap();
    auditor.note(&Act::new(ActKind::SERVICE, "start"));
    let denied = Act::new(ActKind::SIGN_IN, "password").refused("wrong password");
    let _ = auditor.act(denied).await.unwrap();
    let page = search(&store, &of_kind(ActKind::CONSENT), None, 10)
        .await
        .unwrap();
    let [entry] = &page.entries[..] else {
        panic!("{page:?}")
    };
    assert_eq!(
        (entry.kind, entry.action.as_deref()),
        ("consent", Some("approve"))
    );
    assert_eq!(
        (entry.tenant.as_str(), entry.outcome.as_str()),
        ("acme", "ok")
    );
    assert_eq!(entry.subject.as_deref(), Some("alice"));
    assert_eq!(
        entry.details.as_deref(),
        Some(r#"{"scopes":"mcp crm\u0000read"}"#)
    );
    assert_eq!((&entry.tool, &entry.arguments), (&None, &None));
    let page = search(&store, &of_kind(ActKind::SIGN_IN), None, 10)
        .await
        .unwrap();
    assert_eq!(page.entries[0].reason.as_deref(), Some("wrong password"));
    assert_eq!(
        (page.entries[0].decision, page.entries[0].tenant.as_str()),
        ("refused", "")
    );
    // Calls are not acts, and everything is both.
    let calls = search(&store, &Filter::default(), None, 10).await.unwrap();
    assert!(calls.entries.is_empty());
    let any = Filter {
        kinds: Kinds::Any,
        ..Filter::default()
    };
    auditor.close().await;
    assert_eq!(
        search(&store, &any, None, 10).await.unwrap().entries.len(),
        3
    );
}

// C27 l: failed authentications may be aggregated, and none goes uncounted.
#[tokio::test]
async fn a_flood_of_refused_tokens_costs_a_dozen_rows_a_second_and_is_counted_exactly() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    for _ in 0..50_000 {
        auditor.count(&Act::new(ActKind::TOKEN_REFUSED, "mcp").refused("expired"));
    }
    auditor.close().await;
    let page = search(
        &database.store,
        &of_kind(ActKind::TOKEN_REFUSED),
        None,
        1_000,
    )
    .await
    .unwrap();
    let all: i64 = page.entries.iter().map(|entry| entry.count).sum();
    assert_eq!(all, 50_000);
    assert!(page.entries.len() < 200, "{}", page.entries.len());
}

// C28: odd text is there whole.
#[tokio::test]
async fn full_arguments_are_sealed_whole_and_open_for_whoever_has_the_keys() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let odd = br#"{"a\u0000b":"x\u0000y","z":"\ud800","n":1e400}"#;
    let id = new_call_id(&SystemClock);
    let facts = CallFacts {
        call_id: id,
        arguments: auditor.full_arguments(id, odd),
        ..facts()
    };
    let recorded = auditor.start(&facts, Durability::Strict).await.unwrap();
    let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
    let entry = entry(&database.store, id).await.unwrap();
    assert_eq!(entry.arguments_mode, Some("full"));
    assert_eq!(
        entry.arguments_bytes,
        Some(i32::try_from(odd.len()).unwrap())
    );
    let seen = "SELECT count(*) FROM audit_bodies WHERE arguments LIKE '%ud800%'";
    assert_eq!(number(&database.url, seen).await, 0);
    let sealer = keys().sealer(Label::AuditBody);
    assert_eq!(open(&sealer, &entry).unwrap().unwrap(), odd);
    // Bound to its call: moved to another, it does not open.
    let moved = Entry {
        call_id: new_call_id(&SystemClock),
        ..entry.clone()
    };
    assert!(open(&sealer, &moved).unwrap().is_err());
    let long = vec![b'x'; 300_000];
    let cut = auditor.full_arguments(id, &long);
    assert_eq!(cut.bytes, 300_000);
    assert!(cut.excerpt.unwrap().len() < 360_000);
}

#[tokio::test]
async fn an_export_has_each_entry_once_and_goes_on_from_its_cursor() {
    let store = database().await.store;
    let (auditor, _) = auditor(&store);
    let mut made = Vec::new();
    for _ in 0..5 {
        let facts = CallFacts {
            tool: "=cmd|'/c calc'!A0".to_owned(),
            ..facts()
        };
        let recorded = auditor.start(&facts, Durability::Strict).await.unwrap();
        let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
        made.push(facts.call_id);
    }
    made.sort();
    let later = SystemClock.now() + time::Duration::minutes(1);
    let filter = Filter::default();
    let mut export = Export::new(&filter, None, time::Duration::ZERO, later).unwrap();
    let entries = export.next(&store).await.unwrap();
    let ids: Vec<CallId> = entries.iter().map(|entry| entry.call_id).collect();
    assert_eq!(ids, made);
    assert!(export.next(&store).await.unwrap().is_empty());
    let mut rest = Export::new(&filter, Some(made[2]), time::Duration::ZERO, later).unwrap();
    let entries = rest.next(&store).await.unwrap();
    let ids: Vec<CallId> = entries.iter().map(|entry| entry.call_id).collect();
    assert_eq!(ids, made[3..]);
    // What may still change is left to the next one.
    let mut early = Export::new(&filter, None, time::Duration::HOUR, later).unwrap();
    assert!(early.next(&store).await.unwrap().is_empty());
    let cells = cells(&entries[0]);
    assert_eq!(cells.len(), FIELDS.len());
    let tool = FIELDS.iter().position(|name| *name == "tool").unwrap();
    assert_eq!(cells[tool], "'=cmd|'/c calc'!A0");
    // Every field of the JSON has its column.
    let serde_json::Value::Object(fields) = serde_json::to_value(&entries[0]).unwrap() else {
        panic!()
    };
    for name in fields.keys() {
        assert!(FIELDS.contains(&name.as_str()), "{name}");
    }
}
