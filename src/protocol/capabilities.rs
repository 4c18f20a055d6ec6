//! What a client can do for a server (MCP 2026-07-28 schema, `ClientCapabilities`).

use super::ask::ServerMethod;
use super::json::{Json, ObjectBuilder};

/// A client's capabilities, as it declared them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCapabilities(Json);

/// The extension of tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";

const ASKING: [&str; 3] = ["sampling", "elicitation", "roots"];

impl ClientCapabilities {
    /// Takes the declared object; anything else declares nothing.
    pub fn new(json: Json) -> Self {
        if json.is_object() {
            Self(json)
        } else {
            Self::none()
        }
    }

    /// None at all.
    pub fn none() -> Self {
        Self(Json::empty_object())
    }

    /// What the gateway itself declares where it reads lists: everything that it
    /// relays, since servers may offer more to who can do more.
    pub fn of_gateway() -> Self {
        Self(Json::from_checked(
            r#"{"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"roots":{},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#,
        ))
    }

    /// As they were declared.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// Whether the client can be asked for anything.
    pub fn may_be_asked(&self) -> bool {
        ASKING.iter().any(|name| self.0.get(name).is_some())
    }

    /// The same client where it cannot be asked.
    #[must_use]
    pub fn without_asking(&self) -> Self {
        if self.may_be_asked() {
            Self(self.0.without_members(|name| ASKING.contains(&name)))
        } else {
            self.clone()
        }
    }

    /// Whether the client says when its roots change (legacy).
    pub fn announces_roots(&self) -> bool {
        let roots = self
            .0
            .get("roots")
            .and_then(|roots| roots.get("listChanged"));
        roots.and_then(|flag| flag.boolean()) == Some(true)
    }

    /// The part of them that a legacy server may be told: what is relayed, and the
    /// extensions but for tasks, whose form is the modern one. `in_session`: the client
    /// has a session of its own, so that word of its roots can follow.
    pub fn relayed(&self, in_session: bool) -> Json {
        let mut out = ObjectBuilder::new();
        for name in ASKING {
            let Some(declared) = self.0.get(name).filter(Json::is_object) else {
                continue;
            };
            let parts = |part: &str| match name {
                "sampling" => matches!(part, "tools" | "context"),
                "elicitation" => matches!(part, "form" | "url"),
                _ => in_session && part == "listChanged",
            };
            out = out.json(name, &declared.without_members(|part| !parts(part)));
        }
        let extensions = self.0.get("extensions").filter(Json::is_object);
        let extensions = extensions.map(|all| all.without_members(|name| name == TASKS));
        let extensions = extensions.filter(|all| all.as_str() != "{}");
        out.maybe("extensions", extensions.as_ref()).build()
    }

    /// The capabilities that a server's request needs and that are not declared.
    pub fn lacking(&self, method: ServerMethod, params: &Json) -> Option<Json> {
        let (name, part) = match method {
            ServerMethod::ListRoots => ("roots", None),
            ServerMethod::Sample => {
                let tools = params.get("tools").or_else(|| params.get("toolChoice"));
                ("sampling", tools.map(|_| "tools"))
            }
            ServerMethod::Elicit => {
                let mode = params.get("mode");
                let url = mode.as_ref().and_then(Json::string).as_deref() == Some("url");
                ("elicitation", Some(if url { "url" } else { "form" }))
            }
        };
        let declared = self.0.get(name).filter(Json::is_object);
        let enough = declared.is_some_and(|declared| match part {
            None => true,
            // Without a mode the form is meant (MCP 2025-11-25 elicitation, Capabilities).
            Some("form") => declared.get("form").is_some() || declared.get("url").is_none(),
            Some(part) => declared.get(part).is_some(),
        });
        if enough {
            return None;
        }
        let mut needed = ObjectBuilder::new();
        if let Some(part) = part {
            needed = needed.json(part, &Json::empty_object());
        }
        Some(ObjectBuilder::new().json(name, &needed.build()).build())
    }

    /// What a client declares that takes tasks for answers.
    pub fn tasks() -> Json {
        let extension = ObjectBuilder::new().json(TASKS, &Json::empty_object());
        ObjectBuilder::new()
            .json("extensions", &extension.build())
            .build()
    }

    /// Whether the client takes tasks for answers.
    pub fn has_tasks(&self) -> bool {
        self.cover(&Self::tasks())
    }

    /// The same client with somebody beside it who takes tasks in its place.
    #[must_use]
    pub fn with_tasks(&self) -> Self {
        let extensions = self.0.get("extensions").filter(Json::is_object);
        let extensions = extensions.unwrap_or_else(Json::empty_object);
        let extensions = extensions.with_member(TASKS, &Json::empty_object());
        Self(self.0.with_member("extensions", &extensions))
    }

    /// Whether everything that is required is declared, member by member.
    pub fn cover(&self, required: &Json) -> bool {
        covers(&self.0, required)
    }
}

fn covers(declared: &Json, required: &Json) -> bool {
    required.members().all(|(name, needed)| {
        declared
            .get(&name)
            .is_some_and(|declared| !needed.is_object() || covers(&declared, &needed))
    })
}

#[cfg(test)]
mod tests {
    use super::ServerMethod::{Elicit, ListRoots, Sample};
    use super::*;

    fn of(text: &'static str) -> ClientCapabilities {
        ClientCapabilities::new(Json::from_checked(text))
    }

    #[test]
    fn a_request_lacks_what_its_kind_and_mode_need() {
        let lacking = |client: &'static str, method, params: &'static str| {
            let lacking = of(client).lacking(method, &Json::from_checked(params));
            lacking.map(|json| json.as_str().to_owned())
        };
        for (client, method, params, want) in [
            (r#"{"roots":{}}"#, ListRoots, "{}", None),
            ("{}", ListRoots, "{}", Some(r#"{"roots":{}}"#)),
            (r#"{"sampling":{}}"#, Sample, "{}", None),
            (
                r#"{"sampling":{}}"#,
                Sample,
                r#"{"tools":[]}"#,
                Some(r#"{"sampling":{"tools":{}}}"#),
            ),
            (r#"{"elicitation":{}}"#, Elicit, "{}", None),
            (r#"{"elicitation":{"form":{}}}"#, Elicit, "{}", None),
            (
                r#"{"elicitation":{"url":{}}}"#,
                Elicit,
                "{}",
                Some(r#"{"elicitation":{"form":{}}}"#),
            ),
            (
                r#"{"elicitation":{}}"#,
                Elicit,
                r#"{"mode":"url"}"#,
                Some(r#"{"elicitation":{"url":{}}}"#),
            ),
        ] {
            assert_eq!(
                lacking(client, method, params).as_deref(),
                want,
                "{client} {params}"
            );
        }
    }

    #[test]
    fn what_is_required_is_covered_member_by_member() {
        let client = of(r#"{"elicitation":{"form":{}},"sampling":{}}"#);
        let covered = |required: &'static str| client.cover(&Json::from_checked(required));
        assert!(covered("{}") && covered(r#"{"sampling":{}}"#));
        assert!(covered(r#"{"elicitation":{"form":{}}}"#));
        assert!(!covered(r#"{"elicitation":{"url":{}}}"#) && !covered(r#"{"roots":{}}"#));
    }

    #[test]
    fn tasks_are_declared_among_the_extensions() {
        let client = of(r#"{"extensions":{"a/b":{}}}"#);
        assert!(!client.has_tasks());
        let helped = client.with_tasks();
        assert!(helped.has_tasks());
        assert!(helped.cover(&Json::from_checked(r#"{"extensions":{"a/b":{}}}"#)));
        assert!(ClientCapabilities::none().with_tasks().has_tasks());
    }

    #[test]
    fn a_legacy_server_is_told_what_is_relayed() {
        let told = of(
            r#"{"roots":{"listChanged":true},"elicitation":{"form":{}},"extensions":{"a/b":{},"io.modelcontextprotocol/tasks":{}},"x":{}}"#,
        );
        assert_eq!(
            told.relayed(false).as_str(),
            r#"{"elicitation":{"form":{}},"roots":{},"extensions":{"a/b":{}}}"#
        );
        assert!(told.announces_roots());
        assert_eq!(
            told.relayed(true).as_str(),
            r#"{"elicitation":{"form":{}},"roots":{"listChanged":true},"extensions":{"a/b":{}}}"#
        );
    }
}
