//! The server that the official conformance suite wants to find, for tests:
//! `cargo run --example upstream_everything -- --era legacy|modern --port 9304`.
//!
//! Written over plain HTTP, without an SDK: the tests of the suite judge the wire to
//! the byte, and both eras are to be served by one set of tools. `tools.rs` has
//! these, in modern form: a tool that needs input says so in its result. The legacy
//! transport asks its client instead and calls the tool again (`legacy.rs`).
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a test server may die of what it did not expect"
)]

mod content;
mod legacy;
mod modern;
mod tasks;
mod tools;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};

/// Which revisions the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// The server.
struct Server {
    era: Era,
    /// What changed: a notification without subscription ids.
    changes: broadcast::Sender<Value>,
    /// Tools and prompts that come and go.
    extra: Mutex<BTreeSet<&'static str>>,
    ids: AtomicU64,
    sessions: legacy::Sessions,
    tasks: tasks::Tasks,
}

/// One request, whatever era it came in.
#[derive(Clone)]
struct Asked {
    method: String,
    params: Value,
    /// What the client can do.
    capabilities: Value,
    /// Log messages are wanted.
    logs: bool,
    /// Where notifications about it go.
    notify: mpsc::UnboundedSender<Value>,
}

impl Asked {
    fn say(&self, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        // Who does not listen does not miss it.
        let _ = self.notify.send(message);
    }

    fn log(&self, text: &str) {
        if self.logs {
            self.say(
                "notifications/message",
                &json!({"level": "info", "data": text}),
            );
        }
    }

    fn progress(&self, progress: u32) {
        let token = &self.params["_meta"]["progressToken"];
        if !token.is_null() {
            self.say(
                "notifications/progress",
                &json!({"progressToken": token, "progress": progress, "total": 100}),
            );
        }
    }

    fn argument(&self, name: &str) -> &str {
        self.params["arguments"][name].as_str().unwrap_or_default()
    }

    fn can(&self, name: &str) -> bool {
        self.capabilities.get(name).is_some()
    }

    fn has_tasks(&self) -> bool {
        self.capabilities["extensions"]
            .get(tasks::EXTENSION)
            .is_some()
    }
}

/// A result, or a JSON-RPC error object.
type Outcome = Result<Value, Value>;

fn error(code: i64, message: &str) -> Value {
    json!({"code": code, "message": message})
}

impl Server {
    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = json!({
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true},
            "completions": {},
            "logging": {},
        });
        if self.era == Era::Modern {
            capabilities["extensions"] = json!({tasks::EXTENSION: {}});
        }
        capabilities
    }

    /// Something changed, for all who listen.
    fn changed(&self, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let _ = self.changes.send(message);
    }

    /// Lets a tool or a prompt come or go.
    fn toggle(&self, what: &'static str, list: &str) {
        let mut extra = self.extra.lock().unwrap();
        if !extra.remove(what) {
            extra.insert(what);
        }
        drop(extra);
        self.changed(&format!("notifications/{list}/list_changed"), &json!({}));
    }

    /// Answers a method that both eras have.
    async fn answer(&self, asked: &Asked) -> Outcome {
        let mut result = match asked.method.as_str() {
            "tools/list" => json!({"tools": self.tools()}),
            "resources/list" => json!({"resources": content::resources()}),
            "resources/templates/list" => json!({"resourceTemplates": content::templates()}),
            "prompts/list" => json!({"prompts": self.prompts()}),
            "tools/call" => return self.call(asked).await,
            "resources/read" => self.read(asked)?,
            "prompts/get" => return Self::prompt(asked),
            "completion/complete" => {
                let typed = asked.params["argument"]["value"]
                    .as_str()
                    .unwrap_or_default();
                let known = ["paris", "park", "party"];
                let fit: Vec<_> = known
                    .iter()
                    .filter(|word| word.starts_with(typed))
                    .collect();
                return Ok(json!({
                    "completion": {"values": fit, "total": fit.len(), "hasMore": false},
                }));
            }
            method => return Err(error(-32601, &format!("Method not found: {method}"))),
        };
        if self.era == Era::Modern {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("public");
        }
        Ok(result)
    }
}

/// A whole answer of JSON.
fn json_answer(status: u16, body: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (
        StatusCode::from_u16(status).unwrap(),
        kind,
        body.to_string(),
    )
        .into_response()
}

/// A stream of events, each a message and, where it has one, an id.
fn stream_answer(events: mpsc::UnboundedReceiver<String>) -> Response {
    let events = futures_util::stream::unfold(events, |mut events| async {
        let event = events.recv().await?;
        Some((Ok::<_, std::io::Error>(Bytes::from(event)), events))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, axum::body::Body::from_stream(events)).into_response()
}

/// The event of a message; several in one, where there is a list of them.
fn event(message: &Value) -> String {
    match message.as_array() {
        Some(all) => all.iter().map(event).collect(),
        None => format!("data: {message}\n\n"),
    }
}

/// What a response says.
fn response(id: &Value, outcome: &Outcome) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

async fn serve(
    State(server): State<Arc<Server>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match (server.era, method.as_str()) {
        (Era::Modern, "POST") => modern::post(server, &headers, &body).await,
        (Era::Legacy, "POST") => legacy::post(server, &headers, &body).await,
        (Era::Legacy, "GET") => legacy::get(&server, &headers),
        (Era::Legacy, "DELETE") => legacy::delete(&server, &headers),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let mut rest = arguments.iter().skip_while(|argument| *argument != name);
        rest.nth(1).cloned()
    };
    let era = match value("--era").as_deref() {
        Some("legacy") => Era::Legacy,
        _ => Era::Modern,
    };
    let server = Server {
        era,
        changes: broadcast::Sender::new(64),
        extra: Mutex::default(),
        ids: AtomicU64::new(1),
        sessions: legacy::Sessions::default(),
        tasks: tasks::Tasks::default(),
    };
    let pages = axum::Router::new()
        .route("/mcp", any(serve))
        .with_state(Arc::new(server));
    let port = value("--port").and_then(|text| text.parse().ok());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
    let listener = listener.unwrap();
    println!("listening on http://{}/mcp", listener.local_addr().unwrap());
    axum::serve(listener, pages).await.unwrap();
}
