//! Texts by which a configuration tries its own rules (`tenants.*.sanitize.vectors`).

use crate::config::{Sanitize, SanitizeVector};
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Json, Untrusted};
use crate::sanitize::Sanitizer;

/// What the vectors of a tenant's rules say, one line for each that fails.
pub(in crate::cli) fn failing_vectors(rules: &Sanitize) -> Vec<String> {
    let sanitizer = Sanitizer::new();
    (0..)
        .zip(&rules.vectors)
        .filter_map(|(number, vector): (usize, _)| {
            let fault = fault(&sanitizer, vector, rules)?;
            Some(format!("vectors[{number}]: {fault}"))
        })
        .collect()
}

fn fault(sanitizer: &Sanitizer, vector: &SanitizeVector, rules: &Sanitize) -> Option<String> {
    let text = Json::from_text(&vector.text);
    let result = if let Some(key) = &vector.key {
        ObjectBuilder::new().json(
            "structuredContent",
            &ObjectBuilder::new().json(key, &text).build(),
        )
    } else {
        let block = ObjectBuilder::new()
            .text("type", "text")
            .json("text", &text);
        let mut content = ArrayBuilder::new();
        content.push(&block.build());
        ObjectBuilder::new().json("content", &content.build())
    };
    let result = result.boolean("isError", vector.is_error).build();
    let (json, findings) = match sanitizer.result(Untrusted::new(result), rules) {
        Ok(clean) => (Some(clean.json().clone()), clean.findings().clone()),
        Err(unclean) => (None, unclean.findings()),
    };
    let found: Vec<&str> = findings.iter().map(|(label, _)| label).collect();
    let mut expected: Vec<&str> = vector.finds.iter().map(String::as_str).collect();
    expected.sort_unstable();
    if found != expected {
        return Some(format!("finds {found:?}, not {expected:?}"));
    }
    let becomes = vector.becomes.as_ref()?;
    let text = json.and_then(|json| match &vector.key {
        Some(key) => text_of(&json.get("structuredContent")?.get(key)?),
        None => text_of(&json.get("content")?.elements().next()?.get("text")?),
    });
    (text.as_deref() != Some(becomes.as_str()))
        .then(|| "becomes another text than `becomes` says".to_owned())
}

fn text_of(json: &Json) -> Option<String> {
    Some(json.string()?.into_owned())
}
