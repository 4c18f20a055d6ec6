//! An MCP server that says whatever a test gives it, byte for byte, for tests of
//! cleaning: `cargo run --example upstream_dirty`. Both eras at `/mcp`.
//!
//! | path | what |
//! |---|---|
//! | `POST /say` | JSON of [`Saying`]'s form; answers with a number. The tool `say`, called with `{"number": n}`, says it |
//! | `POST /define` | a JSON array of definitions that are listed beside `say`, as they are |
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test server may die of what it did not expect"
)]

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::Value;

/// What is said in answer to one call. The parts are JSON texts, so that escapes
/// and numbers arrive as the test wrote them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Saying {
    /// The result.
    result: Option<String>,
    /// Or the error.
    error: Option<String>,
    /// Or an error page.
    page: Option<String>,
    /// Notifications before it; `@token` stands for the call's progress token.
    events: Vec<String>,
}

#[derive(Clone, Default)]
struct Server {
    sayings: Arc<Mutex<Vec<Saying>>>,
    definitions: Arc<Mutex<String>>,
}

#[tokio::main]
async fn main() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on {}", listener.local_addr().unwrap());
    let routes = Router::new()
        .route("/mcp", post(mcp))
        .route("/say", post(say))
        .route("/define", post(define))
        .with_state(Server::default());
    axum::serve(listener, routes).await.unwrap();
}

async fn say(State(server): State<Server>, body: String) -> String {
    let saying = serde_json::from_str(&body).unwrap();
    let mut sayings = server.sayings.lock().unwrap();
    sayings.push(saying);
    (sayings.len() - 1).to_string()
}

async fn define(State(server): State<Server>, body: String) {
    let inside = body
        .trim()
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inside
        .unwrap()
        .clone_into(&mut server.definitions.lock().unwrap());
}

async fn mcp(State(server): State<Server>, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    let Some(id) = message.get("id") else {
        return StatusCode::ACCEPTED.into_response();
    };
    let result = match message.get("method").and_then(Value::as_str) {
        Some("server/discover") => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{}},"ttlMs":60000,"cacheScope":"private"}"#.to_owned(),
        Some("tools/list") => {
            let more = server.definitions.lock().unwrap().clone();
            let comma = if more.trim().is_empty() { "" } else { "," };
            format!(
                r#"{{"resultType":"complete","tools":[{{"name":"say","description":"Says it.","inputSchema":{{"type":"object","properties":{{"number":{{"type":"integer"}}}}}}}}{comma}{more}],"ttlMs":60000,"cacheScope":"private"}}"#
            )
        }
        Some("tools/call") => return server.called(id, &message),
        _ => "{}".to_owned(),
    };
    json(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ))
}

impl Server {
    fn called(&self, id: &Value, message: &Value) -> Response {
        let number = message.pointer("/params/arguments/number");
        let number = usize::try_from(number.and_then(Value::as_u64).unwrap()).unwrap();
        let saying = self.sayings.lock().unwrap().get(number).cloned().unwrap();
        let token = message.pointer("/params/_meta/progressToken");
        let token = token.map_or_else(|| "null".to_owned(), Value::to_string);
        let answer = match (&saying.result, &saying.error, &saying.page) {
            (Some(result), ..) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            (_, Some(error), _) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
            (.., page) => {
                let page = page.clone().unwrap_or_default();
                return (StatusCode::INTERNAL_SERVER_ERROR, page).into_response();
            }
        };
        if saying.events.is_empty() {
            return json(&answer);
        }
        let mut stream = String::new();
        for message in saying.events.iter().chain([&answer]) {
            stream.push_str("data: ");
            stream.push_str(&message.replace("\"@token\"", &token));
            stream.push_str("\n\n");
        }
        ([(header::CONTENT_TYPE, "text/event-stream")], stream).into_response()
    }
}

fn json(text: &str) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, text.to_owned()).into_response()
}
