//! Consent: bound to the browser that was asked, to the app, and to what was asked
//! (C10, `rules.md` §4.4).

use super::support::browser::{Browser, Page};
use super::support::login_idp::LoginIdp;
use super::support::oauth::state;
use super::support::sign_in::{LOOPBACK, WEB, desk, federated, is_out, local, rows, setup, web};
use super::support::{Gateway, json};

fn consent(gateway: &Gateway) -> String {
    format!("{}/oauth/consent", gateway.url())
}

fn is_refused(page: &Page) {
    assert!(
        page.status.is_client_error() && page.location().is_none(),
        "{page:?}"
    );
}

#[tokio::test]
async fn denying_tells_the_app_and_stores_nothing() {
    let gateway = local().await;
    let browser = Browser::new();
    let page = browser.open(&desk(&gateway)).await;
    let out = browser.press(&page, "deny", &[]).await;
    assert!(out.location().unwrap().starts_with(LOOPBACK));
    assert_eq!(out.sent("error").unwrap(), "access_denied");
    assert_eq!(out.sent("state").unwrap(), "state-of-the-client");
    assert_eq!(out.sent("iss").unwrap(), gateway.audience(""));
    assert!(out.sent("code").is_none());
    // A form without a decision is no yes.
    let flow = page.field("flow");
    for fields in [
        vec![("flow", &*flow)],
        vec![("flow", &*flow), ("decision", "approve ")],
    ] {
        let out = browser
            .post(&consent(&gateway), &fields, gateway.url())
            .await;
        assert_eq!(out.sent("error").unwrap(), "access_denied");
    }
    let twice = [
        ("flow", &*flow),
        ("decision", "deny"),
        ("decision", "approve"),
    ];
    let out = browser
        .post(&consent(&gateway), &twice, gateway.url())
        .await;
    assert_eq!(out.sent("error").unwrap(), "access_denied");
    assert_eq!(rows(&gateway), "0 0 0");
}

#[tokio::test]
async fn the_answer_of_another_browser_does_not_count() {
    let gateway = local().await;
    let attacker = Browser::new();
    let page = attacker.open(&desk(&gateway)).await;
    let flow = page.field("flow");
    let fields = [("flow", &*flow), ("decision", "approve")];
    // C10: a browser with no cookie of ours, and one with its own.
    let fresh = Browser::new();
    is_refused(&fresh.post(&consent(&gateway), &fields, gateway.url()).await);
    let victim = Browser::new();
    victim.connect(&desk(&gateway), "alice@acme.test").await;
    let before = rows(&gateway);
    is_refused(
        &victim
            .post(&consent(&gateway), &fields, gateway.url())
            .await,
    );
    // Nor does the sign-in page of another browser.
    let sign_in = attacker.press(&page, "approve", &[]).await.field("flow");
    let fields = [
        ("flow", &*sign_in),
        ("username", "alice@acme.test"),
        ("password", "correct horse"),
    ];
    let login = format!("{}/oauth/login", gateway.url());
    is_refused(&victim.post(&login, &fields, gateway.url()).await);
    assert_eq!(rows(&gateway), before);
}

#[tokio::test]
async fn a_form_of_one_page_is_none_of_another() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let asked = browser.open(&desk(&gateway)).await.field("flow");
    let account = browser.get(&format!("{}/account", gateway.url())).await;
    let acting = account.field("token");
    let before = rows(&gateway);
    let at = |path: &str| format!("{}{path}", gateway.url());
    for (path, fields) in [
        (
            "/oauth/login",
            [("flow", &*asked), ("username", "alice@acme.test")],
        ),
        (
            "/oauth/login",
            [("flow", &*acting), ("username", "alice@acme.test")],
        ),
        (
            "/oauth/consent",
            [("flow", &*acting), ("decision", "approve")],
        ),
        ("/account/revoke", [("token", &*asked), ("grant", "all")]),
        ("/account/revoke", [("token", "x"), ("grant", "all")]),
        ("/oauth/consent", [("flow", ""), ("decision", "approve")]),
    ] {
        is_refused(&browser.post(&at(path), &fields, gateway.url()).await);
    }
    for changed in [
        format!("{asked}x"),
        format!("x{asked}"),
        asked.to_uppercase(),
    ] {
        let fields = [("flow", &*changed), ("decision", "approve")];
        is_refused(
            &browser
                .post(&consent(&gateway), &fields, gateway.url())
                .await,
        );
    }
    assert_eq!(rows(&gateway), before);
}

#[tokio::test]
async fn other_sites_cannot_answer_and_links_cannot_approve() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let before = rows(&gateway);
    let flow = browser.open(&desk(&gateway)).await.field("flow");
    let fields = [("flow", &*flow), ("decision", "approve")];
    for headers in [
        vec![("origin", "https://evil.example")],
        vec![("origin", "null")],
        vec![("origin", "http://127.0.0.1:1")],
        vec![("sec-fetch-site", "cross-site")],
        vec![("sec-fetch-site", "same-site")],
        vec![("sec-fetch-site", "none")],
        vec![("origin", gateway.url()), ("sec-fetch-site", "cross-site")],
    ] {
        let page = browser
            .post_with(&consent(&gateway), &fields, &headers)
            .await;
        assert_eq!(page.status, 403, "{headers:?}");
    }
    let link = format!("{}?flow={flow}&decision=approve", consent(&gateway));
    assert_eq!(browser.get(&link).await.status, 405);
    assert_eq!(rows(&gateway), before);
    // What is no browser says nothing of where it comes from, and needs the flow all the same.
    assert!(is_out(
        &browser.post_with(&consent(&gateway), &fields, &[]).await
    ));
}

#[tokio::test]
async fn both_of_two_tabs_work() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let first = browser.open(&desk(&gateway)).await;
    let second = browser.open(&desk(&gateway).with("state", "second")).await;
    let out = browser.press(&first, "approve", &[]).await;
    assert_eq!(out.sent("state").unwrap(), "state-of-the-client");
    let out = browser.press(&second, "approve", &[]).await;
    assert_eq!(out.sent("state").unwrap(), "second");
    // Opening the page may be repeated and consumes nothing.
    assert_eq!(browser.open(&desk(&gateway)).await.status, 200);
}

#[tokio::test]
async fn consent_is_remembered_for_proven_apps_alone_and_for_exactly_what_was_said() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&web(&gateway), "alice@acme.test").await;
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let asks = async |ask| !is_out(&browser.open(&ask).await);
    assert!(!asks(web(&gateway)).await, "the same again");
    let before = state(&gateway);
    assert!(asks(desk(&gateway)).await, "loopback asks each time");
    let moved = web(&gateway).with("redirect_uri", "https://app.example.com/second");
    assert!(asks(moved).await, "another redirect");
    assert!(
        asks(web(&gateway).with("scope", "mcp echo.use")).await,
        "more scopes"
    );
    let other_app = desk(&gateway).with("client_id", "other");
    assert!(asks(other_app).await, "another app at the same redirect");
    assert_eq!(state(&gateway), before, "asking stores nothing");
    // Somebody else in the same browser has said yes to nothing.
    let page = browser.open(&web(&gateway).with("prompt", "consent")).await;
    let page = browser.press(&page, "switch", &[]).await;
    browser.sign_in(&page, "bob@globex.test").await;
    assert!(asks(web(&gateway)).await, "another person");
    let elsewhere = Browser::new().open(&web(&gateway)).await;
    assert!(!is_out(&elsewhere), "another browser, nobody signed in");
}

#[tokio::test]
async fn the_provider_is_not_asked_before_the_person_has_said_yes() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let victim = Browser::new();
    // C10: the victim has approved app Y earlier, and has a session at the provider.
    let out = victim.connect_through(&web(&gateway)).await;
    assert!(out.sent("code").is_some(), "{out:?}");
    let asked = idp.asked().len();
    let page = victim.open(&desk(&gateway)).await;
    assert!(page.text().contains("Allow Desk App"), "{}", page.text());
    assert!(
        page.text().contains("you sign in at 127.0.0.1"),
        "{}",
        page.text()
    );
    let denied = victim.press(&page, "deny", &[]).await;
    assert_eq!(denied.sent("error").unwrap(), "access_denied");
    assert_eq!(idp.asked().len(), asked, "nobody was sent to the provider");
    // Remembered consent goes to the provider at once, which has the last word.
    let again = victim.open(&web(&gateway)).await;
    assert!(
        again.location().unwrap().starts_with(idp.issuer()),
        "{again:?}"
    );
    let out = victim.follow(again, WEB).await;
    assert!(out.sent("code").is_some());
    // Another person comes back from the provider: they are asked.
    idp.script(|script| script.claims["sub"] = json!("bob-at-idp"));
    let again = victim.open(&web(&gateway)).await;
    let page = victim.follow(again, WEB).await;
    assert!(page.text().contains("Allow Web App"), "{}", page.text());
    assert!(is_out(&victim.press(&page, "approve", &[]).await));
}

#[tokio::test]
async fn what_an_app_calls_itself_is_text_and_no_proof() {
    let gateway = setup()
        .await
        .yaml("authorization_server: { registration: { private_use_schemes: [cursor] } }")
        .start()
        .await;
    let body = json!({
        "client_name": "Codex</h1><script>alert(1)</script>\u{202e}\u{200b}\r\nX-Evil: 1",
        "redirect_uris": ["http://127.0.0.1:7/cb", "cursor://evil/cb"],
        "token_endpoint_auth_method": "none",
    });
    let answer = gateway
        .http()
        .post(format!("{}/oauth/register", gateway.url()))
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    let client: serde_json::Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let id = client["client_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{client}"));
    for (redirect, place) in [
        ("http://127.0.0.1:9/cb", "127.0.0.1:9"),
        ("cursor://evil/cb", "cursor:"),
    ] {
        let ask = super::support::browser::Ask::new(&gateway, id, redirect);
        let page = Browser::new().open(&ask).await;
        assert_eq!(page.status, 200, "{page:?}");
        assert!(!page.body.contains("<script") && !page.body.contains('\u{202e}'));
        let text = page.text();
        for part in [
            "Name not verified",
            place,
            "Approve only if you started this yourself",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
