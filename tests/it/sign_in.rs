//! Signing in: local users, what pages say and which headers they have, prompts.

use super::support::browser::{Ask, Browser, Page};
use super::support::oauth::state;
use super::support::sign_in::{
    LOOPBACK, PASSWORD, WEB, claims, desk, is_out, local, refresh, rows, tokens, web,
};
use super::support::{Gateway, Helper, Setup, json};

#[tokio::test]
async fn a_person_approves_signs_in_and_calls_a_tool() {
    let gateway = local().await;
    let browser = Browser::new();
    let asked = browser.open(&desk(&gateway)).await;
    assert_eq!(asked.status, 200, "{asked:?}");
    let text = asked.text();
    for part in [
        "Desk App",
        "127.0.0.1",
        "a program on this computer",
        "Approve",
        "Deny",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        rows(&gateway),
        "0 0 0",
        "nothing is stored before the sign-in"
    );
    let page = browser.press(&asked, "approve", &[]).await;
    assert_eq!(rows(&gateway), "0 0 0");
    let out = browser.sign_in(&page, "alice@acme.test").await;
    assert_eq!(out.status, 303, "{out:?}");
    assert!(out.location().unwrap().starts_with(LOOPBACK));
    assert_eq!(out.sent("state").unwrap(), "state-of-the-client");
    assert_eq!(out.sent("iss").unwrap(), gateway.audience(""));
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    let claims = claims(&tokens);
    assert_eq!(claims["tenant"], "acme");
    assert_eq!(claims["roles"], json!(["support"]));
    assert_ne!(claims["sub"], "alice@acme.test", "our subject is a digest");
    let caller = gateway
        .anonymous()
        .bearer(tokens["access_token"].as_str().unwrap());
    let mut session = caller.modern();
    let answer = session.request("tools/list", json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(refresh(&gateway, "desk", &tokens).await.status, 200);
}

#[tokio::test]
async fn an_unknown_user_and_a_wrong_password_look_the_same() {
    let gateway = local().await;
    let browser = Browser::new();
    let page = browser.approve(&desk(&gateway)).await;
    let attempt = async |user: &str, password: &str| {
        let given = [("username", user), ("password", password)];
        let answer = browser.press(&page, "", &given).await;
        let plain = answer.text().replace(user, "USER");
        (answer.status.as_u16(), plain)
    };
    let wrong = attempt("alice@acme.test", "wrong").await;
    assert_eq!(wrong.0, 403);
    assert!(
        wrong.1.contains("E-mail or password is wrong."),
        "{}",
        wrong.1
    );
    assert_eq!(attempt("nobody@acme.test", "wrong").await, wrong);
    assert_eq!(attempt("nobody@acme.test", PASSWORD).await, wrong);
    assert_eq!(attempt("", "").await.0, 403);
    assert_eq!(rows(&gateway), "0 0 0");
    assert!(!gateway.logs().contains(PASSWORD));
}

#[tokio::test]
async fn wrong_passwords_are_limited_for_an_account_that_exists_and_one_that_does_not() {
    let gateway = local().await;
    let before = state(&gateway);
    for user in ["alice@acme.test", "nobody@acme.test"] {
        let browser = Browser::new();
        let page = browser.approve(&desk(&gateway)).await;
        let wrong = [("username", user), ("password", "wrong")];
        for _ in 0..10 {
            assert_eq!(browser.press(&page, "", &wrong).await.status, 403);
        }
        let right = [("username", user), ("password", PASSWORD)];
        let limited = Browser::new();
        let page = limited.approve(&desk(&gateway)).await;
        let limited = limited.press(&page, "", &right).await;
        assert_eq!(limited.status, 429, "{user}");
        assert!(limited.header("retry-after").parse::<u32>().unwrap() > 0);
        assert!(limited.text().contains("Too many wrong passwords"));
    }
    assert_eq!(state(&gateway), before);
    let bob = Browser::new();
    assert!(is_out(
        &bob.connect(&desk(&gateway), "bob@globex.test").await
    ));
}

#[tokio::test]
async fn a_person_of_another_tenant_is_told_no_and_nothing_is_granted() {
    let gateway = local().await;
    for tenant in ["globex", "nobody"] {
        let resource = gateway.audience(&format!("/t/{tenant}/mcp"));
        let ask = desk(&gateway).with("resource", &resource);
        let browser = Browser::new();
        let out = browser.connect(&ask, "alice@acme.test").await;
        if tenant == "globex" || is_out(&out) {
            assert_eq!(out.sent("error").unwrap(), "access_denied", "{out:?}");
            assert_eq!(out.sent("state").unwrap(), "state-of-the-client");
            assert_eq!(out.sent("iss").unwrap(), gateway.audience(""));
        }
        assert!(out.sent("code").is_none());
    }
    assert!(rows(&gateway).ends_with(" 0 0"), "{}", rows(&gateway));
}

#[tokio::test]
async fn a_person_of_several_tenants_chooses_one() {
    let gateway = local().await;
    let browser = Browser::new();
    let page = browser.connect(&desk(&gateway), "carol@both.test").await;
    let text = page.text();
    assert!(
        text.contains("For which organisation?") && text.contains("globex"),
        "{text}"
    );
    // What is not offered cannot be chosen.
    let foreign = browser.press(&page, "approve", &[("tenant", "evil")]).await;
    assert_eq!(foreign.sent("error").unwrap(), "access_denied");
    let out = browser
        .press(&page, "approve", &[("tenant", "globex")])
        .await;
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    assert_eq!(claims(&tokens)["tenant"], "globex");
    // The endpoint's path leaves nothing to choose.
    let fixed = desk(&gateway).with("resource", &gateway.audience("/t/acme/mcp"));
    let out = browser.connect(&fixed, "carol@both.test").await;
    assert!(out.sent("code").is_some(), "{out:?}");
}

#[tokio::test]
async fn scopes_that_change_things_are_asked_for_by_tool_and_can_be_left_out() {
    let gateway = local().await;
    let ask = desk(&gateway).with("scope", "mcp echo.use");
    let browser = Browser::new();
    let page = browser.connect(&ask, "alice@acme.test").await;
    let text = page.text();
    for part in [
        "What may Desk App change?",
        "alice@acme.test",
        "acme",
        "echo",
        "Changes things",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let all = browser.press(&page, "approve", &[]).await;
    let tokens_all = tokens(&gateway, "desk", &all, LOOPBACK).await;
    assert_eq!(tokens_all["scope"], "mcp echo.use");
    let again = browser.open(&ask).await;
    let again = browser.press(&again, "approve", &[]).await;
    let fewer = browser.press(&again, "approve", &[("scope", "none")]).await;
    let tokens_fewer = tokens(&gateway, "desk", &fewer, LOOPBACK).await;
    assert_eq!(tokens_fewer["scope"], "mcp");
    let cancelled = browser.press(&again, "deny", &[]).await;
    assert_eq!(cancelled.sent("error").unwrap(), "access_denied");
}

#[tokio::test]
async fn staying_signed_in_is_granted_without_a_further_question() {
    let gateway = local().await;
    let ask = desk(&gateway).with("scope", "mcp offline_access");
    let browser = Browser::new();
    let text = browser.open(&ask).await.text();
    assert!(
        text.contains("Stay signed in until you take this back"),
        "{text}"
    );
    let out = browser.connect(&ask, "alice@acme.test").await;
    assert!(is_out(&out), "{out:?}");
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    assert_eq!(tokens["scope"], "mcp offline_access");
    assert_eq!(refresh(&gateway, "desk", &tokens).await.status, 200);
}

#[tokio::test]
async fn who_is_signed_in_says_yes_without_a_password_and_can_be_somebody_else() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let page = browser.open(&desk(&gateway)).await;
    assert!(page.text().contains("You are signed in as alice@acme.test"));
    assert!(is_out(&browser.press(&page, "approve", &[]).await));
    let other = browser.press(&page, "switch", &[]).await;
    assert!(other.text().contains("Password"), "{}", other.text());
    // Bob has said yes to nothing yet.
    let asked = browser.sign_in(&other, "bob@globex.test").await;
    assert!(
        asked
            .text()
            .contains("You are signed in as bob@globex.test"),
        "{}",
        asked.text()
    );
    let out = browser.press(&asked, "approve", &[]).await;
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    assert_eq!(claims(&tokens)["tenant"], "globex");
}

#[tokio::test]
async fn prompts_are_followed() {
    let gateway = local().await;
    let browser = Browser::new();
    let none = |ask: Ask| ask.with("prompt", "none");
    let refusal = async |browser: &Browser, ask: &Ask| browser.open(ask).await.sent("error");
    let asked = refusal(&browser, &none(web(&gateway))).await;
    assert_eq!(asked.as_deref(), Some("login_required"));
    browser.connect(&web(&gateway), "alice@acme.test").await;
    let silent = browser.open(&none(web(&gateway))).await;
    assert!(silent.sent("code").is_some(), "{silent:?}");
    let loopback = refusal(&browser, &none(desk(&gateway))).await;
    assert_eq!(loopback.as_deref(), Some("consent_required"));
    let more = none(web(&gateway)).with("scope", "mcp echo.use");
    assert_eq!(
        refusal(&browser, &more).await.as_deref(),
        Some("consent_required")
    );
    // Consent is remembered, and asked for when the app wants that.
    assert!(is_out(&browser.open(&web(&gateway)).await));
    let anew = browser.open(&web(&gateway).with("prompt", "consent")).await;
    assert!(anew.text().contains("Allow Web App"), "{}", anew.text());
    let login = web(&gateway).with("prompt", "login");
    let page = browser.approve(&login).await;
    assert!(page.text().contains("Password"), "{}", page.text());
}

fn guarded(page: &Page) {
    let at = format!("{} {}", page.status, page.url);
    assert_eq!(page.header("cache-control"), "no-store", "{at}");
    assert_eq!(page.header("x-content-type-options"), "nosniff", "{at}");
    assert_eq!(page.header("x-frame-options"), "DENY", "{at}");
    assert_eq!(page.header("referrer-policy"), "same-origin", "{at}");
    assert_eq!(
        page.header("cross-origin-opener-policy"),
        "same-origin",
        "{at}"
    );
    assert_eq!(page.header("access-control-allow-origin"), "", "{at}");
    if page.location().is_none() {
        let policy = page.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{at}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(
            !page.body.contains("<script") && !page.body.contains("style="),
            "{at}"
        );
        assert!(!page.body.contains("http-equiv"), "{at}");
    }
}

#[tokio::test]
async fn every_page_is_framed_by_nobody_kept_by_nobody_and_needs_no_script() {
    let gateway = local().await;
    let browser = Browser::new();
    let consent = browser.open(&desk(&gateway)).await;
    let sign_in = browser.press(&consent, "approve", &[]).await;
    let wrong = [("username", "x"), ("password", "y")];
    let refused = browser.press(&sign_in, "", &wrong).await;
    let out = browser.sign_in(&sign_in, "alice@acme.test").await;
    let account = browser.get(&format!("{}/account", gateway.url())).await;
    let stale = browser
        .get(&format!("{}/oauth/callback?code=x&state=y", gateway.url()))
        .await;
    assert_eq!(stale.status, 400);
    let page = browser.open(&desk(&gateway)).await;
    let denied = browser.press(&page, "deny", &[]).await;
    for page in [
        &consent, &sign_in, &refused, &out, &account, &stale, &denied,
    ] {
        guarded(page);
    }
    let policy = consent.header("content-security-policy");
    assert!(
        policy.contains("http://127.0.0.1:*"),
        "the way back leads there: {policy}"
    );
    let style = consent.body.split("stylesheet\" href=\"").nth(1).unwrap();
    let style = style.split('"').next().unwrap();
    let style = browser.get(&format!("{}{style}", gateway.url())).await;
    assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
    assert!(style.header("cache-control").contains("immutable"));
    let missing = browser
        .get(&format!("{}/assets/style-0.css", gateway.url()))
        .await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn cookies_are_for_one_host_and_no_script() {
    let gateway = local().await;
    let browser = Browser::new();
    let consent = browser.open(&desk(&gateway)).await;
    let page = browser.press(&consent, "approve", &[]).await;
    let out = browser.sign_in(&page, "alice@acme.test").await;
    let mut seen = 0;
    for page in [&consent, &page, &out] {
        for line in page.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            for part in ["; Path=/", "; HttpOnly", "; SameSite=Lax"] {
                assert!(line.contains(part), "{line}");
            }
            assert!(!line.contains("Domain"), "{line}");
            assert!(!line.contains("alice"), "{line}");
            seen += 1;
        }
    }
    assert!(seen >= 2, "{seen}");
    // Over https they are bound to the host by their name (`__Host-`).
    let public = Setup::new()
        .yaml(r#"{server: {public_url: "https://gw.example.com"}, authorization_server: {enabled: true},
            clients: {web: {redirect_uris: ["https://app.example.com/callback"]}}}"#)
        .over("up", Helper::example("upstream_rmcp", &[]).await)
        .start()
        .await;
    let consent = Browser::new().open(&Ask::new(&public, "web", WEB)).await;
    let line = consent.header("set-cookie");
    assert!(line.starts_with("__Host-toolgate-browser="), "{line}");
    assert!(line.ends_with("; Secure"), "{line}");
}

#[tokio::test]
async fn without_an_authorization_server_there_are_no_pages() {
    let gateway = Gateway::start("").await;
    let browser = Browser::new();
    for path in [
        "/account",
        "/oauth/login",
        "/oauth/callback",
        "/oauth/authorize",
    ] {
        let page = browser.get(&format!("{}{path}", gateway.url())).await;
        assert_eq!(page.status, 404, "{path}");
    }
}
