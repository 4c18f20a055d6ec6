//! The record's integrity through the program: signed by a real server, verified by
//! the command with nothing but public keys, tampered with by the tables' owner.

use super::support::{Era, Gateway, Helper, Setup, Value, eventually, json};

async fn worked() -> Gateway {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let mut gateway = Setup::new().over("sdk", server).start().await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    for n in 0..5 {
        let answer = alice.call("echo", json!({"text": n.to_string()})).await;
        assert_eq!(answer.text(), n.to_string());
    }
    // Each writer's last checkpoint is then not its first.
    let signed = "select distinct writer_id from audit_checkpoints";
    eventually("each lane has signed", async || {
        (gateway.rows(signed).await.len() == 3).then_some(())
    })
    .await;
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

/// `started` of the third call.
const EVENT: &str = "(select e.call_id from audit_events e join audit_names t on t.name_id = e.tool_id \
    where t.name = 'echo' and e.event = 1 order by e.at offset 2 limit 1)";

const TAMPERINGS: [(&str, &str); 18] = [
    ("altered_event", "update audit_events set total_micros = 1 where call_id = EVENT and event = 2"),
    (
        "altered_event",
        "insert into audit_names (name) values ('timeout') on conflict do nothing;
         update audit_events set outcome_id = (select name_id from audit_names where name = 'timeout')
         where call_id = EVENT and event = 2",
    ),
    ("altered_body", "update audit_bodies set arguments = '{}' where call_id = EVENT"),
    ("altered_body", "delete from audit_bodies where call_id = EVENT and event = 1"),
    ("altered_caller", "update audit_callers set subject = 'mallory' where subject is not null"),
    ("altered_caller", "delete from audit_callers where subject is not null"),
    ("altered_name", "update audit_names set name = 'ecco' where name = 'echo'"),
    ("missing_events", "delete from audit_events where call_id = EVENT and event = 1"),
    (
        "truncated_tail",
        "delete from audit_events where event = 2 and (writer_id, sequence) in (
             select writer_id, max(sequence) from audit_events where event = 2 group by 1)",
    ),
    (
        "duplicated_event",
        "insert into audit_events (at, sequence, call_id, writer_id, tenant_id, caller_id, event, leaf, link)
         select at, sequence, gen_random_uuid(), writer_id, tenant_id, caller_id, event, leaf, link
         from audit_events where call_id = EVENT and event = 1",
    ),
    (
        "reordered_event",
        "update audit_events e set sequence = 5 - e.sequence from audit_events k
         where k.call_id = EVENT and k.event = 1 and e.writer_id = k.writer_id
           and e.tenant_id = k.tenant_id and e.sequence in (2, 3)",
    ),
    (
        "back_dated_event",
        "update audit_events set at = at - interval '150 microseconds' where call_id = EVENT and event = 1",
    ),
    ("broken_chain", "update audit_events set link = sha256('x') where call_id = EVENT and event = 1"),
    ("forged_checkpoint", "update audit_checkpoints set token = left(token, -4) || 'AAAA' where number = 1"),
    ("missing_checkpoint", "delete from audit_checkpoints where number = 1"),
    (
        "unrecorded_erasure",
        "update audit_bodies set salt = null, arguments = null, arguments_digest = null, tool = null,
             reason = null, findings = null where call_id = EVENT",
    ),
    ("unknown_writer", "delete from audit_writers"),
    (
        "moved_event",
        "update audit_events e set writer_id = (select min(w.writer_id) from audit_writers w
             where w.writer_id <> e.writer_id) where call_id = EVENT and event = 1",
    ),
];

/// As the tables' owner, each on what a server signed and left, found by the command.
#[tokio::test]
async fn every_way_of_tampering_is_named_by_the_command() {
    let gateway = worked().await;
    let database = gateway.database();
    let name = database.psql("select current_database()");
    let name = name.trim();
    let cluster = database.cluster();
    let owner = |sql: &str| cluster.psql("postgres", sql);
    owner(&format!("create database {name}_kept template {name}"));
    let mut unnoticed = Vec::new();
    for (expected, sql) in TAMPERINGS {
        let sql = sql.replace("EVENT", EVENT);
        database.psql(&format!("set role toolgate; {sql}"));
        let (kinds, _, code) = verified(&gateway, &[]);
        if code != Some(2) || !kinds.iter().any(|kind| kind == expected) {
            unnoticed.push(format!("{expected}: {code:?} {kinds:?} after {sql}"));
        }
        owner(&format!("drop database {name} with (force)"));
        owner(&format!(
            "create database {name} template {name}_kept owner toolgate"
        ));
    }
    owner(&format!("drop database {name}_kept"));
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
    let (kinds, _, code) = verified(&gateway, &[]);
    assert_eq!((kinds.len(), code), (0, Some(0)), "{kinds:?}");
}
