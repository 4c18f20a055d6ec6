//! The modern era: every request stands alone.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Asked, Outcome, Server, error, event, json_answer, response, stream_answer};

const VERSION: &str = "2026-07-28";
const PROTOCOL: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What is wrong with a request, as status and error.
fn fault(headers: &HeaderMap, message: &Value) -> Option<(u16, Value)> {
    let meta = &message["params"]["_meta"];
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if meta[CAPABILITIES].as_object().is_none() || meta[PROTOCOL].as_str().is_none() {
        return Some((400, error(-32602, "`_meta` is incomplete")));
    }
    if header("mcp-protocol-version") != meta[PROTOCOL].as_str()
        || header("mcp-method") != message["method"].as_str()
    {
        return Some((400, error(-32020, "headers and body differ")));
    }
    if meta[PROTOCOL] != VERSION {
        let data = json!({"supported": [VERSION], "requested": meta[PROTOCOL]});
        let error =
            json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
        return Some((400, error));
    }
    let params = &message["params"];
    let name = match message["method"].as_str().unwrap_or_default() {
        "tools/call" | "prompts/get" => &params["name"],
        "resources/read" => &params["uri"],
        "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
        _ => &Value::Null,
    };
    let given = header("mcp-name").map(decoded);
    if let Some(name) = name.as_str()
        && given.as_deref() != Some(name)
    {
        return Some((400, error(-32020, "Mcp-Name and body differ")));
    }
    None
}

/// A header's value, decoded where it is encoded.
fn decoded(value: &str) -> String {
    use base64::Engine as _;
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let bytes = inner.and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.unwrap_or_else(|| value.to_owned())
}

pub(crate) async fn post(server: Arc<Server>, headers: &HeaderMap, body: &[u8]) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return json_answer(400, &response(&Value::Null, &Err(error(-32700, "no JSON"))));
    };
    let id = message["id"].clone();
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    if let Some((status, error)) = fault(headers, &message) {
        return json_answer(status, &response(&id, &Err(error)));
    }
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let params = message["params"].clone();
    if method == "subscriptions/listen" {
        return listen(&server, id, &params);
    }
    let (notify, mut said) = mpsc::unbounded_channel();
    let asked = Asked {
        method,
        capabilities: params["_meta"][CAPABILITIES].clone(),
        logs: params["_meta"].get(LOG_LEVEL).is_some(),
        params,
        notify,
    };
    let mut running = tokio::spawn(async move { complete(server.own(&asked).await) });
    let first = tokio::select! {
        outcome = &mut running => {
            let outcome = outcome.unwrap();
            let mut waiting = Vec::new();
            while let Ok(message) = said.try_recv() {
                waiting.push(message);
            }
            if waiting.is_empty() {
                let status = status(&outcome);
                return json_answer(status, &response(&id, &outcome));
            }
            let (events, stream) = mpsc::unbounded_channel();
            for message in waiting {
                let _ = events.send(event(&message));
            }
            let _ = events.send(event(&response(&id, &outcome)));
            return stream_answer(stream);
        }
        Some(first) = said.recv() => first,
    };
    let (events, stream) = mpsc::unbounded_channel();
    let _ = events.send(event(&first));
    tokio::spawn(async move {
        while let Some(message) = said.recv().await {
            let _ = events.send(event(&message));
        }
        let outcome = running.await.unwrap();
        let _ = events.send(event(&response(&id, &outcome)));
    });
    stream_answer(stream)
}

/// Every result says who gave it, and that it is whole.
fn complete(outcome: Outcome) -> Outcome {
    let mut result = outcome?;
    if result.get("resultType").is_none() {
        result["resultType"] = json!("complete");
    }
    result["_meta"]["io.modelcontextprotocol/serverInfo"] =
        json!({"name": "everything", "version": "1"});
    Ok(result)
}

fn status(outcome: &Outcome) -> u16 {
    match outcome {
        Err(error) if error["code"] == -32601 => 404,
        Err(error) if error["code"] == -32021 => 400,
        _ => 200,
    }
}

impl Server {
    async fn own(&self, asked: &Asked) -> Outcome {
        match asked.method.as_str() {
            "server/discover" => Ok(json!({
                "supportedVersions": [VERSION], "capabilities": self.capabilities(),
                "ttlMs": 0, "cacheScope": "public",
            })),
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.task(asked),
            _ => self.answer(asked).await,
        }
    }
}

fn listen(server: &Arc<Server>, id: Value, params: &Value) -> Response {
    let filter = params["notifications"].clone();
    let mut changes = server.changes.subscribe();
    let (events, stream) = mpsc::unbounded_channel();
    let acknowledged = json!({
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {SUBSCRIPTION: id}, "notifications": filter},
    });
    let _ = events.send(event(&acknowledged));
    tokio::spawn(async move {
        loop {
            let change = tokio::select! {
                () = events.closed() => return,
                change = changes.recv() => change,
            };
            let Ok(mut change) = change else { return };
            let wanted = match change["method"].as_str().unwrap_or_default() {
                "notifications/tools/list_changed" => filter["toolsListChanged"] == true,
                "notifications/prompts/list_changed" => filter["promptsListChanged"] == true,
                "notifications/resources/list_changed" => filter["resourcesListChanged"] == true,
                "notifications/resources/updated" => filter["resourceSubscriptions"]
                    .as_array()
                    .is_some_and(|uris| uris.contains(&change["params"]["uri"])),
                "notifications/tasks" => filter["taskIds"]
                    .as_array()
                    .is_some_and(|ids| ids.contains(&change["params"]["taskId"])),
                _ => false,
            };
            if wanted {
                change["params"]["_meta"] = json!({SUBSCRIPTION: id});
                let _ = events.send(event(&change));
            }
        }
    });
    stream_answer(stream)
}
