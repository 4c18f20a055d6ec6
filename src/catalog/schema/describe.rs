//! What a validator found, in words that say what to do. Values are not shown
//! here: whoever tells the fault decides whether they may be.

use std::cmp::Reverse;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::short;

/// Most alternatives that are listed.
const MOST_LISTED: usize = 12;

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer (RFC 6901) of the value, of the missing member, or of the one too many.
    pub pointer: String,
    /// What kind of thing.
    pub kind: FaultKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A member that must be there is not.
    Missing {
        /// What it should be, where the schema says so.
        expected: Option<String>,
    },
    /// A member that may not be there is.
    Unknown {
        /// The members that may be.
        known: Vec<String>,
    },
    /// A value of a wrong form.
    Unfit {
        /// What it should be.
        expected: String,
    },
}

/// Adds what an error says. An error about alternatives becomes what is wrong
/// with the closest one.
pub(super) fn describe(
    error: &ValidationError<'_>,
    (schema, value): (&Value, &Value),
    faults: &mut Vec<Fault>,
) {
    let at = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let wanted = sibling(error, schema, "properties").and_then(|known| known.get(name));
            faults.push(Fault {
                pointer: child(at, name),
                kind: FaultKind::Missing {
                    expected: wanted.and_then(wish),
                },
            });
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = sibling(error, schema, "properties").and_then(Value::as_object);
            let known: Vec<String> = known
                .into_iter()
                .flat_map(|known| known.keys().cloned())
                .collect();
            faults.extend(unexpected.iter().map(|name| Fault {
                pointer: child(at, name),
                kind: FaultKind::Unknown {
                    known: known.clone(),
                },
            }));
        }
        // Where no member is known at all, the object itself is reported.
        ValidationErrorKind::FalseSchema
            if error.schema_path().as_str().ends_with("Properties") =>
        {
            let members = value.pointer(at).and_then(Value::as_object);
            let names = members.into_iter().flat_map(|members| members.keys());
            faults.extend(names.map(|name| Fault {
                pointer: child(at, name),
                kind: FaultKind::Unknown { known: Vec::new() },
            }));
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            alternatives(at, context, (schema, value), faults);
        }
        kind => faults.push(unfit(at, expectation(kind, error, schema))),
    }
}

fn unfit(at: &str, expected: String) -> Fault {
    Fault {
        pointer: at.to_owned(),
        kind: FaultKind::Unfit { expected },
    }
}

/// None of several alternatives fits: where all ask for another type, the types;
/// else the faults of the alternative that came closest.
fn alternatives(
    at: &str,
    branches: &[Vec<ValidationError<'static>>],
    (schema, value): (&Value, &Value),
    faults: &mut Vec<Fault>,
) {
    let types: Option<Vec<String>> = branches
        .iter()
        .map(|branch| match branch.as_slice() {
            [error] if error.instance_path().as_str() == at => simple(error, schema),
            _ => None,
        })
        .collect();
    if let Some(types) = types.filter(|types| !types.is_empty()) {
        faults.push(unfit(at, types.join(" or ")));
        return;
    }
    let Some(closest) = branches.iter().min_by_key(|branch| distance(at, branch)) else {
        return;
    };
    let before = faults.len();
    for error in closest {
        describe(error, (schema, value), faults);
    }
    for fault in faults.iter_mut().skip(before) {
        if let FaultKind::Unfit { expected } = &mut fault.kind
            && !expected.ends_with("forms)")
        {
            *expected = format!("{expected} (or another of {} forms)", branches.len());
        }
    }
}

/// What an alternative asks for, where that is a type or a fixed value.
fn simple(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    match error.kind() {
        ValidationErrorKind::Type { .. }
        | ValidationErrorKind::Constant { .. }
        | ValidationErrorKind::Enum { .. } => Some(expectation(error.kind(), error, schema)),
        _ => None,
    }
}

/// How far a value is from an alternative: one that asks for another type or
/// another fixed value is far, one whose faults lie deep is near.
fn distance(at: &str, branch: &[ValidationError<'static>]) -> (bool, Reverse<usize>, usize) {
    let levels = |error: &ValidationError<'_>| {
        let path = error.instance_path().as_str();
        path.strip_prefix(at).unwrap_or(path).matches('/').count()
    };
    let another = branch.iter().any(|error| match error.kind() {
        ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => {
            levels(error) < 2
        }
        ValidationErrorKind::Type { .. } => levels(error) == 0,
        _ => false,
    });
    let deepest = branch.iter().map(levels).max().unwrap_or_default();
    (another, Reverse(deepest), branch.len())
}

/// What was expected, by the rule that was broken.
fn expectation(kind: &ValidationErrorKind, error: &ValidationError<'_>, schema: &Value) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Type { kind } => match kind {
            TypeKind::Single(one) => one.to_string(),
            TypeKind::Multiple(several) => {
                let names: Vec<String> = several.iter().map(|one| one.to_string()).collect();
                names.join(" or ")
            }
        },
        Kind::Enum { options } => one_of(options),
        Kind::Constant { expected_value } => format!("exactly {}", brief(expected_value)),
        Kind::Minimum { limit } => format!("a number of at least {limit}"),
        Kind::Maximum { limit } => format!("a number of at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("a number above {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("a number below {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("text of at least {limit} characters"),
        Kind::MaxLength { limit } => format!("text of at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "fewer items".to_owned(),
        Kind::MinProperties { limit } => format!("at least {limit} members"),
        Kind::MaxProperties { limit } => format!("at most {limit} members"),
        Kind::UniqueItems => "items that all differ".to_owned(),
        Kind::Contains => "an array with an item of the form that the schema asks for".to_owned(),
        Kind::Pattern { pattern } => format!("text that matches the pattern {}", short(pattern)),
        Kind::RegexEngineFailure { .. } | Kind::BacktrackLimitExceeded { .. } => {
            let pattern = schema.pointer(error.schema_path().as_str());
            let pattern = pattern.and_then(Value::as_str).unwrap_or("of the schema");
            format!("shorter text that matches the pattern {}", short(pattern))
        }
        Kind::Format { format } => format!("text of the format {}", short(format)),
        Kind::PropertyNames { error: inner } => {
            let wanted = expectation(inner.kind(), inner, schema);
            format!("names of members that are {wanted}")
        }
        Kind::OneOfMultipleValid { .. } => "a value of exactly one of the allowed forms".to_owned(),
        Kind::Not { .. } => "a value of another form: the schema excludes this one".to_owned(),
        Kind::FalseSchema => "nothing here".to_owned(),
        Kind::ContentEncoding { content_encoding } => format!("text encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => {
            format!("text that is {content_media_type}")
        }
        _ => format!("a value that fits \"{}\"", short(kind.keyword())),
    }
}

/// What a schema asks for, in few words.
fn wish(schema: &Value) -> Option<String> {
    if let Some(options) = schema.get("enum") {
        return Some(one_of(options));
    }
    if let Some(fixed) = schema.get("const") {
        return Some(format!("exactly {}", brief(fixed)));
    }
    let kind = match schema.get("type")? {
        Value::String(one) => one.clone(),
        Value::Array(several) => {
            let names: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        _ => return None,
    };
    match schema.get("format").and_then(Value::as_str) {
        Some(format) => Some(format!("{kind} of the format {}", short(format))),
        None => Some(kind),
    }
}

fn one_of(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let listed: Vec<String> = options.iter().take(MOST_LISTED).map(brief).collect();
    let more = options.len().saturating_sub(MOST_LISTED);
    let listed = listed.join(", ");
    match (options.len(), more) {
        (1, _) => format!("exactly {listed}"),
        (_, 0) => format!("one of {listed}"),
        _ => format!("one of {listed} and {more} more"),
    }
}

fn brief(value: &Value) -> String {
    short(&value.to_string())
}

/// A keyword beside the one that was broken.
fn sibling<'a>(error: &ValidationError<'_>, schema: &'a Value, keyword: &str) -> Option<&'a Value> {
    let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
    schema.pointer(parent)?.get(keyword)
}

/// The pointer of a member.
fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
