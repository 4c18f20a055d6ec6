//! Clients: registered by themselves, by a document, beforehand (C04, C05, C06).

use super::support::browser::{Ask, Browser};
use super::support::oauth::{
    Documents, body, code, exchange, post, refresh, refusal, register, signed_in, state, text,
};
use super::support::sign_in::{local, setup};
use super::support::{Gateway, Value, json};

const LOOPBACK: &str = "http://127.0.0.1:1/callback";

fn codex() -> Value {
    json!({"client_name":"Codex","redirect_uris":["http://127.0.0.1:4711/callback"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none","response_types":["code"],"scope":"mcp:connect","application_type":"native"})
}

#[tokio::test]
async fn a_registered_client_survives_restarts_and_serves_on_every_replica() {
    // C04
    let mut gateway = local().await;
    let registered = register(&gateway, &codex()).await;
    assert_eq!(registered.status, 201, "{registered:?}");
    assert_eq!(registered.header("cache-control"), "no-store");
    let client = body(&registered);
    assert!(client.get("client_secret").is_none());
    let id = text(&client, "client_id").to_owned();
    let replica = gateway.replica().await;
    gateway.restart().await;
    // The port is the person's machine's own; another host name is another redirect.
    let tokens = signed_in(
        &replica,
        &Ask::new(&gateway, &id, LOOPBACK),
        &id,
        "alice@acme.test",
    )
    .await;
    let other = Browser::new()
        .open(&Ask::new(&gateway, &id, "http://localhost:1/callback"))
        .await;
    assert_eq!((other.status.as_u16(), other.location()), (400, None));

    // Once it is gone, the client learns that it has to register again.
    let late = code(&Ask::new(&gateway, &id, LOOPBACK), "alice@acme.test").await;
    gateway.database().psql("DELETE FROM oauth_clients");
    let page = Browser::new()
        .open(&Ask::new(&replica, &id, LOOPBACK))
        .await;
    assert_eq!((page.status.as_u16(), page.location()), (400, None));
    assert!(page.text().contains("not known"), "{}", page.text());
    let exchanged = post(&gateway, "/oauth/token", &exchange(&id, &late)).await;
    assert_eq!(refusal(&exchanged), (401, "invalid_client".to_owned()));
    let refreshed = refresh(&gateway, &id, text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(refusal(&refreshed), (401, "invalid_client".to_owned()));
}

#[tokio::test]
async fn a_confidential_registration_gets_a_secret_once_and_must_use_it() {
    let gateway = local().await;
    let asked = json!({"redirect_uris": [LOOPBACK], "client_name": "Confidential"});
    let client = body(&register(&gateway, &asked).await);
    let (id, secret) = (text(&client, "client_id"), text(&client, "client_secret"));
    assert_eq!(client["token_endpoint_auth_method"], "client_secret_basic");
    let stored = gateway
        .database()
        .psql("SELECT c::text FROM oauth_clients c");
    assert!(!stored.contains(secret), "only a digest is stored");
    let code = code(&Ask::new(&gateway, id, LOOPBACK), "alice@acme.test").await;
    let mut fields = exchange(id, &code);
    let bare = post(&gateway, "/oauth/token", &fields).await;
    assert_eq!(refusal(&bare), (401, "invalid_client".to_owned()));
    fields.push(("client_secret", "wrong"));
    assert_eq!(
        refusal(&post(&gateway, "/oauth/token", &fields).await).0,
        401
    );
    fields.pop();
    fields.push(("client_secret", secret));
    let good = post(&gateway, "/oauth/token", &fields).await;
    assert_eq!(good.status, 200, "{good:?}");
}

#[tokio::test]
async fn registrations_are_refused_by_the_names_of_the_specification_and_nothing_is_kept() {
    let gateway = setup()
        .await
        .yaml(r#"authorization_server: { registration: { allow_names: ["Codex*", "127*"] } }"#)
        .start()
        .await;
    let before = state(&gateway);
    for (metadata, code) in [
        (
            json!({"redirect_uris": ["javascript:alert(1)"], "client_name": "Codex"}),
            "invalid_redirect_uri",
        ),
        (
            json!({"redirect_uris": ["http://evil.example/cb"], "client_name": "Codex"}),
            "invalid_redirect_uri",
        ),
        (json!({"client_name": "Codex"}), "invalid_redirect_uri"),
        (
            json!({"redirect_uris": [LOOPBACK], "client_name": "Claude"}),
            "invalid_client_metadata",
        ),
        (
            json!({"redirect_uris": [LOOPBACK], "client_name": "Codex", "grant_types": ["client_credentials"]}),
            "invalid_client_metadata",
        ),
    ] {
        let answer = register(&gateway, &metadata).await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{metadata}");
    }
    assert_eq!(state(&gateway), before);
    assert_eq!(register(&gateway, &codex()).await.status, 201);
}

#[tokio::test]
async fn registration_is_limited_in_rate_and_number_over_all_addresses() {
    let gateway = setup()
        .await
        .yaml("authorization_server: { registration: { limit: { rate: 1/h, burst: 3 } } }")
        .start()
        .await;
    for _ in 0..3 {
        assert_eq!(register(&gateway, &codex()).await.status, 201);
    }
    let refused = register(&gateway, &codex()).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(!refused.header("retry-after").is_empty());
    assert!(state(&gateway).starts_with("3 clients"));

    let full = setup()
        .await
        .yaml("authorization_server: { registration: { most: 1 } }")
        .start()
        .await;
    assert_eq!(register(&full, &codex()).await.status, 201);
    assert_eq!(register(&full, &codex()).await.status, 429);
}

#[tokio::test]
async fn closed_registration_says_so() {
    let gateway = setup()
        .await
        .yaml("authorization_server: { registration: { dynamic: false } }")
        .start()
        .await;
    assert_eq!(
        refusal(&register(&gateway, &codex()).await),
        (403, "access_denied".to_owned())
    );
    let metadata = Browser::new()
        .get(&format!(
            "{}/.well-known/oauth-authorization-server",
            gateway.url()
        ))
        .await;
    assert!(body(&metadata).get("registration_endpoint").is_none());
}

async fn with_documents(documents: &Documents) -> Gateway {
    super::support::sign_in::local_setup()
        .await
        .yaml(&documents.config().to_string())
        .start()
        .await
}

#[tokio::test]
async fn a_client_is_known_by_its_document_which_is_fetched_once() {
    // C06, the good case; what Codex publishes
    let documents = Documents::start().await;
    let gateway = with_documents(&documents).await;
    let id = "https://app.example.invalid/oauth/codex/client.json";
    let document = json!({"client_id": id, "client_name": "Codex", "redirect_uris": ["http://127.0.0.1/callback"], "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"], "token_endpoint_auth_method": "none"});
    documents.put("/oauth/codex/client.json", &document.to_string());
    let page = Browser::new().open(&Ask::new(&gateway, id, LOOPBACK)).await;
    assert!(
        page.text().contains("app.example.invalid"),
        "{}",
        page.text()
    );
    let tokens = signed_in(
        &gateway,
        &Ask::new(&gateway, id, LOOPBACK),
        id,
        "alice@acme.test",
    )
    .await;
    assert_eq!(
        refresh(&gateway, id, text(&tokens, "refresh_token"), &[])
            .await
            .status,
        200
    );
    let asked = documents.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    for header in ["cookie", "authorization", "referer"] {
        assert!(
            !asked[0]
                .to_ascii_lowercase()
                .contains(&format!("\n{header}:")),
            "{asked:?}"
        );
    }
}

#[tokio::test]
async fn hostile_and_sloppy_documents_are_refused_on_a_page_and_leave_nothing() {
    // C06
    let documents = Documents::start().await;
    let gateway = with_documents(&documents).await;
    let good =
        |id: &str| json!({"client_id": id, "client_name": "App", "redirect_uris": [LOOPBACK]});
    let at = |path: &str| format!("https://app.example.invalid{path}");
    documents.put(
        "/other.json",
        &good(&format!("{}/", at("/other.json"))).to_string(),
    );
    documents.answer(
        "/moved.json",
        302,
        "location: https://app.example.invalid/ok.json\r\n",
        "",
    );
    documents.put("/ok.json", &good(&at("/ok.json")).to_string());
    documents.put("/big.json", &"x".repeat(1 << 20));
    documents.put("/broken.json", "{");
    let mut secret = good(&at("/secret.json"));
    secret["client_secret"] = json!("x");
    documents.put("/secret.json", &secret.to_string());
    let mut method = good(&at("/method.json"));
    method["token_endpoint_auth_method"] = json!("client_secret_basic");
    documents.put("/method.json", &method.to_string());
    let mut script = good(&at("/script.json"));
    script["redirect_uris"] = json!(["javascript:alert(1)"]);
    documents.put("/script.json", &script.to_string());
    let before = state(&gateway);
    for id in [
        at("/other.json"),
        at("/moved.json"),
        at("/big.json"),
        at("/broken.json"),
        at("/secret.json"),
        at("/method.json"),
        at("/script.json"),
        at("/missing.json"),
        at(""),
        at("/"),
        at("/x/../ok.json"),
        "http://app.example.invalid/ok.json".to_owned(),
        "https://u:p@app.example.invalid/ok.json".to_owned(),
        format!("{}#x", at("/ok.json")),
        "https://[::1]/ok.json".to_owned(),
        "https://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        let page = Browser::new()
            .open(&Ask::new(&gateway, &id, LOOPBACK))
            .await;
        assert_eq!(
            (page.status.as_u16(), page.location()),
            (400, None),
            "{id}: {}",
            page.text()
        );
    }
    let strange = Browser::new()
        .open(&Ask::new(
            &gateway,
            &at("/ok.json"),
            "https://evil.example/cb",
        ))
        .await;
    assert_eq!((strange.status.as_u16(), strange.location()), (400, None));
    assert_eq!(state(&gateway), before);
    let asked = documents.asked();
    let of = |path: &str| {
        asked
            .iter()
            .filter(|head| head.starts_with(&format!("GET {path} ")))
            .count()
    };
    assert_eq!(of("/ok.json"), 1, "a redirect is not followed: {asked:?}");
}

#[tokio::test]
async fn advertised_scopes_can_be_asked_for_and_unknown_ones_are_dropped() {
    // C05
    let gateway = local().await;
    let client = body(&register(&gateway, &codex()).await);
    let id = text(&client, "client_id");
    for (asked, granted) in [
        (Some("mcp offline_access"), "mcp offline_access"),
        (Some("mcp offline_access openid zzz"), "mcp offline_access"),
        (Some("zzz"), "mcp"),
        (None, "mcp"),
        (Some("echo.use mcp echo.use"), "echo.use mcp"),
    ] {
        let mut ask = Ask::new(&gateway, id, LOOPBACK);
        if let Some(asked) = asked {
            ask = ask.with("scope", asked);
        }
        let tokens = signed_in(&gateway, &ask, id, "alice@acme.test").await;
        let mut scopes: Vec<&str> = text(&tokens, "scope").split(' ').collect();
        let mut expected: Vec<&str> = granted.split(' ').collect();
        scopes.sort_unstable();
        expected.sort_unstable();
        assert_eq!(scopes, expected, "{asked:?}");
    }
}
