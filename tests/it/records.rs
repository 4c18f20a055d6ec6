//! What is on record of a call (design §10, `rules.md` §7): one record an
//! attempt, the true outcome, the right fields, and no secret.

use std::collections::BTreeSet;

use super::support::session::Session;
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

/// Two upstreams: one that misbehaves as asked, and one of the official SDK behind `sdk_`.
async fn gateway(hostile: &Helper) -> Gateway {
    let sdk = Helper::example("upstream_rmcp", &[]).await;
    Setup::new()
        .yaml(
            r#"
            tenants:
              acme:
                tools: { allow: ["*"], deny: ["garbage"] }
                sanitize: { secrets: block }
            tools:
              - { match: "hang", timeout: 400ms }
              - { match: "connections", scopes: [crm.admin] }
              - { match: "aside", limits: { rate: 1/h, burst: 1 } }
              - { match: "sdk_big", audit: { arguments: digest } }
              - { match: "sdk_structured", audit: { arguments: none } }
            upstreams:
              sdk: { prefix: sdk_, breaker: { failures: 1000 } }
              up: { breaker: { failures: 1000 } }
            "#,
        )
        .upstream("up", hostile.config_of("/modern"))
        .over("sdk", sdk)
        .start()
        .await
}

/// The records of one tool as one client's name for itself, oldest first.
fn records(gateway: &Gateway, tool: &str) -> Vec<Value> {
    let mut found = gateway.audit(&["--tool", tool]);
    found.reverse();
    found
}

/// The only record of a tool in an era.
async fn record(gateway: &Gateway, tool: &str, era: Era) -> Value {
    let name = match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    };
    let of_era = |record: &Value| record["era"] == name;
    let what = format!("a finished record of {tool}, {era:?}");
    let all: Vec<Value> = eventually(&what, async || {
        let all = records(gateway, tool);
        let all: Vec<Value> = all.into_iter().filter(of_era).collect();
        all.iter()
            .any(|record| record["outcome"] != "unknown")
            .then_some(all)
    })
    .await;
    assert_eq!(all.len(), 1, "one record an attempt: {all:?}");
    all.into_iter().next().unwrap()
}

/// Calls a tool that takes its time, and cancels the call once it runs.
async fn cancelled(alice: &mut Session, hostile: &Helper) {
    let call = alice.prepare(
        "tools/call",
        json!({"name": "slow", "arguments": {"ms": 20_000}}),
    );
    match alice.era() {
        Era::Legacy => {
            let id = call.id();
            let asked = tokio::spawn(async move { call.send().await });
            eventually("the call runs", async || {
                let calls = hostile.calls().await;
                let runs = calls.iter().any(|call| call["params"]["name"] == "slow");
                runs.then_some(())
            })
            .await;
            let stop = alice
                .notify("notifications/cancelled", json!({"requestId": id}))
                .await;
            assert_eq!(stop.status, 202);
            asked.await.unwrap();
        }
        Era::Modern => {
            let asked = tokio::spawn(async move { call.open().await });
            // Once its headers came the call runs; hanging up cancels it.
            drop(asked.await.unwrap());
        }
    }
}

/// A call whose headers say another tool than its body.
async fn mismatched(gateway: &Gateway) {
    let mismatched = gateway
        .user("alice@acme")
        .modern()
        .prepare("tools/call", json!({"name": "resume", "arguments": {}}))
        .header("mcp-name", "other")
        .send()
        .await;
    assert_eq!(mismatched.status, 400);
    let mismatch = record(gateway, "resume", Era::Modern).await;
    assert_eq!(mismatch["outcome"], "refused:headers");
    assert_eq!(mismatch["client_info"], "toolgate-tests/1");
}

/// C27: one entry an attempt, whose outcome is what happened.
#[tokio::test]
async fn every_attempt_is_on_record_once_with_its_true_outcome() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = gateway(&hostile).await;
    let spent = gateway
        .user("alice@acme")
        .modern()
        .call("aside", json!({}))
        .await;
    assert!(!spent.is_error());
    let secret = json!({"token": "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"});
    let cases = [
        ("sdk_echo", json!({"text": "hi"}), "ok", 200),
        ("tool_error", json!({}), "tool_error", 200),
        ("rpc_error", json!({}), "upstream_error", 200),
        ("html_500", json!({}), "upstream_error", 200),
        ("hang", json!({}), "timeout", 200),
        ("garbage", json!({}), "refused:visibility", 200),
        ("no_such_tool", json!({}), "refused:visibility", 200),
        ("connections", json!({}), "refused:scope", 403),
        ("sdk_add", json!({"a": "one"}), "refused:arguments", 200),
        ("sdk_fail", json!([]), "refused:arguments", 200),
        ("echo", secret, "withheld", 200),
    ];
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for (tool, arguments, outcome, status) in &cases {
            let answer = alice.call(tool, arguments.clone()).await;
            assert_eq!(answer.status, *status, "{era:?} {tool}: {answer:?}");
            let record = record(&gateway, tool, era).await;
            assert_eq!(record["outcome"], *outcome, "{era:?} {tool}");
            assert_eq!(record["count"], 1);
            // What cleaning kept back is told apart from what could not be recorded.
            let blocked = record["findings"]
                .as_str()
                .unwrap_or_default()
                .contains("github_token=");
            let withheld = *outcome == "withheld";
            assert_eq!(blocked, withheld, "{record}");
            assert!(!withheld || record["reason"].is_string(), "{record}");
            let refused = outcome.starts_with("refused:");
            let decision = if refused { "refused" } else { "allowed" };
            assert_eq!(record["decision"], decision, "{era:?} {tool}");
            assert_eq!(record["client_info"], "toolgate-tests/1", "{era:?} {tool}");
        }
        let limited = alice.call("aside", json!({})).await;
        assert_eq!(limited.status, 429);
        cancelled(&mut alice, &hostile).await;
        let stopped = record(&gateway, "slow", era).await;
        assert_eq!(stopped["outcome"], "cancelled", "{era:?}");
    }
    let outcomes: Vec<Value> = records(&gateway, "aside")
        .iter()
        .map(|record| record["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["ok", "refused:limit", "refused:limit"]);
    mismatched(&gateway).await;
    let executed: BTreeSet<String> = hostile
        .calls()
        .await
        .iter()
        .map(|body| body["params"]["name"].as_str().unwrap().to_owned())
        .collect();
    for never in ["garbage", "connections", "resume"] {
        assert!(!executed.contains(never), "{never} was dispatched");
    }
}

/// Digests, durations and sizes are there and plausible.
fn is_measured(record: &Value) {
    for digest in ["definition_digest", "config_digest", "arguments_digest"] {
        let digits = record[digest].as_str().unwrap_or_default();
        assert_eq!(digits.len(), 64, "{digest}: {record:#}");
    }
    let millis = |field: &str| record[field].as_f64().unwrap();
    assert!(millis("upstream_duration_ms") > 0.0);
    assert!(millis("duration_ms") >= millis("upstream_duration_ms"));
    assert!(record["response_bytes"].as_u64().unwrap() > 10);
    assert!(record["time"].as_str() <= record["finished"].as_str());
}

/// C27: names of gateway and upstream both, verified identity apart from `clientInfo`.
#[tokio::test]
async fn a_record_says_who_called_what_and_how_it_went() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = gateway(&hostile).await;
    let caller = gateway.user("alice@acme").with(|token| {
        token
            .client("codex-7")
            .claim("jti", "token-42")
            .claim("grant_id", "grant-9")
    });
    for (era, version) in [(Era::Legacy, "2025-11-25"), (Era::Modern, "2026-07-28")] {
        let trace = match era {
            Era::Legacy => "0af7651916cd43dd8448eb211c80319c",
            Era::Modern => "1af7651916cd43dd8448eb211c80319d",
        };
        let header = format!("00-{trace}-00f067aa0ba902b7-01");
        let caller = caller.clone().header("traceparent", &header);
        let mut session = caller.connect(era).await;
        let arguments = json!({"text": "who am I"});
        let call = session.prepare(
            "tools/call",
            json!({"name": "sdk_echo", "arguments": arguments}),
        );
        let bytes = call.body.to_string().len();
        assert_eq!(call.send().await.text(), "who am I");
        let record = record(&gateway, "sdk_echo", era).await;
        let found = gateway.audit(&["--trace-id", trace]);
        assert_eq!(
            found,
            std::slice::from_ref(&record),
            "{era:?}: found by its trace"
        );
        for (field, value) in [
            ("tenant", json!("acme")),
            ("subject", json!("alice")),
            ("client", json!("codex-7")),
            ("token_id", json!("token-42")),
            ("grant", json!("grant-9")),
            ("issuer", json!(gateway.idp().issuer)),
            ("address", json!("127.0.0.1")),
            ("client_info", json!("toolgate-tests/1")),
            ("version", json!(version)),
            ("upstream", json!("sdk")),
            ("tool", json!("sdk_echo")),
            ("upstream_tool", json!("echo")),
            ("outcome", json!("ok")),
            ("trace_id", json!(trace)),
            ("request_bytes", json!(bytes)),
            ("arguments_mode", json!("redacted")),
            ("arguments", json!(arguments.to_string())),
            ("arguments_bytes", json!(arguments.to_string().len())),
        ] {
            assert_eq!(record[field], value, "{era:?} {field}: {record:#}");
        }
        is_measured(&record);
    }
}

#[tokio::test]
async fn hidden_and_missing_tools_leave_alike_records() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = gateway(&hostile).await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let mut pair = Vec::new();
        for tool in ["garbage", "missing"] {
            alice.call(tool, json!({"n": 1})).await;
            let mut entry = record(&gateway, tool, era).await;
            for differs in ["time", "call_id", "tool", "duration_ms", "request_bytes"] {
                assert!(!entry[differs].is_null(), "{differs}: {entry:#}");
                entry[differs] = Value::Null;
            }
            pair.push(entry);
        }
        assert_eq!(pair[0], pair[1], "{era:?}");
        assert_eq!(pair[0]["upstream"], Value::Null);
        assert_eq!(
            pair[0]["arguments_mode"], "digest",
            "no tool, no rules: {:#}",
            pair[0]
        );
    }
}

#[tokio::test]
async fn arguments_are_kept_as_the_operator_says_and_secrets_nowhere() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = gateway(&hostile).await;
    let secret = "ghp_zZ9yY8xX7wW6vV5uU4tT3sS2rR1qQ0pP9oO8";
    let plain = "a-harmless-but-private-word";
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let given = |tool: &str, extra: Value| {
            let mut arguments = json!({"note": plain, "memo": secret});
            super::support::config::merge(&mut arguments, &extra);
            (tool.to_owned(), arguments)
        };
        for (mode, (tool, arguments)) in [
            ("redacted", given("sdk_echo", json!({"text": "hi"}))),
            ("digest", given("sdk_big", json!({"kib": 1}))),
            ("none", given("sdk_structured", json!({"city": "Oslo"}))),
            ("redacted", given("sdk_add", json!({"a": "not a number"}))),
            ("digest", given("missing", json!({}))),
        ] {
            alice.call(&tool, arguments.clone()).await;
            let record = record(&gateway, &tool, era).await;
            assert_eq!(record["arguments_mode"], mode, "{era:?} {tool}: {record:#}");
            let size = arguments.to_string().len();
            assert_eq!(record["arguments_bytes"], size, "{era:?} {tool}");
            let text = record["arguments"].as_str().unwrap_or_default();
            assert_eq!(text.contains(plain), mode == "redacted", "{era:?} {tool}");
            assert_eq!(
                text.contains("[REDACTED:github_token]"),
                mode == "redacted",
                "{era:?} {tool}: {text}"
            );
            assert_eq!(record["arguments_digest"].is_null(), mode == "none");
        }
    }
    assert_eq!(tables_with(&gateway, secret).await, Vec::<String>::new());
    assert!(
        !tables_with(&gateway, plain).await.is_empty(),
        "the search finds what is there"
    );
    let logged = gateway.logs().lines();
    let leaking = logged
        .iter()
        .find(|line| line.contains(secret) || line.contains(plain));
    assert_eq!(leaking, None, "an argument is in the log");
}

/// The columns of any table that hold this text.
async fn tables_with(gateway: &Gateway, text: &str) -> Vec<String> {
    let columns = gateway
        .rows(
            "select table_name, column_name from information_schema.columns
             where table_schema = 'public' and data_type in ('text', 'bytea', 'character varying')",
        )
        .await;
    assert!(columns.len() > 20, "{columns:?}");
    let name = |column: &Value, part: &str| column[part].as_str().unwrap().to_owned();
    let mut found = Vec::new();
    for column in &columns {
        let (table, column) = (name(column, "table_name"), name(column, "column_name"));
        let query = format!(
            "select count(*) as hits from \"{table}\" where position('{text}' in {column}::text) > 0
             or position(encode(convert_to('{text}', 'UTF8'), 'hex') in {column}::text) > 0"
        );
        if gateway.rows(&query).await[0]["hits"] != 0 {
            found.push(format!("{table}.{column}"));
        }
    }
    found
}

#[tokio::test]
async fn a_tenant_chooses_how_its_arguments_are_kept() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = Setup::new()
        .yaml(
            "
            tenants:
              acme: { audit: { arguments: digest } }
              globex: { audit: { arguments: none } }
            ",
        )
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    for (who, tenant, mode) in [
        ("alice@acme", "acme", "digest"),
        ("bob@globex", "globex", "none"),
    ] {
        for tool in ["echo", "missing"] {
            gateway.user(who).modern().call(tool, json!({"n": 1})).await;
            let found = gateway.audit(&["--tenant", tenant, "--tool", tool]);
            assert_eq!(found.len(), 1);
            assert_eq!(found[0]["arguments_mode"], mode, "{tenant} {tool}");
            assert_eq!(found[0]["arguments"], Value::Null);
        }
    }
}

/// A hundred calls that make a batch with whatever comes beside them.
fn good_calls(alice: &super::support::client::Caller) -> Vec<tokio::task::JoinHandle<()>> {
    let mut calls = Vec::new();
    for number in 0..100 {
        let mut session = alice.modern();
        calls.push(tokio::spawn(async move {
            let answer = session.call("echo", json!({"good": number})).await;
            assert!(!answer.is_error());
        }));
    }
    calls
}

/// No JSON (RFC 8259 §8.2 leaves it open; here it is refused).
async fn lone_surrogate(session: &mut Session) {
    let surrogate = session.prepare(
        "tools/call",
        json!({"name": "echo", "arguments": {"lone": 1}}),
    );
    let text = surrogate
        .body
        .to_string()
        .replace(r#"{"lone":1}"#, r#"{"z":"\ud800"}"#);
    assert_eq!(surrogate.open_with(text).await.status(), 400);
}

/// C28: what Postgres cannot hold is there in another form, and takes nothing along.
#[tokio::test]
async fn odd_text_loses_neither_its_record_nor_the_batch() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = gateway(&hostile).await;
    let alice = gateway.user("alice@acme");
    let calls = good_calls(&alice);
    let odd = r#"{"a\u0000b":"x\u0000y","n":1e400,"t":"\ud83d\ude00"}"#;
    let mut session = alice.modern();
    let body = session
        .prepare(
            "tools/call",
            json!({"name": "echo", "arguments": {"odd": true}}),
        )
        .with(&json!({"params": {"_meta": {
            "io.modelcontextprotocol/clientInfo": {"name": "odd\u{0}client", "version": "1"}}}}));
    let text = body.body.to_string().replace(r#"{"odd":true}"#, odd);
    let answer = body.open_with(text).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.unwrap().contains("result"));
    let unknown = session.call("n\u{0}", json!({"x": "\u{0}"})).await;
    assert_eq!(unknown.code(), -32602);
    lone_surrogate(&mut session).await;
    for call in calls {
        call.await.unwrap();
    }
    let echoes = gateway.audit(&["--tool", "echo", "--limit", "500"]);
    assert_eq!(echoes.len(), 101);
    let odd_ones: Vec<_> = echoes
        .iter()
        .filter(|record| record["escaped"] == true)
        .collect();
    assert_eq!(odd_ones.len(), 1);
    let kept = odd_ones[0]["arguments"].as_str().unwrap();
    assert!(
        kept.contains("a␀b") && kept.contains("x␀y") && kept.contains("1e400"),
        "{kept}"
    );
    assert_eq!(
        odd_ones[0]["arguments_bytes"],
        odd.len(),
        "the size is of what came"
    );
    assert!(odd_ones[0]["client_info"].as_str().unwrap().contains("odd"));
    let all = gateway.audit(&["--limit", "500"]);
    assert_eq!(all.len(), 103, "101 calls, a name and a body");
    let named = all
        .iter()
        .find(|record| record["outcome"] == "refused:visibility");
    assert_eq!(named.unwrap()["tool"], r"n\u0000");
    let invalid = all
        .iter()
        .find(|record| record["outcome"] == "refused:invalid")
        .unwrap();
    assert_eq!(
        invalid["arguments_mode"], "digest",
        "a body that cannot be read: {invalid:#}"
    );
}

#[tokio::test]
async fn refusals_of_a_client_that_hammers_are_counted_exactly() {
    let gateway = Gateway::start("").await;
    let hammers = (0..4).map(|client| {
        let caller = gateway
            .user("alice@acme")
            .with(|token| token.client(&format!("hammer-{}", client % 2)));
        tokio::spawn(async move {
            let mut session = caller.modern();
            for number in 0..100 {
                let answer = session.call(&format!("nope-{number}"), json!({})).await;
                assert_eq!(answer.code(), -32602);
            }
        })
    });
    for hammer in hammers.collect::<Vec<_>>() {
        hammer.await.unwrap();
    }
    for client in ["hammer-0", "hammer-1"] {
        let filter = [
            "--client",
            client,
            "--outcome",
            "refused:visibility",
            "--limit",
            "1000",
        ];
        let records = eventually(&format!("all refusals of {client}"), async || {
            let records = gateway.audit(&filter);
            let sum: i64 = records
                .iter()
                .map(|record| record["count"].as_i64().unwrap())
                .sum();
            assert!(sum <= 200, "{sum} of 200");
            (sum == 200).then_some(records)
        })
        .await;
        let seconds: BTreeSet<&str> = records
            .iter()
            .map(|record| &record["time"].as_str().unwrap()[..19])
            .collect();
        assert!(
            records.len() <= seconds.len() * 11,
            "{} rows in {} seconds",
            records.len(),
            seconds.len()
        );
    }
}

#[tokio::test]
async fn members_of_a_batch_are_on_record_one_by_one() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = gateway(&hostile).await;
    let mut alice = gateway.user("alice@acme").legacy("2025-03-26").await;
    let member = |id: i64, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {}}});
    let batch = json!([
        member(1, "tool_error"),
        member(2, "missing"),
        member(3, "bad_utf8")
    ]);
    let answer = alice
        .prepare("tools/call", json!({}))
        .open_with(batch.to_string())
        .await;
    assert_eq!(answer.status(), 200);
    for (tool, outcome) in [
        ("tool_error", "tool_error"),
        ("missing", "refused:visibility"),
    ] {
        assert_eq!(
            record(&gateway, tool, Era::Legacy).await["outcome"],
            outcome
        );
    }
    let third = record(&gateway, "bad_utf8", Era::Legacy).await;
    assert_eq!(third["version"], "2025-03-26");
    let sent = gateway.audit(&[]).len();
    assert_eq!(sent, 3);
    let long = vec![member(1, "echo"); 21];
    let refused = alice
        .prepare("tools/call", json!({}))
        .open_with(json!(long).to_string())
        .await;
    assert_eq!(refused.status(), 400);
    assert_eq!(gateway.audit(&["--outcome", "refused:invalid"]).len(), 1);
}
