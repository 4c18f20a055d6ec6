//! The authorization endpoint: what may be asked for, where refusals go (C09, C10,
//! rules §4.2, §4.3, §4.9).

use super::support::browser::{Ask, Browser};
use super::support::oauth::{code, state};
use super::support::sign_in::{LOOPBACK, desk, local};

#[tokio::test]
async fn refusals_of_a_known_client_go_to_its_redirect_with_state_and_issuer() {
    let gateway = local().await;
    let before = state(&gateway);
    let good = || desk(&gateway);
    for (what, ask, error) in [
        (
            "no PKCE",
            good().without("code_challenge"),
            "invalid_request",
        ),
        (
            "plain PKCE",
            good().with("code_challenge_method", "plain"),
            "invalid_request",
        ),
        (
            "no method",
            good().without("code_challenge_method"),
            "invalid_request",
        ),
        (
            "bad challenge",
            good().with("code_challenge", "short"),
            "invalid_request",
        ),
        (
            "token flow",
            good().with("response_type", "token"),
            "unsupported_response_type",
        ),
        (
            "no type",
            good().without("response_type"),
            "invalid_request",
        ),
        (
            "fragment mode",
            good().with("response_mode", "fragment"),
            "invalid_request",
        ),
        (
            "request object",
            good().with("request", "x.y.z"),
            "invalid_request",
        ),
        (
            "request by URL",
            good().with("request_uri", "https://evil.example"),
            "invalid_request",
        ),
        (
            "foreign resource",
            good().with("resource", "https://evil.example/mcp"),
            "invalid_target",
        ),
        (
            "resource with a slash",
            good().with("resource", &gateway.audience("/mcp/")),
            "invalid_target",
        ),
        (
            "two resources",
            good()
                .and("resource", &gateway.audience("/mcp"))
                .and("resource", &gateway.audience("/mcp")),
            "invalid_target",
        ),
        (
            "two scopes",
            good().and("scope", "mcp").and("scope", "mcp"),
            "invalid_request",
        ),
        (
            "prompt none",
            good().with("prompt", "none"),
            "login_required",
        ),
        (
            "prompt none and login",
            good().with("prompt", "none login"),
            "invalid_request",
        ),
    ] {
        let page = Browser::new().open(&ask).await;
        let location = page
            .location()
            .unwrap_or_else(|| panic!("{what}: {page:?}"));
        assert!(
            location.starts_with(&format!("{LOOPBACK}?")),
            "{what}: {location}"
        );
        assert_eq!(page.sent("error").as_deref(), Some(error), "{what}");
        assert_eq!(
            page.sent("state").as_deref(),
            Some("state-of-the-client"),
            "{what}"
        );
        assert_eq!(page.sent("iss"), Some(gateway.audience("")), "{what}");
        assert_eq!(page.sent("code"), None, "{what}");
    }
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn nobody_is_sent_where_the_client_or_the_redirect_is_not_certain() {
    let gateway = local().await;
    let before = state(&gateway);
    for (what, ask) in [
        ("no client", desk(&gateway).without("client_id")),
        ("unknown client", desk(&gateway).with("client_id", "nobody")),
        ("two clients", desk(&gateway).and("client_id", "other")),
        (
            "client with markup",
            desk(&gateway).with("client_id", "<script>alert(1)</script>"),
        ),
        (
            "another path",
            desk(&gateway).with("redirect_uri", "http://127.0.0.1:1/other"),
        ),
        (
            "another host",
            desk(&gateway).with("redirect_uri", "http://localhost:1/callback"),
        ),
        (
            "another scheme",
            desk(&gateway).with("redirect_uri", "https://127.0.0.1:1/callback"),
        ),
        (
            "a query more",
            desk(&gateway).with("redirect_uri", "http://127.0.0.1:1/callback?x"),
        ),
        (
            "two redirects",
            desk(&gateway).and("redirect_uri", "https://evil.example/"),
        ),
        (
            "evil redirect",
            desk(&gateway).with("redirect_uri", "https://evil.example/callback"),
        ),
    ] {
        let page = Browser::new().open(&ask).await;
        assert_eq!(
            (page.status.as_u16(), page.location()),
            (400, None),
            "{what}: {page:?}"
        );
        assert!(!page.body.contains("<script>alert"), "{what}");
        assert!(
            page.header("content-security-policy")
                .contains("frame-ancestors 'none'"),
            "{what}"
        );
    }
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn a_request_may_be_repeated_and_consumes_nothing() {
    let gateway = local().await;
    let ask = desk(&gateway);
    for _ in 0..3 {
        assert_eq!(Browser::new().open(&ask).await.status, 200);
    }
    let head = gateway.http().head(ask.url()).send().await.unwrap();
    assert_eq!(head.status(), 200);
    assert!(state(&gateway).starts_with("0 clients, 0 grants,  families, 0 revocations"));
    assert!(!code(&ask, "alice@acme.test").await.is_empty());
}

#[tokio::test]
async fn a_long_or_hostile_state_comes_back_unchanged_or_not_at_all() {
    let gateway = local().await;
    let hostile = "a\r\nSet-Cookie: x=y\r\n\r\n<script>&iss=evil";
    let out = Browser::new()
        .connect(&desk(&gateway).with("state", hostile), "alice@acme.test")
        .await;
    assert_eq!(out.sent("state").as_deref(), Some(hostile));
    assert_eq!(out.sent("iss"), Some(gateway.audience("")));
    assert!(
        out.headers
            .get("set-cookie")
            .is_none_or(|value| !value.to_str().unwrap().starts_with("x=y"))
    );
    let long = "s".repeat(1024);
    let out = Browser::new()
        .connect(&desk(&gateway).with("state", &long), "alice@acme.test")
        .await;
    assert_eq!(out.sent("state").as_deref(), Some(long.as_str()));
    let longer = desk(&gateway).with("state", &"s".repeat(1025));
    assert_eq!(
        Browser::new().open(&longer).await.sent("error").as_deref(),
        Some("invalid_request")
    );
    let _: &Ask = &longer;
}
