//! The methods that are run at an upstream for a caller.

/// A method of a caller that an upstream answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `tools/call`
    CallTool,
}

impl Method {
    /// The method's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CallTool => "tools/call",
        }
    }

    /// The method of that name, where it is one of these.
    pub fn parse(name: &str) -> Option<Self> {
        (name == Self::CallTool.as_str()).then_some(Self::CallTool)
    }

    /// Whether the answer may ask for input (MCP 2026-07-28 multi round-trip
    /// requests, Supported Requests).
    pub fn may_ask(self) -> bool {
        match self {
            Self::CallTool => true,
        }
    }
}
