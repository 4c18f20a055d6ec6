//! What `docs/operations.md` tells an operator to do, done: a backup and its restore with
//! the revocations that it lost, keys that are lost, and a release that is gone back from.

use super::support::browser::Browser;
use super::support::config::deployment_key;
use super::support::oauth::{refresh, signed_in, status_at, text};
use super::support::sign_in::{desk, local};
use super::support::{Gateway, Value, eventually, json};

/// The grant of the person's desk app.
fn grant(gateway: &Gateway) -> String {
    let listed = gateway.command(&["grants", "list", "--tenant", "acme", "--json"]);
    let grant: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    grant["grant"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_brings_revocations_back_to_life_and_the_runbook_ends_them_again() {
    let mut gateway = local().await;
    let tokens = signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    let access = text(&tokens, "access_token").to_owned();
    let backup = gateway.database().dump();
    // After the backup somebody is shut out, and that is exported with the record.
    let revoked = grant(&gateway);
    gateway.command(&["grants", "revoke", "--tenant", "acme", "--grant", &revoked]);
    eventually("the revocation to be heard", async || {
        (status_at(&gateway, "/mcp", &access).await == 401).then_some(())
    })
    .await;
    let export = gateway.command(&["audit", "export", "--settle", "0s"]);
    // The database is restored as it was.
    let restored = gateway.database().restored("restored_after_loss", &backup);
    gateway.reload(&json!({"database": {"url": restored.url()}}).to_string());
    gateway.restart().await;
    assert_eq!(
        status_at(&gateway, "/mcp", &access).await,
        200,
        "alive again"
    );
    let verified = gateway.outcome(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    // The exported record names what was ended since; it is ended again, one by one …
    let lost: Vec<String> = export
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["kind"] == "revocation")
        .map(|line| format!("{line}"))
        .collect();
    assert!(lost.iter().any(|line| line.contains(&revoked)), "{export}");
    gateway.command(&["grants", "revoke", "--tenant", "acme", "--grant", &revoked]);
    eventually("the revocation to be heard", async || {
        (status_at(&gateway, "/mcp", &access).await == 401).then_some(())
    })
    .await;
    let again = refresh(&gateway, "desk", text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(again.status, 400, "{again:?}");
    // … or, without an export, everybody's at once.
    let other = signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    gateway.command(&["grants", "revoke", "--tenant", "acme", "--all"]);
    let ended = refresh(&gateway, "desk", text(&other, "refresh_token"), &[]).await;
    assert_eq!(ended.status, 400, "{ended:?}");
    drop(gateway);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_its_keys_lost_a_deployment_starts_anew_and_people_sign_in_again() {
    let mut gateway = local().await;
    let tokens = signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    let access = text(&tokens, "access_token").to_owned();
    let mut session = gateway.anonymous().bearer(&access).modern();
    assert_eq!(
        session.call("add", json!({"a": 1, "b": 1})).await.text(),
        "2"
    );
    // Replicas whose keys files differ must not outbid each other: a new signing key is made
    // where the newest one is older than a minute, which in service it is.
    gateway
        .database()
        .psql("UPDATE oauth_signing_keys SET created_at = created_at - interval '2 minutes'");
    let keys = gateway.folder().path().join("keys");
    std::fs::write(&keys, deployment_key()).unwrap();
    gateway.restart().await;
    // What was sealed is gone; nothing is believed by mistake, and nothing stands still.
    assert_eq!(status_at(&gateway, "/mcp", &access).await, 401);
    let old = refresh(&gateway, "desk", text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(old.status, 400, "{old:?}");
    let page = Browser::new()
        .get(&format!("{}/oauth/jwks", gateway.url()))
        .await;
    assert!(
        page.status == 200 && page.body.contains("\"kid\""),
        "{page:?}"
    );
    let tokens = signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    assert_eq!(
        status_at(&gateway, "/mcp", text(&tokens, "access_token")).await,
        200
    );
    // The record from before is there and whole.
    let found = gateway.command(&["audit", "search", "--tool", "add"]);
    assert!(found.contains(" add ") && found.contains(" ok "), "{found}");
}
