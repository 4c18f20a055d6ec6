//! The chain, computed again from what is stored.

use super::*;
use crate::audit::chain::{GENESIS, Leaf, body_digest, caller_digest, link};
use crate::config::Durability;
use crate::ids::TenantId;
use crate::store::testing::{database, number, run};

/// Every chain of `tenant`: sequences without a gap, leaves and links as computed anew.
pub(super) async fn assert_whole(store: &Store, tenant: &str) {
    let tenant = TenantId::from(tenant);
    let since = SystemClock.now() - time::Duration::days(2);
    for (writer, head) in store.list_chains(&tenant, since).await.unwrap() {
        let events = store.list_chain(&tenant, writer, 0, 10_000).await.unwrap();
        assert_eq!(i64::try_from(events.len()), Ok(head), "writer {writer}");
        let mut previous = GENESIS;
        for (sequence, event) in (1..).zip(&events) {
            assert_eq!(event.sequence, sequence, "writer {writer}");
            if let Some(caller) = &event.caller
                && let Some(salt) = &caller.salt
            {
                assert_eq!(caller_digest(salt, caller).to_vec(), caller.digest);
            }
            if let Some(body) = &event.body
                && let Some(salt) = &body.salt
            {
                assert_eq!(body_digest(salt, body).to_vec(), body.digest);
            }
            let leaf = Leaf::from(event).digest();
            assert_eq!(leaf.to_vec(), event.leaf, "writer {writer}, {event:?}");
            previous = link(&previous, &leaf);
            assert_eq!(previous.to_vec(), event.link, "writer {writer}");
        }
    }
}

#[tokio::test]
async fn what_is_read_back_gives_the_stored_leaves_and_links() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    for tenant in ["acme", "globex", "acme", "acme"] {
        let facts = CallFacts {
            tenant: tenant.into(),
            first_call: Some(new_call_id(&SystemClock)),
            trace_id: Some([7; 16]),
            ..facts()
        };
        let recorded = auditor.start(&facts, Durability::Strict).await.unwrap();
        let finish = Finish {
            reason: Some("because".to_owned()),
            findings: "email 1".to_owned(),
            ..ended(Outcome::Ok)
        };
        let _ = auditor.finish(recorded, finish).await.unwrap();
        let refusal = refused("arguments", "/since: no date");
        let _ = auditor
            .refuse(
                &CallFacts {
                    call_id: new_call_id(&SystemClock),
                    ..facts
                },
                refusal,
            )
            .await
            .unwrap();
    }
    assert_whole(&database.store, "acme").await;
    assert_whole(&database.store, "globex").await;
    // A writer is a lane of a process; a caller is one row a day, writer and tenant.
    assert_eq!(
        number(&database.url, "SELECT count(*) FROM audit_writers").await,
        3
    );
    assert_eq!(
        number(&database.url, "SELECT count(*) FROM audit_callers").await,
        4
    );
}

#[tokio::test]
async fn erasing_text_and_salt_leaves_the_chain_whole_and_altering_does_not() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    let facts = facts();
    let recorded = auditor.start(&facts, Durability::Strict).await.unwrap();
    let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
    run(
        &database.url,
        "UPDATE audit_callers SET salt = NULL, issuer = NULL, subject = NULL, client = NULL,
             token_id = NULL, address = NULL, client_info = NULL;
         UPDATE audit_bodies SET salt = NULL, arguments = NULL, arguments_digest = NULL",
    )
    .await;
    assert_whole(&database.store, "acme").await;
    let erased = entry(&database.store, facts.call_id).await.unwrap();
    assert_eq!((erased.subject, erased.arguments), (None, None));

    let store = database.store.clone();
    run(
        &database.url,
        "UPDATE audit_names SET name = 'crm_fund' WHERE name = 'crm_find'",
    )
    .await;
    let whole = tokio::spawn(async move { assert_whole(&store, "acme").await }).await;
    assert!(whole.is_err(), "a renamed tool goes unnoticed");
}
