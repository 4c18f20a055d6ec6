//! The official JSON schemas of all four revisions, and that of the extension of tasks,
//! held against what goes over the wire in either direction.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use jsonschema::Validator;

use super::Value;
use super::answer::Answer;
use super::json;

/// The schemas, as they are published.
const SCHEMAS: [(&str, &str); 4] = [
    ("2025-03-26", include_str!("../../schemas/2025-03-26.json")),
    ("2025-06-18", include_str!("../../schemas/2025-06-18.json")),
    ("2025-11-25", include_str!("../../schemas/2025-11-25.json")),
    ("2026-07-28", include_str!("../../schemas/2026-07-28.json")),
];

/// The schema of the extension `io.modelcontextprotocol/tasks`.
fn tasks() -> &'static Revision {
    static TASKS: OnceLock<Revision> = OnceLock::new();
    let text = include_str!("../../schemas/tasks-extension.json");
    TASKS.get_or_init(|| Revision::load("the extension of tasks", text))
}

/// Holds messages against one revision.
#[derive(Clone, Debug)]
pub(crate) struct Checker(Arc<Revision>);

struct Revision {
    version: &'static str,
    /// Where definitions stand: `$defs` or `definitions`.
    place: &'static str,
    schema: Value,
    /// The definition of each request and notification, by method.
    methods: HashMap<String, String>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl std::fmt::Debug for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.version)
    }
}

impl Checker {
    /// The checker of a revision. Panics where it is none of the four.
    pub(crate) fn of(version: &str) -> Self {
        static ALL: OnceLock<Vec<Checker>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            let load = |(version, text): (&'static str, &str)| {
                Self(Arc::new(Revision::load(version, text)))
            };
            SCHEMAS.into_iter().map(load).collect()
        });
        let found = all.iter().find(|checker| checker.0.version == version);
        found
            .unwrap_or_else(|| panic!("no schema of {version}"))
            .clone()
    }

    /// Holds a message of a client against the schema.
    pub(crate) fn client(&self, message: &Value) -> Result<(), String> {
        let envelope = match (message["method"].is_string(), message.get("error")) {
            (true, _) => return self.said(message),
            (false, Some(_)) => self.first(&["JSONRPCErrorResponse", "JSONRPCError"]),
            (false, None) => self.first(&["JSONRPCResultResponse", "JSONRPCResponse"]),
        };
        self.0.holds(&envelope, message)
    }

    /// Holds a message of a server against the schema. `method`: of the request that
    /// it is on.
    pub(crate) fn server(&self, method: &str, message: &Value) -> Result<(), String> {
        if message["method"].is_string() {
            return self.said(message);
        }
        if message.get("error").is_some() {
            let envelope = self.first(&["JSONRPCErrorResponse", "JSONRPCError"]);
            return self.0.holds(&envelope, message);
        }
        let envelope = self.first(&["JSONRPCResultResponse", "JSONRPCResponse"]);
        self.0.holds(&envelope, message)?;
        let result = &message["result"];
        let of_tasks = match method {
            _ if result["resultType"] == "task" => Some("CreateTaskResult"),
            "tasks/get" => Some("GetTaskResult"),
            "tasks/update" => Some("UpdateTaskResult"),
            "tasks/cancel" => Some("CancelTaskResult"),
            _ => None,
        };
        if let Some(definition) = of_tasks {
            return tasks().holds(definition, result);
        }
        let definition = match method {
            _ if result["resultType"] == "input_required" => "InputRequiredResult",
            "initialize" => "InitializeResult",
            "server/discover" => "DiscoverResult",
            "tools/list" => "ListToolsResult",
            "tools/call" => "CallToolResult",
            "prompts/list" => "ListPromptsResult",
            "prompts/get" => "GetPromptResult",
            "resources/list" => "ListResourcesResult",
            "resources/templates/list" => "ListResourceTemplatesResult",
            "resources/read" => "ReadResourceResult",
            "completion/complete" => "CompleteResult",
            _ => "Result",
        };
        self.0.holds(definition, result)
    }

    fn said(&self, message: &Value) -> Result<(), String> {
        let method = message["method"].as_str().unwrap_or_default();
        let envelope = if message.get("id").is_some() {
            "JSONRPCRequest"
        } else {
            "JSONRPCNotification"
        };
        self.0.holds(envelope, message)?;
        match self.0.methods.get(method) {
            Some(definition) => self.0.holds(definition, message),
            None => match tasks().methods.get(method) {
                Some(definition) => tasks().holds(definition, message),
                None => Ok(()),
            },
        }
    }

    fn first(&self, names: &[&str]) -> String {
        let defined = |name: &&&str| self.0.schema[self.0.place].get(**name).is_some();
        let found = names.iter().find(defined);
        (*found.expect("the schema defines it")).to_owned()
    }
}

impl Revision {
    fn load(version: &'static str, text: &str) -> Self {
        let schema: Value = serde_json::from_str(text).unwrap();
        let place = if schema.get("$defs").is_some() {
            "$defs"
        } else {
            "definitions"
        };
        let method = |(name, definition): (&String, &Value)| {
            let method = definition["properties"]["method"]["const"].as_str()?;
            Some((method.to_owned(), name.clone()))
        };
        let methods = schema[place].as_object().unwrap();
        let methods = methods.iter().filter_map(method).collect();
        Self {
            version,
            place,
            schema,
            methods,
            validators: Mutex::default(),
        }
    }

    fn holds(&self, definition: &str, value: &Value) -> Result<(), String> {
        let validator = {
            let mut all = self.validators.lock().unwrap();
            let make = || {
                let mut schema = self.schema.clone();
                schema["$ref"] = json!(format!("#/{}/{definition}", self.place));
                Arc::new(jsonschema::validator_for(&schema).unwrap())
            };
            Arc::clone(all.entry(definition.to_owned()).or_insert_with(make))
        };
        let faults: Vec<String> = validator
            .iter_errors(value)
            .map(|fault| format!("{} at {}", fault, fault.instance_path()))
            .collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(format!(
            "no {definition} of {}: {}\n{value}",
            self.version,
            faults.join("; ")
        ))
    }
}

/// Fails where an answer breaks the schema of its revision.
pub(crate) fn check(version: &str, method: &str, answer: &Answer) {
    if answer.status.as_u16() != 200 || !SCHEMAS.iter().any(|(known, _)| *known == version) {
        return;
    }
    let checker = Checker::of(version);
    for message in answer.messages.iter().filter(|message| message.is_object()) {
        // An error that is about no request has `null` for its id (JSON-RPC 2.0 §5).
        if message.get("id").is_some_and(Value::is_null) {
            continue;
        }
        let held = checker.server(method, &without_unknown_blocks(message));
        assert!(held.is_ok(), "{method}: {}", held.unwrap_err());
    }
}

/// The message without content of kinds that no revision has: what an upstream says
/// in a form of tomorrow passes as it came.
fn without_unknown_blocks(message: &Value) -> Value {
    const KNOWN: [&str; 7] = [
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
        "tool_use",
        "tool_result",
    ];
    let mut message = message.clone();
    if let Some(Value::Array(blocks)) = message.pointer_mut("/result/content") {
        blocks.retain(|block| {
            block["type"]
                .as_str()
                .is_none_or(|kind| KNOWN.contains(&kind))
        });
    }
    message
}
