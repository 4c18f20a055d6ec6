//! What the operator says of a tool: the entries of `tools` that match it, as one.

use std::time::Duration;

use crate::config::{ArgumentsMode, Audit, Durability, ToolRule};
use crate::ids::Scope;
use crate::limits::ToolClass;

/// The entries of `tools` that match a tool, put together part by part: each part
/// is of the last matching entry that gives it. (Whole entries in place of parts
/// would let a later entry about a timeout drop an earlier one's scopes.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveToolRule {
    /// Scopes that a call needs.
    pub scopes: Vec<Scope>,
    /// The bucket that its calls spend besides the caller's.
    pub class: Option<ToolClass>,
    /// How its calls are recorded; what is left out is the tenant's.
    pub audit: Audit,
    /// How long a call may take; the upstream's time where it is left out.
    pub timeout: Option<Duration>,
    /// Whether the operator vouches that repeating a call does no harm, or warns
    /// that it does.
    pub idempotent: Option<bool>,
}

impl EffectiveToolRule {
    /// What holds for the tool of this exposed name.
    pub fn of(name: &str, rules: &[ToolRule]) -> Self {
        let mut effective = Self::default();
        for rule in rules.iter().filter(|rule| rule.name.matches(name)) {
            if let Some(scopes) = &rule.scopes {
                effective.scopes.clone_from(scopes);
            }
            if let Some(bucket) = rule.limits {
                effective.class = Some(ToolClass {
                    rule: rule.name.as_str().into(),
                    bucket,
                });
            }
            if let Some(audit) = rule.audit {
                let before = effective.audit;
                effective.audit.durability = audit.durability.or(before.durability);
                effective.audit.arguments = audit.arguments.or(before.arguments);
            }
            effective.timeout = rule.timeout.map(|time| time.0).or(effective.timeout);
            effective.idempotent = rule.idempotent.or(effective.idempotent);
        }
        effective
    }

    /// What must be durable when, for a call in a tenant with this `audit`.
    pub fn durability(&self, tenant: &Audit) -> Durability {
        let chosen = self.audit.durability.or(tenant.durability);
        chosen.unwrap_or_default()
    }

    /// What is kept of the arguments, for a call in a tenant with this `audit`.
    pub fn arguments_mode(&self, tenant: &Audit) -> ArgumentsMode {
        let chosen = self.audit.arguments.or(tenant.arguments);
        chosen.unwrap_or_default()
    }
}
