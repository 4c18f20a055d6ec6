//! What a client declared at `initialize`, as the row of bits that its session's id has
//! room for.

use crate::protocol::Json;

/// What can be declared, each with its bit: the order is part of every session id.
const CAPABILITIES: [&[&str]; 11] = [
    &["roots"],
    &["sampling"],
    &["elicitation"],
    &["tasks"],
    &["experimental"],
    &["roots", "listChanged"],
    &["sampling", "tools"],
    &["sampling", "context"],
    &["elicitation", "form"],
    &["elicitation", "url"],
    &["extensions", "io.modelcontextprotocol/ui"],
];

/// The bit of the apps extension, whose settings are known.
const UI: usize = 10;
/// The bit of the flag that a client announces changes of its roots.
const ROOTS_CHANGE: usize = 5;

/// The declared capabilities as bits.
pub(super) fn row(capabilities: &Json) -> u16 {
    let declares = |path: &[&str]| {
        let found = path
            .iter()
            .try_fold(capabilities.clone(), |at, name| at.get(name));
        // `listChanged` is a flag, all others are objects.
        found.is_some_and(|found| found.boolean() != Some(false))
    };
    CAPABILITIES
        .iter()
        .enumerate()
        .filter(|(_, path)| declares(path))
        .fold(0, |row, (bit, _)| row | (1 << bit))
}

/// What the bits stand for, as far as it is passed on to upstreams.
pub(super) fn of_row(row: u16) -> Json {
    let has = |bit: usize| row & (1 << bit) != 0;
    let mut out = serde_json::Map::new();
    for (bit, path) in CAPABILITIES.iter().enumerate().filter(|(bit, _)| has(*bit)) {
        // Tasks of 2025-11-25 and what is experimental are between client and gateway.
        let value = serde_json::json!({});
        match path {
            [] | ["tasks" | "experimental", ..] => {}
            [name] => {
                out.entry(*name).or_insert(value);
            }
            [name, part, ..] => {
                let entry = out.entry(*name).or_insert_with(|| serde_json::json!({}));
                if let Some(parts) = entry.as_object_mut() {
                    let ui = serde_json::json!({"mimeTypes": ["text/html;profile=mcp-app"]});
                    let value = match bit {
                        UI => ui,
                        ROOTS_CHANGE => serde_json::json!(true),
                        _ => value,
                    };
                    parts.insert((*part).to_owned(), value);
                }
            }
        }
    }
    Json::from_value(&serde_json::Value::Object(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_declares_survives_in_its_session() {
        let declared = serde_json::json!({
            "roots": {"listChanged": true}, "sampling": {"tools": {}},
            "elicitation": {"form": {}, "url": {}}, "experimental": {"x": {}}, "tasks": {},
        });
        let bits = row(&Json::from_value(&declared));
        assert_eq!(
            of_row(bits).to_value().unwrap(),
            serde_json::json!({
                "roots": {"listChanged": true}, "sampling": {"tools": {}},
                "elicitation": {"form": {}, "url": {}},
            })
        );
        assert_eq!(row(&Json::empty_object()), 0);
        assert_eq!(of_row(0).as_str(), "{}");
    }
}
