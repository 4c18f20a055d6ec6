//! The kit itself: what other tests lean on has to hold.

use std::time::Duration;

use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};

use super::support::client::Caller;
use super::support::idp::{ISSUER, Idp};
use super::support::keys::{Algorithm, Keys, Token};
use super::support::postgres::{self, OwnPostgres};
use super::support::session::LEGACY_VERSIONS;
use super::support::{Era, Helper, Value, json};

#[test]
fn each_test_has_a_database_of_its_own() {
    let (one, other) = (postgres::shared().database(), postgres::shared().database());
    one.psql("create table only_here (n int)");
    let count = "select count(*) from pg_class where relname = 'only_here'";
    assert_eq!(
        (one.psql(count).trim(), other.psql(count).trim()),
        ("1", "0")
    );
}

#[tokio::test]
async fn a_postgres_can_be_frozen_stopped_and_started_again() {
    let postgres = OwnPostgres::start();
    let database = postgres.empty_database("kit");
    let pool = database.pool().await;
    let ask = async || sqlx::query("select 1").execute(&pool).await;
    ask().await.unwrap();
    postgres.freeze();
    assert!(
        tokio::time::timeout(Duration::from_millis(300), ask())
            .await
            .is_err()
    );
    postgres.thaw();
    ask().await.unwrap();
    postgres.stop();
    assert!(ask().await.is_err());
    postgres.resume();
    ask().await.unwrap();
}

#[test]
fn tokens_are_signed_by_every_algorithm_and_bad_ones_are_bad() {
    let idp = Idp::shared();
    let good = idp.token("alice@acme", "https://gw.example.com/mcp");
    for algorithm in Algorithm::ALL {
        let token = good.clone().algorithm(algorithm);
        let claims = verify(&idp.keys, &token).unwrap();
        assert_eq!(
            (&claims["sub"], &claims["tenant"]),
            (&json!("alice"), &json!("acme"))
        );
        assert!(verify(&idp.keys, &token.clone().broken()).is_err());
        assert!(verify(&idp.keys, &token.forged_with(&Keys::generate("other"))).is_err());
    }
    assert!(verify(&idp.keys, &good.clone().expires_in(-120)).is_err());
    assert!(verify(&idp.keys, &good.clone().unsigned()).is_err());
    assert!(verify(&idp.keys, &good.hmac(idp.keys.rsa_public_der())).is_err());
}

#[tokio::test]
async fn a_session_is_understood_by_a_real_server() {
    let server = Helper::everything().await;
    let caller = Caller::of(&server);
    for version in LEGACY_VERSIONS {
        let mut session = caller.legacy(version).await;
        assert_eq!(session.opening().result()["protocolVersion"], version);
        assert!(session.names().await.contains(&"echo".to_owned()));
        let answer = session.call("echo", json!({"message": "hello"})).await;
        assert_eq!(answer.text(), "Echo: hello");
        let listening = session.listen().await;
        let long = json!({
            "name": "trigger-long-running-operation", "arguments": {"duration": 1, "steps": 2},
            "_meta": {"progressToken": "p"},
        });
        let mut events = session.stream("tools/call", long).await;
        let progress = events.notification("notifications/progress").await;
        assert_eq!(progress["params"]["progressToken"], "p");
        drop((listening, events));
        assert_eq!(session.delete().await.status, 200);
    }
}

#[tokio::test]
async fn a_session_of_each_era_is_understood_by_the_official_sdk() {
    for (era, name) in [(Era::Legacy, "legacy"), (Era::Modern, "modern")] {
        let server = Helper::example("upstream_rmcp", &["--era", name]).await;
        let mut session = Caller::of(&server).connect(era).await;
        let answer = session.call("echo", json!({"text": "hello"})).await;
        assert_eq!(answer.text(), "hello", "{answer:?}");
        let mut listening = session.listen().await;
        session.call("change_tools", json!({})).await;
        listening
            .notification("notifications/tools/list_changed")
            .await;
    }
}

fn verify(keys: &Keys, token: &Token) -> Result<Value, Box<dyn std::error::Error>> {
    let text = token.sign();
    let set: JwkSet = serde_json::from_value(json!({"keys": keys.public()}))?;
    let header = decode_header(&text)?;
    let key = set
        .find(&header.kid.ok_or("no kid")?)
        .ok_or("unknown key")?;
    let mut validation = Validation::new(header.alg);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&["https://gw.example.com/mcp"]);
    Ok(decode(&text, &DecodingKey::from_jwk(key)?, &validation)?.claims)
}
