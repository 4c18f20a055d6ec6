//! The command line beside `serve`, the probes, the metrics and the log.

use std::process::Command;

use super::support::answer::Answer;
use super::support::config::TOOLGATE;
use super::support::folder::Folder;
use super::support::process::{Outcome, Process};
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

async fn gateway(fragment: &str) -> Gateway {
    Setup::new()
        .yaml(fragment)
        .over("up", Helper::example("upstream_rmcp", &[]).await)
        .start()
        .await
}

fn toolgate(args: &[&str]) -> Outcome {
    Outcome::of(Command::new(TOOLGATE).args(args))
}

fn lines(outcome: &Outcome) -> Vec<Value> {
    let lines = outcome.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A server and ten calls of two tenants.
async fn with_calls() -> Gateway {
    let gateway = gateway("").await;
    let alice = gateway.user("alice@acme").with(|token| token.client("one"));
    let bob = gateway.other_tenant().with(|token| token.client("two"));
    for number in 0..7 {
        let text = format!("alice {number}");
        alice.modern().call("echo", json!({ "text": text })).await;
    }
    let mut bobs = bob.connect(Era::Legacy).await;
    bobs.call(
        "echo",
        json!({"text": "ghp_zZ9yY8xX7wW6vV5uU4tT3sS2rR1qQ0pP9oO8"}),
    )
    .await;
    bobs.call("fail", json!({})).await;
    bobs.call("missing", json!({})).await;
    gateway
}

#[tokio::test]
async fn audit_search_filters() {
    let gateway = with_calls().await;
    for (filters, count) in [
        (&[][..], 10),
        (&["--tenant", "acme"], 7),
        (&["--tenant", "globex", "--outcome", "ok"], 1),
        (&["--subject", "alice"], 7),
        (&["--client", "two"], 3),
        (&["--tool", "echo"], 8),
        (&["--tool", "missing"], 1),
        (&["--outcome", "tool_error"], 1),
        (&["--outcome", "refused"], 1),
        (&["--outcome", "refused:visibility"], 1),
        (&["--outcome", "refused:limit"], 0),
        (&["--finding", "github_token"], 1),
        (&["--since", "1h"], 10),
        (&["--until", "1h"], 0),
        (&["--since", "2099-01-01T00:00:00Z"], 0),
        (&["--tenant", "nobody"], 0),
        (&["--limit", "4"], 4),
    ] {
        assert_eq!(gateway.audit(filters).len(), count, "{filters:?}");
    }
    let first = &gateway.audit(&["--tool", "echo"])[0];
    let id = first["call_id"].as_str().unwrap();
    assert_eq!(
        gateway.audit(&["--call-id", id]),
        std::slice::from_ref(first)
    );
}

#[tokio::test]
async fn audit_search_goes_on_where_a_page_ended() {
    let gateway = with_calls().await;
    let alice = gateway.user("alice@acme");
    // Pages of three, each beginning where the last ended, while calls go on.
    let mut paged = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut args = vec![
            "audit", "search", "--json", "--limit", "3", "--tenant", "acme",
        ];
        args.extend(
            cursor
                .iter()
                .flat_map(|cursor| ["--cursor", cursor.as_str()]),
        );
        let page = gateway.outcome(&args);
        assert_eq!(page.code, Some(0), "{page:?}");
        paged.extend(lines(&page));
        alice
            .modern()
            .call("echo", json!({"text": "meanwhile"}))
            .await;
        match page.stderr.trim().strip_prefix("more: --cursor ") {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    let texts: Vec<&str> = paged
        .iter()
        .map(|record| record["arguments"].as_str().unwrap())
        .collect();
    let right: Vec<String> = (0..7)
        .rev()
        .map(|n| json!({"text": format!("alice {n}")}).to_string())
        .collect();
    assert_eq!(texts, right, "newest first, none twice, none left out");
}

#[tokio::test]
async fn audit_search_prints_lines_and_names_what_it_cannot_read() {
    let gateway = with_calls().await;
    let plain = gateway.outcome(&["audit", "search", "--outcome", "tool_error"]);
    let line = plain.stdout.trim();
    for part in ["tool_error", "globex", "bob", "fail"] {
        assert!(line.contains(part), "{line}");
    }
    for (wrong, names) in [
        (&["--trace-id", "xyz"][..], "xyz"),
        (&["--since", "yesterday"], "--since"),
        (&["--cursor", "nonsense"], "--cursor"),
    ] {
        let mut args = vec!["audit", "search"];
        args.extend_from_slice(wrong);
        let outcome = gateway.outcome(&args);
        assert_eq!(outcome.code, Some(1), "{wrong:?}");
        assert!(outcome.stderr.contains(names), "{outcome:?}");
    }
}

#[tokio::test]
async fn audit_tail_follows_what_ends() {
    let gateway = gateway("").await;
    let mut alice = gateway.user("alice@acme").modern();
    alice.call("echo", json!({"text": "before"})).await;
    let mut command = Command::new(TOOLGATE);
    command.args(["audit", "tail", "--json", "--tool", "slow", "--config"]);
    let tail = Process::start("tail", command.arg(gateway.config_file()));
    // It follows from its start on, which cannot be seen: so call until it tells.
    let told = eventually("a call is told", async || {
        alice.call("slow", json!({"ms": 40})).await;
        alice.call("echo", json!({"text": "not asked for"})).await;
        tail.output().json().into_iter().next()
    })
    .await;
    assert_eq!(
        (&told["tool"], &told["outcome"]),
        (&json!("slow"), &json!("ok"))
    );
    let last = gateway.audit(&["--tool", "slow"])[0]["call_id"].clone();
    eventually("the last one is told", async || {
        tail.output()
            .json()
            .iter()
            .any(|entry| entry["call_id"] == last)
            .then_some(())
    })
    .await;
    let mut ids: Vec<String> = tail
        .output()
        .json()
        .iter()
        .map(|entry| entry["call_id"].to_string())
        .collect();
    let told = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), told, "each once");
}

#[test]
fn check_names_the_line_the_key_and_the_nearest_one() {
    let folder = Folder::new();
    let head = "database: { embedded: { data_dir: /tmp/x } }\ntenants:\n  acme:\n";
    let good = folder.file(
        "good.yaml",
        &format!("{head}    tools: {{ allow: [\"*\"] }}\n"),
    );
    let fine = toolgate(&["check", "--config", good.to_str().unwrap()]);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert!(fine.stdout.contains("in order"));
    let wrong =
        format!("{head}    limits:\n      per_usr: {{ rate: 5/m }}\n    tools: {{ allow: [5] }}\n");
    let wrong = folder.file("bad.yaml", &wrong);
    let path = wrong.to_str().unwrap();
    let bad = toolgate(&["check", "--config", path]);
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(bad.stdout.contains(&format!("{path}:5:")), "{}", bad.stdout);
    assert!(
        bad.stdout.contains("per_usr") && bad.stdout.contains("per_user"),
        "{}",
        bad.stdout
    );
    assert!(
        bad.stdout.contains(&format!("{path}:6:")),
        "all faults at once: {}",
        bad.stdout
    );
    let scripted = toolgate(&["check", "--json", "--config", path]);
    assert_eq!(scripted.code, Some(1));
    let printed: Value = serde_json::from_str(&scripted.stdout).unwrap();
    assert_eq!(printed["ok"], false);
    let faults = printed["faults"].as_array().unwrap();
    assert!(faults.iter().any(|fault| fault["line"] == 5), "{printed:#}");
    let none = toolgate(&["check", "--config", "/nowhere/toolgate.yaml"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    let started = toolgate(&["serve", "--config", path]);
    assert_eq!(started.code, Some(1), "a wrong file starts nothing");
    assert!(started.stderr.contains("per_user"), "{}", started.stderr);
}

#[tokio::test]
async fn explain_says_which_rule_decides() {
    let gateway = gateway(
        r#"
        tenants:
          acme:
            tools: { allow: ["echo", "slow"], deny: ["slow"] }
            roles: { support: { tools: { allow: ["fail"] } } }
        tools: [{ match: "echo", scopes: [crm.admin] }]
        "#,
    )
    .await;
    let explained = |args: &[&str]| {
        let mut all = vec!["explain", "--json", "--tenant", "acme"];
        all.extend_from_slice(args);
        let outcome = gateway.outcome(&all);
        let value: Value = serde_json::from_str(&outcome.stdout).unwrap();
        (outcome.code.unwrap(), value)
    };
    let (code, echo) = explained(&["--tool", "echo"]);
    assert_eq!(
        (code, &echo["decision"], &echo["rule"]),
        (0, &json!("allowed"), &json!("echo")),
        "{echo:#}"
    );
    let (code, scoped) = explained(&["--tool", "echo", "--scope", "mcp"]);
    assert_eq!(
        (code, &scoped["missing_scopes"]),
        (2, &json!(["crm.admin"])),
        "{scoped:#}"
    );
    let (code, slow) = explained(&["--tool", "slow"]);
    assert_eq!((code, &slow["decision"]), (2, &json!("denied")), "{slow:#}");
    let (code, fail) = explained(&["--tool", "fail"]);
    assert_eq!((code, &fail["decision"]), (2, &json!("not_mentioned")));
    let (code, fail) = explained(&["--tool", "fail", "--role", "support"]);
    assert_eq!(
        (code, &fail["rule_of"]),
        (0, &json!("role support")),
        "{fail:#}"
    );
    let (code, missing) = explained(&["--tool", "missing"]);
    assert_eq!((code, &missing["exists"]), (2, &json!(false)));
    let plain = gateway.outcome(&["explain", "--tenant", "acme", "--tool", "slow"]);
    assert_eq!(plain.code, Some(2));
    assert!(plain.stdout.contains("slow"), "{plain:?}");
    let nobody = gateway.outcome(&["explain", "--tenant", "nobody", "--tool", "slow"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("nobody"), "{nobody:?}");
}

#[tokio::test]
async fn call_is_a_client_for_scripts() {
    let gateway = gateway("").await;
    let url = format!("{}/mcp", gateway.url());
    let token = gateway
        .folder()
        .file("token", gateway.user("alice@acme").token());
    let call = |args: &[&str]| {
        let mut all = vec!["call"];
        all.extend_from_slice(args);
        all.extend(["--url", &url, "--token-file", token.to_str().unwrap()]);
        toolgate(&all)
    };
    let listed = call(&[]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(
        listed.stdout.contains("echo\n    Answers with the text"),
        "{}",
        listed.stdout
    );
    let echoed = call(&["echo", "--args", r#"{"text": "hello"}"#]);
    assert_eq!(
        (echoed.code, echoed.stdout.trim()),
        (Some(0), "hello"),
        "{echoed:?}"
    );
    let slow = call(&["slow", "--args", r#"{"ms": 1300}"#]);
    assert_eq!(
        (slow.code, slow.stdout.trim()),
        (Some(0), "done"),
        "an answer as a stream: {slow:?}"
    );
    let failed = call(&["fail"]);
    assert_eq!(failed.code, Some(2), "{failed:?}");
    assert!(failed.stdout.contains("the disk is full"));
    let missing = call(&["missing"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.stderr.contains("-32602"), "{missing:?}");
    for (tool, code) in [("echo", 0), ("fail", 2), ("missing", 2)] {
        let outcome = call(&[tool, "--json"]);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        let message: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
    }
    let malformed = call(&["echo", "--args", "[1]"]);
    assert_eq!(malformed.code, Some(1), "{malformed:?}");
    let tokenless = toolgate(&["call", "echo", "--url", &url]);
    assert_eq!(tokenless.code, Some(1));
    let refused = toolgate(&["call", "echo", "--url", &url, "--token", "nonsense"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("401"), "{refused:?}");
    let nowhere = toolgate(&[
        "call",
        "echo",
        "--url",
        "http://127.0.0.1:1/mcp",
        "--token",
        "x",
    ]);
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
}

#[tokio::test]
async fn migrate_may_run_twice_and_says_when_it_cannot() {
    let gateway = Gateway::start("").await;
    let schema = || gateway.database().psql("select count(*) from pg_class");
    let before = schema();
    for _ in 0..2 {
        let outcome = gateway.outcome(&["migrate"]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("schema"));
    }
    assert_eq!(schema(), before);
    let folder = Folder::new();
    let keys = folder.file("keys", &super::support::config::deployment_key());
    let config = json!({"database": {"url": "postgres://nobody@127.0.0.1:1/x"}, "keys_file": keys, "tenants": {"acme": {}}});
    let file = folder.file("away.yaml", &config.to_string());
    let away = toolgate(&["migrate", "--config", file.to_str().unwrap()]);
    assert_eq!(away.code, Some(1), "{away:?}");
    assert!(away.stderr.contains("database"), "{away:?}");
}

#[tokio::test]
async fn every_command_has_help_with_an_example() {
    for command in [
        "serve",
        "quickstart",
        "check",
        "explain",
        "call",
        "token",
        "migrate",
    ] {
        let help = toolgate(&[command, "--help"]);
        assert_eq!(help.code, Some(0), "{command}");
        assert!(
            help.stdout.contains("Example: toolgate"),
            "{command}: {}",
            help.stdout
        );
    }
    for command in ["search", "tail"] {
        let help = toolgate(&["audit", command, "--help"]);
        assert!(
            help.stdout.contains("Example: toolgate"),
            "{command}: {}",
            help.stdout
        );
    }
}

async fn some_traffic(gateway: &Gateway) -> Vec<Answer> {
    let mut answers = Vec::new();
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        alice.names().await;
        for (tool, arguments) in [
            ("echo", json!({"text": "a-private-argument"})),
            ("fail", json!({})),
            ("missing-private-name", json!({})),
            (
                "echo",
                json!({"text": "ghp_zZ9yY8xX7wW6vV5uU4tT3sS2rR1qQ0pP9oO8"}),
            ),
        ] {
            answers.push(alice.call(tool, arguments).await);
        }
    }
    gateway.anonymous().raw("POST", &[], "").await;
    answers
}

#[tokio::test]
async fn metrics_are_there_after_traffic_and_name_nobody() {
    let mut gateway = gateway("").await;
    some_traffic(&gateway).await;
    gateway.reload("server: { page_size: 100 }");
    let text = eventually("the reload is counted", async || {
        let text = gateway.metrics().await;
        (text.contains("toolgate_config_reloads_total{") && text.contains("toolgate_upstream_up{"))
            .then_some(text)
    })
    .await;
    for series in [
        "mcp_server_operation_duration_seconds_bucket",
        "toolgate_calls_total{",
        "toolgate_refusals_total{reason=\"visibility\"} 2",
        "toolgate_authentication_failures_total{",
        "toolgate_sanitize_findings_total{label=\"github_token\"}",
        "toolgate_audit_batch_size_count",
        "toolgate_audit_commit_seconds_count",
        "toolgate_audit_failures_total 0",
        "toolgate_inflight_calls 0",
        "toolgate_open_streams 0",
        "toolgate_upstream_up{upstream=\"up\"} 1",
        "toolgate_config_reloads_total{result=\"taken\"} 1",
        "method=\"tools/list\"",
        "method=\"initialize\"",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_cpu_seconds_total",
        "# EOF",
    ] {
        assert!(text.contains(series), "no {series} in\n{text}");
    }
    for outcome in ["ok", "tool_error", "refused"] {
        assert!(
            text.contains(&format!("outcome=\"{outcome}\"")),
            "{outcome}"
        );
    }
    for private in [
        "acme",
        "alice",
        "client-1",
        "session",
        "private",
        "globex",
        "corporate",
    ] {
        assert!(!text.contains(private), "{private} is in the metrics");
    }
}

#[tokio::test]
async fn probes_tell_alive_from_ready() {
    let mut away = Helper::example("upstream_rmcp", &[]).await;
    let gateway = Setup::new()
        .yaml("upstreams: { up: { required: true, refresh: 1s } }")
        .upstream("up", away.config())
        .start()
        .await;
    away.process().kill();
    eventually("not ready without a required upstream", async || {
        (gateway.admin_status("/readyz").await == Some(503)).then_some(())
    })
    .await;
    assert_eq!(gateway.admin_status("/healthz").await, Some(200));
    let public = gateway
        .http()
        .get(format!("{}/metrics", gateway.url()))
        .send()
        .await
        .unwrap();
    assert_eq!(public.status(), 404, "the public listener has no probes");
}

#[tokio::test]
async fn the_log_is_json_and_tells_of_no_success() {
    let gateway = gateway("telemetry: { log_filter: info }").await;
    let before = gateway.logs().lines().len();
    for answer in some_traffic(&gateway).await {
        let id = answer.header("x-request-id").unwrap();
        assert_eq!(id.len(), 16);
    }
    let lines = gateway.logs().lines();
    let objects = gateway.logs().json();
    assert_eq!(
        lines.len(),
        objects.len(),
        "a line is no JSON object: {lines:#?}"
    );
    for line in &objects {
        for field in ["timestamp", "level", "target", "message"] {
            assert!(line[field].is_string(), "{field}: {line}");
        }
    }
    // The audit's checkpoints are logged whenever something is on record.
    let is_checkpoint = |line: &&String| line.contains("\"checkpoint\":");
    let after: Vec<&String> = lines[before..]
        .iter()
        .filter(|line| !is_checkpoint(line))
        .collect();
    assert!(
        after.is_empty(),
        "successful calls and refusals are on record, not in the log: {after:#?}"
    );
    for secret in [
        "a-private-argument",
        "ghp_zZ9yY8",
        gateway.user("alice@acme").token(),
    ] {
        assert!(!gateway.logs().contains(secret));
    }
}

#[tokio::test]
async fn what_is_logged_in_a_request_carries_its_id() {
    let gateway = Setup::new()
        .yaml("tools: [{ match: structured, timeout: 5s }]")
        .over("up", Helper::example("upstream_rmcp", &[]).await)
        .start()
        .await;
    // The weather without a city breaks the tool's own output schema, which is logged.
    let answer = gateway
        .user("alice@acme")
        .modern()
        .call("structured", json!({}))
        .await;
    assert!(answer.is_error(), "{answer:?}");
    let id = answer.header("x-request-id").unwrap().to_owned();
    eventually("the line", async || {
        let lines = gateway.logs().json();
        lines
            .into_iter()
            .find(|line| line["message"] == "A tool broke its output schema.")
            .inspect(|line| {
                let spans = line["spans"].as_array().cloned().unwrap_or_default();
                assert!(
                    spans.iter().any(|span| span["request.id"] == id.as_str()),
                    "{line:#}"
                );
            })
    })
    .await;
}
