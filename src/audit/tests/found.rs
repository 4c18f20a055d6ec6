//! Search and following along.

use super::*;
use crate::audit::Tail;
use crate::config::Durability;
use crate::store::testing::database;

async fn call(auditor: &Auditor, facts: &CallFacts, finish: Finish) {
    let recorded = auditor.start(facts, Durability::Strict).await.unwrap();
    let _ = auditor.finish(recorded, finish).await.unwrap();
}

#[expect(clippy::too_many_lines, reason = "a table, a row a filter")]
#[tokio::test]
async fn every_filter_finds_its_call_and_no_other() {
    let store = database().await.store;
    let (auditor, _) = auditor(&store);
    let plain = facts();
    call(&auditor, &plain, ended(Outcome::Ok)).await;
    let special = CallFacts {
        tenant: "globex".into(),
        subject: "bob".into(),
        client: "claude-code".into(),
        tool: "search".to_owned(),
        trace_id: Some([0x5a; 16]),
        ..facts()
    };
    let finish = Finish {
        findings: "github_token 1 at /content/0/text".to_owned(),
        ..ended(Outcome::Timeout)
    };
    call(&auditor, &special, finish).await;

    let text = |text: &str| Some(text.to_owned());
    let filters = [
        Filter {
            tenant: text("globex"),
            ..Filter::default()
        },
        Filter {
            subject: text("bob"),
            ..Filter::default()
        },
        Filter {
            client: text("claude-code"),
            ..Filter::default()
        },
        Filter {
            tool: text("search"),
            ..Filter::default()
        },
        Filter {
            outcome: text("timeout"),
            ..Filter::default()
        },
        Filter {
            finding: text("github_token"),
            ..Filter::default()
        },
        Filter {
            trace_id: text(&"5a".repeat(16)),
            ..Filter::default()
        },
        Filter {
            call_id: Some(special.call_id),
            ..Filter::default()
        },
        Filter {
            since: Some(special.at),
            ..Filter::default()
        },
    ];
    for filter in filters {
        let page = search(&store, &filter, None, 10).await.unwrap();
        let found: Vec<CallId> = page.entries.iter().map(|entry| entry.call_id).collect();
        assert_eq!(found, [special.call_id], "{filter:?}");
    }
    let until = Filter {
        until: Some(special.at),
        ..Filter::default()
    };
    let page = search(&store, &until, None, 10).await.unwrap();
    assert_eq!(page.entries[0].call_id, plain.call_id);
    let none = Filter {
        tenant: text("acme"),
        subject: text("bob"),
        ..Filter::default()
    };
    assert!(
        search(&store, &none, None, 10)
            .await
            .unwrap()
            .entries
            .is_empty()
    );
}

#[tokio::test]
async fn refused_stands_for_every_step_that_refuses() {
    let store = database().await.store;
    let (auditor, _) = auditor(&store);
    for step in ["scope", "limit"] {
        let _ = auditor.refuse(&facts(), refused(step, "no")).await.unwrap();
    }
    let found = async |outcome: &str| {
        let outcome = Some(outcome.to_owned());
        let filter = Filter {
            outcome,
            ..Filter::default()
        };
        search(&store, &filter, None, 10)
            .await
            .unwrap()
            .entries
            .len()
    };
    assert_eq!(found("refused").await, 2);
    assert_eq!(found("refused:scope").await, 1);
    assert_eq!(found("refuse").await, 0);
}

#[tokio::test]
async fn pages_are_whole_and_newest_first() {
    let store = database().await.store;
    let (auditor, _) = auditor(&store);
    let mut made = Vec::new();
    for _ in 0..7 {
        let facts = facts();
        call(&auditor, &facts, ended(Outcome::Ok)).await;
        made.push(facts.call_id);
    }
    made.sort();
    made.reverse();
    let (mut seen, mut before, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = search(&store, &Filter::default(), before, 3).await.unwrap();
        seen.extend(page.entries.iter().map(|entry| entry.call_id));
        pages += 1;
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!((seen, pages), (made, 3));
}

#[tokio::test]
async fn following_shows_each_call_once_when_it_has_ended() {
    let store = database().await.store;
    let (auditor, _) = auditor(&store);
    let mut tail = Tail::new(&Filter::default(), SystemClock.now()).unwrap();
    let open = facts();
    let recorded = auditor.start(&open, Durability::Strict).await.unwrap();
    let done = facts();
    call(&auditor, &done, ended(Outcome::Ok)).await;
    let ids = |entries: Vec<Entry>| -> Vec<CallId> {
        entries.into_iter().map(|entry| entry.call_id).collect()
    };
    assert_eq!(
        ids(tail.next(&store, SystemClock.now()).await.unwrap()),
        [done.call_id]
    );
    let _ = auditor
        .finish(recorded, ended(Outcome::Cancelled))
        .await
        .unwrap();
    let shown = tail.next(&store, SystemClock.now()).await.unwrap();
    assert_eq!(shown[0].outcome, "cancelled");
    assert_eq!(ids(shown), [open.call_id]);
    assert!(
        tail.next(&store, SystemClock.now())
            .await
            .unwrap()
            .is_empty()
    );

    // What never ends is shown once, as what it is.
    let lost = facts();
    drop(auditor.start(&lost, Durability::Strict).await.unwrap());
    assert!(
        tail.next(&store, SystemClock.now())
            .await
            .unwrap()
            .is_empty()
    );
    let later = SystemClock.now() + time::Duration::minutes(11);
    let shown = tail.next(&store, later).await.unwrap();
    assert_eq!((shown[0].outcome.as_str(), shown.len()), ("unknown", 1));
    assert!(tail.next(&store, later).await.unwrap().is_empty());
}

#[tokio::test]
async fn calls_that_never_ended_are_found_as_unknown_and_filters_add_up() {
    let store = database().await.store;
    let (auditor, _) = auditor(&store);
    call(&auditor, &facts(), ended(Outcome::Ok)).await;
    let cut = facts();
    let _cut = auditor.start(&cut, Durability::Strict).await.unwrap();
    let late = Finish {
        findings: "github_token 1 at /content/0/text".to_owned(),
        ..ended(Outcome::Timeout)
    };
    let both = facts();
    call(&auditor, &both, late).await;
    call(&auditor, &facts(), ended(Outcome::Timeout)).await;
    let found = async |outcome: &str, finding: Option<&str>, call_id: Option<CallId>| {
        let filter = Filter {
            outcome: Some(outcome.to_owned()),
            finding: finding.map(str::to_owned),
            call_id,
            ..Filter::default()
        };
        let page = search(&store, &filter, None, 10).await.unwrap();
        let ids = page.entries.iter().map(|entry| entry.call_id);
        ids.collect::<Vec<_>>()
    };
    assert_eq!(found("unknown", None, None).await, [cut.call_id]);
    assert_eq!(
        found("timeout", Some("github_token"), None).await,
        [both.call_id]
    );
    assert_eq!(
        found("timeout", None, Some(both.call_id)).await,
        [both.call_id]
    );
    assert!(found("ok", Some("github_token"), None).await.is_empty());
    assert!(found("timeout", None, Some(cut.call_id)).await.is_empty());
    assert!(found("no such outcome", None, None).await.is_empty());
}
