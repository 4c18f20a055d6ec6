//! A modern MCP server inside the test: it lists the tools that the test says,
//! announces nothing, answers each call with the arguments that came, and keeps
//! what it was sent.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use super::{Helper, Value, json};

/// The server. It ends with the test's runtime.
#[derive(Clone, Debug)]
pub(crate) struct ToolServer {
    url: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    tools: Vec<Value>,
    ttl_ms: i64,
    calls: Vec<Value>,
    lists: usize,
}

impl ToolServer {
    /// A server with these tools, whose list it calls fresh for so long.
    pub(crate) async fn start(tools: Vec<Value>, ttl_ms: i64) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let shared = Shared {
            tools,
            ttl_ms,
            calls: Vec::new(),
            lists: 0,
        };
        let shared = Arc::new(Mutex::new(shared));
        let pages = axum::Router::new()
            .route("/mcp", post(answer))
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, pages).await });
        Self { url, shared }
    }

    /// How it stands in the configuration.
    pub(crate) fn config(&self) -> Value {
        Helper::at(&self.url).config()
    }

    /// Other tools from now on.
    pub(crate) fn set_tools(&self, tools: Vec<Value>) {
        self.shared.lock().unwrap().tools = tools;
    }

    /// The params of all calls so far.
    pub(crate) fn calls(&self) -> Vec<Value> {
        self.shared.lock().unwrap().calls.clone()
    }

    /// How often its list was read.
    pub(crate) fn lists(&self) -> usize {
        self.shared.lock().unwrap().lists
    }
}

/// A tool's definition.
pub(crate) fn tool(name: &str, schema: &Value) -> Value {
    json!({"name": name, "description": format!("The tool {name}."), "inputSchema": schema})
}

async fn answer(
    State(shared): State<Arc<Mutex<Shared>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let id = &message["id"];
    let modern = headers.get("mcp-protocol-version");
    let mut shared = shared.lock().unwrap();
    let outcome = match message["method"].as_str().unwrap() {
        _ if modern.is_none_or(|version| version != "2026-07-28") => Err(-32020),
        "server/discover" => Ok(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "private",
        })),
        "tools/list" => {
            shared.lists += 1;
            Ok(json!({
                "tools": shared.tools, "ttlMs": shared.ttl_ms, "cacheScope": "private",
            }))
        }
        "tools/call" => {
            shared.calls.push(message["params"].clone());
            let text = message["params"]["arguments"].to_string();
            Ok(json!({"content": [{"type": "text", "text": text}]}))
        }
        _ => Err(-32601),
    };
    let (status, body) = match outcome {
        Ok(mut result) => {
            result["resultType"] = json!("complete");
            let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
            (StatusCode::OK, body)
        }
        Err(code) => {
            let error = json!({"code": code, "message": "no"});
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
            (StatusCode::BAD_REQUEST, body)
        }
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, body.to_string()).into_response()
}
