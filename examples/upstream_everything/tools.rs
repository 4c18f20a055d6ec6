//! The tools, in modern form: one that needs input says so in its result.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::content::{PNG, WAV};
use super::{Asked, Outcome, Server, error};

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// Tools that take nothing.
const PLAIN: [&str; 34] = [
    // The first by name, which scenarios call that take the first of the list.
    "a_plain_tool",
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_error_handling",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_elicitation_url",
    "test_sampling_with_tools",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_trigger_resource_update",
    "test_resource_link",
    "test_ui",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "greet",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

impl Server {
    pub(crate) fn tools(&self) -> Value {
        let text = json!({"type": "string", "description": "A text."});
        let seconds = json!({"type": "number", "description": "Seconds."});
        let mut tools: Vec<Value> = PLAIN
            .iter()
            .map(|name| {
                json!({
                    "name": name, "description": format!("{name} of the conformance suite."),
                    "inputSchema": object(&json!({})),
                })
            })
            .collect();
        for (name, properties, required) in [
            ("test_sampling", json!({"prompt": text}), json!(["prompt"])),
            (
                "test_elicitation",
                json!({"message": text}),
                json!(["message"]),
            ),
            ("slow_compute", json!({"seconds": seconds}), json!([])),
            ("failing_job", json!({}), json!([])),
            ("protocol_error_job", json!({}), json!([])),
        ] {
            let mut schema = object(&properties);
            schema["required"] = required;
            tools.push(json!({
                "name": name, "description": format!("{name} of the conformance suite."),
                "inputSchema": schema,
            }));
        }
        tools.push(json!({
            "name": "test_x_mcp_header", "description": "A tool whose argument is mirrored.",
            "inputSchema": object(&json!({
                "region": {"type": "string", "description": "Where.", "x-mcp-header": "Region"},
            })),
        }));
        tools.push(json_schema_tool());
        for tool in &mut tools {
            match tool["name"].as_str().unwrap_or_default() {
                "test_ui" => {
                    tool["_meta"] = json!({"ui": {"resourceUri": "ui://test/widget.html"}});
                }
                "failing_job" => tool["execution"] = json!({"taskSupport": "required"}),
                _ => {}
            }
        }
        if self.extra.lock().unwrap().contains("extra_tool") {
            tools.push(json!({
                "name": "extra_tool", "description": "Comes and goes.",
                "inputSchema": object(&json!({})),
            }));
        }
        Value::Array(tools)
    }

    pub(crate) async fn call(&self, asked: &Asked) -> Outcome {
        if let Some(outcome) = self.as_task(asked) {
            return outcome;
        }
        let name = asked.params["name"].as_str().unwrap_or_default();
        if let Some(outcome) = asking(name, asked) {
            return outcome;
        }
        let pause = || tokio::time::sleep(Duration::from_millis(50));
        Ok(match name {
            "test_simple_text" => text("This is a simple text response for testing."),
            "test_image_content" => {
                content(&json!([{"type": "image", "data": PNG, "mimeType": "image/png"}]))
            }
            "test_audio_content" => {
                content(&json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]))
            }
            "test_embedded_resource" => content(&json!([{"type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            }}])),
            "test_multiple_content_types" => content(&json!([
                {"type": "text", "text": "Multiple content types test:"},
                {"type": "image", "data": PNG, "mimeType": "image/png"},
                {"type": "resource", "resource": {
                    "uri": "test://mixed-content-resource", "mimeType": "application/json",
                    "text": "{\"test\":\"data\",\"value\":123}",
                }},
            ])),
            "test_resource_link" => content(&json!([
                {"type": "resource_link", "uri": "test://linked", "name": "linked"},
            ])),
            "test_ui" => text("See the widget."),
            "test_tool_with_logging" => {
                asked.log("Tool execution started");
                pause().await;
                asked.log("Tool processing data");
                pause().await;
                asked.log("Tool execution completed");
                text("Logged.")
            }
            "test_logging_tool" => {
                asked.log("Logged where it is wanted.");
                text("Logged.")
            }
            "test_tool_with_progress" => {
                asked.progress(0);
                pause().await;
                asked.progress(50);
                pause().await;
                asked.progress(100);
                text("Done.")
            }
            "test_error_handling" => json!({
                "isError": true,
                "content": [{
                    "type": "text", "text": "This tool intentionally returns an error for testing",
                }],
            }),
            "test_reconnection" => text("Reconnection test completed successfully"),
            "test_missing_capability" if asked.can("sampling") => text("It can sample."),
            "test_missing_capability" => {
                return Err(json!({
                    "code": -32021, "message": "Missing required client capability",
                    "data": {"requiredCapabilities": {"sampling": {}}},
                }));
            }
            "test_trigger_tool_change" => {
                self.toggle("extra_tool", "tools");
                text("Changed.")
            }
            "test_trigger_prompt_change" => {
                self.toggle("extra_prompt", "prompts");
                text("Changed.")
            }
            "test_trigger_resource_update" => {
                self.changed(
                    "notifications/resources/updated",
                    &json!({"uri": "test://watched-resource"}),
                );
                text("Changed.")
            }
            "greet" => text(&format!("Hello, {}!", asked.argument("name"))),
            "a_plain_tool" => text("Plain."),
            "slow_compute" => {
                let seconds = asked.params["arguments"]["seconds"].as_f64().unwrap_or(0.0);
                tokio::time::sleep(Duration::from_secs_f64(seconds.min(10.0))).await;
                text("Computed.")
            }
            "test_x_mcp_header" => text(asked.argument("region")),
            "json_schema_2020_12_tool" => text("Fits."),
            "extra_tool" => text("Extra."),
            name => return Err(error(-32602, &format!("Unknown tool: {name}"))),
        })
    }
}

pub(crate) fn content(blocks: &Value) -> Value {
    json!({"content": blocks})
}

pub(crate) fn text(text: &str) -> Value {
    content(&json!([{"type": "text", "text": text}]))
}

pub(crate) fn elicit(message: &str, properties: &Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .map(Map::keys)
        .into_iter()
        .flatten()
        .collect();
    json!({"method": "elicitation/create", "params": {
        "message": message,
        "requestedSchema": {
            "type": "object", "properties": properties, "required": required,
        },
    }})
}

fn sample(prompt: &str, most: u32) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    json!({"method": "sampling/createMessage", "params": {
        "messages": [message], "maxTokens": most,
    }})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

#[expect(clippy::unnecessary_wraps, reason = "an arm of the table of tools")]
fn input(requests: &Value, state: Option<&str>) -> Outcome {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    Ok(result)
}

#[expect(clippy::unnecessary_wraps, reason = "an arm of the table of tools")]
fn refused() -> Outcome {
    Ok(json!({
        "isError": true,
        "content": [{"type": "text", "text": "The client cannot be asked for that."}],
    }))
}

/// What a client sampled, as text.
fn sampled(response: &Value) -> String {
    response["content"]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Tools that ask.
fn asking(name: &str, asked: &Asked) -> Option<Outcome> {
    let given = &asked.params["inputResponses"];
    let state = asked.params["requestState"].as_str();
    let name_field = json!({"name": {"type": "string"}});
    let flag = json!({"ok": {"type": "boolean"}});
    Some(match name {
        "test_sampling" if !asked.can("sampling") => refused(),
        "test_sampling" => match given.get("sample") {
            None => input(
                &json!({"sample": sample(asked.argument("prompt"), 100)}),
                None,
            ),
            Some(response) => Ok(text(&format!("LLM response: {}", sampled(response)))),
        },
        "test_elicitation" | "test_streaming_elicitation" if !asked.can("elicitation") => refused(),
        "test_elicitation" => match given.get("user") {
            None => {
                let properties = json!({
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                });
                input(
                    &json!({"user": elicit(asked.argument("message"), &properties)}),
                    None,
                )
            }
            Some(response) => Ok(text(&format!("User response: {response}"))),
        },
        "test_streaming_elicitation" => match given.get("user") {
            None => input(
                &json!({"user": elicit("What is your name?", &name_field)}),
                None,
            ),
            Some(response) => Ok(text(&format!("User response: {response}"))),
        },
        "test_elicitation_sep1034_defaults" => match given.get("user") {
            None => input(&json!({"user": defaults()}), None),
            Some(response) => Ok(completed(response)),
        },
        "test_elicitation_sep1330_enums" => match given.get("user") {
            None => input(&json!({"user": enums()}), None),
            Some(response) => Ok(completed(response)),
        },
        "test_elicitation_url" => match given.get("visit") {
            None => input(
                &json!({"visit": {"method": "elicitation/create", "params": {
                    "mode": "url", "message": "Please sign in.", "elicitationId": "visit-1",
                    "url": "https://sign-in.example/start",
                }}}),
                None,
            ),
            Some(response) => Ok(text(&format!("Visited: {response}"))),
        },
        "test_sampling_with_tools" => match given.get("weather") {
            None => {
                let mut ask = sample("What is the weather?", 100);
                ask["params"]["tools"] = json!([{
                    "name": "get_weather", "description": "Tells the weather.",
                    "inputSchema": object(&json!({"city": {"type": "string"}})),
                }]);
                ask["params"]["toolChoice"] = json!({"mode": "auto"});
                input(&json!({"weather": ask}), None)
            }
            Some(response) => Ok(text(&format!("Sampled: {}", response["content"]))),
        },
        "test_input_required_result_elicitation" => {
            match given["user_name"]["content"]["name"].as_str() {
                Some(name) => Ok(text(&format!("Hello, {name}!"))),
                None => input(
                    &json!({"user_name": elicit("What is your name?", &name_field)}),
                    None,
                ),
            }
        }
        "test_input_required_result_sampling" => {
            if let Some(response) = given.get("capital_question") {
                Ok(text(&sampled(response)))
            } else {
                let question = sample("What is the capital of France?", 100);
                input(&json!({"capital_question": question}), None)
            }
        }
        "test_input_required_result_list_roots" => match given.get("client_roots") {
            Some(response) => Ok(text(&format!("Roots: {}", response["roots"]))),
            None => input(&json!({"client_roots": roots()}), None),
        },
        "test_input_required_result_request_state" => match (given.get("confirm"), state) {
            (Some(_), Some("the-state")) => Ok(text("state-ok")),
            (Some(_), _) => Err(error(-32602, "requestState is not ours")),
            (None, _) => input(
                &json!({"confirm": elicit("Please confirm", &flag)}),
                Some("the-state"),
            ),
        },
        "test_input_required_result_tampered_state" => match state {
            None => input(
                &json!({"confirm": elicit("Please confirm", &flag)}),
                Some("signed"),
            ),
            Some("signed") => Ok(text("state-ok")),
            Some(_) => Err(error(-32602, "requestState is not ours")),
        },
        "test_input_required_result_multiple_inputs" => {
            let all = ["user_name", "greeting", "client_roots"];
            if all.iter().all(|key| given.get(key).is_some()) {
                Ok(text("All inputs are here."))
            } else {
                let requests = json!({
                    "user_name": elicit("What is your name?", &name_field),
                    "greeting": sample("Generate a greeting", 50),
                    "client_roots": roots(),
                });
                input(&requests, Some("multiple"))
            }
        }
        "test_input_required_result_multi_round" => match state {
            Some("round-1") if given.get("step1").is_some() => {
                let color = json!({"color": {"type": "string"}});
                let ask = elicit("Step 2: What is your favorite color?", &color);
                input(&json!({"step2": ask}), Some("round-2"))
            }
            Some("round-2") if given.get("step2").is_some() => Ok(text("All rounds are over.")),
            _ => {
                let ask = elicit("Step 1: What is your name?", &name_field);
                input(&json!({"step1": ask}), Some("round-1"))
            }
        },
        "test_input_required_result_capabilities" => {
            if given.as_object().is_some_and(|given| !given.is_empty()) {
                return Some(Ok(text("Thank you.")));
            }
            let mut requests = json!({});
            if asked.can("elicitation") {
                requests["user_name"] = elicit("What is your name?", &name_field);
            }
            if asked.can("sampling") {
                requests["greeting"] = sample("Generate a greeting", 50);
            }
            if asked.can("roots") {
                requests["client_roots"] = roots();
            }
            input(&requests, Some("capabilities"))
        }
        _ => return None,
    })
}

fn completed(response: &Value) -> Value {
    text(&format!(
        "Elicitation completed: action={}, content={}",
        response["action"].as_str().unwrap_or_default(),
        response["content"]
    ))
}

fn defaults() -> Value {
    let mut ask = elicit(
        "Please review and update the form fields with defaults",
        &json!({
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {
                "type": "string", "description": "User status",
                "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": {"type": "boolean", "description": "Verification status", "default": true},
        }),
    );
    ask["params"]["requestedSchema"]["required"] = json!([]);
    ask
}

fn enums() -> Value {
    let titled = |first: &str, second: &str, third: &str| {
        json!([
            {"const": "value1", "title": first},
            {"const": "value2", "title": second},
            {"const": "value3", "title": third},
        ])
    };
    let plain = json!(["option1", "option2", "option3"]);
    let mut ask = elicit(
        "Please select options from the enum fields",
        &json!({
            "untitledSingle": {"type": "string", "description": "Select one option", "enum": plain},
            "titledSingle": {
                "type": "string", "description": "Select one option with titles",
                "oneOf": titled("First Option", "Second Option", "Third Option"),
            },
            "legacyEnum": {
                "type": "string", "description": "Select one option (legacy)",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array", "description": "Select multiple options",
                "items": {"type": "string", "enum": plain},
            },
            "titledMulti": {
                "type": "array", "description": "Select multiple options with titles",
                "items": {"anyOf": titled("First Choice", "Second Choice", "Third Choice")},
            },
        }),
    );
    ask["params"]["requestedSchema"]["required"] = json!([]);
    ask
}

fn json_schema_tool() -> Value {
    json!({
        "name": "json_schema_2020_12_tool",
        "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef", "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {
                "properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"],
            },
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        },
    })
}
