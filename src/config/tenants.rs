//! `tenants`: what each tenant and role may see, and how it is treated.

use indexmap::IndexMap;
use serde::Deserialize;

use super::check::Check;
use super::{Audit, AuditedMethods, NameRules, RuleSet, Sanitize, TenantLimits};
use crate::ids::Role;

/// One entry of `tenants`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tenant {
    /// What everybody of the tenant may use. Silence is no.
    pub tools: RuleSet,
    /// Which resources everybody of the tenant may read. Silence is no.
    pub resources: NameRules,
    /// Which prompts everybody of the tenant may use. Silence is no.
    pub prompts: NameRules,
    /// What a role may use besides. Any deny wins over any allow.
    pub roles: IndexMap<Role, RoleRules>,
    /// How often.
    pub limits: TenantLimits,
    /// What happens to findings in what tools return.
    pub sanitize: Sanitize,
    /// How its calls are recorded.
    pub audit: Audit,
    /// Which methods are recorded besides `tools/call`.
    pub audit_methods: AuditedMethods,
    /// Whether tools are hidden for which only scopes are missing.
    pub hide_without_scopes: bool,
}

/// One entry of `tenants.*.roles`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleRules {
    /// Which tools the role may use.
    pub tools: RuleSet,
    /// Which resources the role may read.
    pub resources: NameRules,
    /// Which prompts the role may use.
    pub prompts: NameRules,
}

impl Tenant {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.within("tools", |check| self.tools.validate(check));
        check.within("resources", |check| self.resources.validate(check));
        check.within("prompts", |check| self.prompts.validate(check));
        check.within("roles", |check| {
            for (role, rules) in &self.roles {
                check.within(role.as_str(), |check| {
                    if role.as_str().chars().all(char::is_whitespace)
                        || role.as_str().contains(char::is_control)
                    {
                        check.key_fault(
                            "is no role",
                            "write it as the identity provider's tokens do",
                        );
                    }
                    check.within("tools", |check| rules.tools.validate(check));
                    check.within("resources", |check| rules.resources.validate(check));
                    check.within("prompts", |check| rules.prompts.validate(check));
                });
            }
        });
        check.within("limits", |check| self.limits.validate(check));
        check.within("sanitize", |check| self.sanitize.validate(check));
    }
}
