//! The stdio kind with real children: this very test program acting as a server,
//! and small shell scripts.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::rmcp_tests::rmcp_server::{Era, Server};
use super::*;
use crate::clock::SystemClock;
use crate::protocol::{LogLevel, UpstreamEvent};
use crate::telemetry::metrics::Metrics;

const ROLE: &str = "TOOLGATE_TEST_CHILD";

/// Not a test: what the children of the tests below run.
#[tokio::test]
async fn acts_as_a_child() {
    #[expect(clippy::disallowed_methods, reason = "a test's own child")]
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let era = match role.as_str() {
        "legacy" => Era::Legacy,
        _ => Era::Modern,
    };
    let server = Server::new(era).serve(rmcp::transport::stdio()).await;
    if let Ok(running) = server {
        let _ = running.waiting().await;
    }
    std::process::exit(0);
}

fn upstream(stdio: &Value) -> Arc<dyn Upstream> {
    let config: config::Upstream = serde_json::from_value(
        json!({ "stdio": stdio, "max_answer": "1MiB", "timeout": { "connect": "30s" } }),
    )
    .unwrap();
    let outgoing = Outgoing::new(&config::Outgoing::default()).unwrap();
    let clock: SharedClock = Arc::new(SystemClock);
    let metrics = Arc::new(Metrics::new(0));
    build(
        UpstreamId::from("child"),
        &config,
        &outgoing,
        &clock,
        &metrics,
    )
    .unwrap()
}

fn sdk_child(role: &str) -> Arc<dyn Upstream> {
    let program = std::env::current_exe().unwrap();
    upstream(&json!({
        "command": program,
        "args": ["upstream::stdio_tests::acts_as_a_child", "--exact", "--nocapture"],
        "env": { ROLE: role },
    }))
}

fn script(text: &str) -> Arc<dyn Upstream> {
    upstream(&json!({ "command": "sh", "args": ["-c", text] }))
}

fn call(tool: &str, arguments: &Value) -> UpstreamRequest {
    let params = json!({ "name": tool, "arguments": arguments });
    let deadline = Instant::now() + Duration::from_secs(20);
    UpstreamRequest {
        caller: CallerKey([1; 32]),
        ..UpstreamRequest::own("tools/call", Json::from_value(&params), deadline)
    }
}

async fn ask(
    upstream: &Arc<dyn Upstream>,
    request: UpstreamRequest,
) -> (Result<Value, UpstreamError>, Vec<UpstreamEvent>) {
    let (sender, mut events) = mpsc::channel(100);
    let result = upstream.request(request, sender).await;
    let mut heard = Vec::new();
    while let Ok(event) = events.try_recv() {
        heard.push(event.open());
    }
    (result.map(|json| json.open().to_value().unwrap()), heard)
}

async fn text(upstream: &Arc<dyn Upstream>, tool: &str, arguments: Value) -> String {
    let (result, _) = ask(upstream, call(tool, &arguments)).await;
    let result = result.unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn children_of_both_eras_answer_alike() {
    for (role, version) in [
        ("legacy", Version::V2025_11_25),
        ("modern", Version::V2026_07_28),
    ] {
        let upstream = sdk_child(role);
        assert_eq!(
            text(&upstream, "echo", json!({ "text": "hé ✅" })).await,
            "hé ✅"
        );
        assert_eq!(upstream.version(), Some(version));
        let mut slow = call("slow", &json!({ "ms": 200 }));
        slow.progress = true;
        slow.log_level = Some(LogLevel::Info);
        let (_, events) = ask(&upstream, slow).await;
        let progress = events
            .iter()
            .filter(|event| matches!(event, UpstreamEvent::Progress(_)));
        assert_eq!(progress.count(), 4, "{role}");
        let logs = events
            .iter()
            .filter(|event| matches!(event, UpstreamEvent::Log(..)));
        assert_eq!(logs.count(), 4, "{role}");
        upstream.shutdown().await;
        let (late, _) = ask(&upstream, call("echo", &json!({}))).await;
        assert!(matches!(late, Err(UpstreamError::Unreachable)), "{role}");
    }
}

#[tokio::test]
async fn many_calls_share_one_child_and_a_dropped_one_is_cancelled() {
    for role in ["legacy", "modern"] {
        let upstream = sdk_child(role);
        let slow = {
            let upstream = Arc::clone(&upstream);
            tokio::spawn(
                async move { ask(&upstream, call("slow", &json!({ "ms": 30_000 }))).await },
            )
        };
        let calls = (0..50).map(|n| {
            let upstream = Arc::clone(&upstream);
            tokio::spawn(async move { text(&upstream, "add", json!({ "a": n, "b": 1 })).await })
        });
        let calls: Vec<_> = calls.collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), (n + 1).to_string());
        }
        slow.abort();
        let mut cancelled = String::new();
        for _ in 0..20 {
            cancelled = text(&upstream, "cancelled", json!({})).await;
            if cancelled == "1" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(cancelled, "1", "{role}");
        upstream.shutdown().await;
    }
}

#[tokio::test]
async fn a_changed_list_of_tools_is_announced() {
    for role in ["legacy", "modern"] {
        let upstream = sdk_child(role);
        let mut changed = upstream.list_changed();
        text(&upstream, "echo", json!({ "text": "" })).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        changed.mark_unchanged();
        text(&upstream, "change_tools", json!({})).await;
        let heard = timeout(Duration::from_secs(3), changed.changed()).await;
        assert!(heard.is_ok(), "{role}");
        upstream.shutdown().await;
    }
}

/// A legacy server in shell: answers `initialize`, then what it is told.
fn shell_server(on_call: &str) -> String {
    format!(
        r#"reply() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$1" "$2"; }}
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *server/discover*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"?"}}}}\n' "$id" ;;
    *'"initialize"'*) reply "$id" '{{"protocolVersion":"2025-03-26","capabilities":{{}}}}' ;;
    *tools/call*) {on_call} ;;
  esac
done"#
    )
}

#[tokio::test]
async fn a_child_that_dies_breaks_its_calls_and_is_restarted() {
    let upstream = script(&shell_server(
        r#"case "$line" in *die*) exit 3 ;; *) reply "$id" "{\"pid\":$$}" ;; esac"#,
    ));
    let changed = upstream.list_changed();
    let (first, _) = ask(&upstream, call("pid", &json!({}))).await;
    let (dead, _) = ask(&upstream, call("die", &json!({}))).await;
    assert!(matches!(dead, Err(UpstreamError::Broken)));
    let began = Instant::now();
    let second = loop {
        let (again, _) = ask(&upstream, call("pid", &json!({}))).await;
        match again {
            Ok(result) => break result,
            Err(fault) => assert!(fault.not_executed(), "{fault:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_ne!(first.unwrap()["pid"], second["pid"]);
    assert_eq!(*changed.borrow(), 1);
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_child_inherits_no_secret_of_ours() {
    let mut environment = shell_server(r#"reply "$id" "{\"env\":\"$(env | tr '\n' ' ')\"}""#);
    environment.insert_str(0, "exec 2>/dev/null\n");
    let upstream = upstream(&json!({
        "command": "sh", "args": ["-c", environment], "env": { "ROOT": "/srv" },
    }));
    let (result, _) = ask(&upstream, call("env", &json!({}))).await;
    let result = result.unwrap();
    let names = result["env"].as_str().unwrap().split(' ');
    let names: Vec<&str> = names
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"ROOT"));
    for name in names {
        // The shell adds some of its own.
        let allowed = [
            "PATH", "HOME", "LANG", "TMPDIR", "ROOT", "PWD", "OLDPWD", "SHLVL", "_",
        ];
        assert!(allowed.contains(&name), "{name}");
    }
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_server_that_exits_at_the_probe_is_greeted_the_old_way() {
    let upstream = script(&format!(
        "read -r line\ncase \"$line\" in *initialize*) ;; *) exit 1 ;; esac\n\
         id=$(printf %s \"$line\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p')\n\
         printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{{}}}}}}\\n' \"$id\"\n{}",
        shell_server("reply \"$id\" '{}'")
    ));
    let (result, _) = ask(&upstream, call("x", &json!({}))).await;
    result.unwrap();
    assert_eq!(upstream.version(), Some(Version::V2025_06_18));
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_silent_probe_does_not_keep_a_legacy_server_away() {
    let silent = shell_server("reply \"$id\" '{}'")
        .replace("*server/discover*) printf", "*server/discover*) : printf");
    let upstream = script(&silent);
    let (result, _) = ask(&upstream, call("x", &json!({}))).await;
    result.unwrap();
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_command_that_is_not_there_is_unreachable() {
    let upstream = upstream(&json!({ "command": "/no/such/program" }));
    let (result, _) = ask(&upstream, call("x", &json!({}))).await;
    assert!(matches!(result, Err(UpstreamError::Unreachable)));
    upstream.shutdown().await;
}

#[tokio::test]
async fn the_whole_group_ends_even_when_it_does_not_want_to() {
    // Neither the child nor what it started listens to anything but SIGKILL.
    let stubborn = format!(
        "trap '' TERM\nsh -c 'trap \"\" TERM; while :; do sleep 0.1; done' &\necho $! >&2\n{}\nwhile :; do sleep 0.1; done",
        shell_server(r#"reply "$id" "{\"group\":$$}""#)
    );
    let upstream = script(&stubborn);
    let (result, _) = ask(&upstream, call("x", &json!({}))).await;
    let group = i32::try_from(result.unwrap()["group"].as_i64().unwrap()).unwrap();
    let group = nix::unistd::Pid::from_raw(group);
    assert!(nix::sys::signal::killpg(group, None).is_ok());
    let began = Instant::now();
    upstream.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(6));
    // The last members are reaped by whoever adopted them.
    for _ in 0..50 {
        if nix::sys::signal::killpg(group, None).is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let running = std::fs::read_to_string(format!("/proc/{group}/stat"));
    assert!(running.is_err(), "{running:?}");
}

#[tokio::test]
async fn an_answer_without_end_is_cut_and_the_next_call_works() {
    let upstream = script(&shell_server(
        r#"case "$line" in
      *big*) printf '{"jsonrpc":"2.0","id":%s,"result":{"t":"' "$id"; head -c 20000000 /dev/zero | tr '\0' x; printf '"}}\n' ;;
      *) reply "$id" '{}' ;;
    esac"#,
    ));
    let (big, _) = ask(&upstream, call("big", &json!({}))).await;
    assert!(
        matches!(big, Err(UpstreamError::TooLarge { .. })),
        "{big:?}"
    );
    let (small, _) = ask(&upstream, call("small", &json!({}))).await;
    small.unwrap();
    upstream.shutdown().await;
}
