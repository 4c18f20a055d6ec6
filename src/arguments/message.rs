//! Faults in words: which argument, what was expected, what came, and an example
//! that would pass. Of what came only a little is shown, and nothing of what
//! looks secret.

use serde_json::Value;

use super::example;
use super::headers::pointer;
use crate::catalog::{Fault, FaultKind, Schema};
use crate::protocol::Json;
use crate::protocol::json::Kind;

/// Most faults that are told.
const MOST_FAULTS: usize = 5;
/// Most characters of a value that are shown.
const MOST_SHOWN: usize = 40;
/// Most characters of a pointer that are shown.
const MOST_POINTER: usize = 120;
/// Most known arguments that are listed.
const MOST_KNOWN: usize = 20;

/// Words in names of arguments whose values are not shown.
const SECRET_WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "cookie",
    "session",
    "accesskey",
];

/// The message for a value that the schema refuses.
pub(super) fn of_faults(schema: &Schema, value: &Value) -> String {
    let faults = schema.faults(value, MOST_FAULTS + 1);
    let mut lines: Vec<String> = faults
        .iter()
        .take(MOST_FAULTS)
        .map(|fault| sentence(fault, schema, value))
        .collect();
    if lines.is_empty() {
        lines.push("The arguments do not fit the tool's inputSchema.".to_owned());
    }
    if faults.len() > MOST_FAULTS {
        lines.push("More arguments are wrong.".to_owned());
    }
    if let Some(example) = example::of(schema, &faults) {
        lines.push(format!("Example: {}", example::show(&example)));
    }
    lines.join(" ")
}

pub(super) fn too_large(bytes: usize, most: usize) -> String {
    format!("The arguments are {bytes} bytes long; at most {most} are taken. Send less.")
}

pub(super) fn unsafe_integer(path: &[String]) -> String {
    format!(
        "Argument {}: expected an integer between -9007199254740991 and 9007199254740991.",
        quoted(&pointer(path))
    )
}

/// The message for a number that no machine number holds.
pub(super) fn out_of_range(arguments: &Json) -> String {
    match find_out_of_range(arguments, &mut Vec::new()) {
        Some((at, number)) => format!(
            "Argument {}: the number {} is out of range; send a number that fits a double, or a string.",
            quoted(&at),
            cut(&number, MOST_SHOWN)
        ),
        None => "The arguments have a value that cannot be read.".to_owned(),
    }
}

fn find_out_of_range(json: &Json, path: &mut Vec<String>) -> Option<(String, String)> {
    match json.kind() {
        Kind::Number => {
            let number: f64 = json.as_str().parse().ok()?;
            (!number.is_finite()).then(|| (pointer(path), json.as_str().to_owned()))
        }
        Kind::Object => json.members().find_map(|(name, value)| {
            path.push(name.into_owned());
            let found = find_out_of_range(&value, path);
            path.pop();
            found
        }),
        Kind::Array => json.elements().enumerate().find_map(|(at, value)| {
            path.push(at.to_string());
            let found = find_out_of_range(&value, path);
            path.pop();
            found
        }),
        _ => None,
    }
}

fn sentence(fault: &Fault, schema: &Schema, value: &Value) -> String {
    let at = if fault.pointer.is_empty() {
        "The arguments".to_owned()
    } else {
        format!("Argument {}", quoted(&fault.pointer))
    };
    match &fault.kind {
        FaultKind::Missing { expected: None } => format!("{at} is missing."),
        FaultKind::Missing {
            expected: Some(expected),
        } => {
            format!("{at} is missing: expected {expected}.")
        }
        FaultKind::Unknown { known } => {
            format!("{at} is not known{}", instead(&fault.pointer, known))
        }
        FaultKind::Unfit { expected } => {
            let came = value.pointer(&fault.pointer);
            let advice = match came {
                Some(Value::Null) if may_be_left_out(schema, &fault.pointer) => {
                    " Leave it out if there is no value."
                }
                _ => "",
            };
            let came =
                came.map_or_else(|| "nothing".to_owned(), |came| shown(&fault.pointer, came));
            format!("{at}: expected {expected}, got {came}.{advice}")
        }
    }
}

/// What to send in place of an unknown argument.
fn instead(at: &str, known: &[String]) -> String {
    let name = last_name(at);
    let nearest = known
        .iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 3);
    if let Some((_, nearest)) = nearest {
        return format!("; did you mean {}?", quoted(nearest));
    }
    if known.is_empty() {
        return "; none are taken here.".to_owned();
    }
    let listed: Vec<String> = known
        .iter()
        .take(MOST_KNOWN)
        .map(|name| cut(name, MOST_SHOWN))
        .collect();
    let more = if known.len() > MOST_KNOWN {
        ", …"
    } else {
        ""
    };
    format!("; known are {}{more}.", listed.join(", "))
}

/// Whether the argument is an optional one at the top.
fn may_be_left_out(schema: &Schema, at: &str) -> bool {
    let name = last_name(at);
    let top = at.matches('/').count() == 1;
    let required = schema.value().get("required").and_then(Value::as_array);
    top && !required.is_some_and(|names| names.iter().any(|required| required == name.as_str()))
}

/// A value that came: its kind, and a little of it.
fn shown(at: &str, value: &Value) -> String {
    if let Value::Array(items) = value {
        return format!("array of {} items", items.len());
    }
    if let Value::Object(members) = value {
        return format!("object of {} members", members.len());
    }
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        _ => "string",
    };
    if looks_secret(at) {
        return format!("{kind} (not shown)");
    }
    match value {
        Value::String(text) => format!("{kind} {}", quoted_to(text, MOST_SHOWN)),
        other => format!("{kind} {}", cut(&other.to_string(), MOST_SHOWN)),
    }
}

fn looks_secret(at: &str) -> bool {
    let bare: String = at
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == '/')
        .collect::<String>()
        .to_lowercase();
    SECRET_WORDS.iter().any(|word| bare.contains(word))
}

fn last_name(at: &str) -> String {
    let name = at.rsplit('/').next().unwrap_or_default();
    name.replace("~1", "/").replace("~0", "~")
}

fn quoted(text: &str) -> String {
    quoted_to(text, MOST_POINTER)
}

/// A text in quotes, cut, with control and invisible characters escaped.
fn quoted_to(text: &str, most: usize) -> String {
    format!("{:?}", cut(text, most))
}

fn cut(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}
