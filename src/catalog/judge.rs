//! From a cleaned definition to a tool or another item, or to a reason why there is none. A
//! definition is judged alone: what is wrong with it harms no other tool.

use thiserror::Error;

use super::item::{Family, Item};
use super::schema::{HeaderRule, Schema, SchemaFault, headers, quote};
use super::tool::{Parts, Tool};
use super::uris::Uris;
use crate::config::{DefinitionPolicy, ResourceUris, ToolRule};
use crate::ids::UpstreamId;
use crate::protocol::json::Kind;
use crate::protocol::{Json, ToolDefinition};
use crate::sanitize::CleanDefinition;

/// Largest definition.
const MOST_BYTES: usize = 1 << 20;
/// Longest URI, template or name of a prompt.
const LONGEST_KEY: usize = 2_048;

/// A tool or another item that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its own name as far as it has one, cut and quoted.
    pub name: String,
    /// Why.
    pub reason: Reason,
}

/// Why something is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// No name, or no schema of its arguments.
    #[error("the definition has no name or no inputSchema")]
    Shape,
    /// Nothing that callers could name it by.
    #[error("the definition has no {0} that can be used")]
    Key(&'static str),
    /// Too large.
    #[error("the definition is larger than 1 MiB")]
    TooLarge,
    /// A name that clients refuse.
    #[error("the name {0} is not 1 to 128 characters of A-Z, a-z, 0-9, _, - and .")]
    Name(String),
    /// A field with a wrong type: clients refuse the whole list over it.
    #[error("the field {0} has a wrong type")]
    Field(&'static str),
    /// It looks tampered with.
    #[error("the definition looks tampered with")]
    Suspicious,
    /// The schema of the arguments cannot be used.
    #[error("inputSchema: {0}")]
    Input(SchemaFault),
    /// The schema of the result cannot be used.
    #[error("outputSchema: {0}")]
    Output(SchemaFault),
    /// `x-mcp-header` breaks its rules.
    #[error("inputSchema: {0}")]
    Header(HeaderRule),
    /// The upstream lists the name twice; the first counts.
    #[error("the name {0} stands twice")]
    Twice(String),
}

/// Whose definitions are judged, and by what.
pub(super) struct Bench<'a> {
    pub(super) upstream: &'a UpstreamId,
    pub(super) prefix: &'a str,
    pub(super) suspicious: DefinitionPolicy,
    pub(super) rules: &'a [ToolRule],
    pub(super) uris: ResourceUris,
}

impl Bench<'_> {
    /// Judges one definition.
    pub(super) fn judge(&self, clean: &CleanDefinition) -> Result<Tool, LeftOut> {
        let name = clean.json.get("name");
        let name = name.and_then(|name| name.string().map(|name| quote(&name)));
        let suspicious = clean.suspicious && self.suspicious == DefinitionPolicy::Quarantine;
        let tool = match &name {
            Some(name) if clean.unfit_name => Err(Reason::Name(name.clone())),
            _ if suspicious => Err(Reason::Suspicious),
            _ => self.tool(&clean.json),
        };
        tool.map_err(|reason| LeftOut {
            name: name.unwrap_or_else(|| "without a name".to_owned()),
            reason,
        })
    }

    /// Judges the definition of a resource, a template or a prompt.
    pub(super) fn judge_item(
        &self,
        family: Family,
        clean: &CleanDefinition,
    ) -> Result<Item, LeftOut> {
        let key = text(&clean.json, family.key());
        let suspicious = clean.suspicious && self.suspicious == DefinitionPolicy::Quarantine;
        let item = if suspicious {
            Err(Reason::Suspicious)
        } else {
            self.item(family, &clean.json, key.as_deref().unwrap_or_default())
        };
        item.map_err(|reason| LeftOut {
            name: key.map_or_else(|| format!("without a {}", family.key()), |key| quote(&key)),
            reason,
        })
    }

    fn item(&self, family: Family, json: &Json, own: &str) -> Result<Item, Reason> {
        if json.as_str().len() > MOST_BYTES {
            return Err(Reason::TooLarge);
        }
        // A finding in what routes: it leads nowhere now, and may have been a secret.
        let redacted = own.contains("[REDACTED:");
        if own.is_empty() || own.len() > LONGEST_KEY || own.contains(char::is_control) || redacted {
            return Err(Reason::Key(family.key()));
        }
        if text(json, "name").is_none() {
            return Err(Reason::Key("name"));
        }
        let json = without_nulls(json, &ITEM_FIELDS);
        well_typed(&json, &ITEM_FIELDS)?;
        let exposed = match family {
            Family::Prompts => format!("{}{own}", self.prefix),
            Family::Resources | Family::Templates => {
                Uris::new(self.uris, self.upstream).exposed(own)
            }
        };
        let json = if exposed == own {
            json
        } else {
            json.with_member(family.key(), &Json::from_text(&exposed))
        };
        Ok(Item::new(
            family,
            self.upstream,
            own.to_owned(),
            exposed,
            json,
        ))
    }

    fn tool(&self, json: &Json) -> Result<Tool, Reason> {
        if json.as_str().len() > MOST_BYTES {
            return Err(Reason::TooLarge);
        }
        let json = Uris::new(self.uris, self.upstream).definition(&without_nulls(json, &FIELDS));
        let definition = ToolDefinition::new(json).ok_or(Reason::Shape)?;
        well_typed(definition.json(), &FIELDS)?;
        let own_name = definition.name();
        let exposed = format!("{}{own_name}", self.prefix);
        if !is_name(&exposed) {
            return Err(Reason::Name(quote(&exposed)));
        }
        let input = Schema::input(&definition.input_schema()).map_err(Reason::Input)?;
        let param_headers = headers(input.value()).map_err(Reason::Header)?;
        let output = definition
            .output_schema()
            .map(|schema| Schema::output(&schema))
            .transpose()
            .map_err(Reason::Output)?;
        let definition = if self.prefix.is_empty() {
            definition
        } else {
            definition.renamed(&exposed)
        };
        let parts = Parts {
            upstream: self.upstream.clone(),
            own_name,
            definition,
            input,
            output,
            param_headers,
        };
        Ok(Tool::new(parts, self.rules))
    }
}

/// Whether a name has the form that all clients take (MCP 2026-07-28 tools, Tool
/// Names; a SHOULD there, but some refuse others).
fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Optional fields that are known, and the type that they must have.
const FIELDS: [(&str, Kind); 7] = [
    ("title", Kind::String),
    ("description", Kind::String),
    ("outputSchema", Kind::Object),
    ("annotations", Kind::Object),
    ("icons", Kind::Array),
    ("execution", Kind::Object),
    ("_meta", Kind::Object),
];

/// The same of resources, templates and prompts.
const ITEM_FIELDS: [(&str, Kind); 8] = [
    ("title", Kind::String),
    ("description", Kind::String),
    ("mimeType", Kind::String),
    ("size", Kind::Number),
    ("annotations", Kind::Object),
    ("icons", Kind::Array),
    ("arguments", Kind::Array),
    ("_meta", Kind::Object),
];

fn text(json: &Json, key: &str) -> Option<String> {
    json.get(key)?.string().map(Into::into)
}

const HINTS: [&str; 4] = [
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

/// The definition without known optional fields that are `null`. Servers write
/// them for absent ones, and clients refuse the whole list over them.
fn without_nulls(json: &Json, fields: &[(&str, Kind)]) -> Json {
    let is_null = |name: &str| {
        fields.iter().any(|(field, _)| *field == name)
            && json.get(name).is_some_and(|value| value.is_null())
    };
    if fields.iter().any(|(field, _)| is_null(field)) {
        json.without_members(is_null)
    } else {
        json.clone()
    }
}

fn well_typed(json: &Json, fields: &[(&'static str, Kind)]) -> Result<(), Reason> {
    for &(field, kind) in fields {
        if json.get(field).is_some_and(|value| value.kind() != kind) {
            return Err(Reason::Field(field));
        }
    }
    let annotations = json.get("annotations");
    for hint in HINTS {
        let value = annotations.as_ref().and_then(|hints| hints.get(hint));
        if value.is_some_and(|value| value.boolean().is_none()) {
            return Err(Reason::Field("annotations"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
