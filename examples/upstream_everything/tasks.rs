//! The extension of tasks (`io.modelcontextprotocol/tasks`), modern era only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::tools::{elicit, text};
use super::{Asked, Era, Outcome, Server, error};

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The tasks, by id.
#[derive(Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<HashMap<String, Task>>>);

/// One task.
pub(crate) struct Task {
    created: String,
    status: &'static str,
    /// Requests that wait for the client's input.
    pending: serde_json::Map<String, Value>,
    answers: serde_json::Map<String, Value>,
    outcome: Option<Outcome>,
}

impl Task {
    fn json(&self, id: &str) -> Value {
        let mut json = json!({
            "taskId": id, "status": self.status, "createdAt": self.created,
            "lastUpdatedAt": now(), "ttlMs": 60_000, "pollIntervalMs": 100,
        });
        if self.status == "input_required" {
            json["inputRequests"] = Value::Object(self.pending.clone());
        }
        match &self.outcome {
            Some(Ok(result)) => json["result"] = result.clone(),
            Some(Err(error)) => json["error"] = error.clone(),
            None => {}
        }
        json
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test server reads the real clock"
)]
fn now() -> String {
    let now = time::OffsetDateTime::now_utc();
    now.format(&time::format_description::well_known::Rfc3339)
        .unwrap_or_default()
}

impl Server {
    /// The call as a task, where the tool makes one and the client takes it.
    pub(crate) fn as_task(&self, asked: &Asked) -> Option<Outcome> {
        let name = asked.params["name"].as_str().unwrap_or_default();
        let required = matches!(
            name,
            "failing_job"
                | "protocol_error_job"
                | "test_tool_with_task"
                | "confirm_delete"
                | "multi_input"
        );
        if self.era == Era::Legacy || !asked.has_tasks() {
            return required.then(|| {
                Err(json!({
                    "code": -32021, "message": "Missing required client capability",
                    "data": {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
                }))
            });
        }
        let given = &asked.params["inputResponses"]["user_name"]["content"]["name"];
        let name_field = json!({"name": {"type": "string"}});
        let sure = json!({"confirm": {"type": "boolean"}});
        let mut pending = serde_json::Map::new();
        let (after, outcome) = match name {
            "slow_compute" => {
                let seconds = asked.params["arguments"]["seconds"].as_f64().unwrap_or(0.0);
                (
                    Duration::from_secs_f64(seconds.min(10.0)),
                    Ok(text("Computed.")),
                )
            }
            "failing_job" => {
                let mut result = text("The job failed.");
                result["isError"] = json!(true);
                (Duration::from_millis(50), Ok(result))
            }
            "protocol_error_job" => (
                Duration::from_millis(50),
                Err(error(-32603, "The job broke.")),
            ),
            "confirm_delete" => {
                pending.insert("confirm".into(), elicit("Really delete?", &sure));
                (Duration::ZERO, Ok(text("Deleted.")))
            }
            "multi_input" => {
                pending.insert("first".into(), elicit("First?", &name_field));
                pending.insert("second".into(), elicit("Second?", &name_field));
                (Duration::ZERO, Ok(text("Both are here.")))
            }
            "test_tool_with_task" => match given.as_str() {
                None => {
                    return Some(Ok(json!({
                        "resultType": "input_required",
                        "inputRequests": {"user_name": elicit("What is your name?", &name_field)},
                    })));
                }
                Some(name) => {
                    let greeting = text(&format!("Hello, {name}, from a task."));
                    (Duration::from_millis(50), Ok(greeting))
                }
            },
            _ => return None,
        };
        Some(Ok(self.begin(pending, after, outcome)))
    }

    fn begin(
        &self,
        pending: serde_json::Map<String, Value>,
        after: Duration,
        outcome: Outcome,
    ) -> Value {
        let id = format!("task-{}", self.next_id());
        let waits = !pending.is_empty();
        let task = Task {
            created: now(),
            status: if waits { "input_required" } else { "working" },
            pending,
            answers: serde_json::Map::new(),
            outcome: None,
        };
        // It is told as working first, whatever it needs.
        let mut created = task.json(&id);
        created["status"] = json!("working");
        created.as_object_mut().unwrap().remove("inputRequests");
        created["resultType"] = json!("task");
        let tasks = self.tasks.clone();
        tasks.0.lock().unwrap().insert(id.clone(), task);
        let changes = self.changes.clone();
        tokio::spawn(async move {
            if !waits {
                tokio::time::sleep(after).await;
            }
            loop {
                {
                    let mut all = tasks.0.lock().unwrap();
                    let Some(task) = all.get_mut(&id) else { return };
                    if task.outcome.is_some() || task.status == "cancelled" {
                        return;
                    }
                    if task.pending.is_empty() {
                        task.status = if outcome.is_ok() {
                            "completed"
                        } else {
                            "failed"
                        };
                        task.outcome = Some(outcome.clone());
                        let mut params = task.json(&id);
                        params["taskId"] = json!(id);
                        let said = json!({
                            "jsonrpc": "2.0", "method": "notifications/tasks", "params": params,
                        });
                        let _ = changes.send(said);
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        created
    }

    /// Answers a method of the extension.
    pub(crate) fn task(&self, asked: &Asked) -> Outcome {
        if !asked.has_tasks() {
            return Err(json!({
                "code": -32021, "message": "Missing required client capability",
                "data": {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            }));
        }
        let id = asked.params["taskId"].as_str().unwrap_or_default();
        let mut all = self.tasks.0.lock().unwrap();
        let task = all
            .get_mut(id)
            .ok_or_else(|| error(-32602, "Unknown task"))?;
        match asked.method.as_str() {
            "tasks/get" => return Ok(task.json(id)),
            "tasks/cancel" => {
                if task.outcome.is_none() {
                    task.status = "cancelled";
                }
            }
            _ => {
                let given = asked.params["inputResponses"]
                    .as_object()
                    .cloned()
                    .unwrap_or_default();
                for (key, response) in given {
                    if task.pending.remove(&key).is_some() {
                        task.answers.insert(key, response);
                    }
                }
                if task.pending.is_empty() && task.status == "input_required" {
                    task.status = "working";
                }
            }
        }
        Ok(json!({}))
    }
}
