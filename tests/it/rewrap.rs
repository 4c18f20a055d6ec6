//! A deployment's key exchanged: a line on top of the keys file, a roll-out, `toolgate
//! keys rewrap`, the old line removed (design §11).

use super::support::browser::Browser;
use super::support::config::{deployment_key, write};
use super::support::login_idp::LoginIdp;
use super::support::oauth::{body, status_at, text};
use super::support::sign_in::{LOOPBACK, desk, federated_with, refresh, tokens};
use super::support::{Gateway, Value, json};

fn set_keys(gateway: &Gateway, lines: &[&str]) {
    write(&gateway.folder().path().join("keys"), &lines.join("\n"));
}

fn rewrap(gateway: &Gateway, more: &[&str]) -> Value {
    let mut words = vec!["keys", "rewrap", "--json"];
    words.extend_from_slice(more);
    serde_json::from_str(&gateway.command(&words)).unwrap()
}

fn resealed(report: &Value, column: &str) -> u64 {
    let columns = report["columns"].as_array().unwrap();
    let row = columns.iter().find(|row| row["column"] == column).unwrap();
    row["resealed"].as_u64().unwrap()
}

/// What the database holds that is sealed, to compare.
fn stored(gateway: &Gateway) -> String {
    gateway.database().psql(
        "select sealed from oauth_signing_keys union all
         select provider_token from oauth_grants where provider_token is not null union all
         select sealed from retired_keys order by 1",
    )
}

/// Somebody signs in through the provider; gives the tokens.
async fn alice(gateway: &Gateway) -> Value {
    let browser = Browser::new();
    let out = browser.connect_through(&desk(gateway)).await;
    tokens(gateway, "desk", &out, LOOPBACK).await
}

#[tokio::test]
async fn an_old_key_can_go_once_what_it_sealed_is_sealed_anew() {
    let idp = LoginIdp::serve().await;
    let over = "tenants: { acme: { audit: { arguments: full } } }";
    let mut gateway = federated_with(&idp, &["acme"], over).await;
    let old = std::fs::read_to_string(gateway.folder().path().join("keys")).unwrap();
    let mut held = alice(&gateway).await;
    let access = text(&held, "access_token").to_owned();
    let mut session = gateway.anonymous().bearer(&access).modern();
    let answer = session.call("add", json!({"a": 20, "b": 22})).await;
    assert_eq!(answer.text(), "42", "{answer:?}");

    // A line on top, a roll-out: everything goes on, sealed by the old one as it is.
    let new = deployment_key();
    set_keys(&gateway, &[&new, &old]);
    gateway.restart().await;
    assert_eq!(status_at(&gateway, "/mcp", &access).await, 200);
    let before = stored(&gateway);

    // Bounded batches; what has been done is not done again.
    let first = rewrap(&gateway, &["--batch", "1"]);
    assert_eq!(first["left"], 0, "{first}");
    assert_eq!(resealed(&first, "oauth_signing_keys.sealed"), 1, "{first}");
    assert_eq!(
        resealed(&first, "oauth_grants.provider_token"),
        1,
        "{first}"
    );
    assert_eq!(first["retired_keys"], 1);
    assert_eq!(first["refresh_tokens_left"], 1, "hers is of the old key");
    assert_ne!(stored(&gateway), before);
    let after = stored(&gateway);
    let again = rewrap(&gateway, &[]);
    let columns = again["columns"].as_array().unwrap();
    assert!(
        columns.iter().all(|column| column["resealed"] == 0),
        "{again}"
    );
    assert_eq!(stored(&gateway), after, "nothing is touched twice");
    let acts = gateway
        .rows("select tool from audit_calls where tool = 'keys.rewrap'")
        .await;
    assert_eq!(acts.len(), 2, "it is on record");

    // She comes by and has a token of the new key; then nobody needs the old one.
    held = body(&refresh(&gateway, "desk", &held).await);
    assert_eq!(rewrap(&gateway, &[])["refresh_tokens_left"], 0);
    set_keys(&gateway, &[&new]);
    gateway.restart().await;
    assert_eq!(
        status_at(&gateway, "/mcp", &access).await,
        200,
        "signed by the same key"
    );
    let page = refresh(&gateway, "desk", &held).await;
    assert_eq!(page.status, 200, "the provider was asked: {page:?}");
    alice(&gateway).await;
    let opened = gateway.command(&["audit", "search", "--tool", "add", "--open", "--json"]);
    assert!(opened.contains("\\\"a\\\":20"), "{opened}");
    let verified = gateway.outcome(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let last = rewrap(&gateway, &[]);
    assert_eq!(
        (last["left"].as_u64(), last["retired_keys"].as_u64()),
        (Some(0), Some(1))
    );

    // The next exchange takes the retired key along.
    let newest = deployment_key();
    set_keys(&gateway, &[&newest, &new]);
    assert_eq!(resealed(&rewrap(&gateway, &[]), "retired_keys.sealed"), 1);
    set_keys(&gateway, &[&newest]);
    let opened = gateway.command(&["audit", "search", "--tool", "add", "--open", "--json"]);
    assert!(opened.contains("\\\"a\\\":20"), "{opened}");
}

#[tokio::test]
async fn what_no_key_opens_is_told_and_left_as_it_is() {
    let idp = LoginIdp::serve().await;
    let gateway = federated_with(&idp, &["acme"], "{}").await;
    alice(&gateway).await;
    let before = stored(&gateway);
    set_keys(&gateway, &[&deployment_key()]);
    let outcome = gateway.outcome(&["keys", "rewrap", "--json"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert!(report["left"].as_u64() >= Some(2), "{report}");
    assert_eq!(stored(&gateway), before);
}
