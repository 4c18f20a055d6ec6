//! A JSON Schema of a tool, judged and compiled once.
//!
//! Supported dialects: 2020-12 (taken where `$schema` is absent), 2019-09, and
//! drafts 7, 6 and 4. Nothing is ever fetched: a reference stays inside its own
//! schema or the schema is refused (MCP 2026-07-28 basic, `$ref` Resolution).
//! `format` is an annotation in every dialect (JSON Schema 2020-12 §7.2.1): the
//! upstream knows better which dates it reads.
//!
//! Time per check is bounded: `bounds` refuses schemas that are too large or
//! refer to themselves without going deeper; patterns run on an engine with
//! linear time. Only patterns that look around, which that engine cannot do
//! (they are common: a popular generator writes every e-mail address so), run on
//! a backtracking engine, with a limit on steps and on the size of what it reads.

mod bounds;
mod describe;
mod headers;
mod positions;
mod reference;

use std::fmt;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use thiserror::Error;

use crate::protocol::Json;

use bounds::Effort;
pub use describe::{Fault, FaultKind};
pub(super) use headers::headers;
pub use headers::{HeaderRule, ParamHeader, ParamKind};

/// Largest schema text that is compiled.
const MOST_BYTES: usize = 512 * 1024;
/// Size of a compiled pattern, as the engine counts it.
const PATTERN_BYTES: usize = 2 << 20;
/// Steps that a pattern may go back, on the backtracking engine.
const BACKTRACKS: usize = 2_000;
/// Largest value that is checked where a pattern may go back.
const MOST_BYTES_BACKTRACKING: usize = 64 * 1024;
/// Work beyond which faults are not listed one by one.
const MOST_EFFORT: u64 = 1_000_000;

/// Why a schema cannot be used. The texts may quote the schema, cut short.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaFault {
    /// Not an object, or an input schema whose type is not `object`.
    #[error("the schema is not one of an object: it needs \"type\": \"object\"")]
    NotOfObject,
    /// `$schema` names something that is not supported.
    #[error("the dialect {0} is not supported")]
    UnknownDialect(String),
    /// A reference to somewhere else. It is not followed.
    #[error("the reference {0} leads out of the schema, and nothing is fetched")]
    RemoteReference(String),
    /// A reference to nowhere.
    #[error("the reference {0} leads nowhere")]
    DanglingReference(String),
    /// A part of the schema with an identifier of its own.
    #[error("a part of the schema has an identifier of its own, which is not supported")]
    EmbeddedResource,
    /// It refers to itself on the spot: checking would never end.
    #[error("the schema refers to itself without going deeper")]
    Endless,
    /// Too much of something.
    #[error("the schema has too many {0}")]
    TooLarge(&'static str),
    /// Not valid in its dialect.
    #[error("the schema is not valid{}: {what}", place(at))]
    Invalid {
        /// Where, as a JSON pointer into the schema.
        at: String,
        /// Which rule it breaks.
        what: String,
    },
}

fn place(at: &str) -> String {
    if at.is_empty() {
        String::new()
    } else {
        format!(" at {at}")
    }
}

/// A compiled schema.
pub struct Schema {
    value: Value,
    validator: Validator,
    /// Largest text that is checked.
    most_bytes: Option<usize>,
    effort: Effort,
    accepts_nothing: bool,
}

impl Schema {
    /// Compiles the schema of a tool's arguments: one of an object.
    pub fn input(json: &Json) -> Result<Self, SchemaFault> {
        let value = tree(json)?;
        if value.get("type") != Some(&Value::from("object")) {
            return Err(SchemaFault::NotOfObject);
        }
        Self::compile(value)
    }

    /// Compiles the schema of structured content: of anything.
    pub fn output(json: &Json) -> Result<Self, SchemaFault> {
        Self::compile(tree(json)?)
    }

    fn compile(mut value: Value) -> Result<Self, SchemaFault> {
        let draft = dialect(&value)?;
        if let Value::Object(members) = &mut value {
            // The draft is settled; other spellings of its name would only confuse.
            members.shift_remove("$schema");
        }
        let effort = bounds::judge(&value)?;
        let (validator, most_bytes) = build(&value, draft)?;
        let accepts_nothing = validator.is_valid(&Value::Object(serde_json::Map::new()));
        Ok(Self {
            value,
            validator,
            most_bytes,
            effort,
            accepts_nothing,
        })
    }

    /// The schema as a tree, without `$schema`.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Whether `{}` fits.
    pub fn accepts_nothing(&self) -> bool {
        self.accepts_nothing
    }

    /// The largest text that may be checked, where that is limited.
    pub fn most_bytes(&self) -> Option<usize> {
        self.most_bytes
    }

    /// Whether a value fits.
    pub fn accepts(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// What is wrong with a value, the first faults of it. Empty where it fits, and
    /// where telling would take too long.
    pub fn faults(&self, value: &Value, most: usize) -> Vec<Fault> {
        if self.effort.of(value) > MOST_EFFORT {
            return Vec::new();
        }
        let mut faults = Vec::new();
        for error in self.validator.iter_errors(value) {
            if faults.len() >= most {
                break;
            }
            describe::describe(&error, (&self.value, value), &mut faults);
        }
        faults.truncate(most);
        faults
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({:?})", self.effort)
    }
}

fn tree(json: &Json) -> Result<Value, SchemaFault> {
    if !json.is_object() {
        return Err(SchemaFault::NotOfObject);
    }
    if json.as_str().len() > MOST_BYTES {
        return Err(SchemaFault::TooLarge("bytes"));
    }
    json.to_value().map_err(|_| SchemaFault::Invalid {
        at: String::new(),
        what: "it has a number that is out of range".to_owned(),
    })
}

fn dialect(schema: &Value) -> Result<Draft, SchemaFault> {
    let Some(named) = schema.get("$schema") else {
        return Ok(Draft::Draft202012);
    };
    let named = named.as_str().unwrap_or_default();
    let bare = named.trim_end_matches('#');
    let bare = bare
        .strip_prefix("https://")
        .or_else(|| bare.strip_prefix("http://"))
        .unwrap_or_default();
    match bare {
        "json-schema.org/draft/2020-12/schema" | "json-schema.org/schema" => Ok(Draft::Draft202012),
        "json-schema.org/draft/2019-09/schema" => Ok(Draft::Draft201909),
        "json-schema.org/draft-07/schema" => Ok(Draft::Draft7),
        "json-schema.org/draft-06/schema" => Ok(Draft::Draft6),
        "json-schema.org/draft-04/schema" => Ok(Draft::Draft4),
        _ => Err(SchemaFault::UnknownDialect(quote(named))),
    }
}

/// A validator, and the largest text for it where patterns may go back.
fn build(schema: &Value, draft: Draft) -> Result<(Validator, Option<usize>), SchemaFault> {
    let options = || {
        jsonschema::options()
            .offline()
            .with_draft(draft)
            .should_validate_formats(false)
    };
    let linear = PatternOptions::regex().size_limit(PATTERN_BYTES);
    if let Ok(validator) = options().with_pattern_options(linear).build(schema) {
        return Ok((validator, None));
    }
    let looking_around = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS)
        .size_limit(PATTERN_BYTES);
    options()
        .with_pattern_options(looking_around)
        .build(schema)
        .map(|validator| (validator, Some(MOST_BYTES_BACKTRACKING)))
        .map_err(|error| SchemaFault::Invalid {
            at: short(error.instance_path().as_str()),
            what: short(&error.masked().to_string()),
        })
}

/// A piece of foreign text for a message: cut, quoted, control characters escaped.
pub(in crate::catalog) fn quote(text: &str) -> String {
    format!("{:?}", short(text))
}

fn short(text: &str) -> String {
    const MOST: usize = 120;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(MOST).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests;
