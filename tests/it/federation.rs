//! Sign-in through a company's identity provider: what goes there (C09), what comes
//! back and is not believed, and what becomes of people who leave.

use std::process::Command;

use super::support::browser::{Browser, Page};
use super::support::login_idp::{CLIENT, LoginIdp, SECRET};
use super::support::oauth::state;
use super::support::process::{Process, free_port};
use super::support::sign_in::{
    LOOPBACK, claims, desk, federated, federated_with, is_out, refresh, rows, setup, tokens,
};
use super::support::{Gateway, Value, json, real};

/// Approves, goes to the provider and comes back to our callback, which is not asked yet.
async fn at_callback(gateway: &Gateway, browser: &Browser) -> String {
    let page = browser.approve(&desk(gateway)).await;
    let back = browser
        .get(&page.location().expect("to the provider"))
        .await;
    let back = back.location().unwrap_or_else(|| panic!("{back:?}"));
    assert!(back.contains("/oauth/callback?"), "{back}");
    back
}

fn is_refused(gateway: &Gateway, page: &Page, what: &str) {
    assert_eq!(page.status, 400, "{what}: {page:?}");
    assert!(
        page.location().is_none() && page.sent("code").is_none(),
        "{what}"
    );
    assert_eq!(rows(gateway), "0 0 0", "{what}");
}

#[tokio::test]
async fn the_provider_gets_our_own_request_and_nothing_of_the_apps() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let ask = desk(&gateway)
        .with("resource", &gateway.audience("/t/acme/mcp"))
        .with("scope", "mcp echo.use")
        .with("login_hint", "alice@acme.test");
    // The provider refuses what it does not know, `resource` for one (C09).
    let browser = Browser::new();
    browser.approve(&ask).await;
    let out = browser
        .connect_through(&desk(&gateway).with("resource", &gateway.audience("/t/acme/mcp")))
        .await;
    assert!(out.sent("code").is_some(), "{out:?}");
    let asked = idp.asked().pop().unwrap();
    let names: Vec<&str> = asked.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "client_id",
            "code_challenge",
            "code_challenge_method",
            "nonce",
            "redirect_uri",
            "response_type",
            "scope",
            "state"
        ]
    );
    assert_eq!(asked["client_id"], CLIENT);
    assert_eq!(asked["redirect_uri"], gateway.audience("/oauth/callback"));
    assert_eq!(asked["scope"], "openid profile email");
    assert_eq!(asked["code_challenge_method"], "S256");
    let all = format!("{asked:?}");
    for foreign in [
        "state-of-the-client",
        "E9Melhoa2",
        "desk",
        "/mcp",
        "echo.use",
        "127.0.0.1:1/",
    ] {
        assert!(!all.contains(foreign), "{foreign}: {all}");
    }
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    let claims = claims(&tokens);
    assert_eq!(
        (&claims["tenant"], &claims["roles"]),
        (&json!("acme"), &json!(["support"]))
    );
    assert!(!claims.to_string().contains("alice-at-idp"), "{claims}");
    let log = gateway.logs().lines().join("\n");
    for secret in ["code-", SECRET, "token-of-the-idp", "alice@acme.test"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn two_providers_people_are_never_one() {
    let (one, other) = (LoginIdp::serve().await, LoginIdp::serve().await);
    let mut subjects = Vec::new();
    for idp in [&one, &other] {
        let gateway = federated(idp).await;
        let out = Browser::new().connect_through(&desk(&gateway)).await;
        let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
        subjects.push(claims(&tokens)["sub"].clone());
    }
    assert_ne!(subjects[0], subjects[1]);
}

#[tokio::test]
async fn the_way_to_the_provider_leads_back_only_in_the_browser_that_was_asked() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    // C10: the attacker approves and hands the provider's address to the victim.
    let (attacker, victim) = (Browser::new(), Browser::new());
    let to_idp = attacker.approve(&desk(&gateway)).await.location().unwrap();
    victim.open(&desk(&gateway)).await;
    let back = victim.get(&to_idp).await.location().unwrap();
    is_refused(&gateway, &victim.get(&back).await, "another browser");
    is_refused(
        &gateway,
        &Browser::new().get(&back).await,
        "no browser of ours",
    );
    // Nor with the victim's own cookie of another sign-in under that name.
    let own = at_callback(&gateway, &victim).await;
    let waiting = |browser: &Browser| {
        let cookies = browser.cookies();
        let found = cookies
            .into_iter()
            .find(|(name, _)| name.starts_with("toolgate-at-"));
        found.unwrap()
    };
    let (name, _) = waiting(&attacker);
    let (_, value) = waiting(&victim);
    victim.set_cookie(&name, Some(&value));
    is_refused(
        &gateway,
        &victim.get(&back).await,
        "a cookie of another sign-in",
    );
    // Nor with the attacker's cookie: it is bound to the attacker's browser.
    let (_, value) = waiting(&attacker);
    victim.set_cookie(&name, Some(&value));
    is_refused(&gateway, &victim.get(&back).await, "a planted cookie");
    assert!(
        is_out(&victim.get(&own).await),
        "the victim's own sign-in goes on"
    );
}

#[tokio::test]
async fn an_answer_counts_once_even_where_the_cookie_is_put_back() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let browser = Browser::new();
    let back = at_callback(&gateway, &browser).await;
    let before = browser.copy();
    assert!(is_out(&browser.get(&back).await));
    let exchanged = idp.exchanged().len();
    let rows_before = rows(&gateway);
    let again = browser.get(&back).await;
    assert_eq!(again.status, 400);
    let again = before.get(&back).await;
    assert_eq!(again.status, 400, "{again:?}");
    assert!(again.text().contains("start the sign-in again"));
    let replica = gateway.replica().await;
    let there = back.replace(gateway.url(), replica.url());
    assert_eq!(before.get(&there).await.status, 400, "on another replica");
    assert_eq!(
        idp.exchanged().len(),
        exchanged,
        "the code is not even tried"
    );
    assert_eq!(rows(&gateway), rows_before);
}

#[tokio::test]
async fn a_changed_answer_is_not_believed() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let browser = Browser::new();
    let back = at_callback(&gateway, &browser).await;
    let state = back
        .split("state=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap();
    for (what, changed) in [
        ("another state", back.replace(state, &state.to_uppercase())),
        ("no state", back.replace("state=", "stat=")),
        ("two states", format!("{back}&state={state}")),
        ("two codes", format!("{back}&code=x")),
    ] {
        is_refused(&gateway, &browser.get(&changed).await, what);
    }
    assert!(is_out(&browser.get(&back).await), "it is good as it came");
}

#[tokio::test]
async fn an_id_token_that_does_not_fit_lets_nobody_in() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let now = super::support::keys::now();
    let good = json!({"sub": "alice-at-idp", "tenant": "acme"});
    for (name, value) in [
        ("nonce", json!("another")),
        ("nonce", Value::Null),
        ("aud", json!("another-client")),
        ("aud", json!([CLIENT, "another-client"])),
        ("azp", json!("another-client")),
        ("iss", json!("https://other.example.com")),
        ("exp", json!(now - 3600)),
        ("iat", json!(now - 3600)),
        ("sub", Value::Null),
    ] {
        let mut claims = good.clone();
        claims[name] = value.clone();
        idp.script(|script| script.claims = claims);
        let browser = Browser::new();
        let back = at_callback(&gateway, &browser).await;
        is_refused(
            &gateway,
            &browser.get(&back).await,
            &format!("{name} {value}"),
        );
    }
    idp.script(|script| {
        script.claims = good;
        script.forged = true;
    });
    let browser = Browser::new();
    let back = at_callback(&gateway, &browser).await;
    is_refused(
        &gateway,
        &browser.get(&back).await,
        "signed by somebody else",
    );
}

#[tokio::test]
async fn an_answer_that_names_another_issuer_is_a_mix_up() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let go = async |back: Vec<(&'static str, String)>| {
        idp.script(|script| script.back = back);
        let browser = Browser::new();
        let back = at_callback(&gateway, &browser).await;
        browser.get(&back).await
    };
    let evil = ("iss", "https://evil.example".to_owned());
    is_refused(&gateway, &go(vec![evil]).await, "another issuer");
    let slash = ("iss", format!("{}/", idp.issuer()));
    is_refused(
        &gateway,
        &go(vec![slash]).await,
        "an issuer with a slash more",
    );
    assert!(
        idp.exchanged().is_empty(),
        "no code reaches a token endpoint"
    );
    assert!(is_out(&go(vec![("iss", idp.issuer().to_owned())]).await));
    // A provider that says that it names itself always has to (RFC 9207 §2.4).
    let idp = LoginIdp::serve().await;
    idp.script(|script| script.advertises_iss = true);
    let gateway = federated(&idp).await;
    let browser = Browser::new();
    let back = at_callback(&gateway, &browser).await;
    is_refused(&gateway, &browser.get(&back).await, "no issuer");
}

#[tokio::test]
async fn what_the_provider_refuses_the_app_is_told_in_our_own_words() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    for (error, told) in [
        ("access_denied", "access_denied"),
        ("server_error", "temporarily_unavailable"),
        ("login_required", "login_required"),
        ("x%0d%0aSet-Cookie: a=b<script>", "access_denied"),
    ] {
        idp.script(|script| script.error = Some(error));
        let browser = Browser::new();
        let back = at_callback(&gateway, &browser).await;
        let out = browser.get(&back).await;
        assert!(out.location().unwrap().starts_with(LOOPBACK), "{out:?}");
        assert_eq!(out.sent("error").unwrap(), told);
        assert_eq!(out.sent("state").unwrap(), "state-of-the-client");
        assert_eq!(out.sent("iss").unwrap(), gateway.audience(""));
        assert!(!out.location().unwrap().contains("alert"), "{out:?}");
    }
    assert_eq!(rows(&gateway), "0 0 0");
}

#[tokio::test]
async fn a_tenant_that_the_provider_may_not_speak_for_is_refused_and_noted() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    idp.script(|script| script.claims["tenant"] = json!("globex"));
    let out = Browser::new().connect_through(&desk(&gateway)).await;
    assert_eq!(out.sent("error").unwrap(), "access_denied");
    assert!(gateway.logs().contains("tenant_not_trusted"));
    idp.script(|script| script.claims["tenant"] = json!(["globex", "acme"]));
    let out = Browser::new().connect_through(&desk(&gateway)).await;
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    assert_eq!(claims(&tokens)["tenant"], "acme");
}

#[tokio::test]
async fn userinfo_is_asked_for_what_the_id_token_leaves_out_and_only_of_the_same_person() {
    let idp = LoginIdp::serve().await;
    let gateway = federated_with(&idp, &["acme", "globex"], "{}").await;
    idp.script(|script| {
        script.claims = json!({"sub": "alice-at-idp", "tenant": null, "roles": null});
        script.userinfo = json!({"sub": "alice-at-idp", "tenant": "globex", "roles": ["boss"]});
    });
    let out = Browser::new().connect_through(&desk(&gateway)).await;
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    let claims = claims(&tokens);
    assert_eq!(
        (&claims["tenant"], &claims["roles"]),
        (&json!("globex"), &json!(["boss"]))
    );
    let before = state(&gateway);
    idp.script(|script| script.userinfo["sub"] = json!("mallory"));
    let page = Browser::new().connect_through(&desk(&gateway)).await;
    assert_eq!(page.status, 502, "{page:?}");
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn an_address_chooses_the_provider_and_a_tenants_path_needs_no_choice() {
    let (acme, globex) = (LoginIdp::serve().await, LoginIdp::serve().await);
    globex.script(|script| script.claims = json!({"sub": "bob-at-idp", "tenant": "globex"}));
    let folder = super::support::folder::Folder::new();
    let secret = folder.file("secret", SECRET);
    let secret = secret.to_str().unwrap();
    let mut providers =
        json!({"one": acme.config(secret, &["acme"]), "two": globex.config(secret, &["globex"])});
    providers["one"]["login"]["email_domains"] = json!(["acme.test"]);
    providers["two"]["login"]["email_domains"] = json!(["globex.test"]);
    let yaml = json!({ "identity_providers": providers }).to_string();
    let gateway = setup().await.yaml(&yaml).start().await;
    let browser = Browser::new();
    let page = browser.approve(&desk(&gateway)).await;
    assert!(page.text().contains("Work e-mail"), "{}", page.text());
    assert!(!page.body.contains("password"), "{}", page.body);
    let nobody = browser
        .press(&page, "", &[("username", "x@nobody.test")])
        .await;
    assert_eq!(nobody.status, 422);
    assert!(
        nobody.text().contains("No sign-in is set up"),
        "{}",
        nobody.text()
    );
    let to = browser
        .press(&page, "", &[("username", "Bob@GLOBEX.test")])
        .await;
    assert!(
        to.location().unwrap().starts_with(globex.issuer()),
        "{to:?}"
    );
    let out = browser.follow(to, LOOPBACK).await;
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    assert_eq!(claims(&tokens)["tenant"], "globex");
    let fixed = desk(&gateway).with("resource", &gateway.audience("/t/acme/mcp"));
    let to = Browser::new().approve(&fixed).await.location().unwrap();
    assert!(to.starts_with(acme.issuer()), "{to}");
}

#[tokio::test]
async fn one_provider_of_several_tenants_lets_the_person_choose_once_among_theirs() {
    let idp = LoginIdp::serve().await;
    idp.script(|script| script.claims["tenant"] = json!(["acme", "globex", "evil"]));
    let gateway = federated_with(&idp, &["acme", "globex"], "{}").await;
    let browser = Browser::new();
    let page = browser.connect_through(&desk(&gateway)).await;
    let shown = page.text();
    assert!(shown.contains("For which organisation?"), "{shown}");
    assert!(
        shown.contains("globex") && !shown.contains("evil"),
        "{shown}"
    );
    let before = rows(&gateway);
    let other = browser.press(&page, "approve", &[("tenant", "evil")]).await;
    assert_eq!(other.sent("error").as_deref(), Some("access_denied"));
    assert_eq!(rows(&gateway), before, "a tenant of nobody's choice");
    let out = browser
        .press(&page, "approve", &[("tenant", "globex")])
        .await;
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    assert_eq!(claims(&tokens)["tenant"], "globex");
    // A tenant's own endpoint leaves nothing to choose.
    let fixed = desk(&gateway).with("resource", &gateway.audience("/t/acme/mcp"));
    let out = Browser::new().connect_through(&fixed).await;
    assert!(is_out(&out) && out.sent("code").is_some(), "{out:?}");
}

/// Lets the next refresh ask the provider: it is asked every five minutes at most.
fn due(gateway: &Gateway) {
    let database = gateway.database();
    database.psql("UPDATE oauth_grants SET checked_at = checked_at - interval '1 hour'");
}

#[tokio::test]
async fn a_leavers_grant_dies_and_a_provider_that_is_away_signs_nobody_out() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let out = Browser::new().connect_through(&desk(&gateway)).await;
    let first = tokens(&gateway, "desk", &out, LOOPBACK).await;
    let next = async |tokens: &Value| -> (u16, Value) {
        let page = refresh(&gateway, "desk", tokens).await;
        (
            page.status.as_u16(),
            serde_json::from_str(&page.body).unwrap(),
        )
    };
    assert_eq!(idp.exchanged().len(), 1);
    let (status, second) = next(&first).await;
    assert_eq!(
        (status, idp.exchanged().len()),
        (200, 1),
        "not asked so soon"
    );
    // Roles follow the provider, for the tokens after as well.
    idp.script(|script| script.claims["roles"] = json!([]));
    due(&gateway);
    let (_, third) = next(&second).await;
    assert_eq!(idp.exchanged().len(), 2);
    assert_eq!(claims(&third)["roles"], json!([]));
    let (_, fourth) = next(&third).await;
    assert_eq!(claims(&fourth)["roles"], json!([]));
    // Away, or at odds with us: that says nothing of the person.
    for refusal in [
        (503, "temporarily_unavailable"),
        (500, "server_error"),
        (401, "invalid_client"),
    ] {
        idp.script(|script| script.refusal = Some(refusal));
        due(&gateway);
        assert_eq!(next(&fourth).await.0, 200, "{refusal:?}");
    }
    let (_, fifth) = next(&fourth).await;
    idp.script(|script| script.refusal = Some((400, "invalid_grant")));
    due(&gateway);
    let (status, answer) = next(&fifth).await;
    assert_eq!(
        (status, &answer["error"]),
        (400, &json!("invalid_grant")),
        "{answer}"
    );
    assert!(rows(&gateway).ends_with(" 0 0"), "{}", rows(&gateway));
}

#[tokio::test]
async fn who_is_moved_to_another_tenant_loses_the_grant_in_this_one() {
    let idp = LoginIdp::serve().await;
    let gateway = federated_with(&idp, &["acme", "globex"], "{}").await;
    let out = Browser::new().connect_through(&desk(&gateway)).await;
    let first = tokens(&gateway, "desk", &out, LOOPBACK).await;
    idp.script(|script| script.claims["tenant"] = json!("globex"));
    due(&gateway);
    assert_eq!(refresh(&gateway, "desk", &first).await.status, 400);
    assert!(rows(&gateway).ends_with(" 0 0"));
}

#[tokio::test]
async fn a_provider_without_refresh_tokens_works() {
    let idp = LoginIdp::serve().await;
    idp.script(|script| script.gives_refresh_tokens = false);
    let gateway = federated(&idp).await;
    let out = Browser::new().connect_through(&desk(&gateway)).await;
    let first = tokens(&gateway, "desk", &out, LOOPBACK).await;
    due(&gateway);
    assert_eq!(refresh(&gateway, "desk", &first).await.status, 200);
    // Nobody can be asked whether alice is still there: it ends sooner.
    let days = "SELECT round(extract(epoch FROM ends_at - used_at) / 86400) FROM oauth_families";
    assert_eq!(gateway.database().psql(days).trim(), "7");
}

#[tokio::test]
async fn the_providers_tokens_are_stored_sealed() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    Browser::new().connect_through(&desk(&gateway)).await;
    let stored = gateway.database().psql(
        "SELECT coalesce(s.refresh_token, 'taken') || ' ' || g.provider_token
         FROM oauth_sign_ins s, oauth_grants g",
    );
    assert!(
        stored.starts_with("taken ") && stored.len() > 60,
        "{stored}"
    );
    assert!(!stored.contains("token-of-the-idp"), "{stored}");
}

/// npm's `oidc-provider`.
async fn real_idp(gateway_port: u16, people: &Value, more: &[(&str, &str)]) -> (Process, String) {
    let port = free_port();
    let modules = real::npm_file("oidc-provider/package.json");
    let modules = modules.parent().unwrap().parent().unwrap();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/clients/oidc_provider.mjs"
    );
    let mut command = Command::new(real::node_program());
    command
        .arg(script)
        .env("CLIENT_MODULES", modules)
        .env("PORT", port.to_string())
        .env(
            "REDIRECT_URI",
            format!("http://127.0.0.1:{gateway_port}/oauth/callback"),
        )
        .env("PEOPLE", people.to_string())
        .envs(more.iter().copied());
    let process = Process::start("oidc-provider", &mut command);
    let _ = process.output().line_with("listening on").await;
    (process, format!("http://127.0.0.1:{port}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certified_provider_signs_people_of_two_tenants_in() {
    let port = free_port();
    let alice =
        json!({"alice": {"tenant": "acme", "roles": ["support"], "email": "alice@acme.test"}});
    let bob =
        json!({"bob": {"tenant": "globex", "roles": ["analyst"], "email": "bob@globex.test"}});
    let (_acme, acme) = real_idp(port, &alice, &[("STRICT", "1")]).await;
    let (_globex, globex) = real_idp(port, &bob, &[("IN_ID_TOKEN", "1")]).await;
    let folder = super::support::folder::Folder::new();
    let secret = folder.file("secret", SECRET);
    let provider = |issuer: &str, tenant: &str| {
        json!({"issuer": issuer, "tenants": [tenant], "login": {
            "client_id": CLIENT, "client_secret_file": secret, "email_domains": [format!("{tenant}.test")],
        }})
    };
    let over = json!({
        "server": { "listen": format!("127.0.0.1:{port}"), "public_url": format!("http://127.0.0.1:{port}") },
        "identity_providers": { "one": provider(&acme, "acme"), "two": provider(&globex, "globex") },
    });
    let gateway = setup().await.yaml(&over.to_string()).start().await;
    for (name, tenant, role) in [("alice", "acme", "support"), ("bob", "globex", "analyst")] {
        let browser = Browser::new();
        let page = browser.approve(&desk(&gateway)).await;
        let address = format!("{name}@{tenant}.test");
        let page = browser.press(&page, "", &[("username", &address)]).await;
        let page = browser.follow(page, LOOPBACK).await;
        let password = format!("{name}-password");
        let given = [("login", name), ("password", &*password)];
        let page = browser.press(&page, "sign-in", &given).await;
        let mut page = browser.follow(page, LOOPBACK).await;
        if !is_out(&page) {
            let allowed = browser.press(&page, "allow", &[]).await;
            page = browser.follow(allowed, LOOPBACK).await;
        }
        let first = tokens(&gateway, "desk", &page, LOOPBACK).await;
        let claims = claims(&first);
        assert_eq!(
            (&claims["tenant"], &claims["roles"]),
            (&json!(tenant), &json!([role]))
        );
        due(&gateway);
        let second = refresh(&gateway, "desk", &first).await;
        assert_eq!(second.status, 200, "{second:?}");
        let second: Value = serde_json::from_str(&second.body).unwrap();
        // Whoever has left the company is out at the next look.
        let issuer = if tenant == "acme" { &acme } else { &globex };
        let left = gateway.http().delete(format!("{issuer}/people/{name}"));
        left.send().await.unwrap();
        due(&gateway);
        assert_eq!(
            refresh(&gateway, "desk", &second).await.status,
            400,
            "{name}"
        );
    }
}
