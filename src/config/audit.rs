//! `audit` of a tenant or a tool: how calls are recorded.

use serde::{Deserialize, Deserializer};

/// `tenants.*.audit` and `tools[].audit`. What a tool's rule leaves out is the tenant's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    /// What must be durable when.
    pub durability: Option<Durability>,
    /// What is kept of the arguments.
    pub arguments: Option<ArgumentsMode>,
}

/// Methods that are recorded besides `tools/call`, which always is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditedMethods {
    /// `resources/read`
    pub resources_read: bool,
    /// `prompts/get`
    pub prompts_get: bool,
    /// `completion/complete`
    pub completion_complete: bool,
}

impl<'de> Deserialize<'de> for AuditedMethods {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut methods = Self::default();
        for method in Vec::<Method>::deserialize(deserializer)? {
            match method {
                Method::ResourcesRead => methods.resources_read = true,
                Method::PromptsGet => methods.prompts_get = true,
                Method::CompletionComplete => methods.completion_complete = true,
            }
        }
        Ok(methods)
    }
}

#[derive(Clone, Copy, Deserialize)]
enum Method {
    #[serde(rename = "resources/read")]
    ResourcesRead,
    #[serde(rename = "prompts/get")]
    PromptsGet,
    #[serde(rename = "completion/complete")]
    CompletionComplete,
}

/// What must be durable when. The operator's choice, never an upstream's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// `started` before the tool is dispatched, `finished` before the answer leaves.
    #[default]
    Strict,
    /// `started` is written while the tool works; both before the answer leaves.
    Overlapped,
}

/// What is kept of the arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentsMode {
    /// Cleaned like a result, cut to 8 KiB.
    #[default]
    Redacted,
    /// As they came, sealed with the deployment's keys: readable by auditors alone.
    Full,
    /// A digest alone.
    Digest,
    /// Nothing.
    None,
}
