//! What is asked of an upstream, ready to be sent. Its makers take the proof that
//! the caller may ask it.

use std::time::Duration;

use crate::arguments::ValidCall;
use crate::catalog::{Item, Place, Tool};
use crate::ids::UpstreamId;
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, Method};
use crate::visibility::Visible;

/// One request to one upstream.
#[derive(Clone, Debug)]
pub struct Errand {
    pub(super) upstream: UpstreamId,
    pub(super) method: Method,
    pub(super) name: Option<String>,
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
            name: Some(tool.own_name.to_string()),
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

    /// The reading of a resource. `params` are the caller's: what is not the
    /// gateway's to change goes on as it came.
    pub fn of_resource(place: &Visible<Place>, params: &Json) -> Self {
        let params = params.with_member("uri", &Json::from_text(&place.own));
        let name = Some(place.own.clone());
        Self::reading(
            Method::ReadResource,
            &place.upstream,
            name,
            params,
            &place.exposed,
        )
    }

    /// The getting of a prompt.
    pub fn of_prompt(prompt: &Visible<Item>, params: &Json) -> Self {
        let params = params.with_member("name", &Json::from_text(&prompt.own));
        let name = Some(prompt.own.clone());
        Self::reading(
            Method::GetPrompt,
            &prompt.upstream,
            name,
            params,
            &prompt.exposed,
        )
    }

    /// The completion of an argument of a prompt or a template, which `key` (`name`
    /// or `uri`) names in the reference.
    pub fn of_completion(item: &Visible<Item>, key: &str, params: &Json) -> Self {
        let reference = params.get("ref").unwrap_or_else(Json::empty_object);
        let reference = reference.with_member(key, &Json::from_text(&item.own));
        let params = params.with_member("ref", &reference);
        Self::reading(
            Method::Complete,
            &item.upstream,
            None,
            params,
            &item.exposed,
        )
    }

    /// A word about a task that the call of `tool` became. `params` are the caller's
    /// but for the id, which is the upstream's own.
    pub fn of_task(tool: &Visible<Tool>, method: Method, own: &str, params: &Json) -> Self {
        let params = params.with_member("taskId", &Json::from_text(own));
        Self {
            may_repeat: method != Method::UpdateTask,
            ..Self::reading(
                method,
                &tool.upstream,
                Some(own.to_owned()),
                params,
                tool.exposed.as_str(),
            )
        }
    }

    /// What only reads may be sent again when nobody knows whether it was executed.
    fn reading(
        method: Method,
        upstream: &UpstreamId,
        name: Option<String>,
        params: Json,
        shown: &str,
    ) -> Self {
        Self {
            upstream: upstream.clone(),
            method,
            name,
            params,
            param_headers: Vec::new(),
            timeout: None,
            may_repeat: true,
            shown: shown.to_owned(),
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
