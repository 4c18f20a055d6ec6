//! A tenant's rules, made ready for use: globs taken apart, roles by name.
//! Rules say what is written; whether a tool may be used is decided in
//! `visibility` alone.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::{
    Audit, AuditedMethods, Config, NameRule, NameRules, Pattern, Rule, RuleSet, Sanitize, Tenant,
    TenantLimits,
};
use crate::ids::{Role, Scope, TenantId, UpstreamId};

/// The tenants of one configuration.
#[derive(Debug, Default)]
pub struct Tenants {
    by_id: HashMap<TenantId, Arc<TenantRules>>,
}

impl Tenants {
    /// Makes the rules of a configuration ready.
    pub fn new(config: &Config) -> Self {
        let server = &config.authorization_server;
        let broader = server.implied_scopes.keys();
        let implied: Arc<Implied> = Arc::new(
            broader
                .map(|scope| (scope.clone(), server.implied_by(scope)))
                .collect(),
        );
        let by_id = config
            .tenants
            .iter()
            .map(|(id, tenant)| (id.clone(), Arc::new(TenantRules::new(id, tenant, &implied))))
            .collect();
        Self { by_id }
    }

    /// A tenant's rules.
    pub fn get(&self, tenant: &TenantId) -> Option<Arc<TenantRules>> {
        self.by_id.get(tenant).cloned()
    }

    /// All tenants, in no order.
    pub fn ids(&self) -> impl Iterator<Item = &TenantId> {
        self.by_id.keys()
    }
}

/// The next stamp.
static STAMPS: AtomicU64 = AtomicU64::new(0);

/// What holds in one tenant.
#[derive(Debug)]
pub struct TenantRules {
    id: TenantId,
    stamp: u64,
    everybody: Rights,
    roles: HashMap<Role, Rights>,
    limits: TenantLimits,
    sanitize: Sanitize,
    audit: Audit,
    audit_methods: AuditedMethods,
    hide_without_scopes: bool,
    implied: Arc<Implied>,
}

/// Broader scopes, each with all that it stands for.
type Implied = HashMap<Scope, BTreeSet<Scope>>;

impl TenantRules {
    fn new(id: &TenantId, tenant: &Tenant, implied: &Arc<Implied>) -> Self {
        let roles = tenant
            .roles
            .iter()
            .map(|(role, rules)| {
                let rights = Rights::new(&rules.tools, &rules.resources, &rules.prompts);
                (role.clone(), rights)
            })
            .collect();
        Self {
            id: id.clone(),
            stamp: STAMPS.fetch_add(1, Ordering::Relaxed),
            everybody: Rights::new(&tenant.tools, &tenant.resources, &tenant.prompts),
            roles,
            limits: tenant.limits,
            sanitize: tenant.sanitize.clone(),
            audit: tenant.audit,
            audit_methods: tenant.audit_methods,
            hide_without_scopes: tenant.hide_without_scopes,
            implied: Arc::clone(implied),
        }
    }

    /// Whether a token with these scopes has this one: by itself, or by a broader one.
    pub fn has_scope(&self, held: &BTreeSet<Scope>, scope: &Scope) -> bool {
        held.contains(scope)
            || held.iter().any(|broader| {
                let implied = self.implied.get(broader);
                implied.is_some_and(|implied| implied.contains(scope))
            })
    }

    /// The tenant.
    pub fn id(&self) -> &TenantId {
        &self.id
    }

    /// A number that no other tenant's rules, and no other load of these, have:
    /// what was decided by them is remembered under it.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The rules for everybody in the tenant.
    pub fn everybody(&self, subject: Subject) -> &RoleRuleSet {
        self.everybody.about(subject)
    }

    /// The rules of one role, where the configuration has the role.
    pub fn role(&self, role: &Role, subject: Subject) -> Option<&RoleRuleSet> {
        self.roles.get(role).map(|rights| rights.about(subject))
    }

    /// Whether the configuration has the role.
    pub fn has_role(&self, role: &Role) -> bool {
        self.roles.contains_key(role)
    }

    /// How often.
    pub fn limits(&self) -> &TenantLimits {
        &self.limits
    }

    /// What happens to findings.
    pub fn sanitize(&self) -> &Sanitize {
        &self.sanitize
    }

    /// How calls are recorded, where a tool's rule does not say.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Which methods are recorded besides `tools/call`.
    pub fn audit_methods(&self) -> AuditedMethods {
        self.audit_methods
    }

    /// Whether tools are hidden for which only scopes are missing.
    pub fn hide_without_scopes(&self) -> bool {
        self.hide_without_scopes
    }
}

/// What rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Tools, by exposed name.
    Tools,
    /// Resources and their templates, by exposed URI.
    Resources,
    /// Prompts, by exposed name.
    Prompts,
}

/// All rules of everybody or of one role.
#[derive(Debug, Default)]
struct Rights {
    tools: RoleRuleSet,
    resources: RoleRuleSet,
    prompts: RoleRuleSet,
}

impl Rights {
    fn new(tools: &RuleSet, resources: &NameRules, prompts: &NameRules) -> Self {
        Self {
            tools: RoleRuleSet::new(tools),
            resources: RoleRuleSet::of_names(resources),
            prompts: RoleRuleSet::of_names(prompts),
        }
    }

    fn about(&self, subject: Subject) -> &RoleRuleSet {
        match subject {
            Subject::Tools => &self.tools,
            Subject::Resources => &self.resources,
            Subject::Prompts => &self.prompts,
        }
    }
}

/// The allow and deny rules of everybody or of one role, about one subject.
#[derive(Debug, Default)]
pub struct RoleRuleSet {
    allow: Vec<CompiledRule>,
    deny: Vec<CompiledRule>,
}

impl RoleRuleSet {
    fn new(rules: &RuleSet) -> Self {
        let compile = |rules: &[Rule]| rules.iter().map(CompiledRule::new).collect();
        Self {
            allow: compile(&rules.allow),
            deny: compile(&rules.deny),
        }
    }

    fn of_names(rules: &NameRules) -> Self {
        let compile = |rules: &[NameRule]| {
            let rules = rules.iter().map(Rule::from);
            rules.map(|rule| CompiledRule::new(&rule)).collect()
        };
        Self {
            allow: compile(&rules.allow),
            deny: compile(&rules.deny),
        }
    }

    /// What may be used.
    pub fn allow(&self) -> &[CompiledRule] {
        &self.allow
    }

    /// What may not.
    pub fn deny(&self) -> &[CompiledRule] {
        &self.deny
    }
}

/// One rule: every part that it gives must hold.
#[derive(Clone, Debug)]
pub struct CompiledRule {
    name: Option<Glob>,
    upstream: Option<UpstreamId>,
    read_only: Option<bool>,
    text: String,
}

impl CompiledRule {
    fn new(rule: &Rule) -> Self {
        Self {
            name: rule.name.as_ref().map(Glob::new),
            upstream: rule.upstream.clone(),
            read_only: rule.read_only,
            text: describe(rule),
        }
    }

    /// Whether a tool fits the rule. Where upstream or hint are not known, a rule
    /// that asks for them does not fit.
    pub fn fits(&self, name: &str, upstream: Option<&UpstreamId>, read_only: Option<bool>) -> bool {
        let named = self.name.as_ref().is_none_or(|glob| glob.matches(name));
        let from = self
            .upstream
            .as_ref()
            .is_none_or(|wanted| upstream == Some(wanted));
        let hinted = self
            .read_only
            .is_none_or(|wanted| read_only == Some(wanted));
        named && from && hinted
    }

    /// The rule as a person would write it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn describe(rule: &Rule) -> String {
    let name = rule.name.as_ref().map(Pattern::as_str);
    if let (Some(name), None, None) = (name, &rule.upstream, rule.read_only) {
        return name.to_owned();
    }
    let parts = [
        name.map(|name| format!("match: {name}")),
        rule.upstream.as_ref().map(|id| format!("upstream: {id}")),
        rule.read_only.map(|flag| format!("read_only: {flag}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{{ {} }}", parts.join(", "))
}

/// A glob taken apart once: most are a plain name or end in `*`, and those are
/// told without walking.
#[derive(Clone, Debug)]
pub enum Glob {
    /// `*`
    Any,
    /// No `*` and no `?`.
    Exact(String),
    /// A `*` at the end and no other sign.
    Prefix(String),
    /// Anything else.
    Walked(Pattern),
}

impl Glob {
    /// Takes a pattern apart.
    pub fn new(pattern: &Pattern) -> Self {
        let text = pattern.as_str();
        let signs = |text: &str| text.contains(['*', '?']);
        match text.strip_suffix('*') {
            Some("") => Self::Any,
            Some(prefix) if !signs(prefix) => Self::Prefix(prefix.to_owned()),
            None if !signs(text) => Self::Exact(text.to_owned()),
            _ => Self::Walked(pattern.clone()),
        }
    }

    /// Whether a name fits.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(text) => name == text,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
            Self::Walked(pattern) => pattern.matches(name),
        }
    }
}
