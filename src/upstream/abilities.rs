//! What a server says that it can do (MCP 2026-07-28 schema, `ServerCapabilities`).

use crate::protocol::Json;
use crate::protocol::json::ObjectBuilder;

/// The extension of tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";
/// The extension of apps.
const UI: &str = "io.modelcontextprotocol/ui";

/// What a server says that it can do, besides tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a capability of its own"
)]
pub struct Abilities {
    /// It has resources.
    pub resources: bool,
    /// It tells of changes of single resources.
    pub subscribe: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It completes arguments.
    pub completions: bool,
    /// It has tasks (`io.modelcontextprotocol/tasks`).
    pub tasks: bool,
    /// Its tools have user interfaces (`io.modelcontextprotocol/ui`).
    pub ui: bool,
    /// It announces changes of its list of tools.
    pub announces_tools: bool,
    /// It announces changes of its lists of resources.
    pub announces_resources: bool,
    /// It announces changes of its list of prompts.
    pub announces_prompts: bool,
}

impl Abilities {
    pub(super) fn of(capabilities: Option<&Json>) -> Self {
        let has = |name: &str| capabilities?.get(name).filter(Json::is_object);
        let flag = |name: &str, flag: &str| has(name)?.get(flag)?.boolean();
        let extension = |name: &str| has("extensions")?.get(name).filter(Json::is_object);
        Self {
            resources: has("resources").is_some(),
            subscribe: flag("resources", "subscribe") == Some(true),
            prompts: has("prompts").is_some(),
            completions: has("completions").is_some(),
            tasks: extension(TASKS).is_some(),
            ui: extension(UI).is_some(),
            announces_tools: flag("tools", "listChanged") == Some(true),
            announces_resources: flag("resources", "listChanged") == Some(true),
            announces_prompts: flag("prompts", "listChanged") == Some(true),
        }
    }

    /// What either can do.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            resources: self.resources || other.resources,
            subscribe: self.subscribe || other.subscribe,
            prompts: self.prompts || other.prompts,
            completions: self.completions || other.completions,
            tasks: self.tasks || other.tasks,
            ui: self.ui || other.ui,
            announces_tools: self.announces_tools || other.announces_tools,
            announces_resources: self.announces_resources || other.announces_resources,
            announces_prompts: self.announces_prompts || other.announces_prompts,
        }
    }

    /// Whether there is anything to listen for.
    pub(super) fn announces(self) -> bool {
        self.announces_tools || self.announces_resources || self.announces_prompts || self.subscribe
    }

    /// The filter of `subscriptions/listen` for all that it announces, and for these
    /// resources.
    pub(super) fn filter<'a>(self, uris: impl IntoIterator<Item = &'a String>) -> Json {
        let mut filter = ObjectBuilder::new();
        for (announces, name) in [
            (self.announces_tools, "toolsListChanged"),
            (self.announces_resources, "resourcesListChanged"),
            (self.announces_prompts, "promptsListChanged"),
        ] {
            if announces {
                filter = filter.boolean(name, true);
            }
        }
        let uris: Vec<Json> = uris.into_iter().map(|uri| Json::from_text(uri)).collect();
        if !uris.is_empty() {
            filter = filter.json(
                "resourceSubscriptions",
                &uris
                    .iter()
                    .collect::<crate::protocol::json::ArrayBuilder>()
                    .build(),
            );
        }
        filter.build()
    }
}
