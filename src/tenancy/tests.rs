//! Which caller has a place, and how rules read.

use std::sync::Arc;

use super::*;
use crate::config::{Config, Pattern, Rule, Tenant};
use crate::identity::Principal;
use crate::ids::TenantId;

fn tenants() -> Tenants {
    let mut config = Config::default();
    config.tenants.insert("acme".into(), Tenant::default());
    config.tenants.insert("globex".into(), Tenant::default());
    Tenants::new(&config)
}

#[test]
fn a_caller_is_placed_only_in_its_own_existing_tenant() {
    for (of, path, right) in [
        ("acme", None, Ok("acme")),
        ("acme", Some("acme"), Ok("acme")),
        ("acme", Some("globex"), Err(TenancyRefusal::ForeignTenant)),
        ("acme", Some("nobody"), Err(TenancyRefusal::ForeignTenant)),
        ("gone", None, Err(TenancyRefusal::UnknownTenant)),
        ("gone", Some("gone"), Err(TenancyRefusal::UnknownTenant)),
    ] {
        let principal = Arc::new(Principal::sample(of, "alice", &[], &[]));
        let path = path.map(TenantId::from);
        let got = resolve(principal, path.as_ref(), &tenants());
        let got = got.map(|context| context.tenant_id().to_string());
        assert_eq!(got, right.map(str::to_owned), "{of} at {path:?}");
    }
}

#[test]
fn an_unknown_and_a_foreign_tenant_read_alike() {
    assert_eq!(
        TenancyRefusal::UnknownTenant.to_string(),
        TenancyRefusal::ForeignTenant.to_string()
    );
    assert_ne!(
        TenancyRefusal::UnknownTenant.reason(),
        TenancyRefusal::ForeignTenant.reason()
    );
}

#[test]
fn a_glob_taken_apart_matches_like_the_pattern() {
    for glob in ["*", "crm_*", "search", "a?c", "*_delete_*", "a*b", "?", ""] {
        let pattern = Pattern::new(glob);
        for name in [
            "",
            "crm_find",
            "search",
            "search2",
            "abc",
            "x_delete_y",
            "a__b",
        ] {
            let fits = Glob::new(&pattern).matches(name);
            assert_eq!(fits, pattern.matches(name), "{glob} {name}");
        }
    }
}

#[test]
fn every_part_of_a_rule_must_hold() {
    let rule = Rule {
        name: Some(Pattern::new("crm_*")),
        upstream: Some("crm".into()),
        read_only: Some(true),
    };
    let mut config = Config::default();
    let mut tenant = Tenant::default();
    tenant.tools.allow.push(rule);
    config.tenants.insert("acme".into(), tenant);
    let rules = Tenants::new(&config).get(&"acme".into()).unwrap();
    let rule = &rules.everybody(Subject::Tools).allow()[0];
    let (crm, other) = ("crm".into(), "other".into());
    assert!(rule.fits("crm_find", Some(&crm), Some(true)));
    assert!(!rule.fits("erp_find", Some(&crm), Some(true)));
    assert!(!rule.fits("crm_find", Some(&other), Some(true)));
    assert!(!rule.fits("crm_find", Some(&crm), Some(false)));
    assert!(!rule.fits("crm_find", None, None));
    assert_eq!(
        rule.text(),
        "{ match: crm_*, upstream: crm, read_only: true }"
    );
}
