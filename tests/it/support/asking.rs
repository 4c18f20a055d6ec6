//! Upstreams of either era whose tools ask their client for something before they answer.

use super::talking::{Talk, Talking};
use super::{Era, Value, json};

/// The tools, each with what it asks.
pub(crate) const ASKS: [(&str, &str); 3] = [
    ("elicit", "elicitation/create"),
    ("sample", "sampling/createMessage"),
    ("roots", "roots/list"),
];

/// What a client declares that can be asked for all of it.
pub(crate) fn able() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// The params of what a tool asks.
pub(crate) fn question(tool: &str) -> Value {
    match tool {
        "sample" => {
            let content = json!({"type": "text", "text": "Say hello"});
            json!({"messages": [{"role": "user", "content": content}], "maxTokens": 10})
        }
        "roots" => json!({}),
        _ => json!({
            "message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }),
    }
}

/// A client's result for what a tool asks.
pub(crate) fn answer(tool: &str) -> Value {
    match tool {
        "sample" => {
            let content = json!({"type": "text", "text": "hello"});
            json!({"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"})
        }
        "roots" => json!({"roots": [{"uri": "file:///srv", "name": "srv"}]}),
        _ => json!({"action": "accept", "content": {"name": "Ada"}}),
    }
}

/// A server whose tools ask and then say what they were told.
pub(crate) fn server(era: Era) -> Talking {
    let tools = ["elicit", "sample", "roots", "twice"];
    match era {
        Era::Legacy => Talking::start(era, &tools, |mut talk| async move {
            let tool = talk.tool();
            let (_, method) = ASKS
                .into_iter()
                .find(|(name, _)| *name == tool)
                .unwrap_or(ASKS[0]);
            let mut told = talk.ask(method, question(&tool)).await;
            if tool == "twice" {
                told = talk.ask(method, question(&tool)).await;
            }
            let told = told.get("result").or_else(|| told.get("error"));
            talk.text(&told.unwrap().to_string()).await;
        }),
        Era::Modern => Talking::start(era, &tools, modern),
    }
}

async fn modern(talk: Talk) {
    let tool = talk.tool();
    let (_, method) = ASKS
        .into_iter()
        .find(|(name, _)| *name == tool)
        .unwrap_or(ASKS[0]);
    let told = talk.param("inputResponses")["the key"].clone();
    let state = talk.param("requestState");
    let rounds = if tool == "twice" { 2 } else { 1 };
    let done = state
        .as_str()
        .and_then(|state| state.strip_prefix("round "))
        .map_or(0, |n| n.parse().unwrap());
    if done < rounds {
        let request = json!({"method": method, "params": question(&tool)});
        talk.result(json!({
            "resultType": "input_required", "inputRequests": {"the key": request},
            "requestState": format!("round {}", done + 1),
        }))
        .await;
    } else {
        talk.text(&told.to_string()).await;
    }
}
