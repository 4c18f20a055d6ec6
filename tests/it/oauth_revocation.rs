//! Ending tokens (RFC 7009), asking about them (RFC 7662), and how fast everybody knows.

use std::time::{Duration, Instant};

use super::support::oauth::{body, post, refresh, refusal, signed_in, state, status_at, text};
use super::support::sign_in::{desk, local, local_setup};
use super::support::{Gateway, Setup, Value, both, eventually, json};

async fn alice(gateway: &Gateway) -> Value {
    signed_in(gateway, &desk(gateway), "desk", "alice@acme.test").await
}

async fn revoke(gateway: &Gateway, client: &str, token: &str) -> (u16, String) {
    let fields = [("token", token), ("client_id", client)];
    refusal(&post(gateway, "/oauth/revoke", &fields).await)
}

#[tokio::test]
async fn a_client_ends_its_own_tokens_on_every_replica_within_a_second() {
    let gateway = local().await;
    let replica = gateway.replica().await;
    let (one, two) = (alice(&gateway).await, alice(&gateway).await);
    let ended = text(&one, "access_token");
    assert_eq!(status_at(&replica, "/mcp", ended).await, 200);
    let began = Instant::now();
    assert_eq!(
        revoke(&gateway, "desk", text(&one, "refresh_token")).await,
        (200, String::new())
    );
    eventually("the other replica knows", async || {
        (status_at(&replica, "/mcp", ended).await == 401).then_some(())
    })
    .await;
    eprintln!("revocation known elsewhere after {:?}", began.elapsed());
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "on a busy machine too"
    );
    let refreshed = refresh(&replica, "desk", text(&one, "refresh_token"), &[]).await;
    assert_eq!(refusal(&refreshed), (400, "invalid_grant".to_owned()));
    // A single access token ends alone.
    assert_eq!(
        revoke(&replica, "desk", text(&two, "access_token")).await.0,
        200
    );
    eventually("the first replica knows", async || {
        (status_at(&gateway, "/mcp", text(&two, "access_token")).await == 401).then_some(())
    })
    .await;
    assert_eq!(
        refresh(&gateway, "desk", text(&two, "refresh_token"), &[])
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn unknown_tokens_are_ended_already_and_others_tokens_stay() {
    let gateway = local().await;
    let tokens = alice(&gateway).await;
    let before = state(&gateway);
    for token in ["nothing", "a.b.c"] {
        assert_eq!(revoke(&gateway, "desk", token).await.0, 200, "{token}");
    }
    for name in ["refresh_token", "access_token"] {
        let refused = revoke(&gateway, "other", text(&tokens, name)).await;
        assert_eq!(refused, (400, "unauthorized_client".to_owned()));
    }
    assert_eq!(
        revoke(&gateway, "nobody", "x").await,
        (401, "invalid_client".to_owned())
    );
    assert_eq!(
        refusal(&post(&gateway, "/oauth/revoke", &[("client_id", "desk")]).await).1,
        "invalid_request"
    );
    assert_eq!(state(&gateway), before);
}

#[tokio::test]
async fn a_revocation_ends_open_streams_on_the_other_replica() {
    let gateway = local().await;
    let replica = gateway.replica().await;
    for era in both() {
        let tokens = alice(&gateway).await;
        let caller = replica.anonymous().bearer(text(&tokens, "access_token"));
        let mut session = caller.connect(era).await;
        let mut events = session.listen().await;
        assert_eq!(
            revoke(&gateway, "desk", text(&tokens, "refresh_token"))
                .await
                .0,
            200
        );
        while events.next().await.is_some() {}
    }
}

#[tokio::test]
async fn an_operator_ends_grants_and_rotates_keys_by_command() {
    let gateway = local().await;
    let tokens = alice(&gateway).await;
    let listed = gateway.command(&["grants", "list", "--tenant", "acme", "--json"]);
    let grant: Value = serde_json::from_str(listed.trim()).unwrap();
    assert_eq!(
        (&grant["client"], &grant["tenant"]),
        (&json!("desk"), &json!("acme"))
    );
    assert_ne!(
        gateway
            .outcome(&["grants", "revoke", "--tenant", "globex", "--all"])
            .code,
        Some(0)
    );
    assert_ne!(
        gateway
            .outcome(&["grants", "revoke", "--tenant", "acme"])
            .code,
        Some(0)
    );
    let other = signed_in(&gateway, &desk(&gateway), "desk", "carol@both.test").await;
    gateway.command(&[
        "grants",
        "revoke",
        "--tenant",
        "acme",
        "--grant",
        grant["grant"].as_str().unwrap(),
    ]);
    eventually("the token ends", async || {
        (status_at(&gateway, "/mcp", text(&tokens, "access_token")).await == 401).then_some(())
    })
    .await;
    drop(other);

    let tokens = alice(&gateway).await;
    let kid = gateway.command(&["keys", "rotate", "--compromised"]);
    assert!(gateway.command(&["keys", "list"]).contains(kid.trim()));
    eventually("tokens of the old key are refused", async || {
        (status_at(&gateway, "/mcp", text(&tokens, "access_token")).await == 401).then_some(())
    })
    .await;
    let next = eventually("new tokens are of the new key", async || {
        let page = refresh(&gateway, "desk", text(&tokens, "refresh_token"), &[]).await;
        let next = body(&page);
        let good = status_at(&gateway, "/mcp", text(&next, "access_token")).await == 200;
        good.then_some(next)
    })
    .await;
    assert!(
        !text(&next, "access_token").is_empty(),
        "nobody was signed out"
    );
}

fn with_resource_server(setup: Setup) -> Setup {
    let folder = Box::leak(Box::new(super::support::folder::Folder::new()));
    let secret = folder.file("rs", "rs-secret");
    setup.yaml(&json!({"clients": { "rs": { "secret_file": secret, "introspection": true, "tenant": "acme" } }}).to_string())
}

#[tokio::test]
async fn only_a_resource_server_that_proves_itself_may_ask_about_tokens() {
    let gateway = with_resource_server(local_setup().await).start().await;
    let tokens = alice(&gateway).await;
    let ask = async |client: &str, secret: Option<&str>, token: &str| {
        let mut fields = vec![("token", token), ("client_id", client)];
        fields.extend(secret.map(|secret| ("client_secret", secret)));
        post(&gateway, "/oauth/introspect", &fields).await
    };
    let access = text(&tokens, "access_token");
    let before = state(&gateway);
    assert_eq!(
        refusal(&ask("desk", None, access).await),
        (400, "unauthorized_client".to_owned())
    );
    assert_eq!(
        refusal(&ask("rs", Some("wrong"), access).await),
        (401, "invalid_client".to_owned())
    );
    assert_eq!(
        refusal(&ask("rs", None, access).await),
        (401, "invalid_client".to_owned())
    );
    let told = body(&ask("rs", Some("rs-secret"), access).await);
    assert_eq!(
        (
            &told["active"],
            &told["client_id"],
            &told["tenant"],
            &told["scope"]
        ),
        (&json!(true), &json!("desk"), &json!("acme"), &json!("mcp"))
    );
    let refresh = body(&ask("rs", Some("rs-secret"), text(&tokens, "refresh_token")).await);
    assert_eq!(refresh["active"], true);
    for token in ["x", "a.b.c"] {
        assert_eq!(
            body(&ask("rs", Some("rs-secret"), token).await),
            json!({"active": false})
        );
    }
    assert_eq!(state(&gateway), before);
    // Another tenant's token is not its business.
    let bob = signed_in(&gateway, &desk(&gateway), "desk", "bob@globex.test").await;
    assert_eq!(
        body(&ask("rs", Some("rs-secret"), text(&bob, "access_token")).await),
        json!({"active": false})
    );
    assert_eq!(
        revoke(&gateway, "desk", text(&tokens, "refresh_token"))
            .await
            .0,
        200
    );
    for name in ["access_token", "refresh_token"] {
        assert_eq!(
            body(&ask("rs", Some("rs-secret"), text(&tokens, name)).await),
            json!({"active": false}),
            "{name}"
        );
    }
}
