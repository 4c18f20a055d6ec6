//! A client of either era, so that a test can be written once and run in both.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;

use super::answer::Answer;
use super::client::Caller;
use super::config::merge;
use super::sse::Events;
use super::{Value, json, wire};

/// The legacy revision that sessions speak unless a test names another.
pub(crate) const LEGACY: &str = "2025-11-25";
/// The modern revision.
pub(crate) const MODERN: &str = "2026-07-28";
/// Every legacy revision.
pub(crate) const LEGACY_VERSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// With `initialize`, perhaps a session.
    Legacy,
    /// Each request stands for itself.
    Modern,
}

/// Both eras, for a test to go through.
pub(crate) fn both() -> [Era; 2] {
    [Era::Legacy, Era::Modern]
}

/// A client that has introduced itself.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    caller: Caller,
    era: Era,
    version: String,
    id: Option<String>,
    capabilities: Value,
    next: i64,
    opening: Option<Answer>,
}

/// A request that is ready to be sent, and may still be changed.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    caller: Caller,
    /// Its headers.
    pub(crate) headers: Vec<(String, String)>,
    /// Its body.
    pub(crate) body: Value,
}

impl Session {
    /// Goes through `initialize`. Panics unless that works.
    pub(crate) async fn initialize(caller: Caller, version: &str) -> Self {
        Self::initialize_able(caller, version, json!({})).await
    }

    /// The same for a client that can do this. Panics unless that works.
    pub(crate) async fn initialize_able(
        caller: Caller,
        version: &str,
        capabilities: Value,
    ) -> Self {
        let mut session = Self::new(caller, Era::Legacy, version);
        session.capabilities = capabilities;
        let params = json!({
            "protocolVersion": version, "capabilities": session.capabilities, "clientInfo": client_info(),
        });
        let mut opening = session.prepare("initialize", params);
        opening.remove("mcp-protocol-version");
        let answer = opening.send().await;
        let agreed = answer.result()["protocolVersion"].as_str().unwrap();
        agreed.clone_into(&mut session.version);
        session.id = answer.header("mcp-session-id").map(str::to_owned);
        session.opening = Some(answer);
        let answer = session.notify("notifications/initialized", json!({})).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
        session
    }

    /// The same client declaring these capabilities from now on (modern).
    pub(crate) fn able(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Answers what the server has asked, by a POST of its own (legacy).
    pub(crate) async fn reply(&self, id: &Value, outcome: Value) -> Answer {
        let mut prepared = self.message("", json!({}));
        prepared.body = json!({"jsonrpc": "2.0", "id": id});
        merge(&mut prepared.body, &outcome);
        prepared.send().await
    }

    /// A modern client.
    pub(crate) fn modern(caller: Caller) -> Self {
        Self::new(caller, Era::Modern, MODERN)
    }

    fn new(caller: Caller, era: Era, version: &str) -> Self {
        Self {
            caller,
            era,
            version: version.to_owned(),
            id: None,
            capabilities: json!({}),
            next: 1,
            opening: None,
        }
    }

    /// The era it speaks.
    pub(crate) fn era(&self) -> Era {
        self.era
    }

    /// Its session id, where it has one.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// What `initialize` was answered with. Legacy only.
    pub(crate) fn opening(&self) -> &Answer {
        self.opening.as_ref().expect("a legacy session")
    }

    /// The same session used by somebody else, or elsewhere.
    pub(crate) fn used_by(&self, caller: Caller) -> Self {
        Self {
            caller,
            ..self.clone()
        }
    }

    /// A request in this era's form, not sent yet.
    pub(crate) fn prepare(&mut self, method: &str, params: Value) -> Prepared {
        let id = self.next;
        self.next += 1;
        let mut prepared = self.message(method, params);
        prepared.body["id"] = json!(id);
        prepared
    }

    fn message(&self, method: &str, mut params: Value) -> Prepared {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            (
                "accept".to_owned(),
                "application/json, text/event-stream".to_owned(),
            ),
            ("mcp-protocol-version".to_owned(), self.version.clone()),
        ];
        if let Some(id) = &self.id {
            headers.push(("mcp-session-id".to_owned(), id.clone()));
        }
        if self.era == Era::Modern {
            let meta = json!({"_meta": {
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientInfo": client_info(),
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            }});
            merge(&mut params, &meta);
            headers.push(("mcp-method".to_owned(), method.to_owned()));
            let name = params
                .get("name")
                .or_else(|| params.get("uri"))
                .or_else(|| params.get("taskId"))
                .and_then(Value::as_str);
            if let Some(name) = name.filter(|_| has_name(method)) {
                headers.push(("mcp-name".to_owned(), header_value(name)));
            }
        }
        Prepared {
            caller: self.caller.clone(),
            headers,
            body: json!({"jsonrpc": "2.0", "method": method, "params": params}),
        }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Answer {
        self.prepare(method, params).send().await
    }

    /// Sends a request whose answer is read as a stream.
    pub(crate) async fn stream(&mut self, method: &str, params: Value) -> Events {
        self.prepare(method, params).stream().await
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str, params: Value) -> Answer {
        self.message(method, params).send().await
    }

    /// Calls a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// All listed tools, page by page.
    pub(crate) async fn list(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let answer = self.request("tools/list", params).await;
            tools.extend_from_slice(answer.result()["tools"].as_array().unwrap());
            match answer.result().get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return tools,
            }
        }
    }

    /// The names of all listed tools.
    pub(crate) async fn names(&mut self) -> Vec<String> {
        let tools = self.list().await;
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Opens the stream on which changes of lists are announced.
    pub(crate) async fn listen(&mut self) -> Events {
        match self.era {
            Era::Modern => {
                let wanted = json!({"notifications": {"toolsListChanged": true}});
                self.stream("subscriptions/listen", wanted).await
            }
            Era::Legacy => Events::new(self.get(&[]).await).await,
        }
    }

    /// Sends a GET of this session with some more headers, such as `last-event-id`.
    pub(crate) async fn get(&self, more: &[(&str, &str)]) -> reqwest::Response {
        let mut headers = vec![
            ("accept", "text/event-stream"),
            ("mcp-protocol-version", self.version.as_str()),
        ];
        headers.extend(self.id().map(|id| ("mcp-session-id", id)));
        headers.extend_from_slice(more);
        self.caller.open("GET", &headers, "").await
    }

    /// Ends the session.
    pub(crate) async fn delete(&self) -> Answer {
        let id = self.id().expect("a session id");
        let headers = [
            ("mcp-session-id", id),
            ("mcp-protocol-version", self.version.as_str()),
        ];
        self.caller.raw("DELETE", &headers, "").await
    }
}

impl Prepared {
    /// Sets a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.remove(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves a header out.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.remove(name);
        self
    }

    /// Lays this over its body; `null` removes.
    pub(crate) fn with(mut self, over: &Value) -> Self {
        merge(&mut self.body, over);
        self
    }

    /// Its id.
    pub(crate) fn id(&self) -> Value {
        self.body["id"].clone()
    }

    fn remove(&mut self, name: &str) {
        self.headers.retain(|(known, _)| known != name);
    }

    /// Sends it and reads the whole answer.
    pub(crate) async fn send(&self) -> Answer {
        let answer = Answer::read(self.open().await, &self.id()).await;
        let mut headers = self.headers.iter();
        let version = headers.rfind(|(name, _)| name == "mcp-protocol-version");
        if let (Some((_, version)), Some(method)) = (version, self.body["method"].as_str()) {
            wire::check(version, method, &answer);
        }
        answer
    }

    /// Sends it; `None` where the connection breaks before all of the answer is
    /// there, else the body as it came.
    pub(crate) async fn try_send(&self) -> Option<String> {
        let headers = self.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let answer = self
            .caller
            .try_open("POST", &headers, self.body.to_string())
            .await;
        answer?.text().await.ok()
    }

    /// Sends it and reads the answer as a stream.
    pub(crate) async fn stream(&self) -> Events {
        Events::new(self.open().await).await
    }

    /// Sends it.
    pub(crate) async fn open(&self) -> reqwest::Response {
        self.open_with(self.body.to_string()).await
    }

    /// Sends its headers with this text as the body.
    pub(crate) async fn open_with(&self, body: impl Into<reqwest::Body>) -> reqwest::Response {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        self.caller.open("POST", &headers, body).await
    }
}

fn client_info() -> Value {
    json!({"name": "toolgate-tests", "version": "1"})
}

fn has_name(method: &str) -> bool {
    let of_task = method.starts_with("tasks/");
    of_task || matches!(method, "tools/call" | "resources/read" | "prompts/get")
}

/// A value of `Mcp-Name` (MCP Streamable HTTP, Value Encoding).
pub(crate) fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let bare = text == text.trim() && !text.starts_with("=?base64?");
    if plain && bare && !text.is_empty() {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}
