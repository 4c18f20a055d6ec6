//! Upstreams that fail, in every way there is: what the model is told, what is on
//! record, and that nobody else notices.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::support::answer::Answer;
use super::support::folder::Folder;
use super::support::process::send;
use super::support::scripted::{Say, Scripted, listing, plain, text};
use super::support::session::{Prepared, Session};
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

const REPEAT: &str = "check before repeating it";

/// How an upstream misbehaves, how that is recorded, and what the model reads.
const FAILURES: [(&str, &str, &[&str]); 21] = [
    ("hang", "timeout", &["did not answer in time", REPEAT]),
    (
        "slow_headers",
        "timeout",
        &["did not answer in time", REPEAT],
    ),
    ("die", "upstream_error", &["broke off", REPEAT]),
    ("die_sse", "upstream_error", &["broke off", REPEAT]),
    (
        "garbage",
        "upstream_error",
        &["no MCP message", "Do not retry"],
    ),
    (
        "not_rpc",
        "upstream_error",
        &["no MCP message", "Do not retry"],
    ),
    (
        "wrong_id",
        "upstream_error",
        &["no MCP message", "Do not retry"],
    ),
    (
        "nothing",
        "upstream_error",
        &["no MCP message", "Do not retry"],
    ),
    (
        "too_deep",
        "upstream_error",
        &["no MCP message", "Do not retry"],
    ),
    (
        "endless_json",
        "upstream_error",
        &["1048576 bytes", "Ask for less"],
    ),
    (
        "endless_line",
        "upstream_error",
        &["1048576 bytes", "Ask for less"],
    ),
    (
        "announced_huge",
        "upstream_error",
        &["1048576 bytes", "Ask for less"],
    ),
    ("unauthorized", "upstream_error", &["401", "do not retry"]),
    ("redirect", "upstream_error", &["302", "Do not retry"]),
    ("html_500", "upstream_error", &["500", "Retry once"]),
    ("rate_limited", "upstream_error", &["429", "Retry in 30 s"]),
    ("tool_error", "tool_error", &["no such user"]),
    ("split_emoji", "ok", &["done ✅ fine"]),
    // U+0085 cuts no event; it is a control character, and leaves as the line end it stands for.
    ("line_ends", "ok", &["a\u{2028}b\nc"]),
    ("bad_utf8", "ok", &["caf\u{fffd}"]),
    ("lone_surrogate", "ok", &["a\u{fffd}b"]),
];

/// Both eras of the misbehaving server, `modern` and `legacy`, and a good one.
async fn misbehaving() -> (Helper, Gateway) {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let mut setup = Setup::new();
    for era in ["modern", "legacy"] {
        setup = setup
            .upstream(era, hostile.config_of(&format!("/{era}")))
            .yaml(&format!(
                "upstreams: {{ {era}: {{ prefix: {era}_, max_answer: 1MiB, timeout: {{ call: 25s }}, breaker: {{ failures: 1000 }} }} }}"
            ));
    }
    let good = Helper::example("upstream_rmcp", &[]).await;
    let gateway = setup
        .over("good", good)
        .yaml(
            r#"
            upstreams: { good: { prefix: good_ } }
            tools:
              - { match: "*_hang", timeout: 1s }
              - { match: "*_slow_headers", timeout: 1s }
              - { match: "*_endless_sse", timeout: 1s }
            "#,
        )
        .start()
        .await;
    (hostile, gateway)
}

/// Calls tools all at once, by one session.
async fn all_at_once(session: &mut Session, tools: &[String]) -> Vec<Answer> {
    let calls: Vec<_> = tools
        .iter()
        .map(|tool| session.prepare("tools/call", json!({"name": tool, "arguments": {}})))
        .collect();
    join_all(calls.iter().map(Prepared::send)).await
}

/// What the misbehaving server has seen.
async fn seen(gateway: &Gateway, hostile: &Helper) -> Vec<Value> {
    let answer = gateway.http().get(hostile.url_of("/seen")).send().await;
    let text = answer.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn every_failure_of_an_upstream_is_told_to_the_model_and_on_record() {
    // C21 a, b, d, f, i; C23 d to h.
    let (_hostile, gateway) = misbehaving().await;
    let tools: Vec<String> = ["modern", "legacy"]
        .iter()
        .flat_map(|era| FAILURES.map(|(mode, ..)| format!("{era}_{mode}")))
        .collect();
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let mut other = gateway.user("carol@acme").connect(era).await;
        let good = async {
            for _ in 0..20 {
                let answer = other.call("good_echo", json!({"text": "hi"})).await;
                assert_eq!(
                    answer.text(),
                    "hi",
                    "{era:?}: another upstream is untouched"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let (answers, ()) = tokio::join!(all_at_once(&mut alice, &tools), good);
        for (tool, answer) in tools.iter().zip(&answers) {
            let (source, mode) = tool.split_once('_').unwrap();
            let (_, outcome, words) = FAILURES.iter().find(|(known, ..)| *known == mode).unwrap();
            assert_eq!(answer.status, 200, "{era:?} {tool}");
            assert_eq!(
                answer.is_error(),
                *outcome != "ok",
                "{era:?} {tool}: {answer:?}"
            );
            let said = answer.text();
            for word in *words {
                assert!(said.contains(word), "{era:?} {tool}: {said}");
            }
            if !matches!(*outcome, "ok" | "tool_error") {
                assert!(
                    said.contains(&format!("server \"{source}\"")),
                    "{tool}: {said}"
                );
            }
            assert!(
                !said.contains("inner.example.com"),
                "inner names stay inside: {said}"
            );
        }
    }
    let records = gateway.audit(&["--limit", "1000"]);
    for tool in &tools {
        let (_, mode) = tool.split_once('_').unwrap();
        let (_, outcome, _) = FAILURES.iter().find(|(known, ..)| *known == mode).unwrap();
        let found: Vec<_> = records
            .iter()
            .filter(|record| record["tool"] == **tool)
            .collect();
        assert_eq!(found.len(), 2, "{tool}: one record an attempt");
        for record in found {
            assert_eq!(record["outcome"], **outcome, "{record}");
            assert_eq!(record["upstream_tool"], mode, "{record}");
        }
    }
}

#[tokio::test]
async fn an_upstreams_own_error_reaches_the_caller_and_its_list_is_read_again() {
    // C21 e.
    let (hostile, gateway) = misbehaving().await;
    let lists = async || {
        let seen = seen(&gateway, &hostile).await;
        let bodies = seen.iter().filter_map(|entry| entry["body"].as_str());
        bodies
            .filter(|body| body.contains("\"tools/list\""))
            .count()
    };
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for tool in ["modern_rpc_error", "legacy_rpc_error"] {
            let call = alice.prepare("tools/call", json!({"name": tool, "arguments": {}}));
            let answer = call.send().await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, -32602),
                "{era:?} {tool}"
            );
            assert_eq!(answer.message()["id"], call.id(), "{era:?} {tool}");
            assert_eq!(answer.error()["message"], "Unknown tool: x");
            assert_eq!(answer.error()["data"], json!({"a": 1}));
        }
    }
    let before = lists().await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("the list is doubted and read again", async || {
        alice.call("modern_rpc_error", json!({})).await;
        (lists().await > before).then_some(())
    })
    .await;
    let records = gateway.audit(&["--tool", "legacy_rpc_error"]);
    assert!(
        records
            .iter()
            .all(|record| record["outcome"] == "upstream_error"),
        "{records:?}"
    );
}

#[tokio::test]
async fn a_doubt_of_the_upstream_about_headers_or_sessions_is_cleared_without_the_caller() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = Setup::new()
        .upstream("up", hostile.config_of("/modern"))
        .upstream("lost", hostile.config_of("/lost"))
        .yaml("upstreams: { lost: { prefix: lost_ } }")
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let answer = alice.call("mismatch_once", json!({})).await;
        assert!(!answer.is_error(), "{era:?}: {answer:?}");
        assert!(
            !alice
                .names()
                .await
                .iter()
                .any(|name| name.starts_with("lost_")),
            "a server that forgets each session at once offers nothing"
        );
    }
    let calls: Vec<_> = seen(&gateway, &hostile).await;
    let asked = |path: &str, method: &str| {
        let method = format!("\"method\":\"{method}\"");
        let of = calls.iter().filter(|entry| entry["path"] == path);
        of.filter(|entry| entry["body"].as_str().unwrap().contains(&method))
            .count()
    };
    assert_eq!(
        asked("/modern", "tools/call"),
        3,
        "the mismatch is sent again once"
    );
    let lists = asked("/lost", "tools/list");
    let opened = asked("/lost", "initialize");
    assert!(
        lists > 0 && (lists..=lists + 1).contains(&opened),
        "one session an attempt: {lists} attempts, {opened} sessions"
    );
}

#[tokio::test]
async fn a_session_that_is_lost_at_each_call_is_opened_anew_once() {
    let upstream = Scripted::start(Era::Legacy, |asked| match asked.method() {
        "tools/list" => listing(&[&plain("lost")]),
        _ => Say::Http("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into()),
    });
    let gateway = Setup::new().upstream("up", upstream.config()).start().await;
    for era in both() {
        let before = upstream.calls().len();
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let answer = alice.call("lost", json!({})).await;
        assert!(answer.is_error(), "{era:?}");
        for word in ["server \"up\"", "404", "Do not retry"] {
            assert!(answer.text().contains(word), "{era:?}: {}", answer.text());
        }
        assert_eq!(upstream.calls().len() - before, 2, "{era:?}");
    }
}

#[tokio::test]
async fn answers_without_an_end_cost_bounded_memory() {
    let (_hostile, mut gateway) = misbehaving().await;
    let mut alice = gateway.user("alice@acme").modern();
    alice.call("good_echo", json!({"text": "hi"})).await;
    let (before, _) = gateway.process().memory();
    let tools: Vec<String> = [
        "endless_json",
        "endless_line",
        "announced_huge",
        "endless_sse",
    ]
    .iter()
    .flat_map(|mode| [format!("modern_{mode}"), format!("legacy_{mode}")])
    .collect();
    let many: Vec<String> = tools.iter().cycle().take(32).cloned().collect();
    let mut other = gateway.user("carol@acme").modern();
    let good = async {
        for _ in 0..5 {
            let answer = other.call("good_echo", json!({"text": "hi"})).await;
            assert_eq!(answer.text(), "hi");
        }
    };
    let (answers, ()) = tokio::join!(all_at_once(&mut alice, &many), good);
    for (tool, answer) in many.iter().zip(&answers) {
        assert!(answer.is_error(), "{tool}: {answer:?}");
        let timed_out = answer.text().contains("did not answer in time");
        assert_eq!(
            timed_out,
            tool.ends_with("endless_sse"),
            "{tool}: {answer:?}"
        );
    }
    let (_, most) = gateway.process().memory();
    // 32 answers of at most 1 MiB, several copies of each, and what the allocator keeps.
    assert!(
        most < before + 200,
        "{before} MiB before, {most} MiB at most"
    );
}

#[tokio::test]
async fn so_many_calls_are_in_flight_at_an_upstream_and_no_more() {
    let upstream = Scripted::start(Era::Modern, |asked| match asked.method() {
        "tools/list" => listing(&[&plain("hang"), &plain("quick")]),
        _ => Say::Nothing,
    });
    let gateway = Setup::new()
        .upstream("up", upstream.config())
        .yaml(
            r"
            upstreams: { up: { concurrent: 2, timeout: { call: 3s } } }
            tools: [{ match: quick, timeout: 300ms }]
            ",
        )
        .over("good", Helper::example("upstream_rmcp", &[]).await)
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    let two = vec!["hang".to_owned(); 2];
    let hanging = all_at_once(&mut alice, &two);
    let rest = async {
        eventually("both hang", async || {
            (upstream.calls().len() == 2).then_some(())
        })
        .await;
        let mut carol = gateway.user("carol@acme").modern();
        let busy = all_at_once(&mut carol, &vec!["quick".to_owned(); 6]).await;
        for answer in &busy {
            for word in [
                "server \"up\"",
                "as many calls running as it may",
                "Nothing was run",
            ] {
                assert!(answer.text().contains(word), "{}", answer.text());
            }
        }
        let good = carol.call("echo", json!({"text": "hi"})).await;
        assert_eq!(good.text(), "hi");
    };
    let (hanging, ()) = tokio::join!(hanging, rest);
    assert!(hanging.iter().all(Answer::is_error));
    assert_eq!(upstream.calls().len(), 2, "nothing else was sent");
    let records = gateway
        .audit_of(&["--tool", "quick", "--outcome", "upstream_error"], 6)
        .await;
    assert_eq!(records.len(), 6);
}

#[tokio::test]
async fn a_broken_upstream_is_left_alone_for_its_tenant_and_tried_again() {
    // C30: breakers carry the tenant.
    let upstream = Scripted::start(Era::Modern, |asked| match (asked.method(), asked.tool()) {
        ("tools/list", _) => listing(&[&plain("bad"), &plain("fine")]),
        (_, "bad") => Say::Hangup,
        _ => text("fine"),
    });
    let gateway = Setup::new()
        .upstream("up", upstream.config())
        .yaml("upstreams: { up: { breaker: { failures: 3, open_for: 3s } } }")
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    let mut bob = gateway.other_tenant().modern();
    for _ in 0..2 {
        assert!(alice.call("bad", json!({})).await.is_error());
    }
    assert_eq!(
        alice.call("fine", json!({})).await.text(),
        "fine",
        "a success starts the count anew"
    );
    for _ in 0..3 {
        assert!(
            alice
                .call("bad", json!({}))
                .await
                .text()
                .contains("broke off")
        );
    }
    let opened = Instant::now();
    let sent = upstream.calls().len();
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let refused = alice.call("fine", json!({})).await;
        assert_eq!(refused.status, 200, "{era:?}");
        assert!(refused.is_error(), "{era:?}");
        for word in ["server \"up\"", "Nothing was run", "Retry in"] {
            assert!(refused.text().contains(word), "{era:?}: {}", refused.text());
        }
    }
    assert_eq!(
        upstream.calls().len(),
        sent,
        "nothing is sent while the circuit is open"
    );
    assert_eq!(
        bob.call("fine", json!({})).await.text(),
        "fine",
        "the other tenant is untouched"
    );
    assert!(
        opened.elapsed() < Duration::from_secs(3),
        "too slow to tell"
    );
    eventually("the circuit lets calls through again", async || {
        (alice.call("fine", json!({})).await.text() == "fine").then_some(())
    })
    .await;
    assert!(opened.elapsed() >= Duration::from_secs(3));
    assert_eq!(
        alice.call("fine", json!({})).await.text(),
        "fine",
        "and stays closed"
    );
    let open = gateway
        .audit_of(&["--tool", "fine", "--outcome", "upstream_error"], 2)
        .await;
    assert!(
        open[0]["reason"].as_str().unwrap().contains("circuit"),
        "{open:?}"
    );
}

#[tokio::test]
async fn a_call_is_sent_twice_only_where_that_does_no_harm() {
    let tool = |name: &str, annotations: Value| {
        json!({"name": name, "description": "Breaks.", "inputSchema": {"type": "object"}, "annotations": annotations}).to_string()
    };
    let definitions = [
        tool("plain", json!({})),
        tool("idempotent", json!({"idempotentHint": true})),
        tool("reading", json!({"readOnlyHint": true})),
        tool("distrusted", json!({"readOnlyHint": true})),
        tool("vouched", json!({})),
        tool("slow", json!({"readOnlyHint": true})),
    ];
    let upstream = Scripted::start(Era::Modern, move |asked| {
        match (asked.method(), asked.tool()) {
            ("tools/list", _) => listing(&definitions.each_ref().map(String::as_str)),
            (_, "slow") => Say::Nothing,
            _ => Say::Hangup,
        }
    });
    let gateway = Setup::new()
        .upstream("up", upstream.config())
        .yaml(
            r"
            upstreams: { up: { timeout: { call: 1s }, breaker: { failures: 1000 } } }
            tools:
              - { match: distrusted, idempotent: false }
              - { match: vouched, idempotent: true }
            ",
        )
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    for (name, times) in [
        ("plain", 1),
        ("idempotent", 2),
        ("reading", 2),
        ("distrusted", 1),
        ("vouched", 2),
        ("slow", 1),
    ] {
        assert!(alice.call(name, json!({})).await.is_error(), "{name}");
        let sent = upstream
            .calls()
            .iter()
            .filter(|asked| asked.tool() == name)
            .count();
        assert_eq!(sent, times, "{name}");
    }
    let records = gateway.audit_of(&[], 6).await;
    assert_eq!(
        records.len(),
        6,
        "an attempt that is repeated is one call: {records:?}"
    );
}

/// An MCP server in a shell, in words that each test chooses: what it does for a
/// call is a `case` of the tool's name.
fn shell_server(folder: &Folder, tools: &[&str], calls: &str) -> Value {
    let listed: Vec<String> = tools.iter().map(|name| plain(name)).collect();
    let script = format!(
        r#"
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
say() {{ answer '{{"content":[{{"type":"text","text":"'"$1"'"}}]}}'; }}
while read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case "$line" in
    *'"initialize"'*) answer '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"shell","version":"1"}}}}' ;;
    *'"tools/list"'*) answer '{{"tools":[{}]}}' ;;
    *'"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"no"}}}}\n' "$id" ;;
    {calls}
  esac
done
"#,
        listed.join(",")
    );
    let path = folder.file("server.sh", &script);
    json!({"stdio": {"command": "/bin/sh", "args": [path], "env": {"GIVEN": "yes"}}})
}

#[tokio::test]
async fn a_child_that_is_killed_answers_its_calls_and_is_started_again() {
    // C15 d.
    let folder = Folder::new();
    let server = shell_server(
        &folder,
        &["pid", "hang"],
        r#"*'"name":"pid"'*) say $$ ;; *'"name":"hang"'*) : ;;"#,
    );
    let gateway = Setup::new()
        .upstream("child", server)
        .over("good", Helper::example("upstream_rmcp", &[]).await)
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let pid = eventually("the child runs", async || {
            alice
                .call("pid", json!({}))
                .await
                .text()
                .parse::<u32>()
                .ok()
        })
        .await;
        let hanging = alice.prepare("tools/call", json!({"name": "hang", "arguments": {}}));
        let hanging = tokio::spawn(async move { hanging.send().await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        send(pid, nix::sys::signal::Signal::SIGKILL);
        let answer = hanging.await.unwrap();
        assert!(
            answer.text().contains("broke off"),
            "{era:?}: {}",
            answer.text()
        );
        assert!(answer.text().contains("server \"child\""), "{era:?}");
        let good = alice.call("echo", json!({"text": "hi"})).await;
        assert_eq!(good.text(), "hi", "{era:?}: others are untouched");
        assert!(
            alice.names().await.contains(&"pid".to_owned()),
            "{era:?}: it stays listed"
        );
        let next = eventually("the child is started again", async || {
            alice
                .call("pid", json!({}))
                .await
                .text()
                .parse::<u32>()
                .ok()
        })
        .await;
        assert_ne!(pid, next, "{era:?}");
    }
    let records = gateway.audit_of(&["--tool", "hang"], 2).await;
    assert!(
        records
            .iter()
            .all(|record| record["outcome"] == "upstream_error"),
        "{records:?}"
    );
}

#[tokio::test]
async fn what_a_child_prints_beside_its_answers_harms_nothing() {
    // C32, log output.
    let folder = Folder::new();
    let noise = r#"
    *'"name":"noisy"'*)
        printf 'starting...\n\033[2J{"jsonrpc":"2.0","id":999999,"result":{}}\n[]\n\n'
        printf 'red \033[31m\007\r{"level":"ERROR","forged":true} \302\233K\342\200\250end\n\377\n' >&2
        say done ;;
    *'"name":"huge"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":"' "$id"
        head -c 3000000 /dev/zero | tr '\0' x
        printf '"}\n' ;;
    *'"name":"chatty"'*)
        head -c 300000 /dev/zero | tr '\0' '\n' >&2
        head -c 3000000 /dev/zero | tr '\0' y >&2
        say done ;;
    "#;
    let gateway = Setup::new()
        .upstream(
            "child",
            shell_server(&folder, &["noisy", "huge", "chatty"], noise),
        )
        .yaml("upstreams: { child: { max_answer: 1MiB } }")
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        assert_eq!(
            alice.call("noisy", json!({})).await.text(),
            "done",
            "{era:?}"
        );
        let huge = alice.call("huge", json!({})).await;
        assert!(
            huge.text().contains("1048576 bytes"),
            "{era:?}: {}",
            huge.text()
        );
        assert_eq!(
            alice.call("chatty", json!({})).await.text(),
            "done",
            "{era:?}"
        );
    }
    let line = gateway.logs().line_with("red ").await;
    let logged: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(logged["upstream.id"], "child", "{line}");
    assert!(
        line.contains("forged") && line.contains("end"),
        "one line: {line}"
    );
    for raw in ['\u{1b}', '\u{7}', '\r', '\u{9b}', '\u{2028}'] {
        assert!(!line.contains(raw), "{line}");
    }
    assert!(
        gateway
            .logs()
            .lines()
            .iter()
            .all(|line| line.starts_with('{') && line.len() < 16_000),
        "every line is an event of ours, and none is long"
    );
}

#[tokio::test]
async fn a_child_gets_the_configured_environment_and_no_secret() {
    let folder = Folder::new();
    let server = shell_server(
        &folder,
        &["environment"],
        r#"*'"name":"environment"'*) say "$(env | tr '\n"\\' '   ')" ;;"#,
    );
    let gateway = Setup::new()
        .upstream("child", server)
        .environment("TOOLGATE_SERVER__KEEP_ALIVE", "2s")
        .environment("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
        .environment("PGPASSWORD", "hunter3hunter3")
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    let environment = alice.call("environment", json!({})).await.text();
    for there in ["GIVEN=yes", "PATH="] {
        assert!(environment.contains(there), "{environment}");
    }
    for secret in ["TOOLGATE", "AWS_", "PGPASSWORD", "hunter"] {
        assert!(!environment.contains(secret), "{environment}");
    }
}

#[tokio::test]
async fn garbage_and_slowness_on_the_wire_harm_nobody_else() {
    let gateway = Gateway::over(Helper::example("upstream_rmcp", &[]).await).await;
    let caller = gateway.user("alice@acme");
    let mut alice = caller.modern();
    // Heads that never end, held open all the while.
    let address = gateway.url().trim_start_matches("http://").to_owned();
    let slow: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(&address).unwrap();
            std::io::Write::write_all(&mut stream, b"POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: ")
                .unwrap();
            stream
        })
        .collect();
    let bearer = caller.token();
    let many = "X-Many: 1\r\n".repeat(20_000);
    let long = "x".repeat(2 << 20);
    let head = |more: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {bearer}\r\n{more}\r\n"
        )
    };
    for (what, bytes) in [
        ("nothing of HTTP", b"\x00\xff\x16\x03\x01garbage\r\n\r\n".to_vec()),
        ("no version", b"POST /mcp\r\n\r\n".to_vec()),
        ("many headers", head(&many).into_bytes()),
        ("a long header", head(&format!("X-Long: {long}\r\n")).into_bytes()),
        ("a long path", format!("POST /{long} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes()),
        ("two lengths", head("Content-Length: 5\r\nContent-Length: 6\r\n").into_bytes()),
        ("length and chunks", head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1").into_bytes()),
        ("a bad chunk", head("Transfer-Encoding: chunked\r\n\r\nzz\r\n").into_bytes()),
        ("a header that ends early", head("Bad\0Name: x\r\n").into_bytes()),
    ] {
        let caller = caller.clone();
        let answer = tokio::task::spawn_blocking(move || caller.wire(&bytes)).await.unwrap();
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{what}: {}",
            answer.get(..80).unwrap_or(&answer)
        );
        assert_eq!(answer.matches("HTTP/1.1 ").count(), usize::from(!answer.is_empty()), "{what}");
        assert_eq!(alice.call("echo", json!({"text": "hi"})).await.text(), "hi", "{what}");
    }
    drop(slow);
    assert_eq!(gateway.admin_status("/healthz").await, Some(200));
}
