//! Nothing is lost on the way: whatever an upstream says comes out with all that it had,
//! unknown members at every level among it, for a client of either era over an upstream
//! of either era. (`resultType`, caching hints and the envelopes of merged lists are the
//! gateway's own.)

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use super::support::answer::Answer;
use super::support::asking::{ASKS, able, answer, question};
use super::support::session::Session;
use super::support::talking::Talking;
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

/// The value with a member that nobody knows in each of its objects.
fn odd(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut all: serde_json::Map<String, Value> = members
                .into_iter()
                .map(|(name, value)| (name, odd(value)))
                .collect();
            all.insert("x-unknown".to_owned(), json!({"deep": [1.5, null, "t"]}));
            Value::Object(all)
        }
        Value::Array(all) => all.into_iter().map(odd).collect(),
        plain => plain,
    }
}

/// Fails where something of `said` is not in `told`.
fn kept(what: &str, said: &Value, told: &Value) {
    match (said, told) {
        (Value::Object(said), Value::Object(told)) => {
            for (name, value) in said {
                let Some(found) = told.get(name) else {
                    panic!("{what}: {name} is lost of {told:?}");
                };
                kept(&format!("{what}.{name}"), value, found);
            }
        }
        (Value::Array(said), Value::Array(told)) => {
            assert_eq!(said.len(), told.len(), "{what}: {told:?}");
            for (at, (said, told)) in said.iter().zip(told).enumerate() {
                kept(&format!("{what}[{at}]"), said, told);
            }
        }
        _ => assert_eq!(said, told, "{what}"),
    }
}

const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn tool(name: &str) -> Value {
    odd(json!({
        "name": name, "title": "A tool", "description": "Does something of use.",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "description": "A."}}},
        "annotations": {"title": "A", "readOnlyHint": true, "openWorldHint": false},
        "icons": [{"src": "https://icons.example/a.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}],
        "_meta": {"ui": {"resourceUri": "ui://widget/a.html"}, "com.example/m": {"a": 1}},
    }))
}

fn annotations() -> Value {
    json!({"audience": ["user"], "priority": 0.5, "lastModified": "2026-11-30T00:00:00Z"})
}

/// What each method gives.
fn result(method: &str) -> Option<Value> {
    let icons = json!([{"src": "https://icons.example/r.png", "mimeType": "image/png"}]);
    Some(match method {
        "tools/list" => {
            let tools = ["plain", "speaks", "errs"].map(tool);
            json!({ "tools": tools })
        }
        "resources/list" => json!({"resources": [odd(json!({
            "uri": "docs://one", "name": "one", "title": "One", "description": "The first.",
            "mimeType": "text/plain", "size": 7, "annotations": annotations(), "icons": icons,
            "_meta": {"com.example/m": 1},
        }))]}),
        "resources/templates/list" => json!({"resourceTemplates": [odd(json!({
            "uriTemplate": "docs://many/{n}", "name": "many", "title": "Many", "description": "Others.",
            "mimeType": "text/plain", "annotations": annotations(), "icons": icons, "_meta": {"m.example/m": 1},
        }))]}),
        "prompts/list" => json!({"prompts": [odd(json!({
            "name": "ask", "title": "Ask", "description": "Asks.", "icons": icons,
            "arguments": [{"name": "arg", "title": "Arg", "description": "An argument.", "required": false}],
            "_meta": {"com.example/m": 1},
        }))]}),
        "resources/read" => odd(json!({"contents": [
            {"uri": "docs://one", "mimeType": "text/plain", "text": "one", "_meta": {"com.example/m": 1}},
            {"uri": "docs://one#2", "mimeType": "image/png", "blob": DOT, "_meta": {}},
        ], "_meta": {"com.example/m": 1}})),
        "prompts/get" => odd(json!({"description": "Asks.", "messages": [
            {"role": "user", "content": {"type": "text", "text": "Hello?", "annotations": annotations()}},
            {"role": "assistant", "content": {"type": "image", "data": DOT, "mimeType": "image/png"}},
        ], "_meta": {"com.example/m": 1}})),
        "completion/complete" => odd(json!({
            "completion": {"values": ["a", "b"], "total": 2, "hasMore": false}, "_meta": {"com.example/m": 1},
        })),
        "tools/call" => odd(json!({
            "content": [
                {"type": "text", "text": "words", "annotations": annotations(), "_meta": {"com.example/m": 1}},
                {"type": "image", "data": DOT, "mimeType": "image/png", "annotations": annotations()},
                {"type": "audio", "data": DOT, "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "docs://one", "mimeType": "text/plain", "text": "one", "_meta": {}}},
                {"type": "resource_link", "uri": "docs://one", "name": "one", "title": "One", "icons": icons, "size": 7},
            ],
            "structuredContent": {"n": 1.5, "list": [{"a": null}]},
            "isError": false, "_meta": {"com.example/m": {"a": 1}},
        })),
        _ => return None,
    })
}

fn spoken() -> [(&'static str, Value); 2] {
    let progress =
        json!({"progress": 1, "total": 2, "message": "half", "_meta": {"com.example/m": 1}});
    let log =
        json!({"level": "error", "logger": "l", "data": {"a": [1]}, "_meta": {"com.example/m": 1}});
    [
        ("notifications/progress", odd(progress)),
        ("notifications/message", odd(log)),
    ]
}

fn error() -> Value {
    json!({"code": 4001, "message": "It went wrong.", "data": odd(json!({"a": {"b": 1}}))})
}

struct Shared {
    era: Era,
    seen: Mutex<Vec<Value>>,
}

async fn serve(State(shared): State<Arc<Shared>>, method: Method, body: Bytes) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    shared.seen.lock().unwrap().push(message.clone());
    let id = &message["id"];
    let asked = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let can =
        json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}});
    let outcome = match (asked, shared.era) {
        ("initialize", Era::Legacy) => Ok(json!({
            "protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": {"name": "odd", "version": "1"},
        })),
        ("server/discover", Era::Modern) => {
            Ok(json!({"supportedVersions": ["2026-07-28"], "capabilities": can}))
        }
        ("server/discover", Era::Legacy) => {
            Err(json!({"code": -32600, "message": "initialize first"}))
        }
        _ if params["name"] == "errs" => Err(error()),
        (method, _) => Ok(result(method).unwrap_or_else(|| json!({}))),
    };
    let said = |outcome: Result<Value, Value>| match outcome {
        Ok(mut result) => {
            if shared.era == Era::Modern {
                result["resultType"] = json!("complete");
                result["ttlMs"] = json!(60_000);
                result["cacheScope"] = json!("private");
            }
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        }
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    };
    let refused = outcome.is_err() && asked == "server/discover";
    let status = if refused {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    };
    if params["name"] == "speaks" {
        let mut events = String::new();
        for (method, mut params) in spoken() {
            if method == "notifications/progress" {
                params["progressToken"] = message["params"]["_meta"]["progressToken"].clone();
            }
            let event = json!({"jsonrpc": "2.0", "method": method, "params": params});
            let _ = write!(events, "data: {event}\n\n");
        }
        let _ = write!(events, "data: {}\n\n", said(outcome));
        return ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response();
    }
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, said(outcome).to_string()).into_response()
}

async fn server(era: Era) -> (Arc<Shared>, Value) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = Mutex::default();
    let shared = Arc::new(Shared { era, seen });
    let pages = axum::Router::new()
        .route("/mcp", any(serve))
        .with_state(Arc::clone(&shared));
    tokio::spawn(async move { axum::serve(listener, pages).await });
    (shared, Helper::at(&url).config())
}

async fn over(config: Value) -> Gateway {
    let gateway = Setup::new().upstream("up", config).start().await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("the tools are listed", async || {
        (!alice.names().await.is_empty()).then_some(())
    })
    .await;
    gateway
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_an_upstream_says_comes_out_with_all_it_had() {
    for upstream in both() {
        let (shared, config) = server(upstream).await;
        let gateway = over(config).await;
        for client in both() {
            let what = |method: &str| {
                format!("{method}, a {client:?} client over a {upstream:?} upstream")
            };
            let mut alice = gateway.user("alice@acme").able(client, able()).await;
            for (method, member) in [
                ("tools/list", "tools"),
                ("resources/list", "resources"),
                ("resources/templates/list", "resourceTemplates"),
                ("prompts/list", "prompts"),
            ] {
                let answer = alice.request(method, json!({})).await;
                let mut said = result(method).unwrap()[member].clone();
                said.as_array_mut()
                    .unwrap()
                    .sort_by_key(|item| item["name"].to_string());
                kept(&what(method), &said, &answer.result()[member]);
            }
            let reference = json!({"type": "ref/prompt", "name": "ask"});
            let argument = json!({"name": "arg", "value": "a"});
            for (method, params) in [
                (
                    "tools/call",
                    json!({"name": "plain", "arguments": {"a": "b"}}),
                ),
                ("resources/read", json!({"uri": "docs://one"})),
                (
                    "prompts/get",
                    json!({"name": "ask", "arguments": {"arg": "x"}}),
                ),
                (
                    "completion/complete",
                    json!({"ref": reference, "argument": argument}),
                ),
            ] {
                // What the client says is kept as well.
                let meta = json!({"com.example/own": {"a": [1]}});
                let mut all = params.clone();
                all["_meta"] = meta.clone();
                let answer = alice.request(method, all).await;
                kept(&what(method), &result(method).unwrap(), answer.result());
                let seen = shared.seen.lock().unwrap();
                let sent = seen.iter().rfind(|sent| sent["method"] == method).unwrap();
                kept(&what(method), &meta, &sent["params"]["_meta"]);
                kept(&what(method), &params, &sent["params"]);
            }
            let mut meta = json!({"progressToken": "mine"});
            if client == Era::Modern {
                meta["io.modelcontextprotocol/logLevel"] = json!("info");
            }
            let params = json!({"name": "speaks", "arguments": {}, "_meta": meta});
            let answer = alice.request("tools/call", params).await;
            for (method, said) in spoken() {
                let told = answer.messages.iter().find(|told| told["method"] == method);
                let told = told.unwrap_or_else(|| panic!("{}: {answer:?}", what(method)));
                kept(&what(method), &said, &told["params"]);
            }
            kept(
                &what("the answer"),
                &result("tools/call").unwrap(),
                answer.result(),
            );
            let failed = alice.call("errs", json!({})).await;
            kept(&what("an error"), &error(), failed.error());
        }
    }
}

/// Asks and is answered, each as the client's era has it. Gives the question's params.
async fn asked(alice: &mut Session, tool: &str, reply: &Value) -> (Value, Value) {
    let params = json!({"name": tool, "arguments": {}});
    if alice.era() == Era::Modern {
        // The schemas allow nothing unknown in a form: this is read as it comes.
        let call = alice.prepare("tools/call", params.clone());
        let first = Answer::read(call.open().await, &call.id()).await;
        let requests = first.result()["inputRequests"].as_object().unwrap().clone();
        let (key, request) = requests.into_iter().next().unwrap();
        let mut retry = params;
        retry["inputResponses"] = json!({key: reply});
        retry["requestState"] = first.result()["requestState"].clone();
        let last = alice.request("tools/call", retry).await;
        return (
            request["params"].clone(),
            serde_json::from_str(&last.text()).unwrap(),
        );
    }
    let method = ASKS.into_iter().find(|(name, _)| *name == tool).unwrap().1;
    let call = alice.prepare("tools/call", params);
    let mut events = call.stream().await;
    let request = events.notification(method).await;
    alice.reply(&request["id"], json!({"result": reply})).await;
    let last = events.until_response(&call.id()).await.pop().unwrap();
    let text = last["result"]["content"][0]["text"].as_str().unwrap();
    (
        request["params"].clone(),
        serde_json::from_str(text).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_and_their_answers_arrive_with_all_they_had() {
    for upstream in both() {
        let tools: Vec<&str> = ASKS.iter().map(|(tool, _)| *tool).collect();
        let server = Talking::start(upstream, &tools, move |mut talk| async move {
            let tool = talk.tool();
            let method = ASKS.into_iter().find(|(name, _)| *name == tool).unwrap().1;
            let params = odd(question(&tool));
            if upstream == Era::Legacy {
                let told = talk.ask(method, params).await;
                return talk.text(&told["result"].to_string()).await;
            }
            let told = talk.param("inputResponses")["the key"].clone();
            if told.is_null() {
                let requests = json!({"the key": {"method": method, "params": params}});
                let result = json!({"resultType": "input_required", "inputRequests": requests});
                return talk.result(result).await;
            }
            talk.text(&told.to_string()).await;
        });
        let gateway = over(server.config()).await;
        for client in both() {
            let mut alice = gateway.user("alice@acme").able(client, able()).await;
            for (tool, _) in ASKS {
                let what = format!("{tool}, a {client:?} client over a {upstream:?} upstream");
                let reply = odd(answer(tool));
                let (request, told) = asked(&mut alice, tool, &reply).await;
                kept(&what, &odd(question(tool)), &request);
                assert_eq!(told, reply, "{what}");
            }
        }
    }
}
