//! The methods that are run at an upstream for a caller.

/// A method of a caller that an upstream answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `tools/call`
    CallTool,
    /// `resources/read`
    ReadResource,
    /// `prompts/get`
    GetPrompt,
    /// `completion/complete`
    Complete,
    /// `tasks/get` (the extension `io.modelcontextprotocol/tasks`)
    GetTask,
    /// `tasks/update`
    UpdateTask,
    /// `tasks/cancel`
    CancelTask,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::CallTool,
        Self::ReadResource,
        Self::GetPrompt,
        Self::Complete,
        Self::GetTask,
        Self::UpdateTask,
        Self::CancelTask,
    ];

    /// The method's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CallTool => "tools/call",
            Self::ReadResource => "resources/read",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
            Self::GetTask => "tasks/get",
            Self::UpdateTask => "tasks/update",
            Self::CancelTask => "tasks/cancel",
        }
    }

    /// The method of that name, where it is one of these.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }

    /// Whether the answer may ask for input (MCP 2026-07-28 multi round-trip
    /// requests, Supported Requests).
    pub fn may_ask(self) -> bool {
        matches!(self, Self::CallTool | Self::ReadResource | Self::GetPrompt)
    }

    /// Whether it belongs to the extension of tasks.
    pub fn is_of_tasks(self) -> bool {
        matches!(self, Self::GetTask | Self::UpdateTask | Self::CancelTask)
    }
}
