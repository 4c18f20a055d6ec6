//! The token endpoint: codes, audiences, client authentication (C07, rules §4.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::support::browser::{Browser, VERIFIER};
use super::support::oauth::{
    body, code, exchange, post, post_with, refresh, refusal, register, signed_in, state, status_at,
    text,
};
use super::support::sign_in::{LOOPBACK, claims, desk, local, local_setup};
use super::support::{Gateway, json};

#[tokio::test]
async fn a_code_becomes_tokens_that_nobody_may_keep() {
    let gateway = local().await;
    let code = code(&desk(&gateway), "alice@acme.test").await;
    let page = post(&gateway, "/oauth/token", &exchange("desk", &code)).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(page.header("content-type"), "application/json");
    let tokens = body(&page);
    assert_eq!(
        (
            &tokens["token_type"],
            &tokens["expires_in"],
            &tokens["scope"]
        ),
        (&json!("Bearer"), &json!(600), &json!("mcp"))
    );
    let claims = claims(&tokens);
    assert_eq!(claims["iss"], gateway.audience(""));
    assert_eq!(claims["aud"], gateway.audience("/mcp"));
    assert_eq!(
        (&claims["client_id"], &claims["tenant"]),
        (&json!("desk"), &json!("acme"))
    );
    for claim in ["sub", "exp", "iat", "jti", "grant_id"] {
        assert!(!claims[claim].is_null(), "{claim}");
    }
    let stored = gateway.database().psql("SELECT string_agg(f::text || g::text, '') FROM oauth_families f JOIN oauth_grants g USING (grant_id)");
    for secret in [
        text(&tokens, "refresh_token"),
        text(&tokens, "access_token"),
        &code,
    ] {
        assert!(!stored.contains(secret));
    }
    assert_eq!(
        status_at(&gateway, "/mcp", text(&tokens, "access_token")).await,
        200
    );
}

#[tokio::test]
async fn a_token_is_for_its_endpoint_alone_also_after_a_refresh() {
    // C07
    let gateway = local().await;
    let acme = gateway.audience("/t/acme/mcp");
    let tokens = signed_in(
        &gateway,
        &desk(&gateway).with("resource", &acme),
        "desk",
        "alice@acme.test",
    )
    .await;
    assert_eq!(claims(&tokens)["aud"], acme);
    let access = text(&tokens, "access_token");
    for (path, status) in [("/t/acme/mcp", 200), ("/mcp", 401), ("/t/globex/mcp", 401)] {
        assert_eq!(status_at(&gateway, path, access).await, status, "{path}");
    }
    let token = text(&tokens, "refresh_token");
    let before = state(&gateway);
    let globex = gateway.audience("/t/globex/mcp");
    let refused = refresh(&gateway, "desk", token, &[("resource", &globex)]).await;
    assert_eq!(refusal(&refused), (400, "invalid_target".to_owned()));
    let twice = refresh(
        &gateway,
        "desk",
        token,
        &[("resource", &acme), ("resource", &acme)],
    )
    .await;
    assert_eq!(refusal(&twice), (400, "invalid_target".to_owned()));
    assert_eq!(state(&gateway), before);
    let refreshed = body(&refresh(&gateway, "desk", token, &[]).await);
    assert_eq!(claims(&refreshed)["aud"], acme);
    let root = signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    for (path, status) in [("/mcp", 200), ("/t/acme/mcp", 401)] {
        assert_eq!(
            status_at(&gateway, path, text(&root, "access_token")).await,
            status,
            "{path}"
        );
    }
}

#[tokio::test]
async fn exchanges_that_do_not_fit_are_refused_and_leave_the_code_good() {
    let gateway = local().await;
    let code = code(&desk(&gateway), "alice@acme.test").await;
    let before = state(&gateway);
    let other = "a".repeat(43);
    let fields = |client: &'static str| exchange(client, &code);
    let with = |name: &'static str, value: &'static str| {
        let mut fields = fields("desk");
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value));
        fields
    };
    let mut wrong_verifier = fields("desk");
    wrong_verifier.retain(|(name, _)| *name != "code_verifier");
    let mut no_verifier = wrong_verifier.clone();
    no_verifier.push(("x", "y"));
    wrong_verifier.push(("code_verifier", &other));
    for (what, fields, status, error) in [
        ("wrong verifier", wrong_verifier, 400, "invalid_grant"),
        ("no verifier", no_verifier, 400, "invalid_request"),
        (
            "short verifier",
            with("code_verifier", "short"),
            400,
            "invalid_request",
        ),
        ("another client", fields("other"), 400, "invalid_grant"),
        ("unknown client", fields("nobody"), 401, "invalid_client"),
        (
            "another redirect",
            with("redirect_uri", "http://127.0.0.1:2/callback"),
            400,
            "invalid_grant",
        ),
        (
            "another resource",
            with("resource", "https://evil.example/mcp"),
            400,
            "invalid_target",
        ),
        (
            "another grant",
            with("grant_type", "password"),
            400,
            "unsupported_grant_type",
        ),
        ("no grant", with("grant_type", ""), 400, "invalid_request"),
        (
            "no such code",
            with("code", "nothing"),
            400,
            "invalid_grant",
        ),
    ] {
        let page = post(&gateway, "/oauth/token", &fields).await;
        assert_eq!(refusal(&page), (status, error.to_owned()), "{what}");
    }
    assert_eq!(state(&gateway), before);
    let good = post(&gateway, "/oauth/token", &fields("desk")).await;
    assert_eq!(good.status, 200, "{good:?}");
}

#[tokio::test]
async fn a_code_ends_by_itself() {
    let gateway = local_setup()
        .await
        .yaml("authorization_server: { code_lifetime: 1s }")
        .start()
        .await;
    let code = code(&desk(&gateway), "alice@acme.test").await;
    let before = state(&gateway);
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let page = post(&gateway, "/oauth/token", &exchange("desk", &code)).await;
    assert_eq!(refusal(&page), (400, "invalid_grant".to_owned()));
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn of_many_exchanges_of_one_code_over_two_replicas_one_wins_at_most() {
    let gateway = local().await;
    let replica = gateway.replica().await;
    let code = code(&desk(&gateway), "alice@acme.test").await;
    let fields = exchange("desk", &code);
    let tries = (0..10).map(|n| {
        post(
            if n % 2 == 0 { &gateway } else { &replica },
            "/oauth/token",
            &fields,
        )
    });
    let pages = futures_util::future::join_all(tries).await;
    let good = pages.iter().filter(|page| page.status == 200).count();
    assert_eq!(good, 1, "{pages:?}");
    assert!(
        pages
            .iter()
            .all(|page| page.status == 200 || refusal(page).1 == "invalid_grant")
    );
    assert!(state(&gateway).starts_with("0 clients, 1 grants,  families, 1 revocations"));
}

#[tokio::test]
async fn a_client_may_prove_itself_in_one_way_at_a_time() {
    let gateway = local().await;
    let asked = json!({"redirect_uris": [LOOPBACK], "client_name": "App", "token_endpoint_auth_method": "client_secret_basic"});
    let client = body(&register(&gateway, &asked).await);
    let (id, secret) = (text(&client, "client_id"), text(&client, "client_secret"));
    let code = code(
        &super::support::browser::Ask::new(&gateway, id, LOOPBACK),
        "alice@acme.test",
    )
    .await;
    let before = state(&gateway);
    let bare = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("code_verifier", VERIFIER),
    ];
    let basic =
        |id: &str, secret: &str| format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let wrong = post_with(
        &gateway,
        "/oauth/token",
        &bare,
        &[("authorization", &basic(id, "wrong"))],
    )
    .await;
    assert_eq!(refusal(&wrong), (401, "invalid_client".to_owned()));
    assert!(wrong.header("www-authenticate").starts_with("Basic "));
    let mut both = bare.to_vec();
    both.push(("client_secret", secret));
    let twice = post_with(
        &gateway,
        "/oauth/token",
        &both,
        &[("authorization", &basic(id, secret))],
    )
    .await;
    assert_eq!(refusal(&twice), (400, "invalid_request".to_owned()));
    let mut named = bare.to_vec();
    named.push(("client_id", "desk"));
    let mixed = post_with(
        &gateway,
        "/oauth/token",
        &named,
        &[("authorization", &basic(id, secret))],
    )
    .await;
    assert_eq!(refusal(&mixed), (400, "invalid_request".to_owned()));
    assert_eq!(state(&gateway), before);
    // As Codex does: Basic, no client_id in the body.
    let good = post_with(
        &gateway,
        "/oauth/token",
        &bare,
        &[("authorization", &basic(id, secret))],
    )
    .await;
    assert_eq!(good.status, 200, "{good:?}");
}

#[tokio::test]
async fn several_replicas_that_start_at_once_have_one_signing_key() {
    let gateway: Gateway = local().await;
    let (one, two) = tokio::join!(gateway.replica(), gateway.replica());
    for replica in [&gateway, &one, &two] {
        let keys = Browser::new()
            .get(&format!("{}/oauth/jwks", replica.url()))
            .await;
        assert_eq!(body(&keys)["keys"].as_array().unwrap().len(), 1, "{keys:?}");
    }
    let tokens = signed_in(&one, &desk(&one), "desk", "alice@acme.test").await;
    assert_eq!(
        status_at(&two, "/mcp", text(&tokens, "access_token")).await,
        200
    );
}
