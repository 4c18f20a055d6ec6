//! From the modern form to what a legacy revision knows: results, and the requests
//! that servers make of clients. What a revision lacks is told in what it has;
//! `docs/protocol.md` has the table. Unknown members pass.

use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Json, ServerMethod, Version};

/// How results are lowered for a revision.
pub(super) fn result(version: Version) -> fn(Json) -> Json {
    match version {
        Version::V2025_03_26 => lower_2025_03_26,
        Version::V2025_06_18 | Version::V2025_11_25 | Version::V2026_07_28 => lower,
    }
}

/// From the modern form: no `resultType`, `structuredContent` only where it is an object.
fn lower(result: Json) -> Json {
    lower_to(result, Json::is_object)
}

/// Leaves out structured content that the revision does not know. Where nothing
/// else tells it, it becomes the text (MCP tools, Structured Content).
fn lower_to(result: Json, knows: fn(&Json) -> bool) -> Json {
    let foreign = result
        .get("structuredContent")
        .filter(|value| !knows(value));
    let drops =
        |key: &str| key == "resultType" || (key == "structuredContent" && foreign.is_some());
    if !result.members().any(|(key, _)| drops(&key)) {
        return result;
    }
    let result = result.without_members(drops);
    match (foreign, result.get("content")) {
        (Some(value), Some(content)) if content.elements().next().is_none() => {
            let block = text_block(value.as_str());
            result.with_member("content", &ArrayBuilder::from_iter([&block]).build())
        }
        _ => result,
    }
}

fn text_block(text: &str) -> Json {
    ObjectBuilder::new()
        .text("type", "text")
        .text("text", text)
        .build()
}

/// 2025-03-26 has neither structured content nor resource links: a link becomes
/// text that says where it leads.
fn lower_2025_03_26(result: Json) -> Json {
    let result = lower_to(result, |_| false);
    let Some(content) = result.get("content") else {
        return result;
    };
    let mut blocks = ArrayBuilder::new();
    for block in content.elements() {
        blocks.push(&linked_text(&block).unwrap_or(block));
    }
    result.with_member("content", &blocks.build())
}

fn linked_text(block: &Json) -> Option<Json> {
    let text = |key: &str| {
        block
            .get(key)
            .and_then(|value| value.string().map(String::from))
    };
    if text("type")? != "resource_link" {
        return None;
    }
    let label = text("title").or_else(|| text("name")).unwrap_or_default();
    let words = format!("{label}: {}", text("uri").unwrap_or_default());
    Some(text_block(&words))
}

/// The params of a server's request as a client of the revision knows them. `id`:
/// the request's own, for what needs a name.
pub(super) fn request(version: Version, method: ServerMethod, params: Json, id: &str) -> Json {
    if method != ServerMethod::Elicit {
        return params;
    }
    let mode = params.get("mode");
    let mode = mode.as_ref().and_then(Json::string);
    if mode.as_deref() == Some("url") {
        // 2025-11-25 has a name for each; 2026-07-28 does without.
        return match params.get("elicitationId") {
            Some(_) => params,
            None => params.with_member("elicitationId", &Json::from_text(id)),
        };
    }
    if version >= Version::V2025_11_25 {
        return params;
    }
    let plain = params.without_members(|name| name == "mode");
    match plain.get("requestedSchema") {
        Some(schema) => plain.with_member("requestedSchema", &form(&schema)),
        None => plain,
    }
}

/// A form's schema as 2025-06-18 knows it: a choice with titles is `enum` with
/// `enumNames` there.
fn form(schema: &Json) -> Json {
    let Some(properties) = schema.get("properties") else {
        return schema.clone();
    };
    let mut out = ObjectBuilder::with_capacity(properties.as_str().len());
    for (name, property) in properties.members() {
        out = out.json(&name, &choice(&property).unwrap_or(property));
    }
    schema.with_member("properties", &out.build())
}

fn choice(property: &Json) -> Option<Json> {
    let (mut values, mut titles) = (ArrayBuilder::new(), ArrayBuilder::new());
    for one in property.get("oneOf")?.elements() {
        let value = one.get("const")?;
        titles.push(&one.get("title").unwrap_or_else(|| value.clone()));
        values.push(&value);
    }
    let plain = property.without_members(|name| name == "oneOf");
    Some(
        plain
            .with_member("enumNames", &titles.build())
            .with_member("enum", &values.build()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_lowered_by_what_the_revision_lacks() {
        let params = Json::from_value(&serde_json::json!({
            "mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {
                "c": {"type": "string", "oneOf": [{"const": "a", "title": "A"}], "x": 1},
            }},
        }));
        let same = request(
            Version::V2025_11_25,
            ServerMethod::Elicit,
            params.clone(),
            "1",
        );
        assert_eq!(same, params);
        let older = request(Version::V2025_06_18, ServerMethod::Elicit, params, "1");
        assert_eq!(
            older.to_value().unwrap(),
            serde_json::json!({"message": "m", "requestedSchema": {"type": "object", "properties": {
                "c": {"type": "string", "enum": ["a"], "enumNames": ["A"], "x": 1},
            }}})
        );
        let url = Json::from_value(&serde_json::json!({"mode": "url", "url": "https://a.example"}));
        let named = request(Version::V2025_11_25, ServerMethod::Elicit, url, "7");
        assert_eq!(named.get("elicitationId").unwrap().as_str(), "\"7\"");
    }

    #[test]
    fn a_result_is_lowered_by_what_the_revision_lacks() {
        let json = |value| Json::from_value(&value);
        let modern = json(serde_json::json!({
            "resultType": "complete", "structuredContent": [1],
            "content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}],
        }));
        assert_eq!(
            lower(modern.clone()).as_str(),
            r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}"#
        );
        assert_eq!(
            lower_2025_03_26(modern).as_str(),
            r#"{"content":[{"type":"text","text":"a: file:///a"}]}"#
        );
        let clean = json(serde_json::json!({"content": [], "structuredContent": {"n": 1}}));
        assert_eq!(lower(clean.clone()).as_str(), clean.as_str());
        let untold = json(serde_json::json!({"content": [], "structuredContent": ["a", 1]}));
        let told = r#"{"content":[{"type":"text","text":"[\"a\",1]"}]}"#;
        assert_eq!(lower(untold.clone()).as_str(), told);
        assert_eq!(lower_2025_03_26(untold).as_str(), told);
    }
}
