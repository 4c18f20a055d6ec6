//! Where schemas stand inside schemas. Everything else in a schema is data: a
//! `$ref` in an `enum` is a string, a property named `$ref` is a property.

use serde_json::{Map, Value};

/// How a schema stands in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Applied to the same value: `allOf`, `not`, `if`, …
    Same,
    /// Applied to a member named by `properties`.
    Property,
    /// Applied to other parts of the value.
    Part,
    /// Kept for references: `$defs`, `definitions`.
    Shelf,
}

/// One schema inside another.
pub(super) struct Inner<'a> {
    pub(super) position: Position,
    /// The property's name, for [`Position::Property`].
    pub(super) name: Option<&'a str>,
    pub(super) schema: &'a Value,
}

/// The schemas that stand directly in a schema.
pub(super) fn inner(schema: &Map<String, Value>) -> Vec<Inner<'_>> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(members)) => {
                found.extend(members.iter().map(|(name, schema)| Inner {
                    position: Position::Property,
                    name: Some(name),
                    schema,
                }));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                found.extend(schemas.iter().map(at(Position::Same)));
            }
            ("not" | "if" | "then" | "else", schema) => found.push(at(Position::Same)(schema)),
            ("dependentSchemas" | "dependencies", Value::Object(members)) => {
                // `dependencies` may also list names (draft 7 §6.5.7): those are no schemas.
                let schemas = members.values().filter(|value| !value.is_array());
                found.extend(schemas.map(at(Position::Same)));
            }
            ("patternProperties", Value::Object(members)) => {
                found.extend(members.values().map(at(Position::Part)));
            }
            ("items" | "prefixItems", Value::Array(schemas)) => {
                found.extend(schemas.iter().map(at(Position::Part)));
            }
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema",
                schema,
            ) => found.push(at(Position::Part)(schema)),
            ("$defs" | "definitions", Value::Object(members)) => {
                found.extend(members.values().map(at(Position::Shelf)));
            }
            _ => {}
        }
    }
    found
}

fn at<'a>(position: Position) -> impl Fn(&'a Value) -> Inner<'a> {
    move |schema| Inner {
        position,
        name: None,
        schema,
    }
}
