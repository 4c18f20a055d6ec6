//! As whom the audit is written: a role that can only add to it, taken on or of a
//! login of its own; and what is said where there is none.

use std::sync::Arc;

use super::support::postgres::OwnPostgres;
use super::support::{Helper, Setup, eventually, json};

#[tokio::test]
async fn the_service_takes_the_writer_s_role_on_and_says_so() {
    let gateway = Setup::new().start().await;
    eventually("the role is known", async || {
        let metrics = gateway.metrics().await;
        metrics
            .contains("toolgate_audit_restricted 1")
            .then_some(())
    })
    .await;
    assert!(!gateway.logs().contains("could alter it"));
}

async fn cluster_without_roles() -> Arc<OwnPostgres> {
    tokio::task::spawn_blocking(|| {
        let postgres = OwnPostgres::start();
        // A managed database whose owner may make no roles.
        postgres.psql("postgres", "alter role toolgate nocreaterole");
        postgres
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn without_roles_the_start_says_so_and_calls_pass_unless_they_are_required() {
    let postgres = cluster_without_roles().await;
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let mut gateway = Setup::new()
        .postgres(&postgres)
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    eventually("it is said", async || {
        gateway.logs().contains("could alter it").then_some(())
    })
    .await;
    assert!(
        gateway
            .metrics()
            .await
            .contains("toolgate_audit_restricted 0")
    );
    let mut alice = gateway.user("alice@acme").modern();
    assert_eq!(alice.call("echo", json!({})).await.status, 200);
    let warned = gateway.outcome(&["migrate"]);
    assert_eq!(warned.code, Some(0));
    assert!(
        warned
            .stderr
            .contains("there is no role toolgate_audit_writer"),
        "{warned:?}"
    );

    gateway.reload("database: { audit: { roles: required } }");
    gateway.restart().await;
    let ran = hostile.calls().await.len();
    let answer = alice.call("echo", json!({})).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.code(), 1503, "{answer:?}");
    assert_eq!(hostile.calls().await.len(), ran, "dispatched all the same");

    // A DBA makes them (docs/operations.md); nothing has to be started again.
    let database = gateway.database();
    database.psql("select audit_separate_roles(array['toolgate']::name[])");
    eventually("calls pass", async || {
        (alice.call("echo", json!({})).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_service_that_owns_nothing_serves_and_its_logins_cannot_alter_the_audit() {
    let postgres = tokio::task::spawn_blocking(OwnPostgres::start)
        .await
        .unwrap();
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = Setup::new()
        .postgres(&postgres)
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    postgres.psql(
        "postgres",
        "create role app login in role toolgate_service;
         create role scribe login in role toolgate_audit_writer",
    );
    let as_login = |login: &str| {
        gateway
            .database()
            .url()
            .replace("toolgate@", &format!("{login}@"))
    };
    let mut config = Setup::new()
        .postgres(&postgres)
        .upstream("up", hostile.config_of("/modern"));
    config = config.yaml(
        &json!({"database": {"url": as_login("app"), "audit": {"writer_url": as_login("scribe"), "roles": "required"}}})
            .to_string(),
    );
    let served = config.start().await;
    let mut alice = served.user("alice@acme").modern();
    assert_eq!(alice.call("echo", json!({"n": "1"})).await.status, 200);
    let writers = gateway.database().psql(
        "select distinct usename from pg_stat_activity where application_name = 'toolgate audit'
         and datname = current_database() and usename <> 'toolgate'",
    );
    assert_eq!(writers.trim(), "scribe");
    for login in ["app", "scribe"] {
        for table in [
            "audit_events",
            "audit_bodies",
            "audit_callers",
            "audit_names",
            "audit_writers",
        ] {
            for right in ["UPDATE", "DELETE", "TRUNCATE", "TRIGGER", "REFERENCES"] {
                let may = gateway.database().psql(&format!(
                    "select has_table_privilege('{login}', '{table}', '{right}')"
                ));
                assert_eq!(may.trim(), "f", "{login} {right} {table}");
            }
        }
    }
    let refused = served.outcome(&["audit", "maintain"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("does not own"), "{refused:?}");
}
