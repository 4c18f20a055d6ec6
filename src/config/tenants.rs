//! `tenants`: what each tenant and role may see, and how it is treated.

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Audit, RuleSet, Sanitize, TenantLimits};
use crate::ids::Role;

/// One entry of `tenants`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tenant {
    /// What everybody of the tenant may use. Silence is no.
    pub tools: RuleSet,
    /// What a role may use besides. Any deny wins over any allow.
    pub roles: IndexMap<Role, RoleRules>,
    /// How often.
    pub limits: TenantLimits,
    /// What happens to findings in what tools return.
    pub sanitize: Sanitize,
    /// How its calls are recorded.
    pub audit: Audit,
    /// Whether tools are hidden for which only scopes are missing.
    pub hide_without_scopes: bool,
}

/// One entry of `tenants.*.roles`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleRules {
    /// What the role may use.
    pub tools: RuleSet,
}
