//! A tool's definition as JSON, read by its known fields and kept whole.

use super::json::Json;

/// One member of a `tools/list` result. Unknown fields stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition(Json);

impl ToolDefinition {
    /// Takes an object that has a string `name` and an object `inputSchema`.
    pub fn new(json: Json) -> Option<Self> {
        let named = json.get("name").is_some_and(|name| name.string().is_some());
        let shaped = json
            .get("inputSchema")
            .is_some_and(|schema| schema.is_object());
        (named && shaped).then_some(Self(json))
    }

    /// The whole definition.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// The tool's name as this definition has it.
    pub fn name(&self) -> String {
        self.0
            .get("name")
            .and_then(|name| name.string().map(Into::into))
            .unwrap_or_default()
    }

    /// The schema of the arguments.
    pub fn input_schema(&self) -> Json {
        self.0.get("inputSchema").unwrap_or_else(Json::empty_object)
    }

    /// The schema of `structuredContent`, where there is one.
    pub fn output_schema(&self) -> Option<Json> {
        self.0.get("outputSchema")
    }

    /// `annotations.readOnlyHint`; absent means false (MCP tools, `ToolAnnotations`).
    pub fn read_only(&self) -> bool {
        self.hint("readOnlyHint").unwrap_or(false)
    }

    /// `annotations.idempotentHint`; absent means false.
    pub fn idempotent(&self) -> bool {
        self.hint("idempotentHint").unwrap_or(false)
    }

    /// `annotations.destructiveHint`; absent means true.
    pub fn destructive(&self) -> bool {
        self.hint("destructiveHint").unwrap_or(true)
    }

    fn hint(&self, name: &str) -> Option<bool> {
        self.0.get("annotations")?.get(name)?.boolean()
    }

    /// The same definition under another name.
    #[must_use]
    pub fn renamed(&self, name: &str) -> Self {
        Self(self.0.with_member("name", &Json::from_text(name)))
    }
}
