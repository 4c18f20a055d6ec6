//! What upstreams ask of legacy clients: on the stream of the call that needs it,
//! whichever era the upstream speaks and whichever replica takes the reply.

use super::support::asking::{self, ASKS, able};
use super::support::session::{LEGACY_VERSIONS, Session};
use super::support::sse::Events;
use super::support::talking::Talking;
use super::support::wire::Checker;
use super::support::{Era, Gateway, Setup, Value, both, eventually, json};

async fn over(server: &Talking) -> Gateway {
    let gateway = Setup::new().upstream("up", server.config()).start().await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("the tools are listed", async || {
        (!alice.names().await.is_empty()).then_some(())
    })
    .await;
    gateway
}

/// Starts a call and reads up to the first question.
async fn asked(client: &mut Session, tool: &str) -> (Value, Events, Value) {
    let call = client.prepare("tools/call", json!({"name": tool, "arguments": {}}));
    let mut events = call.stream().await;
    loop {
        let message = events.message().await.expect("a question comes");
        if message["method"].is_string() && !message["id"].is_null() {
            return (call.id(), events, message);
        }
    }
}

async fn finished(events: &mut Events, id: &Value) -> Value {
    events.until_response(id).await.pop().unwrap()
}

fn text(message: &Value) -> String {
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {message}"))
        .to_owned()
}

#[tokio::test]
async fn a_legacy_client_is_asked_on_the_stream_of_its_call() {
    let checker = Checker::of("2025-11-25");
    for upstream in both() {
        let server = asking::server(upstream);
        let gateway = over(&server).await;
        let mut alice = gateway.user("alice@acme").able(Era::Legacy, able()).await;
        for (tool, method) in ASKS {
            let what = format!("{tool} of {upstream:?}");
            let (id, mut events, question) = asked(&mut alice, tool).await;
            assert_eq!(question["method"], method, "{what}");
            assert!(checker.server("", &question).is_ok(), "{what}: {question}");
            if tool != "roots" {
                let params = asking::question(tool);
                for (key, value) in params.as_object().unwrap() {
                    assert_eq!(&question["params"][key], value, "{what}");
                }
            }
            let outcome = json!({"result": asking::answer(tool)});
            let taken = alice.reply(&question["id"], outcome).await;
            assert_eq!(taken.status, 202, "{what}: {taken:?}");
            let told: Value =
                serde_json::from_str(&text(&finished(&mut events, &id).await)).unwrap();
            assert_eq!(told, asking::answer(tool), "{what}");
        }
        assert!(server.faults().is_empty(), "{:?}", server.faults());
    }
}

#[tokio::test]
async fn several_rounds_and_a_refusal_reach_the_upstream() {
    for upstream in both() {
        let server = asking::server(upstream);
        let gateway = over(&server).await;
        let mut alice = gateway.user("alice@acme").able(Era::Legacy, able()).await;
        let (id, mut events, first) = asked(&mut alice, "twice").await;
        alice
            .reply(&first["id"], json!({"result": asking::answer("elicit")}))
            .await;
        let second = loop {
            let message = events.message().await.unwrap();
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        assert_ne!(first["id"], second["id"], "{upstream:?}");
        // Whoever refuses with an error has made no choice.
        let error = json!({"error": {"code": -1, "message": "no"}});
        alice.reply(&second["id"], error).await;
        let told = text(&finished(&mut events, &id).await);
        match upstream {
            Era::Legacy => assert!(told.contains("\"code\":-1"), "{told}"),
            Era::Modern => assert_eq!(told, r#"{"action":"cancel"}"#),
        }
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_answered_and_not_kept_waiting() {
    for upstream in both() {
        let server = asking::server(upstream);
        let gateway = over(&server).await;
        let mut able_one = gateway.user("alice@acme").able(Era::Legacy, able()).await;
        let only_json = able_one
            .prepare("tools/call", json!({"name": "elicit", "arguments": {}}))
            .header("accept", "application/json")
            .send()
            .await;
        let mut unable = gateway.user("alice@acme").connect(Era::Legacy).await;
        let lacking = unable.call("elicit", json!({})).await;
        for answer in [only_json, lacking] {
            match upstream {
                Era::Legacy => assert!(answer.text().contains("-32601"), "{answer:?}"),
                Era::Modern => assert!(answer.is_error(), "{answer:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_reply_that_comes_to_another_replica_finds_the_call() {
    for upstream in both() {
        let server = asking::server(upstream);
        let gateway = over(&server).await;
        let second = gateway.replica().await;
        let alice = gateway.user("alice@acme");
        let mut here = alice.able(Era::Legacy, able()).await;
        let there = here.used_by(alice.clone().through(&second));
        let (id, mut events, question) = asked(&mut here, "elicit").await;
        let outcome = json!({"result": asking::answer("elicit")});
        let taken = there.reply(&question["id"], outcome.clone()).await;
        assert_eq!(taken.status, 202, "{taken:?}");
        let told = text(&finished(&mut events, &id).await);
        assert!(told.contains("Ada"), "{told}");
        // The same words of somebody else are of another session.
        let (id, mut events, question) = asked(&mut here, "elicit").await;
        let mallory = gateway.user("mallory@acme").able(Era::Legacy, able()).await;
        let foreign = json!({"result": {"action": "accept", "content": {"name": "Eve"}}});
        mallory.reply(&question["id"], foreign).await;
        here.reply(&question["id"], outcome).await;
        let told = text(&finished(&mut events, &id).await);
        assert!(told.contains("Ada"), "{told}");
    }
}

#[tokio::test]
async fn what_an_upstream_takes_back_is_taken_back_from_the_client() {
    let server = Talking::start(Era::Legacy, &["hasty"], |mut talk| async move {
        let id = talk
            .ask_only("elicitation/create", asking::question("elicit"))
            .await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        talk.notify("notifications/cancelled", json!({"requestId": id}))
            .await;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        talk.text("done").await;
    });
    let gateway = over(&server).await;
    let mut alice = gateway.user("alice@acme").able(Era::Legacy, able()).await;
    let (id, mut events, question) = asked(&mut alice, "hasty").await;
    let taken_back = events.notification("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    assert_eq!(text(&finished(&mut events, &id).await), "done");
}

#[tokio::test]
async fn a_question_on_the_sessions_own_stream_goes_to_the_call_in_flight() {
    let server = Talking::start(Era::Legacy, &["elsewhere"], |mut talk| async move {
        let told = talk
            .ask_elsewhere("elicitation/create", asking::question("elicit"))
            .await;
        talk.text(&told["result"].to_string()).await;
    });
    let gateway = over(&server).await;
    let mut alice = gateway.user("alice@acme").able(Era::Legacy, able()).await;
    let (id, mut events, question) = asked(&mut alice, "elsewhere").await;
    alice
        .reply(&question["id"], json!({"result": asking::answer("elicit")}))
        .await;
    assert!(text(&finished(&mut events, &id).await).contains("Ada"));
}

#[tokio::test]
async fn an_upstream_hears_what_its_client_can_do_and_each_client_has_its_own_session() {
    let server = asking::server(Era::Legacy);
    let gateway = over(&server).await;
    let mut elicits = gateway
        .user("alice@acme")
        .able(Era::Legacy, json!({"elicitation": {}}))
        .await;
    let (id, mut events, question) = asked(&mut elicits, "elicit").await;
    elicits
        .reply(&question["id"], json!({"result": asking::answer("elicit")}))
        .await;
    finished(&mut events, &id).await;
    let mut bare = gateway.user("alice@acme").connect(Era::Legacy).await;
    bare.call("elicit", json!({})).await;
    let declared: Vec<Value> = server
        .seen_of("initialize")
        .iter()
        .map(|asked| asked.message["params"]["capabilities"].clone())
        .collect();
    assert!(
        declared.contains(&json!({"elicitation": {}})),
        "{declared:?}"
    );
    assert!(declared.contains(&json!({})), "{declared:?}");
}

const CHANGED: &str = "notifications/roots/list_changed";

#[tokio::test]
async fn upstreams_hear_of_changed_roots_through_any_replica() {
    let server = asking::server(Era::Legacy);
    let gateway = over(&server).await;
    let replica = gateway.replica().await;
    let capabilities = json!({"roots": {"listChanged": true}});
    let alice = gateway.user("alice@acme");
    let mut legacy = alice.able(Era::Legacy, capabilities.clone()).await;
    let (id, mut events, request) = asked(&mut legacy, "roots").await;
    legacy
        .reply(&request["id"], json!({"result": asking::answer("roots")}))
        .await;
    finished(&mut events, &id).await;
    // A client that has no session of its own has nothing to follow up.
    let mut modern = alice.able(Era::Modern, capabilities.clone()).await;
    modern.call("roots", json!({})).await;
    let told = || server.seen_of(CHANGED);
    let declared = |asked: &super::support::scripted::Asked| {
        asked.message["params"]["capabilities"]["roots"] == capabilities["roots"]
    };
    let opened = server.seen_of("initialize");
    assert_eq!(opened.iter().filter(|asked| declared(asked)).count(), 1);
    legacy.notify(CHANGED, json!({})).await;
    eventually("the upstream is told", async || {
        (told().len() == 1).then_some(())
    })
    .await;
    let elsewhere = legacy.used_by(alice.clone().through(&replica));
    elsewhere.notify(CHANGED, json!({})).await;
    eventually("by the other replica too", async || {
        (told().len() == 2).then_some(())
    })
    .await;
    // Who did not say that it would is not passed on.
    let mut silent = alice.able(Era::Legacy, json!({"roots": {}})).await;
    silent.notify(CHANGED, json!({})).await;
    silent.names().await;
    assert_eq!(told().len(), 2);
    assert!(server.faults().is_empty(), "{:?}", server.faults());
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_it_asks_stops_the_upstream() {
    let server = Talking::start(Era::Legacy, &["asks"], |mut talk| async move {
        talk.ask_only("elicitation/create", asking::question("elicit"))
            .await;
        talk.cancelled().await;
    });
    let gateway = over(&server).await;
    let mut alice = gateway.user("alice@acme").able(Era::Legacy, able()).await;
    let (id, _events, _) = asked(&mut alice, "asks").await;
    alice
        .notify("notifications/cancelled", json!({"requestId": id}))
        .await;
    eventually("the upstream is told", async || {
        (!server.seen_of("notifications/cancelled").is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_goes_to_an_upstream_fits_its_own_revision() {
    for version in LEGACY_VERSIONS {
        let server = Talking::speaking(version, &["sample", "roots"], |mut talk| async move {
            let tool = talk.tool();
            let (_, method) = ASKS.into_iter().find(|(name, _)| *name == tool).unwrap();
            let told = talk.ask(method, asking::question(&tool)).await;
            talk.text(&told["result"].to_string()).await;
        });
        let gateway = over(&server).await;
        let caller = gateway.user("alice@acme");
        let mut legacy = caller.able(Era::Legacy, able()).await;
        let mut modern = caller.able(Era::Modern, able()).await;
        for tool in ["sample", "roots"] {
            let (id, mut events, question) = asked(&mut legacy, tool).await;
            let outcome = json!({"result": asking::answer(tool)});
            legacy.reply(&question["id"], outcome).await;
            let last = finished(&mut events, &id).await;
            assert!(!text(&last).is_empty(), "{version} {tool}");
            let first = modern.call(tool, json!({})).await;
            assert_eq!(first.result()["resultType"], "input_required", "{version}");
        }
        assert!(
            server.faults().is_empty(),
            "{version}: {:?}",
            server.faults()
        );
    }
}

#[tokio::test]
async fn extensions_that_a_client_declares_reach_a_legacy_server_but_for_tasks() {
    let server = asking::server(Era::Legacy);
    let gateway = over(&server).await;
    let ui = json!({"mimeTypes": ["text/html;profile=mcp-app"]});
    let declared = json!({"roots": {}, "extensions": {
        "io.modelcontextprotocol/ui": ui, "io.modelcontextprotocol/tasks": {},
    }});
    for era in both() {
        let alice = gateway.user(&format!("alice{era:?}@acme"));
        let mut alice = alice.able(era, declared.clone()).await;
        match era {
            Era::Legacy => drop(asked(&mut alice, "roots").await),
            Era::Modern => drop(alice.call("roots", json!({})).await),
        }
        let opened = server.seen_of("initialize").pop().unwrap();
        let told = &opened.message["params"]["capabilities"]["extensions"];
        assert_eq!(*told, json!({"io.modelcontextprotocol/ui": ui}), "{era:?}");
    }
}
