//! Modern clients are asked by an answer and come back with the input, whichever era
//! the upstream speaks (MCP 2026-07-28 multi round-trip requests).

use super::support::answer::Answer;
use super::support::asking::{self, ASKS, able};
use super::support::session::Session;
use super::support::talking::Talking;
use super::support::{Era, Gateway, Setup, Value, both, eventually, json};

async fn over(server: &Talking, yaml: &str) -> Gateway {
    let setup = Setup::new().upstream("up", server.config()).yaml(yaml);
    let gateway = setup.start().await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("the tools are listed", async || {
        (!alice.names().await.is_empty()).then_some(())
    })
    .await;
    gateway
}

async fn call(client: &mut Session, tool: &str, more: Value) -> Answer {
    let mut params = json!({"name": tool, "arguments": {}});
    super::support::config::merge(&mut params, &more);
    client.request("tools/call", params).await
}

/// The key of the only question, the question, and the state.
fn question(answer: &Answer) -> (String, Value, Value) {
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{answer:?}");
    let requests = result["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    (key.clone(), request.clone(), result["requestState"].clone())
}

/// A retry that answers the only question.
fn input(answer: &Answer, tool: &str) -> Value {
    let (key, _, state) = question(answer);
    json!({"inputResponses": {key: asking::answer(tool)}, "requestState": state})
}

#[tokio::test]
async fn a_modern_client_is_asked_and_its_retry_gets_the_result() {
    for upstream in both() {
        let server = asking::server(upstream);
        let gateway = over(&server, "").await;
        let mut alice = gateway.user("alice@acme").able(Era::Modern, able()).await;
        for (tool, method) in ASKS {
            let what = format!("{tool} of {upstream:?}");
            let first = call(&mut alice, tool, json!({})).await;
            let (key, request, state) = question(&first);
            assert_eq!(request["method"], method, "{what}");
            assert_eq!(request["params"], asking::question(tool), "{what}");
            if upstream == Era::Modern {
                assert_eq!(key, "the key", "{what}");
                assert!(!state.as_str().unwrap().contains("round"), "{what}");
            }
            let last = call(&mut alice, tool, input(&first, tool)).await;
            let told: Value = serde_json::from_str(&last.text()).unwrap();
            assert_eq!(told, asking::answer(tool), "{what}");
        }
        let first = call(&mut alice, "twice", json!({})).await;
        let second = call(&mut alice, "twice", input(&first, "elicit")).await;
        let third = call(&mut alice, "twice", input(&second, "elicit")).await;
        assert!(third.text().contains("Ada"), "{third:?}");
        assert!(server.faults().is_empty(), "{:?}", server.faults());
    }
}

#[tokio::test]
async fn each_round_is_a_record_of_its_own_that_names_the_first() {
    for upstream in both() {
        let server = asking::server(upstream);
        let gateway = over(&server, "").await;
        let mut alice = gateway.user("alice@acme").able(Era::Modern, able()).await;
        let first = call(&mut alice, "twice", json!({})).await;
        let second = call(&mut alice, "twice", input(&first, "elicit")).await;
        call(&mut alice, "twice", input(&second, "elicit")).await;
        let mut records = gateway.audit(&["--tool", "twice"]);
        records.reverse();
        assert_eq!(records.len(), 3, "{upstream:?}: {records:?}");
        assert!(records[0]["first_call_id"].is_null(), "{records:?}");
        for (at, record) in records.iter().enumerate() {
            assert_eq!(record["outcome"], "ok", "{record}");
            if at > 0 {
                assert_eq!(
                    record["first_call_id"], records[0]["call_id"],
                    "{upstream:?}"
                );
                assert_ne!(record["call_id"], records[0]["call_id"]);
            }
            let reason = record["reason"].as_str();
            assert_eq!(reason, (at < 2).then_some("input required"), "{record}");
        }
    }
}

#[tokio::test]
async fn state_that_is_not_of_this_caller_and_request_is_refused() {
    for upstream in both() {
        let server = asking::server(upstream);
        let gateway = over(&server, "").await;
        let mut alice = gateway.user("alice@acme").able(Era::Modern, able()).await;
        let first = call(&mut alice, "elicit", json!({})).await;
        let retry = input(&first, "elicit");
        let state = retry["requestState"].as_str().unwrap();
        let mut tampered = retry.clone();
        let flipped = if state.ends_with('A') { "B" } else { "A" };
        tampered["requestState"] = json!(format!("{}{flipped}", &state[..state.len() - 1]));
        let mut other_arguments = retry.clone();
        other_arguments["arguments"] = json!({"x": 1});
        let mut malformed = retry.clone();
        malformed["inputResponses"] = json!({"k": "text"});
        let mut mallory = gateway.user("mallory@acme").able(Era::Modern, able()).await;
        for (what, answer) in [
            ("tampered", call(&mut alice, "elicit", tampered).await),
            (
                "arguments",
                call(&mut alice, "elicit", other_arguments).await,
            ),
            ("tool", call(&mut alice, "roots", retry.clone()).await),
            ("malformed", call(&mut alice, "elicit", malformed).await),
            ("caller", call(&mut mallory, "elicit", retry.clone()).await),
        ] {
            assert_eq!(answer.code(), -32602, "{what} {upstream:?}: {answer:?}");
        }
        // And none of it has spent what the caller holds.
        let last = call(&mut alice, "elicit", retry).await;
        assert!(last.text().contains("Ada"), "{last:?}");
    }
}

#[tokio::test]
async fn missing_input_is_asked_for_again() {
    let server = asking::server(Era::Legacy);
    let gateway = over(&server, "").await;
    let mut alice = gateway.user("alice@acme").able(Era::Modern, able()).await;
    let first = call(&mut alice, "elicit", json!({})).await;
    let (_, _, state) = question(&first);
    let wrong = json!({"inputResponses": {"other": {}}, "requestState": state});
    let second = call(&mut alice, "elicit", wrong).await;
    assert_eq!(question(&second).1, question(&first).1);
    let last = call(&mut alice, "elicit", input(&second, "elicit")).await;
    assert!(last.text().contains("Ada"), "{last:?}");
}

#[tokio::test]
async fn a_retry_by_another_replica_reaches_the_call_and_its_death_is_told() {
    for upstream in both() {
        let server = asking::server(upstream);
        let mut gateway = over(&server, "").await;
        let second = gateway.replica().await;
        let alice = gateway.user("alice@acme");
        let mut here = alice.able(Era::Modern, able()).await;
        let mut there = here.used_by(alice.clone().through(&second));
        let first = call(&mut here, "elicit", json!({})).await;
        let last = call(&mut there, "elicit", input(&first, "elicit")).await;
        assert!(last.text().contains("Ada"), "{upstream:?}: {last:?}");
        let rounds = call(&mut here, "twice", json!({})).await;
        let rounds = call(&mut there, "twice", input(&rounds, "elicit")).await;
        let rounds = call(&mut here, "twice", input(&rounds, "elicit")).await;
        assert!(rounds.text().contains("Ada"), "{upstream:?}: {rounds:?}");
        let parked = call(&mut here, "elicit", json!({})).await;
        gateway.kill();
        let last = call(&mut there, "elicit", input(&parked, "elicit")).await;
        match upstream {
            Era::Legacy => {
                assert!(last.is_error(), "{last:?}");
                assert!(last.text().contains("interrupted"), "{last:?}");
            }
            // What the client carries itself any replica goes on with.
            Era::Modern => assert!(last.text().contains("Ada"), "{last:?}"),
        }
    }
}

#[tokio::test]
async fn what_the_client_did_not_declare_is_not_asked() {
    // An upstream that breaks the rule, and one that keeps it.
    for keeps in [false, true] {
        let server = Talking::start(Era::Modern, &["elicit"], move |talk| async move {
            if keeps {
                let data = json!({"requiredCapabilities": {"elicitation": {}}});
                let error = json!({"code": -32021, "message": "needs elicitation", "data": data});
                return talk.error("400 Bad Request", error).await;
            }
            let request =
                json!({"method": "elicitation/create", "params": asking::question("elicit")});
            talk.result(json!({"resultType": "input_required", "inputRequests": {"k": request}}))
                .await;
        });
        let gateway = over(&server, "").await;
        let mut modern = gateway.user("alice@acme").modern();
        let answer = call(&mut modern, "elicit", json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, -32021),
            "{keeps}"
        );
        let needed = &answer.error()["data"]["requiredCapabilities"];
        assert!(needed["elicitation"].is_object(), "{answer:?}");
        let mut legacy = gateway.user("alice@acme").connect(Era::Legacy).await;
        let answer = legacy.call("elicit", json!({})).await;
        assert!(answer.is_error(), "{answer:?}");
    }
}

#[tokio::test]
async fn a_long_state_of_an_upstream_is_kept_for_its_client() {
    let long = "x".repeat(40_000);
    let own = long.clone();
    let server = Talking::start(Era::Modern, &["long"], move |talk| {
        let own = own.clone();
        async move {
            if talk.param("requestState") == json!(own) {
                return talk.text("remembered").await;
            }
            talk.result(json!({"resultType": "input_required", "requestState": own}))
                .await;
        }
    });
    let gateway = over(&server, "").await;
    let mut alice = gateway.user("alice@acme").able(Era::Modern, able()).await;
    let first = call(&mut alice, "long", json!({})).await;
    let state = first.result()["requestState"].clone();
    assert!(state.as_str().unwrap().len() < 16 << 10);
    let mut mallory = gateway.user("mallory@acme").able(Era::Modern, able()).await;
    let retry = json!({"requestState": state});
    assert_eq!(
        call(&mut mallory, "long", retry.clone()).await.code(),
        -32602
    );
    assert_eq!(call(&mut alice, "long", retry).await.text(), "remembered");
    // A legacy client has nothing to bring back: the gateway does it.
    let mut legacy = gateway.user("alice@acme").able(Era::Legacy, able()).await;
    assert_eq!(legacy.call("long", json!({})).await.text(), "remembered");
}

#[tokio::test]
async fn a_call_that_waits_too_long_is_given_up() {
    let server = asking::server(Era::Legacy);
    let gateway = over(&server, "streams: { input: { timeout: 1s } }").await;
    let mut alice = gateway.user("alice@acme").able(Era::Modern, able()).await;
    let first = call(&mut alice, "elicit", json!({})).await;
    eventually("the upstream is told that nobody waits", async || {
        let replied = server
            .seen()
            .iter()
            .any(|asked| asked.text.contains("cancel"));
        replied.then_some(())
    })
    .await;
    let retry = input(&first, "elicit");
    let late = eventually("the state is over", async || {
        let late = call(&mut alice, "elicit", retry.clone()).await;
        late.message().get("error").is_some().then_some(late)
    })
    .await;
    assert_eq!(late.code(), -32602, "{late:?}");
}

#[tokio::test]
async fn what_a_legacy_server_asks_at_once_is_asked_in_one_answer() {
    let server = Talking::start(Era::Legacy, &["three"], |mut talk| async move {
        let mut asked = Vec::new();
        for (tool, method) in ASKS {
            asked.push(talk.ask_only(method, asking::question(tool)).await);
        }
        for id in asked {
            talk.reply(&id).await;
        }
        let told = talk.ask("roots/list", json!({})).await;
        talk.text(&told["result"].to_string()).await;
    });
    let gateway = over(&server, "").await;
    let mut alice = gateway.user("alice@acme").able(Era::Modern, able()).await;
    let first = call(&mut alice, "three", json!({})).await;
    let requests = first.result()["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 3, "{first:?}");
    let mut responses = json!({});
    for (key, request) in requests {
        let asked = |(_, method): &(&str, &str)| request["method"] == *method;
        let (tool, _) = ASKS.into_iter().find(asked).unwrap();
        responses[key] = asking::answer(tool);
    }
    let state = &first.result()["requestState"];
    let retry = json!({"inputResponses": responses, "requestState": state});
    // What it asks later comes in the next round.
    let second = call(&mut alice, "three", retry).await;
    assert_eq!(question(&second).1["method"], "roots/list");
    let last = call(&mut alice, "three", input(&second, "roots")).await;
    assert!(last.text().contains("file:///srv"), "{last:?}");
    assert_eq!(server.seen_of("ping").len(), 2);
    assert!(server.faults().is_empty(), "{:?}", server.faults());
}
