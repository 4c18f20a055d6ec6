//! Whether rules allow a tool, a resource or a prompt, and which rule says so.

use crate::ids::{Role, UpstreamId};
use crate::tenancy::{CompiledRule, RoleRuleSet, Subject, TenantRules};

/// What is known of something when its rules are looked up.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// What it is.
    pub subject: Subject,
    /// Its exposed name, or its exposed URI.
    pub name: &'a str,
    /// Where it comes from, if it is in the catalogue.
    pub upstream: Option<&'a UpstreamId>,
    /// Whether it says that it only reads: of a tool in the catalogue.
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

/// Decides about one thing for callers with some roles.
pub fn decide<'a>(tenant: &'a TenantRules, roles: &'a [Role], thing: Named<'_>) -> Verdict<'a> {
    let sets = || {
        let of_role = |role| {
            let set = tenant.role(role, thing.subject)?;
            Some((Some(role), set))
        };
        std::iter::once((None, tenant.everybody(thing.subject)))
            .chain(roles.iter().filter_map(of_role))
    };
    let find = |pick: fn(&RoleRuleSet) -> &[CompiledRule]| {
        sets().find_map(|(role, set)| {
            let fits =
                |rule: &&CompiledRule| rule.fits(thing.name, thing.upstream, thing.read_only);
            let rule = pick(set).iter().find(fits)?;
            Some(Ground { role, rule })
        })
    };
    if let Some(ground) = find(RoleRuleSet::deny) {
        return Verdict::Denied(ground);
    }
    find(RoleRuleSet::allow).map_or(Verdict::Silent, Verdict::Allowed)
}
