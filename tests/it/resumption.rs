//! Streams of legacy sessions that break: the client takes them up again behind the
//! last event that it saw, on whichever replica it arrives; and what the gateway does
//! when an upstream closes its own (MCP 2025-11-25, Resumability and Redelivery).

use super::support::sse::{Event, Events};
use super::support::talking::Talking;
use super::support::{Era, Gateway, Setup, eventually, json};

async fn over(server: &Talking) -> Gateway {
    let gateway = Setup::new().upstream("up", server.config()).start().await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("the tools are listed", async || {
        (!alice.names().await.is_empty()).then_some(())
    })
    .await;
    gateway
}

/// A tool that tells of its progress six times, slowly.
fn steady() -> Talking {
    Talking::start(Era::Legacy, &["steady"], |mut talk| async move {
        for step in 1..=6 {
            talk.progress(step).await;
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        }
        talk.text("done").await;
    })
}

fn call() -> super::support::Value {
    json!({"name": "steady", "arguments": {}, "_meta": {"progressToken": "mine"}})
}

async fn event(events: &mut Events) -> Event {
    loop {
        let event = events.next().await.expect("an event");
        if event.comment.is_none() {
            return event;
        }
    }
}

#[tokio::test]
async fn a_stream_that_broke_is_taken_up_behind_the_last_event_on_any_replica() {
    let server = steady();
    let gateway = over(&server).await;
    let second = gateway.replica().await;
    let alice = gateway.user("alice@acme");
    for elsewhere in [false, true] {
        let mut session = alice.connect(Era::Legacy).await;
        let prepared = session.prepare("tools/call", call());
        let mut events = prepared.stream().await;
        let primed = event(&mut events).await;
        assert!(primed.id.is_some() && primed.retry.is_some(), "{primed:?}");
        assert_eq!(primed.data, "");
        let first = event(&mut events).await;
        assert_eq!(first.message().unwrap()["params"]["progress"], 1);
        drop(events);
        let place = if elsewhere { &second } else { &gateway };
        let back = session.used_by(alice.clone().through(place));
        let last = first.id.unwrap();
        let mut events = Events::new(back.get(&[("last-event-id", &last)]).await).await;
        let messages = events.until_response(&prepared.id()).await;
        let steps: Vec<_> = messages
            .iter()
            .filter_map(|message| message["params"]["progress"].as_f64())
            .collect();
        assert_eq!(steps, [2.0, 3.0, 4.0, 5.0, 6.0], "elsewhere: {elsewhere}");
        let result = messages.last().unwrap();
        assert_eq!(result["result"]["content"][0]["text"], "done");
        // It can be read again for a while, and by nobody else.
        let mut again = Events::new(back.get(&[("last-event-id", &last)]).await).await;
        assert_eq!(again.until_response(&prepared.id()).await.len(), 6);
        let mallory = gateway.user("mallory@acme").connect(Era::Legacy).await;
        let refused = mallory.get(&[("last-event-id", &last)]).await;
        assert_eq!(refused.status(), 400);
    }
    assert_eq!(server.seen_of("tools/call").len(), 2);
}

#[tokio::test]
async fn a_lost_stream_is_said_to_be_lost_and_several_streams_live_side_by_side() {
    let server = steady();
    let mut gateway = over(&server).await;
    let second = gateway.replica().await;
    let alice = gateway.user("alice@acme");
    let mut session = alice.connect(Era::Legacy).await;
    let mut get = session.listen().await;
    let (one, two) = (
        session.prepare("tools/call", call()),
        session.prepare("tools/call", call()),
    );
    let (mut first, mut other) = (one.stream().await, two.stream().await);
    let mine = event(&mut first).await.id.unwrap();
    let theirs = event(&mut other).await.id.unwrap();
    assert_ne!(mine, theirs);
    drop(first);
    let taken_up = session.get(&[("last-event-id", &mine)]).await;
    let mut first = Events::new(taken_up).await;
    assert!(first.until_response(&one.id()).await.len() > 6);
    assert!(other.until_response(&two.id()).await.len() > 6);
    // The session's own stream was not closed by any of it.
    assert!(
        get.within(std::time::Duration::from_millis(50))
            .await
            .is_none_or(|event| event.comment.is_some())
    );
    gateway.kill();
    let back = session.used_by(alice.through(&second));
    let gone = eventually("the owner counts as gone", async || {
        let answer = back.get(&[("last-event-id", &mine)]).await;
        (answer.status() == 400).then_some(answer)
    })
    .await;
    assert!(gone.text().await.unwrap().contains("cannot be taken up"));
}

#[tokio::test]
async fn an_upstream_that_closes_its_stream_is_come_back_to_and_so_is_the_gateway() {
    let server = Talking::start(Era::Legacy, &["polls"], |mut talk| async move {
        talk.close(100).await;
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        talk.text("after all").await;
    });
    let gateway = over(&server).await;
    let mut modern = gateway.user("alice@acme").modern();
    assert_eq!(modern.call("polls", json!({})).await.text(), "after all");
    let mut session = gateway.user("alice@acme").connect(Era::Legacy).await;
    let prepared = session.prepare("tools/call", json!({"name": "polls", "arguments": {}}));
    let mut events = prepared.stream().await;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = event.id.or(last);
        assert!(!event.data.contains("result"), "the stream is closed first");
    }
    let last = last.expect("an event id");
    let mut events = Events::new(session.get(&[("last-event-id", &last)]).await).await;
    let result = events.until_response(&prepared.id()).await.pop().unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "after all");
    // A client of an older revision does not know how, and is not sent away.
    let mut older = gateway.user("alice@acme").legacy("2025-06-18").await;
    assert_eq!(older.call("polls", json!({})).await.text(), "after all");
}
