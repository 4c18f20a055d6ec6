//! What one era has and the other lacks: told in the other's words, or refused in
//! clear ones; and both directions of the wire held against the official schemas.

use super::support::asking::{self, able};
use super::support::sse::Events;
use super::support::talking::Talking;
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

async fn question(events: &mut Events) -> Value {
    events.notification("elicitation/create").await
}

#[tokio::test]
async fn a_url_that_a_legacy_server_wants_visited_is_asked_for_in_either_era() {
    let server = Talking::start(Era::Legacy, &["visit"], |talk| async move {
        let one = json!({
            "mode": "url", "elicitationId": "e1", "url": "https://login.example.com/", "message": "Sign in",
        });
        let data = json!({"elicitations": [one]});
        let error = json!({"code": -32042, "message": "sign in first", "data": data});
        talk.error("200 OK", error).await;
    });
    let gateway = over(&server).await;
    let mut modern = gateway.user("alice@acme").able(Era::Modern, able()).await;
    let answer = modern.call("visit", json!({})).await;
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{answer:?}");
    let requests = result["inputRequests"].as_object().unwrap();
    let request = requests.values().next().unwrap();
    assert_eq!(request["params"]["url"], "https://login.example.com/");
    let mut legacy = gateway.user("alice@acme").able(Era::Legacy, able()).await;
    let answer = legacy.call("visit", json!({})).await;
    assert_eq!(answer.code(), -32042, "{answer:?}");
    // Whoever cannot show a URL is told so.
    let form = json!({"elicitation": {"form": {}}});
    let mut modern = gateway
        .user("alice@acme")
        .able(Era::Modern, form.clone())
        .await;
    let answer = modern.call("visit", json!({})).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32021));
    let mut legacy = gateway.user("alice@acme").able(Era::Legacy, form).await;
    assert!(legacy.call("visit", json!({})).await.is_error());
}

#[tokio::test]
async fn a_form_is_put_in_the_words_of_the_clients_revision() {
    let server = Talking::start(Era::Modern, &["choose", "visit"], |talk| async move {
        if !talk.param("inputResponses").is_null() {
            return talk.text("thanks").await;
        }
        let params = if talk.tool() == "visit" {
            json!({"mode": "url", "message": "m", "url": "https://a.example/"})
        } else {
            let choice = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]});
            json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {"c": choice}}})
        };
        let request = json!({"method": "elicitation/create", "params": params});
        talk.result(json!({"resultType": "input_required", "inputRequests": {"k": request}}))
            .await;
    });
    let gateway = over(&server).await;
    let alice = gateway.user("alice@acme");
    for (version, tool) in [
        ("2025-06-18", "choose"),
        ("2025-11-25", "choose"),
        ("2025-11-25", "visit"),
    ] {
        let mut session =
            super::support::session::Session::initialize_able(alice.clone(), version, able()).await;
        let call = session.prepare("tools/call", json!({"name": tool, "arguments": {}}));
        let mut events = call.stream().await;
        let question = question(&mut events).await;
        let checker = super::support::wire::Checker::of(version);
        let held = checker.server("", &question);
        assert!(held.is_ok(), "{version} {tool}: {}", held.unwrap_err());
        session
            .reply(
                &question["id"],
                json!({"result": {"action": "accept", "content": {}}}),
            )
            .await;
        let result = events.until_response(&call.id()).await.pop().unwrap();
        assert_eq!(
            result["result"]["content"][0]["text"], "thanks",
            "{version} {tool}"
        );
    }
}

#[tokio::test]
async fn what_passes_to_a_user_is_cleaned_and_what_passes_back_is_not_touched() {
    let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    for upstream in both() {
        let dirty = json!({
            "message": format!("Your token is {secret}\u{1b}[31m"),
            "requestedSchema": {"type": "object", "properties": {}},
        });
        let server = Talking::start(upstream, &["leak"], move |mut talk| {
            let dirty = dirty.clone();
            async move {
                let told = match upstream {
                    Era::Legacy => talk.ask("elicitation/create", dirty).await["result"].clone(),
                    Era::Modern => {
                        let given = talk.param("inputResponses")["k"].clone();
                        if given.is_null() {
                            let request = json!({"method": "elicitation/create", "params": dirty});
                            return talk
                                .result(json!({"resultType": "input_required", "inputRequests": {"k": request}}))
                                .await;
                        }
                        given
                    }
                };
                let length = told["content"]["name"].as_str().unwrap().len();
                talk.text(&length.to_string()).await;
            }
        });
        let gateway = over(&server).await;
        let given = json!({"action": "accept", "content": {"name": secret}});
        let mut modern = gateway.user("alice@acme").able(Era::Modern, able()).await;
        let first = modern.call("leak", json!({})).await;
        assert!(
            !first.body.contains("ghp_") && !first.body.contains("\\u001b"),
            "{first:?}"
        );
        let requests = first.result()["inputRequests"].as_object().unwrap();
        let key = requests.keys().next().unwrap();
        let retry = json!({
            "name": "leak", "arguments": {}, "inputResponses": {key: given},
            "requestState": first.result()["requestState"],
        });
        let last = modern.request("tools/call", retry).await;
        assert_eq!(last.text(), secret.len().to_string(), "{upstream:?}");
        let mut legacy = gateway.user("alice@acme").able(Era::Legacy, able()).await;
        let call = legacy.prepare("tools/call", json!({"name": "leak", "arguments": {}}));
        let mut events = call.stream().await;
        let question = question(&mut events).await;
        assert!(!question.to_string().contains("ghp_"), "{question}");
        legacy
            .reply(&question["id"], json!({"result": given}))
            .await;
        let result = events.until_response(&call.id()).await.pop().unwrap();
        assert_eq!(
            result["result"]["content"][0]["text"],
            secret.len().to_string()
        );
    }
}

#[tokio::test]
async fn calls_of_modern_clients_do_not_share_a_session_that_can_ask() {
    let server = asking::server(Era::Legacy);
    let gateway = over(&server).await;
    let ask = async |who: &str| {
        let mut client = gateway.user(who).able(Era::Modern, able()).await;
        let first = client.call("elicit", json!({})).await;
        assert_eq!(first.result()["resultType"], "input_required");
    };
    ask("alice@acme").await;
    ask("alice@acme").await;
    ask("bob@acme").await;
    let sessions: Vec<_> = server
        .seen_of("tools/call")
        .iter()
        .map(|asked| asked.header("mcp-session-id").unwrap().to_owned())
        .collect();
    let mut distinct = sessions.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 3, "{sessions:?}");
}
