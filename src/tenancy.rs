//! From a verified caller to the tenant it belongs to and the rules that hold
//! there. Knows nothing of tools, limits' state or HTTP: it hands out rules, the
//! later steps apply them.

mod context;
mod rules;

pub use context::{TenancyRefusal, TenantContext, resolve};
pub use rules::{CompiledRule, Glob, RoleRuleSet, Subject, TenantRules, Tenants};

#[cfg(test)]
mod tests;
