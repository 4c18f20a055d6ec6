//! The record's integrity through the program: signed by a real server, verified by
//! the command with nothing but public keys, tampered with by the tables' owner.

use super::support::{Era, Gateway, Helper, Setup, Value, json};

async fn worked() -> Gateway {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let mut gateway = Setup::new().over("sdk", server).start().await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    for n in 0..5 {
        let answer = alice.call("echo", json!({"text": n.to_string()})).await;
        assert_eq!(answer.text(), n.to_string());
    }
    gateway.sigterm_and_wait().await;
    gateway
}

/// The findings' kinds, the sums, the exit code.
fn verified(gateway: &Gateway, more: &[&str]) -> (Vec<String>, Value, Option<i32>) {
    let mut args = vec!["audit", "verify", "--json"];
    args.extend_from_slice(more);
    let outcome = gateway.outcome(&args);
    let lines: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (sums, findings) = lines
        .split_last()
        .unwrap_or_else(|| panic!("{}", outcome.stderr));
    let kinds = findings
        .iter()
        .map(|finding| finding["kind"].as_str().unwrap().to_owned())
        .collect();
    (kinds, sums.clone(), outcome.code)
}

#[tokio::test]
async fn a_stopped_server_has_signed_everything_and_a_public_key_verifies_it() {
    let gateway = worked().await;
    let (kinds, sums, code) = verified(&gateway, &[]);
    assert_eq!((kinds.len(), code), (0, Some(0)), "{kinds:?} {sums}");
    assert!(sums["events"].as_u64().unwrap() >= 12, "{sums}");
    let keys = gateway.command(&["audit", "keys"]);
    let file = gateway.folder().file("audit-keys.json", &keys);
    let (kinds, _, code) = verified(&gateway, &["--public-keys", file.to_str().unwrap()]);
    assert_eq!((kinds.len(), code), (0, Some(0)), "{kinds:?}");
}

#[tokio::test]
async fn an_altered_row_a_removed_tail_and_a_rewritten_table_have_exit_code_2() {
    let gateway = worked().await;
    let log = gateway.logs().lines().join("\n");
    let log = gateway.folder().file("toolgate.log", &log);
    let (kinds, _, code) = verified(&gateway, &["--checkpoints", log.to_str().unwrap()]);
    assert_eq!((kinds.len(), code), (0, Some(0)), "{kinds:?}");
    gateway.database().psql(
        "update audit_bodies set arguments = '{\"text\":\"9\"}' where arguments like '%\"3\"%'",
    );
    let (kinds, _, code) = verified(&gateway, &[]);
    assert_eq!((kinds, code), (vec!["altered_body".to_owned()], Some(2)));
    gateway.database().psql(
        "delete from audit_events; delete from audit_bodies; delete from audit_callers;
         delete from audit_checkpoints; delete from audit_writers",
    );
    let (_, _, code) = verified(&gateway, &[]);
    assert_eq!(code, Some(0), "an empty table says nothing");
    let (kinds, _, code) = verified(&gateway, &["--checkpoints", log.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(
        kinds.contains(&"missing_checkpoint".to_owned()),
        "{kinds:?}"
    );
    assert!(
        kinds.contains(&"truncated_tail".to_owned()) || kinds.contains(&"altered_name".to_owned()),
        "{kinds:?}"
    );
}

#[tokio::test]
async fn a_killed_server_is_named_and_is_no_tampering() {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let mut gateway = Setup::new().over("sdk", server).start().await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    alice.call("echo", json!({"text": "hi"})).await;
    gateway.kill();
    gateway.database().psql("delete from replicas");
    let (kinds, _, code) = verified(&gateway, &[]);
    assert_eq!(code, Some(3), "{kinds:?}");
    assert!(
        kinds.contains(&"writer_never_closed".to_owned()),
        "{kinds:?}"
    );
}
