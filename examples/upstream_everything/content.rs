//! Resources and prompts.

use serde_json::{Value, json};

use super::{Asked, Outcome, Server, error};

/// A red pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Silence.
pub(crate) const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const ICON: &str = "https://example.com/icon.png";

pub(crate) fn resources() -> Value {
    json!([
        {
            "uri": "test://static-text", "name": "static-text", "title": "Static text",
            "description": "A text that never changes.", "mimeType": "text/plain",
            "annotations": {"audience": ["user"], "priority": 0.5},
            "icons": [{"src": ICON, "mimeType": "image/png"}],
            "_meta": {"com.example/kept": {"a": 1.0e2}}, "com.example/unknown": [1, null],
        },
        {
            "uri": "test://static-binary", "name": "static-binary",
            "description": "An image that never changes.", "mimeType": "image/png", "size": 70,
        },
        {
            "uri": "test://watched-resource", "name": "watched-resource",
            "description": "A text that changes when told to.", "mimeType": "text/plain",
        },
        {
            "uri": "ui://test/widget.html", "name": "widget",
            "description": "The user interface of `test_ui`.",
            "mimeType": "text/html;profile=mcp-app",
        },
    ])
}

pub(crate) fn templates() -> Value {
    json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template",
        "description": "Data by id.", "mimeType": "application/json",
    }])
}

fn text_contents(uri: &str, kind: &str, text: &str) -> Value {
    json!({"contents": [{"uri": uri, "mimeType": kind, "text": text}]})
}

impl Server {
    pub(crate) fn read(&self, asked: &Asked) -> Outcome {
        let uri = asked.params["uri"].as_str().unwrap_or_default();
        Ok(match uri {
            "test://static-text" => text_contents(
                uri,
                "text/plain",
                "This is the content of the static text resource.",
            ),
            "test://static-binary" => {
                json!({"contents": [{"uri": uri, "mimeType": "image/png", "blob": PNG}]})
            }
            "test://watched-resource" => text_contents(uri, "text/plain", "Watched."),
            // No list has it: a tool links to it.
            "test://linked" => text_contents(uri, "text/plain", "Linked."),
            "ui://test/widget.html" => text_contents(
                uri,
                "text/html;profile=mcp-app",
                "<!doctype html><p>Widget</p>",
            ),
            uri => {
                let id = uri.strip_prefix("test://template/");
                match id.and_then(|rest| rest.strip_suffix("/data")) {
                    Some(id) => {
                        let text = json!({
                            "id": id, "templateTest": true, "data": format!("Data for ID: {id}"),
                        });
                        text_contents(uri, "application/json", &text.to_string())
                    }
                    None => return Err(self.no_resource(uri)),
                }
            }
        })
    }

    pub(crate) fn no_resource(&self, uri: &str) -> Value {
        let code = match self.era {
            super::Era::Legacy => -32002,
            super::Era::Modern => -32602,
        };
        json!({"code": code, "message": "Resource not found", "data": {"uri": uri}})
    }

    pub(crate) fn prompts(&self) -> Value {
        let mut prompts = json!([
            {"name": "test_simple_prompt", "title": "Simple", "description": "A prompt without arguments.",
             "icons": [{"src": ICON}], "_meta": {"com.example/kept": true}},
            {"name": "test_prompt_with_arguments", "description": "A prompt with arguments.",
             "arguments": [
                {"name": "arg1", "description": "First test argument", "required": true},
                {"name": "arg2", "description": "Second test argument", "required": true},
             ]},
            {"name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource in it.",
             "arguments": [{"name": "resourceUri", "description": "URI of the resource to embed", "required": true}]},
            {"name": "test_prompt_with_image", "description": "A prompt with an image in it."},
            {"name": "test_input_required_result_prompt", "description": "A prompt that asks for its context."},
        ]);
        if self.extra.lock().unwrap().contains("extra_prompt") {
            let extra = json!({"name": "extra_prompt", "description": "Comes and goes."});
            prompts.as_array_mut().unwrap().push(extra);
        }
        prompts
    }

    pub(crate) fn prompt(asked: &Asked) -> Outcome {
        let message = |content: Value| json!({"role": "user", "content": content});
        let text = |text: &str| message(json!({"type": "text", "text": text}));
        let messages = match asked.params["name"].as_str().unwrap_or_default() {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => vec![text(&format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                asked.argument("arg1"),
                asked.argument("arg2")
            ))],
            "test_prompt_with_embedded_resource" => vec![
                message(json!({"type": "resource", "resource": {
                    "uri": asked.argument("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                }})),
                text("Please process the embedded resource above."),
            ],
            "test_prompt_with_image" => vec![
                message(json!({"type": "image", "data": PNG, "mimeType": "image/png"})),
                text("Please analyze the image above."),
            ],
            "test_input_required_result_prompt" => {
                let given = &asked.params["inputResponses"]["user_context"]["content"]["context"];
                let Some(context) = given.as_str() else {
                    let schema = json!({
                        "type": "object", "properties": {"context": {"type": "string"}},
                        "required": ["context"],
                    });
                    return Ok(json!({
                        "resultType": "input_required",
                        "inputRequests": {"user_context": {
                            "method": "elicitation/create",
                            "params": {
                                "message": "What context should the prompt use?",
                                "requestedSchema": schema,
                            },
                        }},
                    }));
                };
                vec![text(&format!("Context: {context}"))]
            }
            "extra_prompt" => vec![text("Extra.")],
            name => return Err(error(-32602, &format!("Unknown prompt: {name}"))),
        };
        Ok(json!({"description": "A prompt for tests.", "messages": messages}))
    }
}
