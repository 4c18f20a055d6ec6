//! The proof that a caller may see something, and its only makers.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::decision::{Named, Verdict, decide};
use crate::catalog::{self, Catalog, Family, Item, Listed, Place, SelectionKey, Shelf, Tool, View};
use crate::ids::{Role, Scope, UpstreamId};
use crate::tenancy::{RoleRuleSet, Subject, TenantContext, TenantRules};

/// Something that the caller may see.
pub struct Visible<T>(Arc<T>);

impl<T> Deref for Visible<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for Visible<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Visible<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Visible({:?})", self.0)
    }
}

/// Why a caller does not see something. Outsiders must not tell these apart: code,
/// text, headers and charges are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not found")]
pub enum Invisible {
    /// There is none of that name.
    Missing,
    /// A rule denies it.
    Denied,
    /// No rule allows it.
    NotAllowed,
    /// Only scopes are missing, and the tenant hides such tools.
    WithoutScopes,
}

impl Invisible {
    /// The word for the record, which outsiders do not see.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Denied => "denied",
            Self::NotAllowed => "not_allowed",
            Self::WithoutScopes => "without_scopes",
        }
    }
}

/// The tool of that name, if the caller may see it.
pub fn see(caller: &TenantContext, view: &View, name: &str) -> Result<Visible<Tool>, Invisible> {
    let tool = view.get(name).ok_or(Invisible::Missing)?;
    match verdict(caller.rules(), caller.principal().roles(), tool) {
        Verdict::Allowed(_) => {}
        Verdict::Denied(_) => return Err(Invisible::Denied),
        Verdict::Silent => return Err(Invisible::NotAllowed),
    }
    if hidden_by_scopes(caller, tool) {
        return Err(Invisible::WithoutScopes);
    }
    Ok(Visible(Arc::clone(tool)))
}

/// All tools that the caller may see, in the view's order.
pub fn list(caller: &TenantContext, view: &View) -> Vec<Visible<Tool>> {
    let tools = allowed(caller, view);
    let shown = tools.iter().filter(|tool| !hidden_by_scopes(caller, tool));
    shown.map(|tool| Visible(Arc::clone(tool))).collect()
}

/// The prompt of that name, if the caller may see it.
pub fn see_prompt(
    caller: &TenantContext,
    view: &View,
    name: &str,
) -> Result<Visible<Item>, Invisible> {
    see_item(caller, view, Family::Prompts, name)
}

/// The template, written as it is listed, if the caller may see it. A resource's own
/// URI stands for itself (MCP 2026-07-28 schema, `ResourceTemplateReference`).
pub fn see_template(
    caller: &TenantContext,
    view: &View,
    template: &str,
) -> Result<Visible<Item>, Invisible> {
    see_item(caller, view, Family::Templates, template)
        .or_else(|_| see_item(caller, view, Family::Resources, template))
}

fn see_item(
    caller: &TenantContext,
    view: &View,
    family: Family,
    key: &str,
) -> Result<Visible<Item>, Invisible> {
    let item = view.shelf(family).get(key).ok_or(Invisible::Missing)?;
    let roles = caller.principal().roles();
    permitted(
        caller.rules(),
        roles,
        subject(family),
        &item.exposed,
        &item.upstream,
    )?;
    Ok(Visible(Arc::clone(item)))
}

/// Where that URI is read, if the caller may read it.
pub fn see_resource(
    caller: &TenantContext,
    catalog: &Catalog,
    view: &View,
    uri: &str,
) -> Result<Visible<Place>, Invisible> {
    let principal = caller.principal();
    let key = principal.key();
    let place = catalog.place(view, caller.tenant_id(), key.as_bytes(), uri);
    let place = place.ok_or(Invisible::Missing)?;
    let roles = principal.roles();
    permitted(
        caller.rules(),
        roles,
        Subject::Resources,
        uri,
        &place.upstream,
    )?;
    Ok(Visible(Arc::new(place)))
}

/// What the caller may see of a family, in the view's order.
pub fn list_items(caller: &TenantContext, view: &View, family: Family) -> Vec<Visible<Item>> {
    let items = allowed_items(caller, view, family);
    items.iter().map(|item| Visible(Arc::clone(item))).collect()
}

/// Whether any rule allows the caller anything of this kind.
pub fn may_see_any(caller: &TenantContext, subject: Subject) -> bool {
    let tenant = caller.rules();
    let allows = |rules: &RoleRuleSet| !rules.allow().is_empty();
    let roles = caller.principal().roles().iter();
    let mut roles = roles.filter_map(|role| tenant.role(role, subject));
    allows(tenant.everybody(subject)) || roles.any(allows)
}

/// Digests of what a caller sees. Where one is the same before and after a change,
/// the caller has nothing to be told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprints {
    /// Of the tools.
    pub tools: [u8; 32],
    /// Of the resources and templates.
    pub resources: [[u8; 32]; 2],
    /// Of the prompts.
    pub prompts: [u8; 32],
}

/// The tools that somebody with these roles could use if they had every scope: what
/// a person is shown before there is a token. No proof of anything.
pub fn reachable(tenant: &TenantRules, roles: &[Role], view: &View) -> Vec<Arc<Tool>> {
    let may = |tool: &&Arc<Tool>| matches!(verdict(tenant, roles, tool), Verdict::Allowed(_));
    view.tools().iter().filter(may).cloned().collect()
}

/// What the caller sees, in digests.
pub fn fingerprints(caller: &TenantContext, view: &View) -> Fingerprints {
    let shown: Vec<Arc<Tool>> = list(caller, view).into_iter().map(|tool| tool.0).collect();
    let items = |family| catalog::fingerprint(&allowed_items(caller, view, family));
    Fingerprints {
        tools: catalog::fingerprint(&shown),
        resources: [items(Family::Resources), items(Family::Templates)],
        prompts: items(Family::Prompts),
    }
}

fn subject(family: Family) -> Subject {
    match family {
        Family::Resources | Family::Templates => Subject::Resources,
        Family::Prompts => Subject::Prompts,
    }
}

fn permitted(
    tenant: &TenantRules,
    roles: &[Role],
    subject: Subject,
    name: &str,
    upstream: &UpstreamId,
) -> Result<(), Invisible> {
    let named = Named {
        subject,
        name,
        upstream: Some(upstream),
        read_only: None,
    };
    match decide(tenant, roles, named) {
        Verdict::Allowed(_) => Ok(()),
        Verdict::Denied(_) => Err(Invisible::Denied),
        Verdict::Silent => Err(Invisible::NotAllowed),
    }
}

/// The scopes that a call of the tool needs and the caller's token lacks.
pub fn missing_scopes(caller: &TenantContext, tool: &Visible<Tool>) -> Vec<Scope> {
    lacking(
        caller.rules(),
        &tool.rule.scopes,
        caller.principal().scopes(),
    )
}

pub(super) fn lacking(
    tenant: &TenantRules,
    needed: &[Scope],
    held: &BTreeSet<Scope>,
) -> Vec<Scope> {
    needed
        .iter()
        .filter(|scope| !tenant.has_scope(held, scope))
        .cloned()
        .collect()
}

pub(super) fn verdict<'a>(tenant: &'a TenantRules, roles: &'a [Role], tool: &Tool) -> Verdict<'a> {
    let named = Named {
        subject: Subject::Tools,
        name: tool.exposed.as_str(),
        upstream: Some(&tool.upstream),
        read_only: Some(tool.definition.read_only()),
    };
    decide(tenant, roles, named)
}

fn hidden_by_scopes(caller: &TenantContext, tool: &Tool) -> bool {
    let held = caller.principal().scopes();
    caller.rules().hide_without_scopes()
        && tool.rule.scopes.iter().any(|scope| !held.contains(scope))
}

/// What the rules allow the caller, scopes aside. It depends on the rules and on
/// those of the roles that they know, so it is made once for all such callers.
fn allowed(caller: &TenantContext, view: &View) -> Arc<[Arc<Tool>]> {
    let tenant = caller.rules();
    let key = selection_key(caller);
    let roles = key.roles.clone();
    view.selection(key, |tool| {
        matches!(verdict(tenant, &roles, tool), Verdict::Allowed(_))
    })
}

fn allowed_items(caller: &TenantContext, view: &View, family: Family) -> Arc<[Arc<Item>]> {
    let tenant = caller.rules();
    let key = selection_key(caller);
    let roles = key.roles.clone();
    let shelf: &Shelf<Item> = view.shelf(family);
    shelf.selection(key, |item| {
        permitted(tenant, &roles, subject(family), item.key(), &item.upstream).is_ok()
    })
}

fn selection_key(caller: &TenantContext) -> SelectionKey {
    let tenant = caller.rules();
    let claimed = caller.principal().roles().iter();
    let known: BTreeSet<Role> = claimed
        .filter(|role| tenant.has_role(role))
        .cloned()
        .collect();
    SelectionKey {
        rules: tenant.stamp(),
        roles: known.into_iter().collect(),
    }
}
