//! Every public route with every kind of bad token. The routes come from the
//! router's own table, so that a new one fails here until its row is written.

use toolgate::http::{Access, ROUTES};

use super::support::client::Caller;
use super::support::{Gateway, Helper, Setup, both, json};

/// Where each route is asked for in this test: a path that it matches.
const ROWS: [(&str, &str); 22] = [
    ("/mcp", "/mcp"),
    ("/t/{tenant}/mcp", "/t/acme/mcp"),
    (
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource",
    ),
    (
        "/.well-known/oauth-protected-resource/{*endpoint}",
        "/.well-known/oauth-protected-resource/t/acme/mcp",
    ),
    (
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server",
    ),
    (
        "/.well-known/oauth-authorization-server/{*path}",
        "/.well-known/oauth-authorization-server/mcp",
    ),
    (
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration",
    ),
    (
        "/.well-known/openid-configuration/{*path}",
        "/.well-known/openid-configuration/mcp",
    ),
    ("/oauth/jwks", "/oauth/jwks"),
    ("/oauth/authorize", "/oauth/authorize"),
    ("/oauth/token", "/oauth/token"),
    ("/oauth/register", "/oauth/register"),
    ("/oauth/revoke", "/oauth/revoke"),
    ("/oauth/introspect", "/oauth/introspect"),
    ("/oauth/consent", "/oauth/consent"),
    ("/oauth/login", "/oauth/login"),
    ("/oauth/callback", "/oauth/callback"),
    ("/account", "/account"),
    ("/account/revoke", "/account/revoke"),
    ("/account/sign-out", "/account/sign-out"),
    (
        "/account/continue/{id}",
        "/account/continue/00000000000000000000000000000000",
    ),
    ("/assets/{file}", "/assets/missing.css"),
];

/// Whether a route belongs to the authorization server, which answers by its own rules
/// and, where there is none, not at all.
fn is_of_sign_in(route: &str) -> bool {
    route.starts_with("/oauth/")
        || route.starts_with("/account")
        || route.starts_with("/assets/")
        || route.starts_with("/.well-known/oauth-authorization-server")
        || route.starts_with("/.well-known/openid-configuration")
}

#[test]
fn every_route_of_the_router_is_in_the_matrix() {
    let routes: Vec<&str> = ROUTES.iter().map(|route| route.path).collect();
    let rows = ROWS.map(|(route, _)| route);
    assert_eq!(routes, rows, "write a row for each route");
}

fn strangers(gateway: &Gateway, path: &str) -> Vec<(&'static str, Caller, bool)> {
    let user = gateway.user("alice@acme").at(path);
    vec![
        ("no token", gateway.anonymous().sent_to(path), false),
        (
            "malformed",
            gateway.anonymous().bearer("not.a.token").sent_to(path),
            true,
        ),
        (
            "expired",
            user.clone().with(|token| token.expires_in(-3600)),
            true,
        ),
        (
            "wrong audience",
            user.clone()
                .with(|token| token.audience("https://other.example/mcp")),
            true,
        ),
        ("wrong tenant", gateway.user("alice@nobody").at(path), true),
    ]
}

#[tokio::test]
async fn a_route_is_open_to_everybody_or_to_nobody_without_a_good_token() {
    let gateway = Gateway::start("").await;
    for (route, (_, path)) in ROUTES.iter().zip(ROWS) {
        for (what, caller, came) in strangers(&gateway, path) {
            for method in ["GET", "POST", "HEAD", "DELETE", "PUT", "PATCH"] {
                let answer = caller
                    .raw(method, &[("content-type", "application/json")], "{}")
                    .await;
                let at = format!("{method} {path}, {what}: {answer:?}");
                let challenge = answer.header("www-authenticate");
                match (route.access, method) {
                    (Access::Everybody, _) if is_of_sign_in(route.path) => {
                        assert!(matches!(answer.status.as_u16(), 404 | 405), "{at}");
                        assert!(challenge.is_none(), "{at}");
                    }
                    (Access::Everybody, "GET" | "HEAD") => {
                        assert_eq!(answer.status, 200, "{at}");
                    }
                    (Access::Everybody, _) | (Access::Bearer, "PUT" | "PATCH") => {
                        assert_eq!(answer.status, 405, "{at}");
                        assert!(answer.header("allow").is_some(), "{at}");
                    }
                    (Access::Bearer, _) => {
                        assert_eq!(answer.status, 401, "{at}");
                        let challenge = challenge.unwrap();
                        assert_eq!(challenge.contains("error=\"invalid_token\""), came, "{at}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_token_of_another_tenant_and_one_with_too_few_scopes_are_told_apart() {
    let gateway = Setup::new()
        .yaml(r#"tools: [{ match: "echo", scopes: [crm.read] }]"#)
        .over("up", Helper::example("upstream_rmcp", &[]).await)
        .start()
        .await;
    let bearer = ROUTES.iter().zip(ROWS);
    for (_, (_, path)) in bearer.filter(|(route, _)| route.access == Access::Bearer) {
        let narrow = gateway.user("alice@acme").at(path);
        let broad = narrow.clone().with(|token| token.scope("mcp crm.read"));
        for era in both() {
            let call = async |caller: &Caller| {
                let mut session = caller.connect(era).await;
                session.call("echo", json!({"text": "x"})).await
            };
            let refused = call(&narrow).await;
            assert_eq!(refused.status, 403, "{path} {era:?}");
            let challenge = refused.header("www-authenticate").unwrap();
            assert!(
                challenge.contains("error=\"insufficient_scope\""),
                "{challenge}"
            );
            let document = format!("/.well-known/oauth-protected-resource{path}");
            assert!(
                challenge.contains(&gateway.audience(&document)),
                "{challenge}"
            );
            assert_eq!(call(&broad).await.status, 200, "{path} {era:?}");
        }
        if path != "/mcp" {
            let bob = gateway.user("bob@globex").at(path);
            assert_eq!(bob.raw("POST", &[], "").await.status, 401, "{path}");
        }
    }
}
