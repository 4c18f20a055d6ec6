//! Why a tool, a resource or a prompt is seen or not, in words: for `toolgate explain` and the console.
//! It asks the same decision as a call does.

use std::collections::BTreeSet;

use serde::Serialize;

use super::decision::{Ground, Named, Verdict, decide};
use super::visible::{lacking, verdict};
use crate::catalog::{Family, View};
use crate::ids::{Role, Scope, TenantId, UpstreamId};
use crate::tenancy::{Subject, TenantRules};

/// Why a tool, a resource or a prompt is seen or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The tenant.
    pub tenant: TenantId,
    /// The roles that were asked about.
    pub roles: Vec<Role>,
    /// Those of them that the tenant's configuration does not have.
    pub unknown_roles: Vec<Role>,
    /// What it is: `tool`, `resource` or `prompt`.
    pub kind: &'static str,
    /// Its exposed name or URI.
    pub tool: String,
    /// Whether the tenant's catalogue has it.
    pub exists: bool,
    /// Where it comes from.
    pub upstream: Option<UpstreamId>,
    /// Whether it says that it only reads.
    pub read_only: Option<bool>,
    /// `allowed`, `denied` or `not_mentioned`.
    pub decision: &'static str,
    /// The rule that decided, as configured.
    pub rule: Option<String>,
    /// Whose rule: `tenant`, or the role.
    pub rule_of: Option<String>,
    /// Scopes that a call needs.
    pub scopes: Vec<Scope>,
    /// Those of them that are missing, where it was asked about scopes.
    pub missing_scopes: Vec<Scope>,
    /// Whether it is listed.
    pub visible: bool,
    /// Whether a call would pass visibility and scopes.
    pub callable: bool,
    /// All of this in a sentence.
    pub text: String,
}

/// Explains one resource, by URI or template, or one prompt. Scopes are asked for
/// tools alone.
pub fn explain_item(
    tenant: &TenantRules,
    roles: &[Role],
    view: &View,
    subject: Subject,
    name: &str,
) -> Explanation {
    let upstream = match subject {
        Subject::Prompts => view
            .shelf(Family::Prompts)
            .get(name)
            .map(|item| item.upstream.clone()),
        Subject::Resources | Subject::Tools => {
            let template = view.shelf(Family::Templates).get(name);
            let place = || view.place(name, None).map(|place| place.upstream);
            template.map(|item| item.upstream.clone()).or_else(place)
        }
    };
    let said = decide(
        tenant,
        roles,
        Named {
            subject,
            name,
            upstream: upstream.as_ref(),
            read_only: None,
        },
    );
    let (decision, ground) = match said {
        Verdict::Allowed(ground) => ("allowed", Some(ground)),
        Verdict::Denied(ground) => ("denied", Some(ground)),
        Verdict::Silent => ("not_mentioned", None),
    };
    let unknown = roles.iter().filter(|role| !tenant.has_role(role));
    let visible = upstream.is_some() && decision == "allowed";
    Explanation {
        tenant: tenant.id().clone(),
        roles: roles.to_vec(),
        unknown_roles: unknown.cloned().collect(),
        kind: match subject {
            Subject::Tools => "tool",
            Subject::Resources => "resource",
            Subject::Prompts => "prompt",
        },
        tool: name.to_owned(),
        exists: upstream.is_some(),
        read_only: None,
        decision,
        rule: ground.map(|ground| ground.rule.text().to_owned()),
        rule_of: ground.map(owner),
        text: sentence(tenant, name, upstream.is_some(), said, &[]),
        upstream,
        callable: visible,
        visible,
        scopes: Vec::new(),
        missing_scopes: Vec::new(),
    }
}

/// Explains one tool. Without `scopes` every scope counts as held. A view without
/// the tool (no upstream was asked) leaves what only the tool knows open.
pub fn explain(
    tenant: &TenantRules,
    roles: &[Role],
    scopes: Option<&BTreeSet<Scope>>,
    view: &View,
    name: &str,
) -> Explanation {
    let tool = view.get(name);
    let named = Named {
        subject: Subject::Tools,
        name,
        upstream: None,
        read_only: None,
    };
    let said = match tool {
        Some(tool) => verdict(tenant, roles, tool),
        None => decide(tenant, roles, named),
    };
    let needed = tool
        .map(|tool| tool.rule.scopes.clone())
        .unwrap_or_default();
    let missing = scopes.map_or_else(Vec::new, |held| lacking(tenant, &needed, held));
    let allowed = matches!(said, Verdict::Allowed(_));
    let visible =
        tool.is_some() && allowed && (missing.is_empty() || !tenant.hide_without_scopes());
    let (decision, ground) = match said {
        Verdict::Allowed(ground) => ("allowed", Some(ground)),
        Verdict::Denied(ground) => ("denied", Some(ground)),
        Verdict::Silent => ("not_mentioned", None),
    };
    let unknown = roles.iter().filter(|role| !tenant.has_role(role));
    Explanation {
        tenant: tenant.id().clone(),
        roles: roles.to_vec(),
        unknown_roles: unknown.cloned().collect(),
        kind: "tool",
        tool: name.to_owned(),
        exists: tool.is_some(),
        upstream: tool.map(|tool| tool.upstream.clone()),
        read_only: tool.map(|tool| tool.definition.read_only()),
        decision,
        rule: ground.map(|ground| ground.rule.text().to_owned()),
        rule_of: ground.map(owner),
        text: sentence(tenant, name, tool.is_some(), said, &missing),
        callable: visible && missing.is_empty(),
        visible,
        scopes: needed,
        missing_scopes: missing,
    }
}

fn owner(ground: Ground<'_>) -> String {
    match ground.role {
        Some(role) => format!("role {role}"),
        None => "tenant".to_owned(),
    }
}

fn sentence(
    rules: &TenantRules,
    name: &str,
    exists: bool,
    said: Verdict<'_>,
    missing: &[Scope],
) -> String {
    let tenant = rules.id();
    let whose = |ground: Ground<'_>| match ground.role {
        Some(role) => format!("the role {role} in tenant {tenant}"),
        None => format!("tenant {tenant}"),
    };
    let rule = match said {
        Verdict::Allowed(ground) => format!(
            "{name} is allowed by the rule {} of {}",
            ground.rule.text(),
            whose(ground)
        ),
        Verdict::Denied(ground) => format!(
            "{name} is denied by the rule {} of {}, and a deny wins",
            ground.rule.text(),
            whose(ground)
        ),
        Verdict::Silent => format!(
            "{name} is hidden: no rule of tenant {tenant} or of these roles allows it, and silence is no"
        ),
    };
    let scopes: Vec<&str> = missing.iter().map(Scope::as_str).collect();
    let scopes = match (scopes.is_empty(), rules.hide_without_scopes()) {
        (true, _) => String::new(),
        (false, true) => format!(
            "; it is hidden until the token has the scopes {}",
            scopes.join(" ")
        ),
        (false, false) => format!("; a call needs the scopes {} besides", scopes.join(" ")),
    };
    let there = if exists {
        ""
    } else {
        "; no upstream of the tenant offers it now"
    };
    format!("{rule}{scopes}{there}.")
}
