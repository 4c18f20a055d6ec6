//! An example that would pass: made of the schema alone, so it shows nothing of
//! any caller, and the same each time. It is shown only if it passes.

use serde_json::{Map, Number, Value};

use crate::catalog::{Fault, FaultKind, Schema};

/// Deepest example.
const DEEPEST: u32 = 8;
/// Most values in an example.
const MOST_VALUES: u32 = 120;
/// Longest example that is shown.
const MOST_SHOWN: usize = 600;

/// An example with all required arguments, and those that were wrong.
pub(super) fn of(schema: &Schema, faults: &[Fault]) -> Option<Value> {
    let wrong: Vec<&str> = faults
        .iter()
        .filter(|fault| !matches!(fault.kind, FaultKind::Unknown { .. }))
        .map(|fault| fault.pointer.as_str())
        .collect();
    [wrong.as_slice(), &[]].into_iter().find_map(|wanted| {
        let mut maker = Maker {
            root: schema.value(),
            wanted,
            left: MOST_VALUES,
        };
        let example = maker.value(schema.value(), "", DEEPEST)?;
        (schema.accepts(&example) && show(&example).len() <= MOST_SHOWN).then_some(example)
    })
}

/// JSON on one line, with blanks where a person would put them.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let member =
                |(name, value)| format!("{}: {}", Value::String(String::clone(name)), show(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
        plain => plain.to_string(),
    }
}

struct Maker<'a> {
    root: &'a Value,
    /// Pointers of arguments that shall be in the example.
    wanted: &'a [&'a str],
    left: u32,
}

impl Maker<'_> {
    fn value(&mut self, schema: &Value, at: &str, depth: u32) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        let Value::Object(members) = schema else {
            return (schema != &Value::Bool(false)).then(|| Value::from("text"));
        };
        if let Some(given) = given(members) {
            return Some(given.clone());
        }
        let mut example = self.plain(members, at, depth);
        for part in parts(members) {
            let other = self.value(part, at, depth);
            example = merged(example, other);
        }
        example.or_else(|| Some(Value::from("text")))
    }

    fn plain(&mut self, schema: &Map<String, Value>, at: &str, depth: u32) -> Option<Value> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(reference.strip_prefix('#')?)?.clone();
            return self.value(&target, at, depth);
        }
        let kind = match schema.get("type") {
            Some(Value::String(one)) => Some(one.as_str()),
            Some(Value::Array(several)) => {
                let mut names = several.iter().filter_map(Value::as_str);
                names.find(|name| *name != "null")
            }
            _ => implied(schema),
        };
        match kind? {
            "object" => self.object(schema, at, depth),
            "array" => self.array(schema, at, depth),
            "string" => Some(Value::String(text(schema))),
            "integer" | "number" => number(schema),
            "boolean" => Some(Value::Bool(true)),
            _ => Some(Value::Null),
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, at: &str, depth: u32) -> Option<Value> {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let known = schema.get("properties").and_then(Value::as_object);
        let mut out = Map::new();
        for (name, inner) in known.into_iter().flatten() {
            let inside = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            let wanted = self.wanted.iter().any(|pointer| {
                pointer
                    .strip_prefix(inside.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            if wanted || required.contains(&name.as_str()) {
                out.insert(name.clone(), self.value(inner, &inside, depth)?);
            }
        }
        for name in required {
            if !out.contains_key(name) {
                out.insert(name.to_owned(), Value::from("text"));
            }
        }
        Some(Value::Object(out))
    }

    fn array(&mut self, schema: &Map<String, Value>, at: &str, depth: u32) -> Option<Value> {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let mut items = Vec::new();
        for inner in first.into_iter().flatten() {
            items.push(self.value(inner, at, depth)?);
        }
        let least = bound("minItems")
            .unwrap_or(1)
            .max(1)
            .min(bound("maxItems").unwrap_or(u64::MAX));
        let other = schema.get("items").filter(|inner| inner.is_object());
        while (items.len() as u64) < least && items.len() < 10 {
            let item = match other {
                Some(inner) => self.value(inner, at, depth)?,
                None => Value::from("text"),
            };
            items.push(item);
        }
        Some(Value::Array(items))
    }
}

/// Schemas that hold for the same value: all of `allOf`, and the first alternative
/// that is something.
fn parts(members: &Map<String, Value>) -> Vec<&Value> {
    let listed = |keyword: &str| members.get(keyword).and_then(Value::as_array);
    let something = |schema: &&Value| schema.get("type") != Some(&Value::from("null"));
    let mut parts: Vec<&Value> = listed("allOf").into_iter().flatten().collect();
    for keyword in ["anyOf", "oneOf"] {
        parts.extend(listed(keyword).into_iter().flatten().find(something));
    }
    parts
}

/// A value that the schema itself gives.
fn given(schema: &Map<String, Value>) -> Option<&Value> {
    let first = |keyword: &str| schema.get(keyword)?.as_array()?.first();
    let something = |value: &&Value| !value.is_null();
    schema
        .get("const")
        .or_else(|| first("examples").filter(something))
        .or_else(|| schema.get("example").filter(something))
        .or_else(|| first("enum"))
        .or_else(|| schema.get("default").filter(something))
}

/// The type that keywords speak of where none is named.
fn implied(schema: &Map<String, Value>) -> Option<&'static str> {
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    if has(&["properties", "required", "additionalProperties"]) {
        Some("object")
    } else if has(&["items", "prefixItems", "minItems"]) {
        Some("array")
    } else if has(&[
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ]) {
        Some("number")
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        Some("string")
    } else {
        None
    }
}

fn text(schema: &Map<String, Value>) -> String {
    let sample = match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T09:30:00Z",
        Some("time") => "09:30:00Z",
        Some("duration") => "PT15M",
        Some("email" | "idn-email") => "alice@example.com",
        Some("hostname" | "idn-hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("uri" | "iri" | "url") => "https://example.com/",
        Some("uri-reference") => "/path",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ => "text",
    };
    let bound = |keyword: &str| {
        schema
            .get(keyword)
            .and_then(Value::as_u64)
            .and_then(|n| usize::try_from(n).ok())
    };
    let mut out = sample.to_owned();
    let least = bound("minLength").unwrap_or(0).min(200);
    while out.len() < least {
        out.push('x');
    }
    if let Some(most) = bound("maxLength") {
        out.truncate(most);
    }
    out
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "an example that is cut wrongly does not pass and is not shown"
)]
fn number(schema: &Map<String, Value>) -> Option<Value> {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let mut number = 10.0_f64;
    if let Some(most) = bound("maximum") {
        number = number.min(most);
    }
    if let Some(most) = bound("exclusiveMaximum").filter(|most| number >= *most) {
        number = most - 1.0;
    }
    if let Some(least) = bound("minimum") {
        number = number.max(least);
    }
    if let Some(least) = bound("exclusiveMinimum").filter(|least| number <= *least) {
        number = least + 1.0;
    }
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        number = (number / step).ceil() * step;
    }
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return Some(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

/// Two examples for one value: the members of both, else the first.
fn merged(one: Option<Value>, other: Option<Value>) -> Option<Value> {
    match (one, other) {
        (Some(Value::Object(mut members)), Some(Value::Object(others))) => {
            for (name, value) in others {
                members.entry(name).or_insert(value);
            }
            Some(Value::Object(members))
        }
        (one, other) => one.or(other),
    }
}
