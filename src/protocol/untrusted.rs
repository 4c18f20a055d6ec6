//! What an upstream said, before it is cleaned.

use std::fmt;
use std::time::Duration;

use super::ask::ServerMethod;
use super::capabilities::ClientCapabilities;
use super::json::Json;

/// A value from an upstream. Only `sanitize` opens it (a test holds that); the
/// rest of the program sees control fields alone.
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// Marks a value as an upstream's.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Only `sanitize` may call this.
    pub(crate) fn open(self) -> T {
        self.0
    }
}

impl Untrusted<Json> {
    /// The result's `resultType` where it is one that the core protocol has;
    /// absent means complete (MCP 2026-07-28 basic, `ResultType`).
    pub fn is_input_required(&self) -> bool {
        self.0
            .get("resultType")
            .as_ref()
            .and_then(Json::string)
            .as_deref()
            == Some("input_required")
    }

    /// Whether the result says that the tool failed.
    pub fn is_error(&self) -> bool {
        self.0.get("isError").and_then(|flag| flag.boolean()) == Some(true)
    }

    /// Bytes of the value's text.
    pub fn len(&self) -> usize {
        self.0.as_str().len()
    }

    /// Never: a JSON text has at least one byte.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// One page of a list, taken apart.
#[derive(Debug)]
pub struct ListPage {
    /// The members of the list.
    pub items: Vec<Untrusted<Json>>,
    /// Where the next page begins; goes back to the upstream as it came.
    pub next_cursor: Option<String>,
    /// `ttlMs` (MCP 2026-07-28 caching).
    pub fresh_for: Option<Duration>,
}

impl Untrusted<Json> {
    /// Takes a list's result apart; `None` where it has no list of that name.
    pub fn into_page(self, list: &str) -> Option<ListPage> {
        let items = self
            .0
            .get(list)
            .filter(|items| items.as_str().starts_with('['))?;
        let cursor = self.0.get("nextCursor");
        let millis = self.0.get("ttlMs").and_then(|millis| millis.integer());
        Some(ListPage {
            items: items.elements().map(Untrusted).collect(),
            next_cursor: cursor.and_then(|cursor| cursor.string().map(Into::into)),
            fresh_for: millis
                .and_then(|millis| u64::try_from(millis).ok())
                .map(Duration::from_millis),
        })
    }
}

/// A result that asks for input, taken apart (MCP 2026-07-28 multi round-trip
/// requests, `InputRequiredResult`).
#[derive(Debug)]
pub struct InputRequired {
    /// What is asked for, in order.
    pub requests: Vec<InputRequest>,
    /// `requestState`: goes back to the upstream as it came.
    pub state: Option<String>,
    /// The other members of the result.
    pub rest: Untrusted<Json>,
}

/// One member of `inputRequests`.
#[derive(Debug)]
pub struct InputRequest {
    /// The upstream's key for it.
    pub key: String,
    /// What is asked.
    pub method: ServerMethod,
    /// Its parameters.
    pub params: Untrusted<Json>,
    /// The page that it wants opened, as it came.
    pub destination: Option<Untrusted<String>>,
    /// The capabilities that a client needs for it and that these lack.
    pub lacking: Option<Json>,
}

impl Untrusted<Json> {
    /// Takes a result that asks for input apart; `None` where it is not of that
    /// form. `client`: whose capabilities the requests are held against.
    pub fn into_input_required(self, client: &ClientCapabilities) -> Option<InputRequired> {
        let state = match self.0.get("requestState") {
            Some(state) => Some(state.string()?.into_owned()),
            None => None,
        };
        let given = self.0.get("inputRequests");
        let requests = requests_of(given.as_ref(), client)?;
        let formed = given.as_ref().is_none_or(Json::is_object);
        let rest = |name: &str| matches!(name, "inputRequests" | "requestState");
        (formed && (state.is_some() || !requests.is_empty())).then(|| InputRequired {
            requests,
            state,
            rest: Untrusted(self.0.without_members(rest)),
        })
    }
}

/// Where a task is (the extension `io.modelcontextprotocol/tasks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// It is worked on.
    Working,
    /// It waits for the client.
    InputRequired,
    /// There is a result.
    Completed,
    /// There is an error.
    Failed,
    /// There is neither.
    Cancelled,
}

impl TaskStatus {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "working" => Self::Working,
            "input_required" => Self::InputRequired,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => return None,
        })
    }

    /// Whether it stays as it is.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task as its upstream tells it, taken apart.
#[derive(Debug)]
pub struct Task {
    /// The upstream's own id for it; goes back as it came.
    pub id: String,
    /// Where it is.
    pub status: TaskStatus,
    /// How long to wait before asking again.
    pub poll_after: Option<Duration>,
    /// What it waits for.
    pub requests: Vec<InputRequest>,
    /// What came of it.
    pub result: Option<Untrusted<Json>>,
    /// Why nothing came of it.
    pub error: Option<TaskError>,
    /// The other members.
    pub rest: Untrusted<Json>,
}

/// The JSON-RPC error that a task ended in.
#[derive(Debug)]
pub struct TaskError {
    /// Its code.
    pub code: i64,
    /// Its words.
    pub message: Untrusted<String>,
    /// Its data.
    pub data: Option<Untrusted<Json>>,
}

impl Untrusted<Json> {
    /// Whether the result is a task that was made instead of an answer.
    pub fn is_task(&self) -> bool {
        let kind = self.0.get("resultType");
        kind.as_ref().and_then(Json::string).as_deref() == Some("task")
    }

    /// Whether an error's data says that the client would have to take tasks.
    pub fn requires_tasks(&self) -> bool {
        let needed = self.0.get("requiredCapabilities");
        needed.is_some_and(|needed| ClientCapabilities::new(needed).has_tasks())
    }

    /// Takes a task apart; `None` where it is not of that form. `client`: whose
    /// capabilities its requests are held against.
    pub fn into_task(self, client: &ClientCapabilities) -> Option<Task> {
        let text = |json: &Json, key: &str| Some(json.get(key)?.string()?.into_owned());
        let status = TaskStatus::parse(&text(&self.0, "status")?)?;
        let millis = self.0.get("pollIntervalMs").and_then(|time| time.integer());
        let error = self.0.get("error").filter(Json::is_object);
        let error = error.map(|error| TaskError {
            code: error
                .get("code")
                .and_then(|code| code.integer())
                .unwrap_or(super::codes::INTERNAL_ERROR),
            message: Untrusted(text(&error, "message").unwrap_or_default()),
            data: error.get("data").map(Untrusted),
        });
        let apart = |name: &str| {
            matches!(
                name,
                "taskId" | "resultType" | "requestState" | "inputRequests" | "result" | "error"
            )
        };
        Some(Task {
            id: text(&self.0, "taskId")?,
            status,
            poll_after: millis
                .and_then(|millis| u64::try_from(millis).ok())
                .map(Duration::from_millis),
            requests: requests_of(self.0.get("inputRequests").as_ref(), client)?,
            result: self.0.get("result").filter(Json::is_object).map(Untrusted),
            error,
            rest: Untrusted(self.0.without_members(apart)),
        })
    }
}

/// The members of `inputRequests`; `None` where one is not of that form.
fn requests_of(given: Option<&Json>, client: &ClientCapabilities) -> Option<Vec<InputRequest>> {
    let mut requests = Vec::new();
    for (key, request) in given.into_iter().flat_map(Json::members) {
        let method = ServerMethod::parse(&request.get("method")?.string()?)?;
        let params = request.get("params").unwrap_or_else(Json::empty_object);
        requests.push(InputRequest {
            key: key.into_owned(),
            method,
            lacking: client.lacking(method, &params),
            destination: destination(method, &params),
            params: Untrusted(params),
        });
    }
    Some(requests)
}

/// The page that an elicitation wants opened, before anything is made of it: cleaning
/// would break its URL (MCP elicitation, URL mode).
pub fn destination(method: ServerMethod, params: &Json) -> Option<Untrusted<String>> {
    let text = |name: &str| Some(params.get(name)?.string()?.into_owned());
    let opens = method == ServerMethod::Elicit && text("mode")? == "url";
    opens.then(|| Untrusted(text("url").unwrap_or_default()))
}

impl Untrusted<Json> {
    /// The pages that the data of a -32042 wants opened, in order (MCP 2025-11-25).
    pub fn destinations(&self) -> Vec<Untrusted<String>> {
        let all = self.0.get("elicitations");
        let all = all.iter().flat_map(Json::elements);
        all.filter_map(|one| destination(ServerMethod::Elicit, &one))
            .collect()
    }
}

impl<T> fmt::Debug for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Untrusted(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(value: &serde_json::Value) -> Option<Task> {
        Untrusted::new(Json::from_value(value)).into_task(&ClientCapabilities::none())
    }

    #[test]
    fn a_task_is_taken_apart() {
        let made = task(&serde_json::json!({
            "resultType": "task", "taskId": "t", "status": "working", "pollIntervalMs": 50,
            "requestState": "gone", "ttlMs": null, "x": 1,
        }))
        .unwrap();
        assert_eq!((&*made.id, made.status), ("t", TaskStatus::Working));
        assert_eq!(made.poll_after, Some(Duration::from_millis(50)));
        let rest = r#"{"status":"working","pollIntervalMs":50,"ttlMs":null,"x":1}"#;
        assert_eq!(made.rest.open().as_str(), rest);
        let failed = task(&serde_json::json!({
            "taskId": "t", "status": "failed", "error": {"code": -5, "message": "m"},
        }));
        assert_eq!(failed.unwrap().error.unwrap().code, -5);
        let asks = task(&serde_json::json!({
            "taskId": "t", "status": "input_required",
            "inputRequests": {"k": {"method": "roots/list"}},
        }))
        .unwrap();
        let lacking = asks.requests[0].lacking.as_ref().unwrap();
        assert_eq!(
            (&*asks.requests[0].key, lacking.as_str()),
            ("k", r#"{"roots":{}}"#)
        );
    }

    #[test]
    fn what_is_no_task_is_none() {
        for value in [
            serde_json::json!({"status": "working"}),
            serde_json::json!({"taskId": 7, "status": "working"}),
            serde_json::json!({"taskId": "t", "status": "resting"}),
            serde_json::json!({"taskId": "t", "status": "working", "inputRequests": {"k": {}}}),
        ] {
            assert!(task(&value).is_none(), "{value}");
        }
    }
}
