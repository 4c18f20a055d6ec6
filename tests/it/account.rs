//! A person's own page: what is connected, and the end of it.

use super::support::browser::{Browser, Page};
use super::support::sign_in::{LOOPBACK, WEB, desk, local, refresh, rows, tokens, web};
use super::support::{Gateway, eventually, json};

fn at(gateway: &Gateway, path: &str) -> String {
    format!("{}{path}", gateway.url())
}

async fn account(gateway: &Gateway, browser: &Browser) -> Page {
    browser.get(&at(gateway, "/account")).await
}

/// Sends a form of the account page.
async fn act(gateway: &Gateway, browser: &Browser, path: &str, fields: &[(&str, &str)]) -> Page {
    browser
        .post(&at(gateway, path), fields, gateway.url())
        .await
}

#[tokio::test]
async fn a_person_sees_what_is_connected_and_ends_it() {
    let gateway = local().await;
    let browser = Browser::new();
    let out = browser.connect(&desk(&gateway), "alice@acme.test").await;
    let desk_tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    let out = browser.connect(&web(&gateway), "alice@acme.test").await;
    let web_tokens = tokens(&gateway, "web", &out, WEB).await;
    let page = account(&gateway, &browser).await;
    let text = page.text();
    for part in [
        "alice@acme.test",
        "Desk App",
        "Web App",
        "app.example.com",
        "A program on one of your computers",
        "See and use the tools that your organisation gives you",
        "just now",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let caller = |tokens: &serde_json::Value| {
        gateway
            .anonymous()
            .bearer(tokens["access_token"].as_str().unwrap())
    };
    let lists = async |tokens: &serde_json::Value| {
        let mut session = caller(tokens).modern();
        session.request("tools/list", json!({})).await.status
    };
    assert_eq!(lists(&desk_tokens).await, 200);
    // The web app's row is the first: it was used last.
    let web_grant = page.field("grant");
    let fields = [("token", &*page.field("token")), ("grant", &web_grant)];
    let done = act(&gateway, &browser, "/account/revoke", &fields).await;
    let page = browser.follow(done, WEB).await;
    assert!(
        page.text().contains("The app is disconnected."),
        "{}",
        page.text()
    );
    assert!(!page.text().contains("Web App"));
    assert_eq!(refresh(&gateway, "web", &web_tokens).await.status, 400);
    eventually("the access token is known to be revoked", async || {
        (lists(&web_tokens).await == 401).then_some(())
    })
    .await;
    assert_eq!(lists(&desk_tokens).await, 200, "the other one stays");
    let fields = [("token", &*page.field("token")), ("grant", "all")];
    let done = act(&gateway, &browser, "/account/revoke", &fields).await;
    let page = browser.follow(done, WEB).await;
    assert!(
        page.text().contains("No app is connected."),
        "{}",
        page.text()
    );
    assert_eq!(refresh(&gateway, "desk", &desk_tokens).await.status, 400);
    assert_eq!(rows(&gateway), "1 0 0");
    // Consent went with it.
    assert!(browser.open(&web(&gateway)).await.location().is_none());
}

#[tokio::test]
async fn the_page_asks_who_it_is_and_forgets_it_on_every_replica() {
    let gateway = local().await;
    let browser = Browser::new();
    let page = account(&gateway, &browser).await;
    assert_eq!(page.location().unwrap(), at(&gateway, "/oauth/login"));
    let page = browser.follow(page, WEB).await;
    assert!(
        page.text().contains("to see your connected apps"),
        "{}",
        page.text()
    );
    let page = browser.sign_in(&page, "alice@acme.test").await;
    let page = browser.follow(page, WEB).await;
    assert!(
        page.text().contains("No app is connected."),
        "{}",
        page.text()
    );
    let replica = gateway.replica().await;
    let there = account(&replica, &browser).await;
    assert!(there.text().contains("alice@acme.test"), "{}", there.text());
    let stolen = browser.copy();
    let fields = [("token", &*page.field("token"))];
    let out = act(&gateway, &browser, "/account/sign-out", &fields).await;
    assert!(out.text().contains("You are signed out"), "{}", out.text());
    assert!(account(&gateway, &browser).await.location().is_some());
    assert!(
        account(&gateway, &stolen).await.location().is_some(),
        "the row is gone"
    );
    assert!(account(&replica, &stolen).await.location().is_some());
}

#[tokio::test]
async fn nobody_ends_what_is_another_persons_and_no_other_site_ends_anything() {
    let gateway = local().await;
    let (alice, bob) = (Browser::new(), Browser::new());
    alice.connect(&desk(&gateway), "alice@acme.test").await;
    bob.connect(&desk(&gateway), "bob@globex.test").await;
    let (of_alice, of_bob) = (
        account(&gateway, &alice).await,
        account(&gateway, &bob).await,
    );
    let before = rows(&gateway);
    let (token, grant) = (of_alice.field("token"), of_alice.field("grant"));
    let fields = [("token", &*of_bob.field("token")), ("grant", &*grant)];
    act(&gateway, &bob, "/account/revoke", &fields).await;
    assert_eq!(rows(&gateway), before, "a grant of alice by bob");
    let fields = [("token", &*token), ("grant", &*grant)];
    let page = act(&gateway, &bob, "/account/revoke", &fields).await;
    assert_eq!(page.status, 403, "a form of alice in bob's browser");
    let url = at(&gateway, "/account/revoke");
    for headers in [
        [("origin", "https://evil.example")],
        [("sec-fetch-site", "cross-site")],
    ] {
        assert_eq!(alice.post_with(&url, &fields, &headers).await.status, 403);
    }
    let without = [("grant", &*grant)];
    assert_eq!(
        act(&gateway, &alice, "/account/revoke", &without)
            .await
            .status,
        403
    );
    assert_eq!(alice.get(&format!("{url}?grant={grant}")).await.status, 405);
    assert_eq!(rows(&gateway), before);
    act(&gateway, &alice, "/account/revoke", &fields).await;
    assert_ne!(rows(&gateway), before, "and it works where all is right");
}

#[tokio::test]
async fn a_user_who_is_removed_is_signed_in_no_more() {
    let mut gateway = local().await;
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "bob@globex.test").await;
    assert!(
        account(&gateway, &browser)
            .await
            .text()
            .contains("Desk App")
    );
    gateway.reload(r#"users: { "bob@globex.test": null }"#);
    eventually("bob is signed out", async || {
        account(&gateway, &browser).await.location()
    })
    .await;
}
