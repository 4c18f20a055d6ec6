//! What is asked of an upstream, ready to be sent. Its makers take the proof that
//! the caller may ask it.

use std::time::Duration;

use crate::arguments::ValidCall;
use crate::ids::UpstreamId;
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, Method};

/// One request to one upstream.
#[derive(Clone, Debug)]
pub struct Errand {
    pub(super) upstream: UpstreamId,
    pub(super) method: Method,
    pub(super) name: String,
    pub(super) params: Json,
    pub(super) param_headers: Vec<(String, String)>,
    pub(super) timeout: Option<Duration>,
    pub(super) may_repeat: bool,
    shown: String,
}

impl Errand {
    /// The call of a tool.
    pub fn of_tool(call: &ValidCall) -> Self {
        let tool = call.tool();
        Self {
            upstream: tool.upstream.clone(),
            method: Method::CallTool,
            name: tool.own_name.to_string(),
            params: ObjectBuilder::new()
                .text("name", &tool.own_name)
                .json("arguments", call.arguments())
                .build(),
            param_headers: call.param_headers(),
            timeout: tool.rule.timeout,
            may_repeat: tool.may_repeat(),
            shown: tool.exposed.to_string(),
        }
    }

    /// Who is asked.
    pub fn upstream(&self) -> &UpstreamId {
        &self.upstream
    }

    /// What is asked of it.
    pub fn method(&self) -> Method {
        self.method
    }

    /// What callers call it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The same request once more, with what the upstream asked for (MCP 2026-07-28
    /// multi round-trip requests).
    #[must_use]
    pub fn answering(&self, responses: Option<&Json>, state: Option<&str>) -> Self {
        let state = state.map(Json::from_text);
        let params = ObjectBuilder::with_capacity(self.params.as_str().len() + 256)
            .maybe("inputResponses", responses)
            .maybe("requestState", state.as_ref());
        Self {
            params: params.and_members_of(&self.params, "inputResponses"),
            // The upstream has begun to act: it is not sent again on a mere guess.
            may_repeat: false,
            ..self.clone()
        }
    }
}
