//! Callers without a browser: client credentials by secret and by signature, and
//! identity assertions (ID-JAG; rules §4.8).

use super::support::keys::{Keys, Token, now};
use super::support::oauth::{body, post, refusal, state, status_at, text};
use super::support::sign_in::{claims, setup};
use super::support::{Gateway, Value, folder::Folder, json};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A server with a machine by secret, a machine by keys, and a client that brings
/// assertions; `corporate` is trusted for them.
async fn machines(keys: &Keys) -> Gateway {
    let folder = Box::leak(Box::new(Folder::new()));
    let secret = folder.file("secret", "s3cret:with/odd+chars%");
    let jwks = folder.file("jwks", &json!({"keys": keys.public()}).to_string());
    setup()
        .await
        .yaml(
            &json!({
                "clients": {
                    "nightly": { "secret_file": secret, "grants": ["client_credentials"], "tenant": "acme", "roles": ["support"], "scopes": ["mcp", "echo.use"] },
                    "signer": { "jwks_file": jwks, "grants": ["client_credentials"], "tenant": "globex" },
                    "agent": { "secret_file": secret, "grants": ["jwt-bearer"] },
                },
                "identity_providers": { "corporate": { "id_jag": true } },
            })
            .to_string(),
        )
        .start()
        .await
}

const SECRET: &str = "s3cret:with/odd+chars%";

async fn credentials(gateway: &Gateway, more: &[(&str, &str)]) -> super::support::browser::Page {
    let mut fields = vec![("grant_type", "client_credentials")];
    fields.extend_from_slice(more);
    post(gateway, "/oauth/token", &fields).await
}

#[tokio::test]
async fn a_machine_gets_a_token_for_its_own_tenant_roles_and_scopes_alone() {
    let gateway = machines(&Keys::generate("signer")).await;
    let own = [("client_id", "nightly"), ("client_secret", SECRET)];
    let with = |more: &[(&'static str, &str)]| -> Vec<(String, String)> {
        own.iter()
            .copied()
            .chain(more.iter().copied())
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect()
    };
    let ask = async |more: Vec<(String, String)>| {
        let pairs: Vec<(&str, &str)> = more.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        credentials(&gateway, &pairs).await
    };
    let tokens = body(&ask(with(&[])).await);
    let before = state(&gateway);
    assert!(tokens.get("refresh_token").is_none());
    let claims = claims(&tokens);
    assert_eq!(
        (
            &claims["sub"],
            &claims["tenant"],
            &claims["roles"],
            &claims["scope"]
        ),
        (
            &json!("nightly"),
            &json!("acme"),
            &json!(["support"]),
            &json!("mcp echo.use")
        )
    );
    assert_eq!(
        status_at(&gateway, "/mcp", text(&tokens, "access_token")).await,
        200
    );
    let acme = gateway.audience("/t/acme/mcp");
    let at = body(&ask(with(&[("resource", &acme), ("scope", "mcp")])).await);
    assert_eq!(at["scope"], "mcp");
    assert_eq!(
        status_at(&gateway, "/t/acme/mcp", text(&at, "access_token")).await,
        200
    );
    let globex = gateway.audience("/t/globex/mcp");
    assert_eq!(
        refusal(&ask(with(&[("resource", &globex)])).await),
        (400, "invalid_target".to_owned())
    );
    for client in ["desk", "agent"] {
        let page = credentials(
            &gateway,
            &[
                ("client_id", client),
                ("client_secret", if client == "agent" { SECRET } else { "" }),
            ],
        )
        .await;
        assert_eq!(
            refusal(&page),
            (400, "unauthorized_client".to_owned()),
            "{client}"
        );
    }
    let wrong = credentials(
        &gateway,
        &[("client_id", "nightly"), ("client_secret", "wrong")],
    )
    .await;
    assert_eq!(refusal(&wrong), (401, "invalid_client".to_owned()));
    assert_eq!(state(&gateway), before);
    let document = gateway
        .http()
        .get(format!(
            "{}/.well-known/oauth-authorization-server",
            gateway.url()
        ))
        .send()
        .await
        .unwrap();
    let grants: Value = serde_json::from_str(&document.text().await.unwrap()).unwrap();
    for grant in ["client_credentials", JWT_BEARER] {
        assert!(
            grants["grant_types_supported"]
                .as_array()
                .unwrap()
                .contains(&json!(grant))
        );
    }
    let mut session = gateway.user("alice@acme").modern();
    let discovered = session.request("server/discover", json!({})).await;
    let extensions = &discovered.result()["capabilities"]["extensions"];
    for name in [
        "oauth-client-credentials",
        "enterprise-managed-authorization",
    ] {
        assert_eq!(
            extensions[format!("io.modelcontextprotocol/{name}")],
            json!({}),
            "{discovered:?}"
        );
    }
}

#[tokio::test]
async fn a_signed_assertion_of_a_client_is_good_once_over_all_replicas() {
    let keys = Keys::generate("signer");
    let gateway = machines(&keys).await;
    let replica = gateway.replica().await;
    let issuer = gateway.audience("");
    let fresh = |jti: &str| {
        Token::new(&keys, "signer", &issuer, "signer", "globex")
            .claim("jti", jti)
            .expires_in(60)
    };
    let ask = async |at: &Gateway, assertion: &str| {
        let page = credentials(
            at,
            &[
                ("client_assertion_type", ASSERTION_TYPE),
                ("client_assertion", assertion),
            ],
        )
        .await;
        refusal(&page)
    };
    let good = fresh("one").sign();
    assert_eq!(ask(&gateway, &good).await, (200, String::new()));
    for at in [&gateway, &replica] {
        assert_eq!(
            ask(at, &good).await,
            (401, "invalid_client".to_owned()),
            "once"
        );
    }
    let stranger = Keys::generate("stranger");
    for (what, assertion) in [
        (
            "another audience",
            fresh("2").audience("https://other.example").sign(),
        ),
        ("another subject", fresh("3").claim("sub", "nightly").sign()),
        ("expired", fresh("4").expires_in(-600).sign()),
        ("good for a year", fresh("5").expires_in(31_536_000).sign()),
        ("no jti", fresh("6").claim("jti", Value::Null).sign()),
        ("another's keys", fresh("7").signed_with(&stranger).sign()),
        ("none", fresh("8").unsigned().sign()),
        ("symmetric", fresh("9").hmac(keys.rsa_public_der()).sign()),
        ("not yet", fresh("10").claim("nbf", now() + 600).sign()),
    ] {
        assert_eq!(
            ask(&gateway, &assertion).await,
            (401, "invalid_client".to_owned()),
            "{what}"
        );
    }
    let by_endpoint = fresh("11")
        .audience(format!("{issuer}/oauth/token").as_str())
        .sign();
    assert_eq!(ask(&replica, &by_endpoint).await.0, 200);
}

#[tokio::test]
async fn an_identity_assertion_is_judged_whole_and_good_once() {
    let gateway = machines(&Keys::generate("signer")).await;
    let replica = gateway.replica().await;
    let issuer = gateway.audience("");
    let resource = gateway.audience("/mcp");
    let fresh = |jti: &str| {
        gateway
            .idp()
            .token("alice@acme", &issuer)
            .header("typ", "oauth-id-jag+jwt")
            .claim("client_id", "agent")
            .claim("resource", resource.as_str())
            .claim("scope", "mcp echo.use zzz")
            .claim("jti", jti)
            .expires_in(60)
    };
    let ask = async |at: &Gateway, assertion: &str, more: &[(&str, &str)]| {
        let mut fields = vec![
            ("grant_type", JWT_BEARER),
            ("assertion", assertion),
            ("client_id", "agent"),
            ("client_secret", SECRET),
        ];
        fields.extend_from_slice(more);
        post(at, "/oauth/token", &fields).await
    };
    let good = fresh("one").sign();
    let tokens = body(&ask(&gateway, &good, &[]).await);
    assert!(tokens.get("refresh_token").is_none(), "{tokens}");
    let claimed = claims(&tokens);
    assert_eq!(
        (&claimed["client_id"], &claimed["tenant"], &claimed["scope"]),
        (&json!("agent"), &json!("acme"), &json!("mcp echo.use"))
    );
    assert_eq!(
        status_at(&gateway, "/mcp", text(&tokens, "access_token")).await,
        200
    );
    for at in [&gateway, &replica] {
        assert_eq!(
            refusal(&ask(at, &good, &[]).await),
            (400, "invalid_grant".to_owned())
        );
    }
    let before = state(&gateway);
    let stranger = Keys::generate("stranger");
    for (what, assertion, error) in [
        (
            "an access token",
            fresh("2").header("typ", "at+jwt").sign(),
            "invalid_grant",
        ),
        (
            "an ID token",
            fresh("3").header("typ", "JWT").sign(),
            "invalid_grant",
        ),
        (
            "another audience",
            fresh("4").audience(resource.as_str()).sign(),
            "invalid_grant",
        ),
        (
            "another client",
            fresh("5").claim("client_id", "nightly").sign(),
            "invalid_grant",
        ),
        (
            "no client",
            fresh("6").claim("client_id", Value::Null).sign(),
            "invalid_grant",
        ),
        (
            "another resource",
            fresh("7")
                .claim("resource", "https://evil.example/mcp")
                .sign(),
            "invalid_target",
        ),
        (
            "no resource",
            fresh("8").claim("resource", Value::Null).sign(),
            "invalid_grant",
        ),
        (
            "expired",
            fresh("9").expires_in(-600).sign(),
            "invalid_grant",
        ),
        (
            "good for a year",
            fresh("10").expires_in(31_536_000).sign(),
            "invalid_grant",
        ),
        (
            "no jti",
            fresh("11").claim("jti", Value::Null).sign(),
            "invalid_grant",
        ),
        (
            "no tenant",
            fresh("12").claim("tenant", Value::Null).sign(),
            "invalid_grant",
        ),
        (
            "untrusted tenant",
            fresh("13").claim("tenant", "nobody").sign(),
            "invalid_grant",
        ),
        (
            "unknown scopes",
            fresh("14").claim("scope", "zzz").sign(),
            "invalid_scope",
        ),
        (
            "forged",
            fresh("15").forged_with(&stranger).sign(),
            "invalid_grant",
        ),
        ("unsigned", fresh("16").unsigned().sign(), "invalid_grant"),
        (
            "another issuer",
            fresh("17").claim("iss", "https://evil.example").sign(),
            "invalid_grant",
        ),
    ] {
        let page = ask(&gateway, &assertion, &[]).await;
        assert_eq!(refusal(&page), (400, error.to_owned()), "{what}");
    }
    let wider = ask(
        &gateway,
        &fresh("18").claim("scope", "mcp").sign(),
        &[("scope", "mcp echo.use")],
    )
    .await;
    assert_eq!(refusal(&wider), (400, "invalid_scope".to_owned()));
    let elsewhere = gateway.audience("/t/globex/mcp");
    let moved = ask(&gateway, &fresh("19").sign(), &[("resource", &elsewhere)]).await;
    assert_eq!(refusal(&moved), (400, "invalid_target".to_owned()));
    assert_eq!(state(&gateway), before);
    // A client that may not, and a public one.
    let fields = [
        ("grant_type", JWT_BEARER),
        ("assertion", &fresh("20").sign()),
        ("client_id", "desk"),
    ];
    assert_eq!(
        refusal(&post(&gateway, "/oauth/token", &fields).await),
        (400, "unauthorized_client".to_owned())
    );
}
