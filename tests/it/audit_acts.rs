//! What is on record besides calls, through the program: refused tokens, reloads,
//! starts, erasures, sealed arguments, exports.

use super::support::{Era, Gateway, Helper, Setup, Value, eventually, json};

async fn acts(gateway: &Gateway, kind: &str, count: usize) -> Vec<Value> {
    gateway.audit_of(&["--kind", kind], count).await
}

// C27 l, rules §4.7.
#[tokio::test]
async fn refused_tokens_are_on_record_with_their_reason() {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let gateway = Setup::new().over("sdk", server).start().await;
    let url = format!("{}/mcp", gateway.url());
    for token in [None, Some("nonsense")] {
        let request = gateway.http().post(&url);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        assert_eq!(request.send().await.unwrap().status(), 401);
    }
    let refused = acts(&gateway, "token_refused", 2).await;
    let reasons: Vec<&str> = refused
        .iter()
        .filter_map(|act| act["reason"].as_str())
        .collect();
    assert!(
        reasons.contains(&"no_token") && reasons.contains(&"malformed"),
        "{refused:?}"
    );
    assert!(
        refused
            .iter()
            .all(|act| act["tenant"] == "" && act["decision"] == "refused")
    );
    assert!(
        refused.iter().all(|act| act["address"] == "127.0.0.1"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn starts_and_reloads_are_on_record_adopted_or_refused() {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let mut gateway = Setup::new().over("sdk", server).start().await;
    let started = acts(&gateway, "service", 1).await;
    assert_eq!(started[0]["action"], "start");
    gateway.reload("tenants: { acme: { hide_without_scopes: true } }");
    let reloads = acts(&gateway, "configuration", 1).await;
    assert_eq!(reloads[0]["outcome"], "ok", "{reloads:?}");
    assert!(reloads[0]["details"].as_str().unwrap().contains("\"new\":"));
    gateway.reload("tenants: { acme: { no_such_key: true } }");
    let refused = "toolgate_config_reloads_total{result=\"refused\"} 1";
    eventually("the reload to be refused", async || {
        gateway.metrics().await.contains(refused).then_some(())
    })
    .await;
    // The command that reads the record needs a configuration that is right.
    gateway.reload("tenants: { acme: { hide_without_scopes: false, no_such_key: null } }");
    let reloads = acts(&gateway, "configuration", 3).await;
    assert_eq!(reloads[1]["outcome"], "refused", "{reloads:?}");
}

#[tokio::test]
async fn full_arguments_open_with_the_keys_and_opening_is_on_record() {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let gateway = Setup::new()
        .yaml("tenants: { acme: { audit: { arguments: full } } }")
        .over("sdk", server)
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    alice
        .call("echo", json!({"text": "whole and sealed"}))
        .await;
    let sealed = gateway.audit_of(&["--tool", "echo"], 1).await;
    assert_eq!(sealed[0]["arguments_mode"], "full");
    assert!(!sealed[0]["arguments"].as_str().unwrap().contains("sealed"));
    let opened = gateway.audit(&["--tool", "echo", "--open"]);
    assert_eq!(opened[0]["arguments"], r#"{"text":"whole and sealed"}"#);
    let acts = acts(&gateway, "administration", 1).await;
    assert_eq!(acts[0]["action"], "audit.open");
}

#[tokio::test]
async fn an_erasure_by_command_leaves_nothing_of_the_subject_and_the_record_verifies() {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let mut gateway = Setup::new().over("sdk", server).start().await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    alice.call("echo", json!({"text": "zebra"})).await;
    let record = gateway.audit_of(&["--tool", "echo"], 1).await;
    let subject = record[0]["subject"].as_str().unwrap().to_owned();
    gateway.sigterm_and_wait().await;
    let erase =
        |more: &str| gateway.outcome(&["audit", "erase", "--json", "--subject", &subject, more]);
    let planned: Value = serde_json::from_str(&erase("--dry-run").stdout).unwrap();
    assert!(planned["callers"].as_u64().unwrap() >= 1, "{planned}");
    let done = erase("--yes");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let tables = gateway.database().psql(
        "select string_agg(format('select count(*) from %I t where t::text like %L or t::text like %L',
             tablename, '%zebra%', '%SUBJECT%'), ' union all ') from pg_tables where schemaname = 'public'"
            .replace("SUBJECT", &subject)
            .as_str(),
    );
    let found = gateway.database().psql(&tables);
    assert!(found.lines().all(|count| count == "0"), "{found}");
    let verified = gateway.outcome(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
}

#[tokio::test]
async fn an_export_is_json_lines_or_csv_and_goes_on_from_its_cursor() {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let gateway = Setup::new().over("sdk", server).start().await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    for n in 0..3 {
        alice.call("echo", json!({"text": n.to_string()})).await;
    }
    gateway.audit_of(&["--outcome", "ok"], 3).await;
    let export = |more: &[&str]| {
        let mut args = vec!["audit", "export", "--kind", "call", "--settle", "1ms"];
        args.extend_from_slice(more);
        gateway.outcome(&args)
    };
    let all = eventually("all is exported", async || {
        let all = export(&[]);
        (all.stdout.lines().count() == 3).then_some(all)
    })
    .await;
    let second: Value = serde_json::from_str(all.stdout.lines().nth(1).unwrap()).unwrap();
    let rest = export(&["--after", second["call_id"].as_str().unwrap()]);
    assert_eq!(rest.stdout.lines().count(), 1);
    assert!(all.stderr.contains("cursor: "), "{}", all.stderr);
    let csv = export(&["--format", "csv"]);
    assert_eq!(csv.stdout.lines().count(), 4, "{}", csv.stdout);
    assert!(
        csv.stdout.starts_with("time,call_id,kind,"),
        "{}",
        csv.stdout
    );
}
