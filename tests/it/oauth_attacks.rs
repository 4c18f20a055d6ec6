//! What an attacker tries against the authorization server. Each test compares what
//! the database holds before and after: a refusal that stores something is half a hit.
//! More of it, where it belongs to one endpoint, is in that endpoint's file.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::support::browser::{Ask, Browser};
use super::support::keys::{Keys, Token};
use super::support::oauth::{
    Documents, body, code, exchange, post, refresh, refusal, register, signed_in, state, status_at,
    text,
};
use super::support::sign_in::{LOOPBACK, WEB, claims, desk, local, local_setup, web};
use super::support::{Gateway, Value, json};

async fn alice(gateway: &Gateway) -> Value {
    signed_in(gateway, &desk(gateway), "desk", "alice@acme.test").await
}

/// Opens a request and makes sure that nobody is sent anywhere and nothing is kept.
async fn stopped(gateway: &Gateway, ask: &Ask, what: &str) {
    let before = state(gateway);
    let page = Browser::new().open(ask).await;
    assert_eq!(
        (page.status.as_u16(), page.location()),
        (400, None),
        "{what}: {page:?}"
    );
    assert_eq!(state(gateway), before, "{what}");
}

#[tokio::test]
async fn redirect_tricks_with_an_https_redirect_lead_nowhere() {
    let gateway = local().await;
    for uri in [
        "https://app.example.com/callback/",
        "https://app.example.com/callback/../evil",
        "https://app.example.com/callback%2f..%2fevil",
        "https://app.example.com/Callback",
        "https://APP.example.com/callback",
        "https://app.example.com:443/callback",
        "https://app.example.com:8443/callback",
        "https://app.example.com/callback?next=https://evil.example",
        "https://app.example.com/callback#@evil.example",
        "https://app.example.com@evil.example/callback",
        "https://app.example.com.evil.example/callback",
        "https://app.example.com\\@evil.example/callback",
        "https://evil.example/https://app.example.com/callback",
        "http://app.example.com/callback",
        "//app.example.com/callback",
        "javascript:alert(1)",
        " https://app.example.com/callback",
        "https://app.example.com/callback\r\nLocation: https://evil.example",
        "https://app.example.com/callback\0",
        "https://xn--app-example-com.evil/callback",
    ] {
        stopped(&gateway, &web(&gateway).with("redirect_uri", uri), uri).await;
    }
}

#[tokio::test]
async fn redirect_tricks_with_a_loopback_redirect_lead_nowhere() {
    let gateway = local().await;
    for uri in [
        "http://127.0.0.1:1@evil.example/callback",
        "http://127.0.0.1.evil.example/callback",
        "http://127.0.0.1:1.evil.example/callback",
        "http://127.0.0.2:1/callback",
        "http://127.1:1/callback",
        "http://2130706433:1/callback",
        "http://0x7f000001:1/callback",
        "http://[::1]:1/callback",
        "http://[::ffff:127.0.0.1]:1/callback",
        "http://localhost:1/callback",
        "http://0.0.0.0:1/callback",
        "http://127.0.0.1:70000/callback",
        "http://127.0.0.1:/callback",
        "http://127.0.0.1:1/callback/evil",
        "http://127.0.0.1:1/callback?x=y",
        "https://127.0.0.1:1/callback",
    ] {
        stopped(&gateway, &desk(&gateway).with("redirect_uri", uri), uri).await;
    }
}

#[tokio::test]
async fn another_clients_redirect_is_nobody_elses() {
    let gateway = local().await;
    stopped(
        &gateway,
        &desk(&gateway).with("redirect_uri", WEB),
        "desk to web",
    )
    .await;
    stopped(
        &gateway,
        &web(&gateway).with("redirect_uri", LOOPBACK),
        "web to desk",
    )
    .await;
}

#[tokio::test]
async fn pkce_cannot_be_left_out_or_weakened_at_either_end() {
    let gateway = local().await;
    for ask in [
        desk(&gateway).without("code_challenge"),
        desk(&gateway).with("code_challenge_method", "plain"),
        desk(&gateway).without("code_challenge_method"),
        desk(&gateway).and("code_challenge", "x"),
    ] {
        let page = Browser::new().open(&ask).await;
        assert_eq!(
            page.sent("error").as_deref(),
            Some("invalid_request"),
            "{page:?}"
        );
    }
    let code = code(&desk(&gateway), "alice@acme.test").await;
    let before = state(&gateway);
    // The challenge itself as a verifier is the downgrade to `plain`.
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    for verifier in ["", challenge, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK"] {
        let mut fields = exchange("desk", &code);
        fields.retain(|(name, _)| *name != "code_verifier");
        fields.push(("code_verifier", verifier));
        assert_eq!(
            post(&gateway, "/oauth/token", &fields).await.status,
            400,
            "{verifier}"
        );
    }
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn a_replayed_code_ends_what_came_of_it() {
    let gateway = local().await;
    let replica = gateway.replica().await;
    let code = code(&desk(&gateway), "alice@acme.test").await;
    let tokens = body(&post(&gateway, "/oauth/token", &exchange("desk", &code)).await);
    let access = text(&tokens, "access_token");
    assert_eq!(status_at(&gateway, "/mcp", access).await, 200);
    let replayed = post(&replica, "/oauth/token", &exchange("desk", &code)).await;
    assert_eq!(refusal(&replayed), (400, "invalid_grant".to_owned()));
    assert!(state(&gateway).starts_with("0 clients, 1 grants,  families, 1 revocations"));
    super::support::eventually("the access token ends", async || {
        (status_at(&gateway, "/mcp", access).await == 401).then_some(())
    })
    .await;
    let refreshed = refresh(&gateway, "desk", text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(refusal(&refreshed), (400, "invalid_grant".to_owned()));
}

#[tokio::test]
async fn a_stolen_code_is_of_no_use_to_another_client_or_verifier() {
    let gateway = local().await;
    let stolen = code(&desk(&gateway), "alice@acme.test").await;
    let before = state(&gateway);
    for client in ["other", "web", "nobody"] {
        let page = post(&gateway, "/oauth/token", &exchange(client, &stolen)).await;
        assert_ne!(page.status, 200, "{client}");
    }
    assert_eq!(state(&gateway), before);
    assert_eq!(
        post(&gateway, "/oauth/token", &exchange("desk", &stolen))
            .await
            .status,
        200
    );
}

/// An access token of ours with its header and claims changed, and its signature kept.
fn altered(token: &str, header: impl Fn(&mut Value), claims: impl Fn(&mut Value)) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let change = |part: &str, change: &dyn Fn(&mut Value)| {
        let mut value: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        change(&mut value);
        URL_SAFE_NO_PAD.encode(value.to_string())
    };
    format!(
        "{}.{}.{}",
        change(parts[0], &header),
        change(parts[1], &claims),
        parts[2]
    )
}

#[tokio::test]
async fn access_tokens_cannot_be_altered_or_made() {
    let gateway = local().await;
    let tokens = alice(&gateway).await;
    let good = text(&tokens, "access_token");
    assert_eq!(status_at(&gateway, "/mcp", good).await, 200);
    let before = state(&gateway);
    let keep = |_: &mut Value| {};
    let header =
        |name: &'static str, value: Value| move |header: &mut Value| header[name] = value.clone();
    let parts: Vec<&str> = good.split('.').collect();
    let stranger = Keys::generate("stranger");
    let issuer = gateway.audience("");
    let forged = Token::new(
        &stranger,
        &issuer,
        &gateway.audience("/mcp"),
        "mallory",
        "acme",
    );
    let kid = header("kid", json!("../../etc/passwd"));
    for (what, token) in [
        (
            "alg none",
            altered(good, header("alg", json!("none")), keep),
        ),
        (
            "alg none, no signature",
            format!(
                "{}.{}.",
                altered(good, header("alg", json!("none")), keep)
                    .rsplit_once('.')
                    .unwrap()
                    .0,
                ""
            )
            .trim_end_matches('.')
            .to_owned()
                + ".",
        ),
        (
            "alg HS256",
            altered(good, header("alg", json!("HS256")), keep),
        ),
        (
            "alg RS256",
            altered(good, header("alg", json!("RS256")), keep),
        ),
        (
            "alg EdDSA",
            altered(good, header("alg", json!("EdDSA")), keep),
        ),
        ("kid as a path", altered(good, kid, keep)),
        (
            "kid as SQL",
            altered(good, header("kid", json!("' OR 1=1 --")), keep),
        ),
        (
            "no kid",
            altered(
                good,
                |header| {
                    header.as_object_mut().unwrap().remove("kid");
                },
                keep,
            ),
        ),
        (
            "jku",
            altered(
                good,
                header("jku", json!("https://evil.example/jwks")),
                keep,
            ),
        ),
        (
            "embedded key",
            altered(good, header("jwk", stranger.public()[0].clone()), keep),
        ),
        ("crit", altered(good, header("crit", json!(["x"])), keep)),
        ("typ JWT", altered(good, header("typ", json!("JWT")), keep)),
        (
            "another tenant",
            altered(good, keep, |claims| claims["tenant"] = json!("globex")),
        ),
        (
            "more scopes",
            altered(good, keep, |claims| claims["scope"] = json!("mcp echo.use")),
        ),
        (
            "more roles",
            altered(good, keep, |claims| claims["roles"] = json!(["admin"])),
        ),
        (
            "longer",
            altered(good, keep, |claims| {
                claims["exp"] = json!(9_999_999_999_i64);
            }),
        ),
        ("no signature", format!("{}.{}.", parts[0], parts[1])),
        ("two parts", format!("{}.{}", parts[0], parts[1])),
        ("another's key", forged.sign()),
        (
            "symmetric with public bytes",
            Token::new(&stranger, &issuer, &gateway.audience("/mcp"), "m", "acme")
                .hmac(stranger.rsa_public_der())
                .sign(),
        ),
        (
            "the provider's key under our name",
            gateway
                .idp()
                .token("alice@acme", &gateway.audience("/mcp"))
                .claim("iss", issuer.as_str())
                .sign(),
        ),
        (
            "the refresh token",
            text(&tokens, "refresh_token").to_owned(),
        ),
    ] {
        assert_eq!(status_at(&gateway, "/mcp", &token).await, 401, "{what}");
    }
    assert_eq!(status_at(&gateway, "/mcp", good).await, 200);
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn a_signing_key_that_somebody_put_into_the_table_is_not_believed() {
    let gateway = local().await;
    alice(&gateway).await;
    let other = local().await;
    let tokens = alice(&other).await;
    let kid = URL_SAFE_NO_PAD
        .decode(text(&tokens, "access_token").split('.').next().unwrap())
        .unwrap();
    let kid: Value = serde_json::from_slice(&kid).unwrap();
    let sealed = other
        .database()
        .psql("SELECT sealed FROM oauth_signing_keys");
    gateway.database().psql(&format!(
        "INSERT INTO oauth_signing_keys SELECT '{}', 99, '{}', now(), now(), now() + interval '1 day'",
        kid["kid"].as_str().unwrap(),
        sealed.trim()
    ));
    let keys = Browser::new()
        .get(&format!("{}/oauth/jwks", gateway.url()))
        .await;
    assert!(!keys.body.contains(kid["kid"].as_str().unwrap()));
    let forged = altered(
        text(&tokens, "access_token"),
        |_| {},
        |claims| claims["iss"] = json!("x"),
    );
    for token in [text(&tokens, "access_token"), &forged] {
        assert_eq!(status_at(&gateway, "/mcp", token).await, 401);
    }
}

#[tokio::test]
async fn tokens_of_one_tenant_open_nothing_of_another() {
    let gateway = local().await;
    let before = state(&gateway);
    let globex = gateway.audience("/t/globex/mcp");
    // Alice asks for the other tenant's endpoint: she has no place there.
    let out = Browser::new()
        .connect(&desk(&gateway).with("resource", &globex), "alice@acme.test")
        .await;
    assert_eq!(out.sent("code"), None, "{out:?}");
    assert_eq!(state(&gateway), before);
    let bob = signed_in(
        &gateway,
        &desk(&gateway).with("resource", &globex),
        "desk",
        "bob@globex.test",
    )
    .await;
    assert_eq!(claims(&bob)["tenant"], "globex");
    for (path, status) in [
        ("/t/globex/mcp", 200),
        ("/t/acme/mcp", 401),
        ("/mcp", 401),
        ("/t/nobody/mcp", 401),
    ] {
        assert_eq!(
            status_at(&gateway, path, text(&bob, "access_token")).await,
            status,
            "{path}"
        );
    }
}

#[tokio::test]
async fn documents_on_private_addresses_are_never_connected_to() {
    // C06 c: the address that is connected to counts. Nothing listens for us here but
    // a trap on loopback, under every notation that leads there.
    let trap = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = trap.local_addr().unwrap().port();
    let gateway = local_setup()
        .await
        .yaml("outgoing: { allow_networks: [] }")
        .start()
        .await;
    let before = state(&gateway);
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "10.0.0.5",
        "169.254.169.254",
        "[fd00::1]",
        "[fe80::1]",
    ] {
        let id = format!("https://{host}:{port}/client.json");
        let page = Browser::new()
            .open(&Ask::new(&gateway, &id, LOOPBACK))
            .await;
        assert_eq!(
            (page.status.as_u16(), page.location()),
            (400, None),
            "{host}"
        );
    }
    let came = tokio::time::timeout(std::time::Duration::from_millis(100), trap.accept()).await;
    assert!(came.is_err(), "somebody connected");
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn a_document_cannot_speak_for_another_client_or_widen_by_redirects_elsewhere() {
    let documents = Documents::start().await;
    let gateway = local_setup()
        .await
        .yaml(&documents.config().to_string())
        .start()
        .await;
    let id = "https://app.example.invalid/mine.json";
    for document in [
        json!({"client_id": "desk", "redirect_uris": [LOOPBACK]}),
        json!({"client_id": "https://app.example.invalid/other.json", "redirect_uris": [LOOPBACK]}),
        json!({"client_id": [id], "redirect_uris": [LOOPBACK]}),
        json!({"client_id": id, "redirect_uris": []}),
        json!({"client_id": id, "redirect_uris": ["https://*.example.com/cb"]}),
        json!({"client_id": id, "redirect_uris": [LOOPBACK], "client_secret": "x"}),
        json!({"client_id": id, "redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "private_key_jwt"}),
        json!({"client_id": id, "redirect_uris": [LOOPBACK], "grant_types": ["client_credentials"]}),
    ] {
        documents.put("/mine.json", &document.to_string());
        gateway
            .http()
            .get(Ask::new(&gateway, id, LOOPBACK).url())
            .send()
            .await
            .unwrap();
        stopped(
            &gateway,
            &Ask::new(&gateway, id, LOOPBACK),
            &document.to_string(),
        )
        .await;
    }
}

#[tokio::test]
async fn a_flood_of_registrations_fills_nothing_and_harms_no_known_client() {
    let gateway = local_setup()
        .await
        .yaml("authorization_server: { registration: { limit: { rate: 1/h, burst: 5 } } }")
        .start()
        .await;
    let metadata = json!({"redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "none"});
    let pages =
        futures_util::future::join_all((0..40).map(|_| register(&gateway, &metadata))).await;
    let made = pages.iter().filter(|page| page.status == 201).count();
    assert_eq!(made, 5);
    assert!(
        pages
            .iter()
            .all(|page| page.status == 201 || page.status == 429)
    );
    assert!(state(&gateway).starts_with("5 clients"));
    alice(&gateway).await;
}

#[tokio::test]
async fn names_of_clients_cannot_carry_markup_lines_or_hidden_text() {
    let gateway = local().await;
    let name = "<img src=x onerror=alert(1)>\r\nSet-Cookie: a=b\u{202e}\u{200b}Claude";
    let client = body(&register(&gateway, &json!({"redirect_uris": [LOOPBACK], "client_name": name, "token_endpoint_auth_method": "none"})).await);
    let before = state(&gateway);
    let kept = text(&client, "client_name");
    assert!(
        !kept.contains(['\r', '\n', '\u{202e}', '\u{200b}']),
        "{kept:?}"
    );
    let page = Browser::new()
        .open(&Ask::new(&gateway, text(&client, "client_id"), LOOPBACK))
        .await;
    assert_eq!(page.status, 200);
    assert!(!page.body.contains("<img src=x"), "{}", page.body);
    assert!(
        page.headers
            .get_all("set-cookie")
            .iter()
            .all(|line| !line.to_str().unwrap().starts_with("a=b"))
    );
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn what_strangers_send_forges_no_line_and_no_secret_is_in_the_log() {
    let gateway = local().await;
    let before = state(&gateway);
    let hostile = "x\r\n{\"level\":\"ERROR\",\"message\":\"forged line\"}";
    for fields in [
        vec![("grant_type", hostile), ("client_id", "desk")],
        vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", hostile),
            ("client_id", "desk"),
        ],
        vec![
            ("grant_type", "authorization_code"),
            ("code", hostile),
            ("client_id", hostile),
        ],
    ] {
        post(&gateway, "/oauth/token", &fields).await;
    }
    Browser::new()
        .open(
            &desk(&gateway)
                .with("client_id", hostile)
                .with("state", hostile),
        )
        .await;
    assert_eq!(state(&gateway), before);
    let code = code(&desk(&gateway), "alice@acme.test").await;
    let tokens = body(&post(&gateway, "/oauth/token", &exchange("desk", &code)).await);
    let log = gateway.logs().tail(100_000);
    assert!(!log.contains("forged line"), "{log}");
    for (what, secret) in [
        ("code", code.as_str()),
        ("access token", text(&tokens, "access_token")),
        ("refresh token", text(&tokens, "refresh_token")),
    ] {
        assert!(!log.contains(secret), "the {what} is in the log");
    }
}

#[tokio::test]
async fn scopes_cannot_be_widened_on_any_way() {
    let gateway = local_setup()
        .await
        .yaml(r#"clients: { narrow: { redirect_uris: ["http://127.0.0.1/callback"], scopes: [mcp] } }"#)
        .start()
        .await;
    let ask = Ask::new(&gateway, "narrow", LOOPBACK);
    let only = Browser::new()
        .open(&ask.clone().with("scope", "echo.use"))
        .await;
    assert_eq!(only.sent("error").as_deref(), Some("invalid_scope"));
    let tokens = signed_in(
        &gateway,
        &ask.with("scope", "mcp echo.use"),
        "narrow",
        "alice@acme.test",
    )
    .await;
    assert_eq!(tokens["scope"], "mcp");
    let before = state(&gateway);
    let wide = refresh(
        &gateway,
        "narrow",
        text(&tokens, "refresh_token"),
        &[("scope", "echo.use")],
    )
    .await;
    assert_eq!(refusal(&wide), (400, "invalid_scope".to_owned()));
    // And a token without the scope steps up with all that is needed.
    let caller = gateway.anonymous().bearer(text(&tokens, "access_token"));
    let refused = caller.modern().call("echo", json!({"text": "x"})).await;
    assert_eq!(refused.status, 403);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("insufficient_scope") && challenge.contains("echo.use"),
        "{challenge}"
    );
    assert_eq!(state(&gateway), before);
}

#[test]
fn every_attack_of_the_table_names_a_test_that_exists() {
    let root = env!("CARGO_MANIFEST_DIR");
    let table = std::fs::read_to_string(format!("{root}/docs/security.md")).unwrap();
    let named = regex::Regex::new(r"(?m)^\| (\d+) \|.*\| `(\w+)::(\w+)` \|$").unwrap();
    let mut rows = 0;
    for row in named.captures_iter(&table) {
        rows += 1;
        assert_eq!(row[1].parse::<usize>().unwrap(), rows);
        let file = format!("{root}/tests/it/{}.rs", &row[2]);
        let tests = std::fs::read_to_string(&file).unwrap();
        let name = format!("fn {}(", &row[3]);
        assert!(tests.contains(&name), "{file} has no {name}");
    }
    let numbered = regex::Regex::new(r"(?m)^\| \d+ \|").unwrap();
    assert_eq!(rows, numbered.find_iter(&table).count());
    assert!(rows >= 60, "{rows}");
}

#[tokio::test]
async fn a_broader_scope_stands_for_narrower_ones_and_a_step_up_loses_none() {
    let gateway = local_setup()
        .await
        .yaml("authorization_server: { implied_scopes: { tools.all: [tools.some], tools.some: [echo.use] } }")
        .start()
        .await;
    let call = async |tokens: &Value| {
        let caller = gateway.anonymous().bearer(text(tokens, "access_token"));
        let called = caller.modern().call("echo", json!({"text": "x"})).await;
        let challenge = called.header("www-authenticate").unwrap_or_default();
        (called.status.as_u16(), challenge.to_owned())
    };
    let asked = async |scope: &str| {
        let ask = desk(&gateway).with("scope", scope);
        let code = code(&ask, "alice@acme.test").await;
        body(&post(&gateway, "/oauth/token", &exchange("desk", &code)).await)
    };
    let broad = asked("mcp tools.all").await;
    assert_eq!(broad["scope"], "mcp tools.all");
    assert_eq!(call(&broad).await.0, 200);
    // A refresh may ask for what the broader one stands for, and for no more than that.
    let token = text(&broad, "refresh_token");
    let narrow = refresh(&gateway, "desk", token, &[("scope", "mcp echo.use")]).await;
    let narrow = body(&narrow);
    assert_eq!(narrow["scope"], "mcp echo.use");
    assert_eq!(call(&narrow).await.0, 200);
    let some = asked("mcp tools.some").await;
    let token = text(&some, "refresh_token");
    let wide = refresh(&gateway, "desk", token, &[("scope", "tools.all")]).await;
    assert_eq!(refusal(&wide), (400, "invalid_scope".to_owned()));
    // What the token has is asked for again with what it lacks.
    let (status, challenge) = call(&asked("mcp").await).await;
    assert_eq!(status, 403);
    assert!(challenge.contains("scope=\"echo.use mcp\""), "{challenge}");
}
