//! A tool as the catalogue has it: cleaned, renamed, compiled.

use std::fmt;
use std::sync::Arc;

use super::digest;
use super::rule::EffectiveToolRule;
use super::schema::{FaultKind, ParamHeader, Schema};
use super::shelf::Listed;
use crate::config::ToolRule;
use crate::ids::{Scope, ToolName, UpstreamId};
use crate::protocol::{Era, Json, ToolDefinition, Version};

/// Most faults of an output that are told.
const MOST_FAULTS: usize = 3;

/// A tool. Cheap to clone.
#[derive(Clone)]
pub struct Tool {
    /// The name that callers use.
    pub exposed: ToolName,
    /// Where it comes from.
    pub upstream: UpstreamId,
    /// The name that the upstream uses.
    pub own_name: Arc<str>,
    /// The definition as it is listed: clean, under the exposed name.
    pub definition: ToolDefinition,
    /// SHA-256 of the definition's canonical form.
    pub digest: [u8; 32],
    /// The schema of the arguments.
    pub input: Arc<Schema>,
    /// The schema of `structuredContent`.
    pub output: Option<Arc<Schema>>,
    /// Arguments that callers mirror into headers.
    pub param_headers: Arc<[ParamHeader]>,
    /// What the operator says of it.
    pub rule: EffectiveToolRule,
    /// The definition for legacy callers.
    legacy: Json,
}

/// The parts of a tool that the upstream and the configuration of it decide.
pub(super) struct Parts {
    pub(super) upstream: UpstreamId,
    pub(super) own_name: String,
    pub(super) definition: ToolDefinition,
    pub(super) input: Schema,
    pub(super) output: Option<Schema>,
    pub(super) param_headers: Vec<ParamHeader>,
}

impl Tool {
    pub(super) fn new(parts: Parts, rules: &[ToolRule]) -> Self {
        let name = parts.definition.name();
        let json = parts.definition.json();
        // Clients up to 2025-11-25 refuse the whole list over an output that is no
        // object (their schema has `type: "object"` there).
        let of_object = parts.output.as_ref().is_none_or(|schema| {
            schema.value().get("type").and_then(|kind| kind.as_str()) == Some("object")
        });
        let legacy = if of_object {
            json.clone()
        } else {
            json.without_members(|member| member == "outputSchema")
        };
        Self {
            rule: EffectiveToolRule::of(&name, rules),
            exposed: ToolName::new(name),
            upstream: parts.upstream,
            own_name: parts.own_name.into(),
            digest: digest::of(json),
            legacy,
            definition: parts.definition,
            input: Arc::new(parts.input),
            output: parts.output.map(Arc::new),
            param_headers: parts.param_headers.into(),
        }
    }

    /// The same tool under other rules of the operator.
    pub(super) fn under(&self, rules: &[ToolRule]) -> Self {
        Self {
            rule: EffectiveToolRule::of(self.exposed.as_str(), rules),
            ..self.clone()
        }
    }

    /// The definition as callers of a revision can read it.
    pub fn listed(&self, version: Version) -> &Json {
        match version.era() {
            Era::Modern => self.definition.json(),
            Era::Legacy => &self.legacy,
        }
    }

    /// Whether a call may be sent again when nobody knows if it was executed: the
    /// operator's word, else the tool's own (MCP tools, `ToolAnnotations`).
    pub fn may_repeat(&self) -> bool {
        let hinted = || self.definition.read_only() || self.definition.idempotent();
        self.rule.idempotent.unwrap_or_else(hinted)
    }

    /// Whether a successful result keeps what the output schema promises.
    ///
    /// # Errors
    /// Which rule is broken and where. No value is quoted.
    pub fn check_output(&self, structured: Option<&Json>) -> Result<(), String> {
        let Some(schema) = &self.output else {
            return Ok(());
        };
        let Some(structured) = structured else {
            return Err(
                "the tool has an output schema, but there is no structuredContent".to_owned(),
            );
        };
        if schema
            .most_bytes()
            .is_some_and(|most| structured.as_str().len() > most)
        {
            return Err(
                "structuredContent is too large to be checked against the output schema".to_owned(),
            );
        }
        let Ok(value) = structured.to_value() else {
            return Err("structuredContent has a number that is out of range".to_owned());
        };
        if schema.accepts(&value) {
            return Ok(());
        }
        let faults: Vec<String> = schema
            .faults(&value, MOST_FAULTS)
            .into_iter()
            .map(|fault| {
                let at = if fault.pointer.is_empty() {
                    "the value"
                } else {
                    &fault.pointer
                };
                match fault.kind {
                    FaultKind::Missing { .. } => format!("{at} is missing"),
                    FaultKind::Unknown { .. } => format!("{at} is not allowed"),
                    FaultKind::Unfit { expected } => format!("{at} is not {expected}"),
                }
            })
            .collect();
        let faults = if faults.is_empty() {
            String::new()
        } else {
            format!(": {}", faults.join("; "))
        };
        Err(format!(
            "structuredContent does not fit the output schema{faults}"
        ))
    }
}

impl Listed for Tool {
    fn key(&self) -> &str {
        self.exposed.as_str()
    }

    fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    fn upstream(&self) -> &UpstreamId {
        &self.upstream
    }

    fn scopes(&self) -> &[Scope] {
        &self.rule.scopes
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tool({} of {})", self.exposed, self.upstream)
    }
}
