//! Whether rules allow a tool, and which rule says so.

use crate::ids::{Role, UpstreamId};
use crate::tenancy::{CompiledRule, RoleRuleSet, TenantRules};

/// What is known of a tool when its rules are looked up.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// Its exposed name.
    pub name: &'a str,
    /// Where it comes from, if it is in the catalogue.
    pub upstream: Option<&'a UpstreamId>,
    /// Whether it says that it only reads, if it is in the catalogue.
    pub read_only: Option<bool>,
}

/// The rule that decided.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The role whose rule it is; `None` for the tenant's own.
    pub role: Option<&'a Role>,
    /// The rule.
    pub rule: &'a CompiledRule,
}

/// What the rules say.
#[derive(Clone, Copy, Debug)]
pub enum Verdict<'a> {
    /// Some rule allows it and none denies it.
    Allowed(Ground<'a>),
    /// A rule denies it, whatever others say.
    Denied(Ground<'a>),
    /// No rule mentions it.
    Silent,
}

/// Decides about one tool for callers with some roles.
pub fn decide<'a>(tenant: &'a TenantRules, roles: &'a [Role], tool: Named<'_>) -> Verdict<'a> {
    let sets = || {
        let of_role = |role| tenant.role(role).map(|set| (Some(role), set));
        std::iter::once((None, tenant.everybody())).chain(roles.iter().filter_map(of_role))
    };
    let find = |pick: fn(&RoleRuleSet) -> &[CompiledRule]| {
        sets().find_map(|(role, set)| {
            let fits = |rule: &&CompiledRule| rule.fits(tool.name, tool.upstream, tool.read_only);
            let rule = pick(set).iter().find(fits)?;
            Some(Ground { role, rule })
        })
    };
    if let Some(ground) = find(RoleRuleSet::deny) {
        return Verdict::Denied(ground);
    }
    find(RoleRuleSet::allow).map_or(Verdict::Silent, Verdict::Allowed)
}
