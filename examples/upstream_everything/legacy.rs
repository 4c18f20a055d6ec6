//! The legacy era: sessions, server requests beside the answer, resumable streams.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{Asked, Outcome, Server, error, event, json_answer, response, stream_answer};

const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// The open sessions.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

/// One session.
#[derive(Default)]
pub(crate) struct Session {
    capabilities: Value,
    subscribed: Mutex<BTreeSet<String>>,
    /// Requests of ours that wait for the client's reply, by id.
    waiting: Mutex<HashMap<String, oneshot::Sender<Outcome>>>,
    /// Ids of requests of ours, none of which comes twice.
    used: Mutex<BTreeSet<String>>,
    /// Streams that were closed in the middle, by the id of their last event.
    paused: Mutex<HashMap<String, mpsc::UnboundedReceiver<String>>>,
}

impl Sessions {
    fn of(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let id = headers.get("mcp-session-id")?.to_str().ok()?;
        self.0.lock().unwrap().get(id).cloned()
    }
}

impl Session {
    /// The key of a question as the request's id; another one where it is used up.
    fn free_id(&self, key: &str, server: &Server) -> String {
        if self.used.lock().unwrap().insert(key.to_owned()) {
            key.to_owned()
        } else {
            format!("{key}-{}", server.next_id())
        }
    }
}

pub(crate) async fn post(server: Arc<Server>, headers: &HeaderMap, body: &[u8]) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return json_answer(400, &response(&Value::Null, &Err(error(-32700, "no JSON"))));
    };
    let id = message["id"].clone();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    if method == "initialize" {
        return initialize(&server, &id, &message["params"]);
    }
    let Some(session) = server.sessions.of(headers) else {
        let missing = headers.get("mcp-session-id").is_none();
        let status = if missing { 400 } else { 404 };
        return json_answer(status, &response(&id, &Err(error(-32000, "no session"))));
    };
    if method.is_empty() {
        let outcome = match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        };
        let waiting = session.waiting.lock().unwrap().remove(&id.to_string());
        if let Some(waiting) = waiting {
            let _ = waiting.send(outcome);
        }
        return StatusCode::ACCEPTED.into_response();
    }
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
    match method.as_str() {
        "ping" | "logging/setLevel" => return json_answer(200, &response(&id, &Ok(json!({})))),
        "resources/subscribe" | "resources/unsubscribe" => {
            let uri = params["uri"].as_str().unwrap_or_default().to_owned();
            let mut subscribed = session.subscribed.lock().unwrap();
            if method == "resources/subscribe" {
                subscribed.insert(uri);
            } else {
                subscribed.remove(&uri);
            }
            return json_answer(200, &response(&id, &Ok(json!({}))));
        }
        _ => {}
    }
    let (notify, said) = mpsc::unbounded_channel();
    let asked = Asked {
        method,
        params,
        capabilities: session.capabilities.clone(),
        logs: true,
        notify,
    };
    if asked.params["name"] == "test_reconnection" && asked.method == "tools/call" {
        return reconnection(&server, &session, id);
    }
    run(server, session, asked, said, id).await
}

fn initialize(server: &Server, id: &Value, params: &Value) -> Response {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.into_iter().find(|known| *known == asked);
    let session = Session {
        capabilities: params["capabilities"].clone(),
        ..Session::default()
    };
    let key = format!("session-{}", server.next_id());
    let sessions = &server.sessions.0;
    sessions
        .lock()
        .unwrap()
        .insert(key.clone(), Arc::new(session));
    let result = json!({
        "protocolVersion": version.unwrap_or(VERSIONS[0]),
        "capabilities": server.capabilities(),
        "serverInfo": {"name": "everything", "version": "1"},
    });
    let mut answer = json_answer(200, &response(id, &Ok(result)));
    answer
        .headers_mut()
        .insert("mcp-session-id", key.parse().unwrap());
    answer
}

/// Answers as JSON, or as a stream where something is said before.
async fn run(
    server: Arc<Server>,
    session: Arc<Session>,
    asked: Asked,
    mut said: mpsc::UnboundedReceiver<Value>,
    id: Value,
) -> Response {
    let mut running = tokio::spawn(async move { converse(&server, &session, asked).await });
    let first = tokio::select! {
        biased;
        Some(first) = said.recv() => first,
        outcome = &mut running => return json_answer(200, &response(&id, &outcome.unwrap())),
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

/// Runs a request, asking the client beside the answer for what it needs.
async fn converse(server: &Server, session: &Session, mut asked: Asked) -> Outcome {
    loop {
        let result = server.answer(&asked).await?;
        if result["resultType"] != "input_required" {
            return Ok(result);
        }
        let requests = result["inputRequests"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        // All at once: the client brings the answers in any order.
        let (mut asks, mut messages) = (Vec::new(), Vec::new());
        for (key, request) in requests {
            let id = json!(session.free_id(&key, server));
            let (reply, replied) = oneshot::channel();
            session
                .waiting
                .lock()
                .unwrap()
                .insert(id.to_string(), reply);
            let mut message = request.clone();
            message["jsonrpc"] = json!("2.0");
            message["id"] = id;
            messages.push(message);
            asks.push((key, replied));
        }
        let _ = asked.notify.send(Value::Array(messages));
        let mut responses = json!({});
        for (key, replied) in asks {
            let replied = tokio::time::timeout(Duration::from_secs(20), replied).await;
            let replied = replied.ok().and_then(Result::ok);
            let outcome = replied.unwrap_or_else(|| Err(error(-32603, "no reply")));
            match outcome {
                Ok(result) => responses[key] = result,
                Err(error) => {
                    let text = format!("The client refused: {}", error["message"]);
                    return Ok(json!({
                        "content": [{"type": "text", "text": text}], "isError": true,
                    }));
                }
            }
        }
        asked.params["inputResponses"] = responses;
        asked.params["requestState"] = result["requestState"].clone();
    }
}

/// Closes the stream in the middle; the answer comes when it is taken up again.
fn reconnection(server: &Server, session: &Session, id: Value) -> Response {
    let stream = server.next_id();
    let (events, opened) = mpsc::unbounded_channel();
    let _ = events.send(format!("id: {stream}-0\nretry: 300\ndata: \n\n"));
    let (later, rest) = mpsc::unbounded_channel();
    session
        .paused
        .lock()
        .unwrap()
        .insert(format!("{stream}-0"), rest);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let text = "Reconnection test completed successfully";
        let result = json!({"content": [{"type": "text", "text": text}]});
        let message = response(&id, &Ok(result));
        let _ = later.send(format!("id: {stream}-1\ndata: {message}\n\n"));
    });
    stream_answer(opened)
}

pub(crate) fn get(server: &Arc<Server>, headers: &HeaderMap) -> Response {
    let Some(session) = server.sessions.of(headers) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    if let Some(rest) = last.and_then(|id| session.paused.lock().unwrap().remove(id)) {
        return stream_answer(rest);
    }
    let mut changes = server.changes.subscribe();
    let (events, stream) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let change = tokio::select! {
                () = events.closed() => return,
                change = changes.recv() => change,
            };
            let Ok(change) = change else { return };
            let uri = change["params"]["uri"].as_str();
            let wanted = uri.is_none_or(|uri| session.subscribed.lock().unwrap().contains(uri));
            if wanted {
                let _ = events.send(event(&change));
            }
        }
    });
    stream_answer(stream)
}

pub(crate) fn delete(server: &Server, headers: &HeaderMap) -> Response {
    let id = headers
        .get("mcp-session-id")
        .and_then(|id| id.to_str().ok());
    let ended = id.and_then(|id| server.sessions.0.lock().unwrap().remove(id));
    match ended {
        Some(_) => StatusCode::NO_CONTENT.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
