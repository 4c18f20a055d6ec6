//! `x-mcp-header`: arguments that callers mirror into `Mcp-Param-*` headers
//! (MCP 2026-07-28 tools, `x-mcp-header`). A definition that breaks its rules is
//! refused whole, because clients must refuse it too.

use std::collections::HashSet;

use serde_json::{Map, Value};
use thiserror::Error;

use super::positions::{Position, inner};
use super::quote;

/// An argument that is mirrored into a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The names of the members that lead to the argument.
    pub path: Vec<String>,
    /// The header's name, `Mcp-Param-` included, spelled as in the definition.
    pub header: String,
    /// How values are written and compared.
    pub kind: ParamKind,
}

/// The type of a mirrored argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Written in decimal, compared as numbers.
    Integer,
    /// Written as it is.
    String,
    /// `true` or `false`.
    Boolean,
}

/// Why `x-mcp-header` is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderRule {
    /// Not a name that a header can have.
    #[error("x-mcp-header {0} is no header name")]
    Name(String),
    /// Two arguments with one header.
    #[error("x-mcp-header {0} stands twice")]
    Twice(String),
    /// An argument that is no integer, string or boolean.
    #[error("x-mcp-header {0} stands at an argument that is no integer, string or boolean")]
    Type(String),
    /// Not reachable by names of members alone.
    #[error("x-mcp-header {0} stands where not only names of members lead")]
    Place(String),
}

/// The mirrored arguments of an input schema.
pub(in crate::catalog) fn headers(schema: &Value) -> Result<Vec<ParamHeader>, HeaderRule> {
    let mut found = Vec::new();
    collect(schema, Some(&[]), &mut found)?;
    let mut seen = HashSet::new();
    for header in &found {
        if !seen.insert(header.header.to_ascii_lowercase()) {
            return Err(HeaderRule::Twice(quote(&header.header)));
        }
    }
    Ok(found)
}

/// `path` is `None` where something else than names of members leads here.
fn collect(
    schema: &Value,
    path: Option<&[String]>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), HeaderRule> {
    let Value::Object(members) = schema else {
        return Ok(());
    };
    if let Some(name) = members.get("x-mcp-header") {
        found.push(header(name, members, path)?);
    }
    for part in inner(members) {
        let path = match (path, part.position, part.name) {
            (Some(path), Position::Property, Some(name)) => {
                Some([path, &[name.to_owned()]].concat())
            }
            _ => None,
        };
        collect(part.schema, path.as_deref(), found)?;
    }
    Ok(())
}

fn header(
    name: &Value,
    schema: &Map<String, Value>,
    path: Option<&[String]>,
) -> Result<ParamHeader, HeaderRule> {
    let quoted = || quote(name.as_str().unwrap_or("that is no string"));
    let text = name
        .as_str()
        .filter(|text| !text.is_empty() && text.bytes().all(is_token))
        .ok_or_else(|| HeaderRule::Name(quoted()))?;
    let path = path
        .filter(|path| !path.is_empty())
        .ok_or_else(|| HeaderRule::Place(quoted()))?;
    let kind = kind(schema.get("type")).ok_or_else(|| HeaderRule::Type(quoted()))?;
    Ok(ParamHeader {
        path: path.to_vec(),
        header: format!("Mcp-Param-{text}"),
        kind,
    })
}

/// `tchar` (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The one type beside `null`: a null argument has no header.
fn kind(named: Option<&Value>) -> Option<ParamKind> {
    let one = |name: &Value| match name.as_str()? {
        "integer" => Some(ParamKind::Integer),
        "string" => Some(ParamKind::String),
        "boolean" => Some(ParamKind::Boolean),
        _ => None,
    };
    match named? {
        Value::Array(several) => {
            let mut others = several.iter().filter(|name| name.as_str() != Some("null"));
            let first = others.next()?;
            others.next().is_none().then(|| one(first))?
        }
        name => one(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotated_arguments_are_found_by_their_path() {
        let schema = json!({"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "at":{"type":"object","properties":{"row":{"type":["integer","null"],"x-mcp-header":"Row"}}},
            "dry":{"type":"boolean","x-mcp-header":"dry_run"},
            "x-mcp-header":{"type":"array"}}});
        let found = headers(&schema).unwrap();
        let of = |path: &[&str], header: &str, kind| ParamHeader {
            path: path.iter().map(|name| (*name).to_owned()).collect(),
            header: header.to_owned(),
            kind,
        };
        assert_eq!(
            found,
            [
                of(&["region"], "Mcp-Param-Region", ParamKind::String),
                of(&["at", "row"], "Mcp-Param-Row", ParamKind::Integer),
                of(&["dry"], "Mcp-Param-dry_run", ParamKind::Boolean),
            ]
        );
    }

    #[test]
    fn each_broken_rule_is_named() {
        let property = |schema: Value| json!({"type":"object","properties":{"a":schema}});
        let name = |name: Value| property(json!({"type":"string","x-mcp-header":name}));
        let inside = json!({"type":"string","x-mcp-header":"A"});
        let is_place = |fault: &HeaderRule| matches!(fault, HeaderRule::Place(_));
        for schema in [
            property(json!({"type":"array","items":inside})),
            property(json!({"anyOf":[inside]})),
            property(json!({"$ref":"#/$defs/A"}))
                .as_object()
                .map(|members| {
                    let mut members = members.clone();
                    members.insert("$defs".into(), json!({"A": inside}));
                    Value::Object(members)
                })
                .unwrap(),
            property(json!({"type":"object","additionalProperties":inside})),
            property(json!({"if":{"properties":{"b":inside}}})),
            json!({"type":"object","x-mcp-header":"A"}),
        ] {
            assert!(is_place(&headers(&schema).unwrap_err()), "{schema}");
        }
        for bad in [
            json!(""),
            json!("a b"),
            json!("a\r\nb"),
            json!("ä"),
            json!("a:b"),
            json!(7),
            json!(null),
        ] {
            assert!(
                matches!(headers(&name(bad.clone())), Err(HeaderRule::Name(_))),
                "{bad}"
            );
        }
        for kind in [
            json!("number"),
            json!("object"),
            json!(["string", "integer"]),
            json!(["null"]),
        ] {
            let schema = property(json!({"type":kind,"x-mcp-header":"A"}));
            assert!(
                matches!(headers(&schema), Err(HeaderRule::Type(_))),
                "{schema}"
            );
        }
        let untyped = property(json!({"enum":["a"],"x-mcp-header":"A"}));
        assert!(matches!(headers(&untyped), Err(HeaderRule::Type(_))));
        let twice = json!({"type":"object","properties":{
            "a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"REGION"}}});
        assert!(matches!(headers(&twice), Err(HeaderRule::Twice(_))));
    }
}
