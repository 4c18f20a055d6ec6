//! What the server says that it can do: what the caller's upstreams can, as far as
//! the caller may see any of it.

use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Era, Json};
use crate::tenancy::{Subject, TenantContext};
use crate::upstream::Abilities;
use crate::visibility;

use super::{Extensions, Server};

/// The extensions that pass through here.
const TASKS: &str = "io.modelcontextprotocol/tasks";
const UI: &str = "io.modelcontextprotocol/ui";

/// What the caller's upstreams can, as far as the caller may see any of it.
pub(super) fn offered(server: &Server, context: &TenantContext) -> Abilities {
    let can = server
        .pipeline
        .catalog
        .view(context.tenant_id())
        .abilities();
    let resources = can.resources && visibility::may_see_any(context, Subject::Resources);
    let prompts = can.prompts && visibility::may_see_any(context, Subject::Prompts);
    Abilities {
        resources,
        prompts,
        subscribe: can.subscribe && resources,
        completions: can.completions && (resources || prompts),
        ..can
    }
}

/// Capabilities for a caller of this era, `own` extensions among them.
pub(super) fn of(server: &Server, context: &TenantContext, era: Era, own: Extensions) -> Json {
    let can = offered(server, context);
    let changes = ObjectBuilder::new().boolean("listChanged", true).build();
    let mut all = ObjectBuilder::new().json("tools", &changes);
    if can.resources {
        let mut resources = ObjectBuilder::new();
        if can.subscribe {
            resources = resources.boolean("subscribe", true);
        }
        all = all.json("resources", &resources.boolean("listChanged", true).build());
    }
    if can.prompts {
        all = all.json("prompts", &changes);
    }
    if can.completions {
        all = all.json("completions", &Json::empty_object());
    }
    all = all.json("logging", &Json::empty_object());
    let mut extensions = ObjectBuilder::new();
    if can.ui {
        let types = Json::from_value(&serde_json::json!(["text/html;profile=mcp-app"]));
        extensions = extensions.json(UI, &ObjectBuilder::new().json("mimeTypes", &types).build());
    }
    // Older revisions know tasks of another form, which is not spoken here.
    if can.tasks && era == Era::Modern {
        extensions = extensions.json(TASKS, &Json::empty_object());
    }
    let named = own.iter().filter(|_| era == Era::Modern);
    let extensions = named
        .fold(extensions, |all, name| {
            all.json(name, &Json::empty_object())
        })
        .build();
    if extensions.as_str() != "{}" {
        all = all.json("extensions", &extensions);
    }
    all.build()
}
