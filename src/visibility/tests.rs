//! The decision as a table, and that list and call agree.

use std::sync::Arc;

use super::*;
use crate::catalog::sample::{judged, tool, view};
use crate::catalog::{Tool, View};
use crate::config::{Config, Pattern, RoleRules, Rule, RuleSet, Tenant, ToolRule};
use crate::identity::Principal;
use crate::ids::{Role, Scope};
use crate::tenancy::{TenantContext, Tenants, resolve};

const OBJECT: &str = r#"{"type":"object"}"#;

fn rules(text: &str) -> RuleSet {
    serde_json::from_str(text).unwrap()
}

fn config(tenant: &str, support: &str, hide: bool) -> Config {
    let mut acme = Tenant {
        tools: rules(tenant),
        hide_without_scopes: hide,
        ..Tenant::default()
    };
    let role = RoleRules {
        tools: rules(support),
        ..RoleRules::default()
    };
    acme.roles.insert("support".into(), role);
    let mut config = Config::default();
    config.tenants.insert("acme".into(), acme);
    config
}

fn caller(config: &Config, roles: &[&str], scopes: &[&str]) -> TenantContext {
    let principal = Arc::new(Principal::sample("acme", "alice", roles, scopes));
    resolve(principal, None, &Tenants::new(config)).unwrap()
}

fn tools() -> View {
    let reading = r#"{"name":"crm_read","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}"#;
    let scoped = [ToolRule {
        name: Pattern::new("crm_delete_*"),
        scopes: Some(vec!["crm.admin".into(), "crm".into()]),
        limits: None,
        audit: None,
        timeout: None,
        idempotent: None,
    }];
    let deleting = format!(r#"{{"name":"crm_delete_all","inputSchema":{OBJECT}}}"#);
    view(vec![
        tool("search", "search", OBJECT),
        tool("crm", "crm_find", OBJECT),
        judged("crm", "", reading, &[]).unwrap(),
        judged("crm", "", &deleting, &scoped).unwrap(),
        tool("orders", "orders_find", OBJECT),
    ])
}

fn seen(caller: &TenantContext, view: &View) -> String {
    let listed: Vec<String> = list(caller, view)
        .iter()
        .map(|tool| tool.exposed.to_string())
        .collect();
    // Whatever the list has can be seen alone, and nothing else can.
    for tool in view.tools() {
        let name = tool.exposed.as_str();
        let alone = see(caller, view, name);
        assert_eq!(
            alone.is_ok(),
            listed.iter().any(|listed| listed == name),
            "{name}"
        );
    }
    listed.join(" ")
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn tenant_and_roles_together_decide_and_any_deny_wins() {
    let everything = "crm_delete_all crm_find crm_read orders_find search";
    for (tenant, support, without_role, with_role) in [
        ("{}", "{}", "", ""),
        (r#"{"allow":["*"]}"#, "{}", everything, everything),
        (
            r#"{"allow":["crm_*","search"]}"#,
            r#"{"allow":["orders_*"]}"#,
            "crm_delete_all crm_find crm_read search",
            everything,
        ),
        (
            r#"{"allow":["*"],"deny":["crm_delete_*"]}"#,
            r#"{"allow":["crm_delete_*"]}"#,
            "crm_find crm_read orders_find search",
            "crm_find crm_read orders_find search",
        ),
        (
            r#"{"allow":["*"]}"#,
            r#"{"deny":["crm_*"]}"#,
            everything,
            "orders_find search",
        ),
        (
            r#"{"deny":["search"]}"#,
            r#"{"allow":["*"]}"#,
            "",
            "crm_delete_all crm_find crm_read orders_find",
        ),
        (
            r#"{"allow":[{"upstream":"crm"}]}"#,
            "{}",
            "crm_delete_all crm_find crm_read",
            "crm_delete_all crm_find crm_read",
        ),
        (
            r#"{"allow":[{"read_only":true}]}"#,
            "{}",
            "crm_read",
            "crm_read",
        ),
        (
            r#"{"allow":["*"],"deny":[{"read_only":false}]}"#,
            "{}",
            "crm_read",
            "crm_read",
        ),
        (
            r#"{"allow":[{"match":"*_find","upstream":"crm"}]}"#,
            "{}",
            "crm_find",
            "crm_find",
        ),
        (r#"{"allow":["CRM_*","crm"]}"#, "{}", "", ""),
    ] {
        let config = config(tenant, support, false);
        let view = tools();
        assert_eq!(
            seen(&caller(&config, &[], &[]), &view),
            without_role,
            "{tenant} {support}"
        );
        assert_eq!(
            seen(&caller(&config, &["support"], &[]), &view),
            with_role,
            "{tenant} {support}"
        );
        let stranger = caller(&config, &["Support", "admin", "support "], &[]);
        assert_eq!(seen(&stranger, &view), without_role, "roles are exact");
    }
}

#[test]
fn a_hidden_tool_answers_like_a_missing_one() {
    let view = tools();
    let config = config(r#"{"allow":["search"],"deny":["crm_*"]}"#, "{}", false);
    let caller = caller(&config, &[], &[]);
    let refusals: Vec<Invisible> = ["crm_find", "orders_find", "nothing", "", "*"]
        .iter()
        .map(|name| see(&caller, &view, name).unwrap_err())
        .collect();
    let right = [
        Invisible::Denied,
        Invisible::NotAllowed,
        Invisible::Missing,
        Invisible::Missing,
        Invisible::Missing,
    ];
    assert_eq!(refusals, right);
    let texts: std::collections::HashSet<String> =
        refusals.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 1);
}

#[test]
fn a_tool_for_which_only_scopes_are_missing_is_seen_unless_the_tenant_hides_it() {
    let view = tools();
    for (hide, scopes, sees, missing) in [
        (false, &[][..], true, &["crm.admin", "crm"][..]),
        (false, &["crm"], true, &["crm.admin"]),
        (false, &["crm", "crm.admin", "mcp"], true, &[]),
        (true, &["crm"], false, &[]),
        (true, &["crm", "crm.admin"], true, &[]),
    ] {
        let config = config(r#"{"allow":["crm_*"]}"#, "{}", hide);
        let caller = caller(&config, &[], scopes);
        let found = see(&caller, &view, "crm_delete_all");
        assert_eq!(found.is_ok(), sees, "{hide} {scopes:?}");
        assert_eq!(seen(&caller, &view).contains("crm_delete_all"), sees);
        match found {
            Ok(tool) => {
                let right: Vec<Scope> = missing.iter().map(|scope| Scope::from(*scope)).collect();
                assert_eq!(missing_scopes(&caller, &tool), right);
            }
            Err(why) => assert_eq!(why, Invisible::WithoutScopes),
        }
    }
}

#[test]
fn what_is_remembered_for_one_caller_is_not_shown_to_another() {
    let view = tools();
    let acme = config("{}", r#"{"allow":["*"]}"#, true);
    let supporter = caller(&acme, &["support"], &["crm", "crm.admin"]);
    assert_eq!(
        seen(&supporter, &view),
        "crm_delete_all crm_find crm_read orders_find search"
    );
    assert_eq!(seen(&caller(&acme, &[], &["crm", "crm.admin"]), &view), "");
    assert_eq!(
        seen(&caller(&acme, &["support"], &[]), &view),
        "crm_find crm_read orders_find search",
        "scopes are looked at each time"
    );
    // The same tenant after a reload with other rules, over the same view.
    let stricter = config("{}", r#"{"allow":["search"]}"#, true);
    assert_eq!(seen(&caller(&stricter, &["support"], &[]), &view), "search");
}

#[test]
fn callers_are_told_apart_by_what_they_see() {
    let before = tools();
    let fewer = before
        .tools()
        .iter()
        .filter(|tool| tool.exposed.as_str() != "search");
    let after = view(fewer.map(|tool| Tool::clone(tool)).collect());
    let config = config(r#"{"allow":["crm_*"]}"#, r#"{"allow":["search"]}"#, false);
    let concerned = caller(&config, &["support"], &[]);
    let other = caller(&config, &[], &[]);
    assert_ne!(
        fingerprints(&concerned, &before),
        fingerprints(&concerned, &after)
    );
    assert_eq!(fingerprints(&other, &before), fingerprints(&other, &after));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn an_explanation_names_the_rule_that_decided() {
    let config = config(
        r#"{"allow":["crm_*"],"deny":["crm_delete_*"]}"#,
        r#"{"allow":[{"upstream":"orders"}]}"#,
        false,
    );
    let rules = Tenants::new(&config).get(&"acme".into()).unwrap();
    let view = tools();
    let support = [Role::from("support")];
    for (roles, tool, decision, rule, rule_of, visible, text) in [
        (
            &support[..],
            "crm_delete_all",
            "denied",
            Some("crm_delete_*"),
            Some("tenant"),
            false,
            "crm_delete_all is denied by the rule crm_delete_* of tenant acme, and a deny wins.",
        ),
        (
            &support,
            "crm_find",
            "allowed",
            Some("crm_*"),
            Some("tenant"),
            true,
            "crm_find is allowed by the rule crm_* of tenant acme.",
        ),
        (
            &support,
            "orders_find",
            "allowed",
            Some("{ upstream: orders }"),
            Some("role support"),
            true,
            "orders_find is allowed by the rule { upstream: orders } of the role support in tenant acme.",
        ),
        (
            &[],
            "orders_find",
            "not_mentioned",
            None,
            None,
            false,
            "orders_find is hidden: no rule of tenant acme or of these roles allows it, and silence is no.",
        ),
        (
            &support,
            "crm_new",
            "allowed",
            Some("crm_*"),
            Some("tenant"),
            false,
            "crm_new is allowed by the rule crm_* of tenant acme; no upstream of the tenant offers it now.",
        ),
    ] {
        let explained = explain(&rules, roles, None, &view, tool);
        assert_eq!(explained.text, text);
        assert_eq!(explained.decision, decision);
        assert_eq!(explained.rule.as_deref(), rule);
        assert_eq!(explained.rule_of.as_deref(), rule_of);
        assert_eq!(explained.visible, visible);
        serde_json::to_string(&explained).unwrap();
    }
    let unknown = explain(&rules, &[Role::from("nobody")], None, &view, "crm_find");
    assert_eq!(unknown.unknown_roles, ["nobody".into()]);
}

#[test]
fn an_explanation_tells_of_missing_scopes() {
    let view = tools();
    let held = std::collections::BTreeSet::from([Scope::from("crm")]);
    for (hide, visible, words) in [
        (false, true, "a call needs the scopes crm.admin besides"),
        (
            true,
            false,
            "hidden until the token has the scopes crm.admin",
        ),
    ] {
        let config = config(r#"{"allow":["*"]}"#, "{}", hide);
        let rules = Tenants::new(&config).get(&"acme".into()).unwrap();
        let explained = explain(&rules, &[], Some(&held), &view, "crm_delete_all");
        assert!(explained.text.contains(words), "{}", explained.text);
        assert_eq!((explained.visible, explained.callable), (visible, false));
        let open = explain(&rules, &[], None, &view, "crm_delete_all");
        assert!(open.visible && open.callable && open.scopes.len() == 2);
    }
}

#[test]
fn an_empty_rule_denies_nothing_and_allows_nothing() {
    let empty = Rule::default();
    let mut config = config("{}", "{}", false);
    config.tenants["acme"].tools.allow.push(empty);
    // A rule without parts cannot be configured; built by hand it fits everything.
    assert!(!seen(&caller(&config, &[], &[]), &tools()).is_empty());
}
