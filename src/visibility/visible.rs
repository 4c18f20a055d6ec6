//! The proof that a caller may see something, and its only makers.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::decision::{Named, Verdict, decide};
use crate::catalog::{self, SelectionKey, Tool, View};
use crate::ids::{Role, Scope};
use crate::tenancy::{TenantContext, TenantRules};

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

/// Why a caller does not see a tool. Outsiders must not tell these apart: code,
/// text, headers and charges are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unknown tool")]
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

/// The tools that somebody with these roles could use if they had every scope: what
/// a person is shown before there is a token. No proof of anything.
pub fn reachable(tenant: &TenantRules, roles: &[Role], view: &View) -> Vec<Arc<Tool>> {
    let may = |tool: &&Arc<Tool>| matches!(verdict(tenant, roles, tool), Verdict::Allowed(_));
    view.tools().iter().filter(may).cloned().collect()
}

/// A digest of what the caller sees. Where it is the same before and after a
/// change, the caller has nothing to be told.
pub fn fingerprint(caller: &TenantContext, view: &View) -> [u8; 32] {
    let shown: Vec<Arc<Tool>> = list(caller, view).into_iter().map(|tool| tool.0).collect();
    catalog::fingerprint(&shown)
}

/// The scopes that a call of the tool needs and the caller's token lacks.
pub fn missing_scopes(caller: &TenantContext, tool: &Visible<Tool>) -> Vec<Scope> {
    lacking(&tool.rule.scopes, caller.principal().scopes())
}

pub(super) fn lacking(needed: &[Scope], held: &BTreeSet<Scope>) -> Vec<Scope> {
    needed
        .iter()
        .filter(|scope| !held.contains(*scope))
        .cloned()
        .collect()
}

pub(super) fn verdict<'a>(tenant: &'a TenantRules, roles: &'a [Role], tool: &Tool) -> Verdict<'a> {
    let named = Named {
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
    let claimed = caller.principal().roles().iter();
    let known: BTreeSet<Role> = claimed
        .filter(|role| tenant.role(role).is_some())
        .cloned()
        .collect();
    let roles: Vec<Role> = known.into_iter().collect();
    let key = SelectionKey {
        rules: tenant.stamp(),
        roles: roles.clone(),
    };
    view.selection(key, |tool| {
        matches!(verdict(tenant, &roles, tool), Verdict::Allowed(_))
    })
}
