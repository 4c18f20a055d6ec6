//! Every rule on claims, as tables.

use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;
const RESOURCE: &str = "https://gw.example.com/t/acme/mcp";

fn provider(change: impl FnOnce(&mut IdentityProvider)) -> ProviderRules {
    let mut config = IdentityProvider {
        issuer: "https://idp.example.com".to_owned(),
        tenants: vec!["acme".into()],
        audiences: vec!["api://toolgate".to_owned()],
        algorithms: Vec::new(),
        jwks_file: None,
        jwks_url: None,
        login: None,
        id_jag: false,
        claims: config::Claims::default(),
    };
    change(&mut config);
    ProviderRules::new(&"corporate".into(), &config)
}

fn good() -> Value {
    json!({
        "iss": "https://idp.example.com", "sub": "alice", "aud": RESOURCE,
        "exp": NOW + 300, "iat": NOW, "tenant": "acme", "client_id": "codex",
        "roles": ["support"], "scope": "mcp crm.read", "jti": "t1", "grant_id": "g1",
    })
}

/// The good claims with some replaced; `null` removes one.
fn with(changes: &Value) -> Claims {
    let Value::Object(mut claims) = good() else {
        unreachable!()
    };
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.remove(name);
        } else {
            claims.insert(name.clone(), value.clone());
        }
    }
    claims
}

fn judge(rules: &ProviderRules, changes: &Value) -> Result<Principal, IdentityFault> {
    rules.principal(Some("at+jwt"), &with(changes), RESOURCE, NOW)
}

fn fault(changes: &Value) -> IdentityFault {
    judge(&provider(|_| ()), changes).unwrap_err()
}

#[test]
fn a_principal_has_what_its_token_says() {
    let principal = judge(&provider(|_| ()), &json!({})).unwrap();
    assert_eq!(principal.provider().as_str(), "corporate");
    assert_eq!(principal.issuer().as_str(), "https://idp.example.com");
    assert_eq!(principal.subject().as_str(), "alice");
    assert_eq!(principal.client().as_str(), "codex");
    assert_eq!(principal.tenant().as_str(), "acme");
    assert_eq!(principal.roles(), [Role::from("support")]);
    assert!(principal.has_scope("crm.read") && !principal.has_scope("crm"));
    assert_eq!(principal.grant(), Some("g1"));
    assert_eq!(principal.token_id(), Some("t1"));
    assert_eq!(principal.expires_at(), NOW + 300);
}

#[test]
fn the_audience_is_the_endpoint_or_a_configured_one_exactly() {
    for aud in [
        json!(RESOURCE),
        json!(["https://x.example", RESOURCE]),
        json!("api://toolgate"),
        json!([7, "api://toolgate"]),
    ] {
        assert!(
            judge(&provider(|_| ()), &json!({ "aud": aud })).is_ok(),
            "{aud}"
        );
    }
    for aud in [
        json!("https://gw.example.com/t/globex/mcp"),
        json!("https://gw.example.com"),
        json!("https://gw.example.com/t/acme/mcp/"),
        json!("HTTPS://gw.example.com/t/acme/mcp"),
        json!("codex"),
        json!(""),
        json!([]),
        json!({ RESOURCE: 1 }),
        json!(null),
    ] {
        assert_eq!(
            fault(&json!({ "aud": aud })),
            IdentityFault::WrongAudience,
            "{aud}"
        );
    }
    let base = provider(|config| config.audiences.push("https://gw.example.com".to_owned()));
    assert!(judge(&base, &json!({ "aud": "https://gw.example.com" })).is_ok());
}

#[test]
fn only_an_access_token_is_one() {
    let rules = provider(|_| ());
    let typed = |typ: Option<&str>| rules.principal(typ, &with(&json!({})), RESOURCE, NOW);
    for typ in ["at+jwt", "application/at+jwt", "AT+JWT", "JWT", "jwt"] {
        assert!(typed(Some(typ)).is_ok(), "{typ}");
    }
    assert!(typed(None).is_ok());
    for typ in [
        "",
        "oauth-id-jag+jwt",
        "dpop+jwt",
        "logout+jwt",
        "secevent+jwt",
        "id_token",
        "text/at+jwt",
        "application/application/jwt",
    ] {
        assert_eq!(
            typed(Some(typ)).unwrap_err(),
            IdentityFault::WrongType,
            "{typ}"
        );
    }
    for name in ["nonce", "at_hash", "c_hash"] {
        assert_eq!(
            fault(&json!({ name: "x" })),
            IdentityFault::IdToken,
            "{name}"
        );
    }
}

#[test]
fn times_have_a_leeway_of_thirty_seconds() {
    let rules = provider(|_| ());
    for good in [
        json!({ "exp": NOW + 1 }),
        json!({ "exp": NOW - 29 }),
        json!({ "exp": 1_800_000_300.7 }),
        json!({ "exp": 1e300 }),
        json!({ "iat": null }),
        json!({ "iat": NOW + 30, "nbf": NOW + 30 }),
    ] {
        assert!(judge(&rules, &good).is_ok(), "{good}");
    }
    for (changes, expected) in [
        (
            json!({ "exp": null }),
            IdentityFault::BadClaim { claim: "exp" },
        ),
        (
            json!({ "exp": "1800000300" }),
            IdentityFault::BadClaim { claim: "exp" },
        ),
        (
            json!({ "exp": [NOW + 300] }),
            IdentityFault::BadClaim { claim: "exp" },
        ),
        (json!({ "exp": NOW - 30 }), IdentityFault::Expired),
        (json!({ "exp": 0 }), IdentityFault::Expired),
        (json!({ "exp": -1e300 }), IdentityFault::Expired),
        (json!({ "nbf": NOW + 31 }), IdentityFault::NotYetValid),
        (json!({ "iat": NOW + 31 }), IdentityFault::NotYetValid),
        (
            json!({ "nbf": "soon" }),
            IdentityFault::BadClaim { claim: "nbf" },
        ),
    ] {
        assert_eq!(fault(&changes), expected, "{changes}");
    }
}

#[test]
fn the_tenant_is_one_that_the_provider_is_trusted_for() {
    let tenant = |rules: &ProviderRules, value: Value| {
        judge(rules, &json!({ "tenant": value })).map(|p| p.tenant().as_str().to_owned())
    };
    let only_acme = provider(|_| ());
    let both = provider(|config| config.tenants.push("globex".into()));
    let unlisted = provider(|config| config.tenants.clear());
    let acme = || Ok("acme".to_owned());
    let not_trusted = |tenant: &str| {
        Err(IdentityFault::TenantNotTrusted {
            provider: "corporate".into(),
            subject: "alice".into(),
            tenant: tenant.into(),
        })
    };
    for rules in [&only_acme, &both, &unlisted] {
        assert_eq!(tenant(rules, json!("acme")), acme());
        assert_eq!(tenant(rules, json!(["acme"])), acme());
        assert_eq!(
            tenant(rules, json!(["acme", "globex"])),
            Err(IdentityFault::SeveralTenants)
        );
        for bad in [
            json!(7),
            json!({}),
            json!([["acme"]]),
            json!(""),
            json!("a\u{0}b"),
        ] {
            let claim = "of the tenant";
            assert_eq!(tenant(rules, bad), Err(IdentityFault::BadClaim { claim }));
        }
    }
    // Only where there is no choice may the token be silent.
    for silent in [json!(null), json!([])] {
        assert_eq!(tenant(&only_acme, silent.clone()), acme());
        assert_eq!(tenant(&both, silent.clone()), Err(IdentityFault::NoTenant));
        assert_eq!(tenant(&unlisted, silent), Err(IdentityFault::NoTenant));
    }
    assert_eq!(tenant(&only_acme, json!("globex")), not_trusted("globex"));
    assert_eq!(tenant(&both, json!("globex")), Ok("globex".to_owned()));
    assert_eq!(tenant(&both, json!("Acme")), not_trusted("Acme"));
    assert_eq!(
        tenant(&unlisted, json!("initech")),
        Ok("initech".to_owned())
    );
}

#[test]
fn claims_are_found_at_dotted_paths_and_under_names_with_dots() {
    let value = json!({
        "a": { "b": { "c": 1 }, "b.c": 2 },
        "https://idp.example.com/claims": { "tenant": 3 },
        "https://idp.example.com/tenant": 4,
        "x": 5, "x.y": 6,
    });
    let claims = value.as_object().unwrap();
    for (path, found) in [
        // The longer name first, at each level.
        ("a.b.c", Some(2)),
        ("https://idp.example.com/claims.tenant", Some(3)),
        ("https://idp.example.com/tenant", Some(4)),
        ("x.y", Some(6)),
        ("x.z", None),
        ("a.b.c.d", None),
        ("", None),
        ("a.", None),
    ] {
        let got = claim_at(claims, path).and_then(Value::as_i64);
        assert_eq!(got, found, "{path}");
    }
}

#[test]
fn roles_and_scopes_come_as_lists_or_words() {
    let configured = provider(|config| config.claims.roles = "realm.groups".to_owned());
    let roles = |value: Value| {
        let principal = judge(&configured, &json!({ "realm": { "groups": value } })).unwrap();
        let all = principal.roles().iter();
        all.map(|role| role.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(roles(json!("admin")), ["admin"]);
    assert_eq!(roles(json!(" admin  support ")), ["admin", "support"]);
    assert_eq!(
        roles(json!(["Domain Admins", 7, "", "x"])),
        ["Domain Admins", "x"]
    );
    assert_eq!(roles(json!({ "admin": true })), Vec::<String>::new());
    assert_eq!(roles(json!(null)), Vec::<String>::new());

    let scopes = |changes: Value| {
        let principal = judge(&configured, &changes).unwrap();
        let all = principal.scopes().iter();
        all.map(|scope| scope.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(scopes(json!({ "scope": "b a b" })), ["a", "b"]);
    assert_eq!(
        scopes(json!({ "scope": null, "scp": ["b", "a"] })),
        ["a", "b"]
    );
    assert_eq!(scopes(json!({ "scope": null, "scp": "b a" })), ["a", "b"]);
    assert_eq!(scopes(json!({ "scope": "a", "scp": "b" })), ["a"]);
    assert_eq!(scopes(json!({ "scope": null })), Vec::<String>::new());
}

#[test]
fn the_client_is_taken_from_the_first_claim_that_names_it() {
    let rules = provider(|config| config.claims.client = "app.id".to_owned());
    let client = |changes: Value| judge(&rules, &changes).unwrap().client().clone();
    let all = json!({ "app": { "id": "a" }, "azp": "b", "client_id": "c" });
    assert_eq!(client(all).as_str(), "a");
    assert_eq!(
        client(json!({ "azp": "b", "client_id": "c" })).as_str(),
        "b"
    );
    assert_eq!(client(json!({ "client_id": "c" })).as_str(), "c");
    assert_eq!(client(json!({ "client_id": null })).as_str(), "unknown");
}

#[test]
fn identifiers_that_records_could_not_hold_are_refused() {
    for bad in [
        json!(7),
        json!(""),
        json!("a\nb"),
        json!("a\u{0}"),
        json!("x".repeat(513)),
    ] {
        for (name, claim) in [
            ("sub", "sub"),
            ("jti", "jti"),
            ("grant_id", "grant_id"),
            ("client_id", "of the client"),
        ] {
            assert_eq!(
                fault(&json!({ name: bad })),
                IdentityFault::BadClaim { claim }
            );
        }
    }
    assert_eq!(
        fault(&json!({ "sub": null })),
        IdentityFault::BadClaim { claim: "sub" }
    );
    let plain = judge(&provider(|_| ()), &json!({ "jti": null, "grant_id": null })).unwrap();
    assert_eq!((plain.token_id(), plain.grant()), (None, None));
}

#[test]
fn no_refusal_repeats_the_token_or_breaks_a_quoted_string() {
    let faults = [
        IdentityFault::Malformed,
        IdentityFault::Critical,
        IdentityFault::AlgorithmRefused,
        IdentityFault::UnknownIssuer,
        IdentityFault::UnknownKey,
        IdentityFault::BadSignature,
        IdentityFault::Expired,
        IdentityFault::NotYetValid,
        IdentityFault::WrongAudience,
        IdentityFault::IdToken,
        IdentityFault::WrongType,
        IdentityFault::BadClaim { claim: "exp" },
        IdentityFault::NoTenant,
        IdentityFault::SeveralTenants,
        IdentityFault::TenantNotTrusted {
            provider: "corporate".into(),
            subject: "mallory\"\r\n".into(),
            tenant: "globex\"".into(),
        },
        IdentityFault::KeysUnavailable {
            provider: "corporate".into(),
        },
    ];
    for fault in faults {
        let text = fault.to_string();
        // RFC 6750 §3: %x20-21 / %x23-5B / %x5D-7E
        let allowed = |c: char| matches!(c, ' '..='~') && c != '"' && c != '\\';
        assert!(text.chars().all(allowed), "{text}");
        assert!(!text.contains("mallory") && !text.contains("globex"));
    }
}
