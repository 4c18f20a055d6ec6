//! Calls that go on as tasks (the extension `io.modelcontextprotocol/tasks`,
//! `rules.md` §3.5): handed out to whoever takes them, waited for in the place of
//! whoever cannot.

use std::time::Duration;

use super::support::answer::Answer;
use super::support::asking::able;
use super::support::session::Session;
use super::support::talking::Talking;
use super::support::{Era, Gateway, Helper, Setup, Value, eventually, json};

async fn gateway() -> Gateway {
    let server = Helper::example("upstream_everything", &["--era", "modern"]).await;
    let gateway = Setup::new().over("up", server).start().await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("the tools are listed", async || {
        (!alice.names().await.is_empty()).then_some(())
    })
    .await;
    gateway
}

fn tasks() -> Value {
    let mut all = able();
    all["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    all
}

async fn of(gateway: &Gateway, user: &str) -> Session {
    gateway.user(user).able(Era::Modern, tasks()).await
}

/// A task of a call, by its id.
async fn made(client: &mut Session, tool: &str, arguments: Value) -> String {
    let answer = client.call(tool, arguments).await;
    let result = answer.result();
    assert_eq!(result["resultType"], "task", "{answer:?}");
    result["taskId"].as_str().unwrap().to_owned()
}

async fn about(client: &mut Session, method: &str, id: &str) -> Answer {
    client.request(method, json!({"taskId": id})).await
}

/// The task as it stands when it has that status.
async fn becomes(client: &mut Session, id: &str, status: &str) -> Value {
    for _ in 0..200 {
        let task = about(client, "tasks/get", id).await.result().clone();
        assert_eq!(task["taskId"], id);
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the task does not become {status}");
}

#[tokio::test]
async fn a_task_is_its_callers_alone_and_its_end_is_on_record_before_it_is_told() {
    let mut gateway = gateway().await;
    let mut alice = of(&gateway, "alice@acme").await;
    let id = made(&mut alice, "failing_job", json!({})).await;
    assert!(!id.contains("task-"), "the upstream's own id is not told");
    let task = becomes(&mut alice, &id, "completed").await;
    assert_eq!(task["result"]["isError"], true);
    assert_eq!(task["resultType"], "complete");
    // Strict durability: what was told is written, linked to the call.
    let ends = gateway.audit(&["--tool", "tasks/get failing_job"]);
    assert_eq!(ends.len(), 1, "only the end is recorded: {ends:?}");
    assert_eq!(ends[0]["outcome"], "tool_error");
    let calls = gateway.audit(&["--tool", "failing_job"]);
    assert_eq!(ends[0]["first_call_id"], calls[0]["call_id"], "{calls:?}");

    let unknown = |answer: &Answer| assert_eq!(answer.code(), -32602, "{answer:?}");
    let mut mallory = of(&gateway, "mallory@acme").await;
    let mut other = gateway.other_tenant().able(Era::Modern, tasks()).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        unknown(&about(&mut mallory, method, &id).await);
        unknown(&about(&mut other, method, &id).await);
        unknown(&about(&mut alice, method, "task-1").await);
        let mut forged = id.clone().into_bytes();
        let last = forged.len() - 1;
        forged[last] = if forged[last] == b'A' { b'B' } else { b'A' };
        unknown(&about(&mut alice, method, std::str::from_utf8(&forged).unwrap()).await);
        // Undeclared.
        let mut plain = gateway.user("alice@acme").modern();
        let answer = about(&mut plain, method, &id).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32021));
        let needed = &answer.error()["data"]["requiredCapabilities"]["extensions"];
        assert!(needed["io.modelcontextprotocol/tasks"].is_object());
        // The header names another.
        let wrong = alice
            .prepare(method, json!({"taskId": id}))
            .without("mcp-name")
            .header("mcp-name", "another");
        let answer = wrong.send().await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32020));
    }
    // Whoever may not call the tool any more may not hear of its tasks.
    gateway.reload(r#"tenants: { acme: { tools: { deny: ["failing_job"] } } }"#);
    eventually("the tool is out of reach", async || {
        let code = about(&mut alice, "tasks/get", &id).await.message()["error"]["code"].as_i64();
        (code == Some(-32602)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_task_asks_is_answered_and_is_called_off() {
    let gateway = gateway().await;
    let mut alice = of(&gateway, "alice@acme").await;
    let id = made(&mut alice, "confirm_delete", json!({})).await;
    let task = becomes(&mut alice, &id, "input_required").await;
    let asked = &task["inputRequests"]["confirm"];
    assert_eq!(asked["method"], "elicitation/create", "{task}");
    let responses = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
    let params = json!({"taskId": id, "inputResponses": responses});
    let taken = alice.request("tasks/update", params).await;
    assert_eq!(taken.result()["resultType"], "complete", "{taken:?}");
    assert!(taken.result().get("taskId").is_none(), "{taken:?}");
    let task = becomes(&mut alice, &id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "Deleted.");
    assert_eq!(
        gateway
            .audit(&["--tool", "tasks/update confirm_delete"])
            .len(),
        1
    );

    let id = made(&mut alice, "slow_compute", json!({"seconds": 9})).await;
    let taken = about(&mut alice, "tasks/cancel", &id).await;
    assert_eq!(taken.result()["resultType"], "complete", "{taken:?}");
    becomes(&mut alice, &id, "cancelled").await;

    let id = made(&mut alice, "protocol_error_job", json!({})).await;
    let task = becomes(&mut alice, &id, "failed").await;
    assert_eq!(task["error"]["code"], -32603, "{task}");
}

#[tokio::test]
async fn a_legacy_client_has_tasks_seen_through_in_its_place() {
    let gateway = gateway().await;
    let mut alice = gateway.user("alice@acme").able(Era::Legacy, able()).await;
    let failed = alice.call("failing_job", json!({})).await;
    assert!(
        failed.is_error() && failed.text() == "The job failed.",
        "{failed:?}"
    );
    let broken = alice.call("protocol_error_job", json!({})).await;
    assert_eq!(broken.code(), -32603, "{broken:?}");
    // What the task needs is asked on the call's stream.
    let call = alice.prepare(
        "tools/call",
        json!({"name": "confirm_delete", "arguments": {}}),
    );
    let mut events = call.stream().await;
    let question = events.notification("elicitation/create").await;
    let outcome = json!({"result": {"action": "accept", "content": {"confirm": true}}});
    alice.reply(&question["id"], outcome).await;
    let last = events.until_response(&call.id()).await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Deleted.", "{last}");
    // Whoever cannot be asked is told so, and nothing hangs.
    let mut unable = gateway.user("alice@acme").connect(Era::Legacy).await;
    assert!(unable.call("confirm_delete", json!({})).await.is_error());
    // It has no methods of tasks.
    let answer = about(&mut alice, "tasks/get", "x").await;
    assert_eq!(answer.code(), -32601, "{answer:?}");
}

#[tokio::test]
async fn changes_of_tasks_are_told_to_whom_they_concern() {
    let gateway = gateway().await;
    let mut alice = of(&gateway, "alice@acme").await;
    let id = made(&mut alice, "confirm_delete", json!({})).await;
    let wanted = json!({"notifications": {"taskIds": [id, "unknown"]}});
    let mut plain = gateway.user("alice@acme").modern();
    let answer = plain.request("subscriptions/listen", wanted.clone()).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32021));
    let mut mallory = of(&gateway, "mallory@acme").await;
    let mut other = mallory.stream("subscriptions/listen", wanted.clone()).await;
    let first = other.message().await.unwrap();
    assert_eq!(first["params"]["notifications"], json!({}), "{first}");

    let listen = alice.prepare("subscriptions/listen", wanted);
    let mut events = listen.stream().await;
    let first = events.message().await.unwrap();
    assert_eq!(first["params"]["notifications"], json!({"taskIds": [id]}));
    let becomes = async |events: &mut super::support::sse::Events, status: &str| loop {
        let told = events.notification("notifications/tasks").await;
        let checker = super::support::wire::Checker::of("2026-07-28");
        assert_eq!(checker.server("subscriptions/listen", &told), Ok(()));
        let params = told["params"].clone();
        assert_eq!(params["taskId"], json!(id), "{params}");
        let subscription = &params["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*subscription, listen.id(), "{params}");
        if params["status"] == status {
            return params;
        }
    };
    let asks = becomes(&mut events, "input_required").await;
    assert_eq!(
        asks["inputRequests"]["confirm"]["method"],
        "elicitation/create"
    );
    let responses = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
    let params = json!({"taskId": id, "inputResponses": responses});
    alice.request("tasks/update", params).await;
    let done = becomes(&mut events, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Deleted.");
    // Its end was on record before it was told.
    let ends = gateway.audit(&["--tool", "tasks/get confirm_delete"]);
    assert_eq!(ends.len(), 1, "{ends:?}");
    while let Some(event) = other.within(Duration::from_millis(500)).await {
        assert_eq!(event.data, "", "nothing but keep-alive: {event:?}");
    }
}

#[tokio::test]
async fn a_task_that_was_made_unasked_is_seen_to_its_end() {
    let server = Talking::start(Era::Modern, &["eager"], |talk| async move {
        let mut task = json!({
            "taskId": "own", "status": "working", "ttlMs": 60_000, "pollIntervalMs": 50,
            "createdAt": "2026-11-30T00:00:00Z", "lastUpdatedAt": "2026-11-30T00:00:00Z",
        });
        if talk.asked.method() == "tools/call" {
            task["resultType"] = json!("task");
        } else {
            task["status"] = json!("completed");
            task["result"] = json!({
                "resultType": "complete", "content": [{"type": "text", "text": "done"}],
            });
        }
        talk.result(task).await;
    });
    let setup = Setup::new().upstream("up", server.config());
    let gateway = setup.start().await;
    for era in super::support::both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let answer = alice.call("eager", json!({})).await;
        assert_eq!(answer.text(), "done", "{era:?}: {answer:?}");
    }
    assert!(server.faults().is_empty(), "{:?}", server.faults());
}

#[tokio::test]
async fn a_task_that_takes_longer_than_its_call_may_is_called_off() {
    let server = Talking::start(Era::Modern, &["long"], |talk| async move {
        let declared = &talk.param("_meta")["io.modelcontextprotocol/clientCapabilities"];
        let declared = declared["extensions"].is_object();
        let needed = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let task = json!({
            "taskId": "own", "status": "working", "ttlMs": 60_000, "pollIntervalMs": 50,
            "createdAt": "2026-11-30T00:00:00Z", "lastUpdatedAt": "2026-11-30T00:00:00Z",
        });
        match talk.asked.method() {
            "tools/call" if !declared => {
                let error = json!({
                    "code": -32021, "message": "takes a task",
                    "data": {"requiredCapabilities": needed},
                });
                talk.error("400 Bad Request", error).await;
            }
            "tools/call" => {
                let mut made = task;
                made["resultType"] = json!("task");
                talk.result(made).await;
            }
            "tasks/get" => talk.result(task).await,
            _ => talk.result(json!({})).await,
        }
    });
    let gateway = Setup::new()
        .upstream("up", server.config())
        .yaml("tools: [{ match: long, timeout: 600ms }]")
        .start()
        .await;
    let mut modern = gateway.user("alice@acme").modern();
    eventually("the tools are listed", async || {
        (!modern.names().await.is_empty()).then_some(())
    })
    .await;
    // A modern client can declare what is needed, and is told so.
    let answer = modern.call("long", json!({})).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32021));
    let mut alice = gateway.user("alice@acme").connect(Era::Legacy).await;
    let answer = alice.call("long", json!({})).await;
    assert!(
        answer.is_error() && answer.text().contains("called off"),
        "{answer:?}"
    );
    assert!(server.seen_of("tasks/get").len() > 1);
    let off = server.seen_of("tasks/cancel");
    assert_eq!(off.len(), 1);
    assert_eq!(off[0].message["params"]["taskId"], "own");
    assert_eq!(off[0].header("mcp-name"), Some("own"));
    let records = gateway.audit(&["--tool", "long", "--outcome", "timeout"]);
    assert_eq!(records.len(), 1, "{records:?}");
}
