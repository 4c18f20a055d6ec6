//! Following references inside one schema.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::positions::inner;
use super::{SchemaFault, quote};

/// A schema's places that references can name.
pub(super) struct Places<'a> {
    root: &'a Value,
    /// The root's `$id` without fragment.
    id: Option<&'a str>,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> Places<'a> {
    /// Looks through a schema for anchors. Parts with an identifier of their own
    /// are refused: what a reference in them means depends on that identifier.
    pub(super) fn new(root: &'a Value) -> Result<Self, SchemaFault> {
        let id = identifier(root).map(|id| id.split('#').next().unwrap_or(id));
        let mut places = Self {
            root,
            id: id.filter(|id| !id.is_empty()),
            anchors: HashMap::new(),
        };
        places.collect(root, true)?;
        Ok(places)
    }

    fn collect(&mut self, schema: &'a Value, root: bool) -> Result<(), SchemaFault> {
        let Value::Object(members) = schema else {
            return Ok(());
        };
        match identifier(schema) {
            // Up to draft 7 an anchor was an identifier of this form (draft 7 §8.2.3).
            Some(id) if id.starts_with('#') => {
                self.anchors.insert(id.trim_start_matches('#'), schema);
            }
            Some(_) if !root => return Err(SchemaFault::EmbeddedResource),
            _ => {}
        }
        if let Some(dialect) = members.get("$schema").filter(|_| !root) {
            let named = dialect.as_str().unwrap_or_default();
            return Err(SchemaFault::UnknownDialect(quote(named)));
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = members.get(keyword) {
                self.anchors.insert(name, schema);
            }
        }
        for part in inner(members) {
            self.collect(part.schema, false)?;
        }
        Ok(())
    }

    /// What the references of a schema point to.
    pub(super) fn targets(
        &self,
        schema: &'a Map<String, Value>,
    ) -> Result<Vec<&'a Value>, SchemaFault> {
        ["$ref", "$dynamicRef", "$recursiveRef"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword)?.as_str())
            .map(|reference| self.find(reference))
            .collect()
    }

    fn find(&self, reference: &str) -> Result<&'a Value, SchemaFault> {
        let own = self.id.and_then(|id| reference.strip_prefix(id));
        let inside = match own {
            Some("") => "#",
            Some(rest) if rest.starts_with('#') => rest,
            _ => reference,
        };
        let Some(fragment) = inside.strip_prefix('#') else {
            return Err(SchemaFault::RemoteReference(quote(reference)));
        };
        let fragment = percent_decoded(fragment);
        let found = if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(&fragment)
        } else {
            self.anchors.get(fragment.as_str()).copied()
        };
        found.ok_or_else(|| SchemaFault::DanglingReference(quote(reference)))
    }
}

fn identifier(schema: &Value) -> Option<&str> {
    let id = schema.get("$id").or_else(|| schema.get("id"));
    id.and_then(Value::as_str)
}

/// A fragment without percent-encoding (RFC 6901 §6).
fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = escaped
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = byte.and(tail.get(2..)).unwrap_or(tail);
    }
    String::from_utf8_lossy(&out).into_owned()
}
