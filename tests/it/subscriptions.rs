//! Word of single resources and of all lists: to those whom it concerns.

use std::time::Duration;

use super::support::session::Session;
use super::support::sse::Events;
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

const UPDATED: &str = "notifications/resources/updated";
const WATCHED: &str = "test://watched-resource";

async fn everything(era: &str) -> Helper {
    Helper::example("upstream_everything", &["--era", era]).await
}

/// A stream on which this caller hears of these resources.
async fn stream(alice: &mut Session, uris: &[&str]) -> Events {
    match alice.era() {
        Era::Legacy => {
            for uri in uris {
                let answer = alice
                    .request("resources/subscribe", json!({"uri": uri}))
                    .await;
                assert_eq!(answer.result(), &json!({}));
            }
            Events::new(alice.get(&[]).await).await
        }
        Era::Modern => {
            let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
            alice.stream("subscriptions/listen", wanted).await
        }
    }
}

/// Lets the upstream tell of the watched resource until `events` has word of it:
/// its own subscription takes a moment to stand.
async fn hears(events: &mut Events, trigger: &mut Session) -> Value {
    eventually("an update arrives", async || {
        trigger
            .call("test_trigger_resource_update", json!({}))
            .await;
        let end = tokio::time::Instant::now() + Duration::from_millis(300);
        while let Ok(Some(event)) = tokio::time::timeout_at(end, events.next()).await {
            let message = event.message().unwrap_or_default();
            if message["method"] == UPDATED {
                return Some(message);
            }
        }
        None
    })
    .await
}

#[tokio::test]
async fn updates_reach_who_subscribed_in_every_combination_of_eras() {
    for upstream in ["legacy", "modern"] {
        let gateway = Gateway::over(everything(upstream).await).await;
        let mut trigger = gateway.user("trigger@acme").connect(Era::Modern).await;
        for era in both() {
            let mut alice = gateway.user("alice@acme").connect(era).await;
            let mut events = stream(&mut alice, &[WATCHED]).await;
            let message = hears(&mut events, &mut trigger).await;
            assert_eq!(message["params"]["uri"], WATCHED, "{era:?} over {upstream}");
            let tagged = message["params"]["_meta"].is_object();
            assert_eq!(tagged, era == Era::Modern, "{message}");
            // Whoever did not ask hears nothing.
            let mut bob = gateway.user("bob@acme").connect(era).await;
            let mut other = stream(&mut bob, &["test://static-text"]).await;
            trigger
                .call("test_trigger_resource_update", json!({}))
                .await;
            let end = tokio::time::Instant::now() + Duration::from_millis(500);
            while let Ok(Some(event)) = tokio::time::timeout_at(end, other.next()).await {
                let message = event.message().unwrap_or_default();
                assert_ne!(message["method"], UPDATED, "{era:?} over {upstream}");
            }
        }
    }
}

#[tokio::test]
async fn unknown_and_hidden_resources_are_left_out_of_the_acknowledgement_alike() {
    let hide = r#"tenants: { acme: { resources: { deny: ["test://static-text"] } } }"#;
    let gateway = Setup::new()
        .over("up", everything("modern").await)
        .yaml(hide)
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    let mut events = stream(
        &mut alice,
        &[WATCHED, "test://static-text", "test://nowhere"],
    )
    .await;
    let first = events.message().await.unwrap();
    assert_eq!(
        first["params"]["notifications"],
        json!({"resourceSubscriptions": [WATCHED]})
    );
    let mut legacy = gateway.user("alice@acme").connect(Era::Legacy).await;
    for uri in ["test://static-text", "test://nowhere"] {
        let answer = legacy
            .request("resources/subscribe", json!({"uri": uri}))
            .await;
        assert_eq!(
            (answer.code(), &answer.error()["data"]["uri"]),
            (-32002, &json!(uri))
        );
    }
}

#[tokio::test]
async fn a_legacy_stream_follows_its_sessions_subscriptions_on_every_replica() {
    let gateway = Gateway::over(everything("legacy").await).await;
    let replica = gateway.replica().await;
    let mut trigger = gateway.user("trigger@acme").connect(Era::Modern).await;
    let mut alice = gateway.user("alice@acme").connect(Era::Legacy).await;
    let mut events = stream(&mut alice, &[]).await;
    let mut elsewhere = alice.used_by(gateway.user("alice@acme").through(&replica));
    let subscribed = elsewhere
        .request("resources/subscribe", json!({"uri": WATCHED}))
        .await;
    assert_eq!(subscribed.result(), &json!({}));
    hears(&mut events, &mut trigger).await;
    let ended = elsewhere
        .request("resources/unsubscribe", json!({"uri": WATCHED}))
        .await;
    assert_eq!(ended.result(), &json!({}));
    eventually("updates stop", async || {
        trigger
            .call("test_trigger_resource_update", json!({}))
            .await;
        let quiet =
            tokio::time::timeout(Duration::from_millis(400), events.notification(UPDATED)).await;
        quiet.is_err().then_some(())
    })
    .await;
}

#[tokio::test]
async fn changes_of_prompts_are_told_to_who_asked_for_them() {
    for upstream in ["legacy", "modern"] {
        let gateway = Gateway::over(everything(upstream).await).await;
        let mut trigger = gateway.user("trigger@acme").connect(Era::Modern).await;
        for era in both() {
            let mut alice = gateway.user("alice@acme").connect(era).await;
            let mut events = match era {
                Era::Legacy => Events::new(alice.get(&[]).await).await,
                Era::Modern => {
                    let wanted = json!({"notifications": {"promptsListChanged": true}});
                    alice.stream("subscriptions/listen", wanted).await
                }
            };
            trigger.call("test_trigger_prompt_change", json!({})).await;
            events
                .notification("notifications/prompts/list_changed")
                .await;
            let tools_too = json!({});
            let list = alice.request("prompts/list", tools_too).await;
            assert!(
                list.body.contains("test_simple_prompt"),
                "{era:?} over {upstream}"
            );
        }
    }
}
