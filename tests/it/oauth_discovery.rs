//! What the authorization server says of itself (C02, C05, rules §4.1, §4.3, §4.10).

use super::support::browser::Browser;
use super::support::oauth::body;
use super::support::sign_in::{local, setup};
use super::support::{Gateway, Value, json};

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

async fn get(gateway: &Gateway, path: &str) -> super::support::browser::Page {
    Browser::new()
        .get(&format!("{}{path}", gateway.url()))
        .await
}

#[tokio::test]
async fn documents_agree_and_every_url_of_theirs_is_answered() {
    let gateway = local().await;
    let oauth = get(&gateway, OAUTH).await;
    let openid = get(&gateway, OPENID).await;
    assert_eq!(oauth.status, 200);
    assert_eq!(oauth.body, openid.body, "one text in both places");
    assert_eq!(oauth.header("content-type"), "application/json");
    assert_eq!(oauth.header("access-control-allow-origin"), "*");
    let metadata = body(&oauth);
    let issuer = gateway.audience("");
    assert_eq!(metadata["issuer"], issuer);
    for (member, path) in [
        ("authorization_endpoint", "/oauth/authorize"),
        ("token_endpoint", "/oauth/token"),
        ("registration_endpoint", "/oauth/register"),
        ("revocation_endpoint", "/oauth/revoke"),
        ("introspection_endpoint", "/oauth/introspect"),
        ("jwks_uri", "/oauth/jwks"),
    ] {
        assert_eq!(metadata[member], format!("{issuer}{path}"));
        assert_ne!(get(&gateway, path).await.status, 404, "{path}");
    }
    for (member, value) in [
        ("code_challenge_methods_supported", json!(["S256"])),
        ("response_types_supported", json!(["code"])),
        (
            "authorization_response_iss_parameter_supported",
            json!(true),
        ),
        ("client_id_metadata_document_supported", json!(true)),
        (
            "scopes_supported",
            json!(["mcp", "echo.use", "offline_access"]),
        ),
        (
            "grant_types_supported",
            json!(["authorization_code", "refresh_token"]),
        ),
    ] {
        assert_eq!(metadata[member], value, "{member}");
    }
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource/t/acme/mcp",
    ] {
        let document = body(&get(&gateway, path).await);
        assert_eq!(document["authorization_servers"][0], issuer, "{path}");
        assert!(!document.to_string().contains("offline_access"), "{path}");
    }
    // C02: nothing of a caller's headers is in it.
    let forged = gateway
        .http()
        .get(format!("{}{OAUTH}", gateway.url()))
        .header("x-forwarded-host", "evil.example")
        .header("x-forwarded-proto", "https")
        .send()
        .await
        .unwrap();
    assert_eq!(forged.text().await.unwrap(), oauth.body);
}

#[tokio::test]
async fn suffixed_documents_exist_only_for_the_path_of_the_public_url() {
    let gateway = local().await;
    for path in ["/mcp", "/t/acme/mcp", "/x"] {
        for document in [OAUTH, OPENID] {
            assert_eq!(
                get(&gateway, &format!("{document}{path}")).await.status,
                404,
                "{document}{path}"
            );
        }
    }
    let port = super::support::process::free_port();
    let under = setup().await.yaml(&json!({"server": {
        "listen": format!("127.0.0.1:{port}"), "public_url": format!("http://127.0.0.1:{port}/tools"),
    }}).to_string()).start().await;
    let issuer = format!("http://127.0.0.1:{port}/tools");
    for document in [OAUTH, OPENID] {
        let behind = get(&under, &format!("{document}/tools")).await;
        assert_eq!(behind.status, 200, "{behind:?}");
        assert_eq!(body(&behind)["issuer"], issuer);
        assert_eq!(behind.body, get(&under, document).await.body);
        assert_eq!(get(&under, &format!("{document}/other")).await.status, 404);
    }
}

#[tokio::test]
async fn without_the_authorization_server_none_of_it_is_there() {
    let gateway = Gateway::start("").await;
    for path in [OAUTH, OPENID, "/oauth/jwks", "/oauth/authorize"] {
        assert_eq!(get(&gateway, path).await.status, 404, "{path}");
    }
    let document = body(&get(&gateway, "/.well-known/oauth-protected-resource").await);
    assert_eq!(
        document["authorization_servers"],
        json!(["https://idp.example.com"])
    );
}

#[tokio::test]
async fn pages_of_other_sites_may_read_metadata_and_allowed_ones_may_call_but_nobody_frames_a_sign_in()
 {
    let gateway = setup()
        .await
        .yaml(r#"server: { allowed_origins: ["https://app.example.com"] }"#)
        .start()
        .await;
    let preflight = async |path: &str, origin: &str| {
        let answer = gateway
            .http()
            .request(reqwest::Method::OPTIONS, format!("{}{path}", gateway.url()))
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header(
                "access-control-request-headers",
                "content-type, authorization",
            )
            .send()
            .await
            .unwrap();
        let allowed = answer.headers().get("access-control-allow-origin");
        allowed.map(|value| value.to_str().unwrap().to_owned())
    };
    for (path, origin, allowed) in [
        ("/oauth/jwks", "https://any.example", Some("*")),
        (OAUTH, "https://any.example", Some("*")),
        (
            "/oauth/token",
            "https://app.example.com",
            Some("https://app.example.com"),
        ),
        (
            "/oauth/register",
            "https://app.example.com",
            Some("https://app.example.com"),
        ),
        ("/oauth/token", "https://any.example", None),
        ("/oauth/register", "https://any.example", None),
        ("/oauth/authorize", "https://app.example.com", None),
        ("/oauth/login", "https://app.example.com", None),
        ("/oauth/consent", "https://app.example.com", None),
        ("/account", "https://app.example.com", None),
    ] {
        assert_eq!(
            preflight(path, origin).await.as_deref(),
            allowed,
            "{path} {origin}"
        );
    }
}

#[tokio::test]
async fn keys_are_published_without_their_private_part() {
    let gateway = local().await;
    let keys: Value = body(&get(&gateway, "/oauth/jwks").await);
    let keys = keys["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 1, "{keys:?}");
    for key in keys {
        assert_eq!(
            (&key["kty"], &key["crv"], &key["alg"], &key["use"]),
            (
                &json!("EC"),
                &json!("P-256"),
                &json!("ES256"),
                &json!("sig")
            )
        );
        for private in ["d", "k", "p", "q"] {
            assert!(key.get(private).is_none(), "{key}");
        }
    }
}
