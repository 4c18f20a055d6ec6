//! The table of answers (design §4), row by row, in both eras.

use super::support::{Era, Gateway, Helper, Setup, both, eventually, json};

async fn gateway() -> Gateway {
    let server = Helper::example("upstream_rmcp", &[]).await;
    Setup::new()
        .yaml(
            r#"
            tenants:
              acme:
                tools: { allow: ["*"], deny: ["fail"] }
            tools:
              - { match: "structured", scopes: ["crm.admin", "crm.read"] }
            "#,
        )
        .over("up", server)
        .start()
        .await
}

#[tokio::test]
async fn a_missing_or_bad_token_is_challenged_once() {
    let gateway = gateway().await;
    for (what, caller, error) in [
        ("none", gateway.anonymous(), None),
        (
            "not a token",
            gateway.anonymous().bearer("nonsense"),
            Some("invalid_token"),
        ),
        (
            "expired",
            gateway
                .user("alice@acme")
                .with(|token| token.expires_in(-3600)),
            Some("invalid_token"),
        ),
        (
            "changed signature",
            gateway
                .user("alice@acme")
                .with(super::support::keys::Token::broken),
            Some("invalid_token"),
        ),
        (
            "unsigned",
            gateway
                .user("alice@acme")
                .with(super::support::keys::Token::unsigned),
            Some("invalid_token"),
        ),
        (
            "other audience",
            gateway
                .user("alice@acme")
                .with(|token| token.audience("https://other.example/mcp")),
            Some("invalid_token"),
        ),
        (
            "tenant nobody has",
            gateway.user("alice@nowhere"),
            Some("invalid_token"),
        ),
    ] {
        for method in ["POST", "GET", "HEAD", "DELETE"] {
            let answer = caller
                .raw(
                    method,
                    &[
                        ("accept", "image/png"),
                        ("mcp-protocol-version", "1999-01-01"),
                    ],
                    "",
                )
                .await;
            assert_eq!(answer.status, 401, "{what} {method}");
            let challenge = answer.header("www-authenticate").unwrap();
            let metadata = format!(
                "resource_metadata=\"{}\"",
                gateway.audience("/.well-known/oauth-protected-resource/mcp")
            );
            assert!(
                challenge.starts_with("Bearer ") && challenge.contains(&metadata),
                "{challenge}"
            );
            assert!(challenge.contains("scope=\"mcp\""), "{challenge}");
            match error {
                Some(error) => assert!(
                    challenge.contains(&format!("error=\"{error}\"")),
                    "{what}: {challenge}"
                ),
                None => assert!(!challenge.contains("error="), "{what}: {challenge}"),
            }
        }
    }
}

#[tokio::test]
async fn a_token_and_a_path_of_different_tenants_do_not_meet() {
    let gateway = gateway().await;
    let audience = gateway.audience("/t/globex/mcp");
    let alice = gateway
        .user("alice@acme")
        .with(|token| token.audience(audience.clone()))
        .sent_to("/t/globex/mcp");
    let stranger = gateway
        .user("alice@acme")
        .with(|token| token.audience(gateway.audience("/t/nobody/mcp")))
        .sent_to("/t/nobody/mcp");
    for caller in [alice, stranger] {
        let answer = caller
            .raw("POST", &[("content-type", "application/json")], "{}")
            .await;
        assert_eq!(answer.status, 401);
        assert!(
            answer
                .header("www-authenticate")
                .unwrap()
                .contains("invalid_token")
        );
    }
    let at_home = gateway.user("alice@acme").at("/t/acme/mcp");
    for era in both() {
        assert!(
            !at_home.connect(era).await.names().await.is_empty(),
            "{era:?}"
        );
    }
}

#[tokio::test]
async fn missing_scopes_are_named_all_at_once() {
    let gateway = gateway().await;
    for era in both() {
        let mut alice = gateway
            .user("alice@acme")
            .with(|token| token.scope("mcp crm.read"))
            .connect(era)
            .await;
        let answer = alice.call("structured", json!({})).await;
        assert_eq!(answer.status, 403, "{era:?}");
        let challenge = answer.header("www-authenticate").unwrap();
        for part in [
            "error=\"insufficient_scope\"",
            "crm.admin",
            "crm.read",
            "resource_metadata=",
        ] {
            assert!(challenge.contains(part), "{challenge}");
        }
        assert_eq!(answer.code(), 1403);
        let mut broad = gateway
            .user("alice@acme")
            .with(|token| token.scope("crm.admin crm.read"))
            .connect(era)
            .await;
        assert_eq!(
            broad.call("structured", json!({})).await.status,
            200,
            "{era:?}"
        );
        assert!(
            alice.names().await.contains(&"structured".to_owned()),
            "a tool for which only scopes are missing is listed"
        );
    }
}

#[tokio::test]
async fn hidden_and_missing_tools_answer_alike() {
    let gateway = gateway().await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let mut answers = Vec::new();
        for tool in ["fail", "nope"] {
            let answer = alice.call(tool, json!({})).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, -32602),
                "{era:?} {tool}"
            );
            let id = format!("\"id\": {}", answer.message()["id"]);
            answers.push(answer.snapshot().replace(tool, "TOOL").replace(&id, "ID"));
        }
        assert_eq!(answers[0], answers[1], "{era:?}");
        assert!(!alice.names().await.contains(&"fail".to_owned()));
    }
}

#[tokio::test]
async fn a_name_or_a_page_that_is_not_ours_is_refused() {
    let gateway = gateway().await;
    let alice = gateway.user("alice@acme");
    for (name, value, status) in [
        ("host", "evil.example", 403),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("origin", "http://localhost:6274", 400),
        ("host", "127.0.0.1", 400),
        ("host", "localhost:1234", 400),
    ] {
        let answer = alice
            .raw(
                "POST",
                &[(name, value), ("content-type", "application/json")],
                "{}",
            )
            .await;
        assert_eq!(answer.status, status, "{name}: {value}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_message_are_refused_and_on_record() {
    let gateway = gateway().await;
    let alice = gateway.user("alice@acme");
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let many = format!(
        "  [{}]",
        vec![r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#; 500]
            .join(",")
    );
    let cases: Vec<(&str, Vec<u8>, i64)> = vec![
        ("nothing", b"".to_vec(), -32700),
        ("no JSON", b"{".to_vec(), -32700),
        ("two values", br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fail"}}"#.to_vec(), -32700),
        ("doubled key", br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"fail"}}"#.to_vec(), -32700),
        ("not UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec(), -32700),
        ("lone surrogate", br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#.to_vec(), -32700),
        ("too deep", deep.into_bytes(), -32700),
        ("no version", br#"{"id":1,"method":"tools/list"}"#.to_vec(), -32600),
        ("null id", br#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#.to_vec(), -32600),
        ("a number", b"5".to_vec(), -32600),
        ("batch", br#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail","arguments":{}}}]"#.to_vec(), -32600),
        ("big batch", many.into_bytes(), -32600),
        ("empty batch", b"[]".to_vec(), -32600),
    ];
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        for (what, body, code) in &cases {
            let headers = [
                ("content-type", "application/json"),
                ("mcp-protocol-version", version),
            ];
            let answer = alice.raw("POST", &headers, body.clone()).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (400, *code),
                "{what} {version}: {}",
                answer.body
            );
        }
    }
    eventually("every refused body is on record or counted", async || {
        let records = gateway.audit(&["--outcome", "refused:invalid"]);
        let counted: u64 = records
            .iter()
            .map(|record| record["count"].as_u64().unwrap())
            .sum();
        (counted == 3 * cases.len() as u64).then_some(())
    })
    .await;
}

#[tokio::test]
async fn type_accept_method_and_size_have_their_statuses() {
    let gateway = Setup::new()
        .yaml("server: { body_limit: 64KiB }")
        .start()
        .await;
    let alice = gateway.user("alice@acme");
    let json = ("content-type", "application/json");
    assert_eq!(
        alice
            .raw("POST", &[("content-type", "text/plain")], "{}")
            .await
            .status,
        415
    );
    assert_eq!(alice.raw("POST", &[], "{}").await.status, 415);
    assert_eq!(
        alice
            .raw("POST", &[json, ("accept", "text/html")], "{}")
            .await
            .status,
        406
    );
    assert_eq!(
        alice
            .raw("POST", &[json], "x".repeat(65 << 10))
            .await
            .status,
        413
    );
    for method in ["PUT", "PATCH"] {
        let answer = alice.raw(method, &[json], "{}").await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("allow")),
            (405, Some("POST, GET, DELETE")),
            "{method}"
        );
    }
    for method in ["GET", "HEAD"] {
        let answer = alice
            .raw(method, &[("accept", "text/event-stream")], "")
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("allow")),
            (405, Some("POST, GET, DELETE")),
            "{method} without a session"
        );
    }
}

#[tokio::test]
async fn sessions_are_needed_known_and_ones_own() {
    let gateway = gateway().await;
    let mut alice = gateway.user("alice@acme").connect(Era::Legacy).await;
    let none = alice
        .prepare("tools/list", json!({}))
        .without("mcp-session-id")
        .send()
        .await;
    assert_eq!(none.status, 400);
    let unknown = alice
        .prepare("tools/list", json!({}))
        .header("mcp-session-id", "nonsense")
        .send()
        .await;
    assert_eq!(unknown.status, 404);
    let mut theirs = alice.used_by(gateway.other_tenant());
    let foreign = theirs.request("tools/list", json!({})).await;
    assert_eq!(foreign.status, 404);
    let strip = |answer: &super::support::answer::Answer| answer.message()["error"].clone();
    assert_eq!(
        strip(&foreign),
        strip(&unknown),
        "a foreign session answers like an unknown one"
    );
    let wild = alice
        .prepare("tools/list", json!({}))
        .header("mcp-protocol-version", "1999-01-01")
        .send()
        .await;
    assert_eq!((wild.status.as_u16(), wild.code()), (400, -32600));
    let other_revision = alice
        .prepare("tools/list", json!({}))
        .header("mcp-protocol-version", "2025-06-18")
        .send()
        .await;
    assert_eq!(
        other_revision.status, 200,
        "any legacy revision is taken within a session"
    );
    assert_eq!(alice.get(&[]).await.status(), 200);
    let modern = gateway
        .user("alice@acme")
        .modern()
        .prepare("tools/list", json!({}))
        .header("mcp-session-id", "nonsense")
        .send()
        .await;
    assert_eq!(modern.status, 200, "the modern era ignores a session id");
    assert_eq!(modern.header("mcp-session-id"), None);
}

#[tokio::test]
async fn versions_are_negotiated_or_named() {
    let gateway = gateway().await;
    let alice = gateway.user("alice@acme");
    for (asked, settled) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2030-01-01", "2025-11-25"),
        ("x", "2025-11-25"),
    ] {
        let session = alice.legacy(asked).await;
        assert_eq!(
            session.opening().result()["protocolVersion"],
            settled,
            "{asked}"
        );
    }
    let future =
        json!({"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}}});
    let answer = alice
        .modern()
        .prepare("tools/list", json!({}))
        .header("mcp-protocol-version", "2030-01-01")
        .with(&future)
        .send()
        .await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32022));
    assert_eq!(answer.error()["data"]["requested"], "2030-01-01");
    let discovered = alice.modern().request("server/discover", json!({})).await;
    assert_eq!(
        answer.error()["data"]["supported"],
        discovered.result()["supportedVersions"]
    );
    let mixed = alice.modern().prepare("tools/list", json!({})).with(&json!({"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}}})).send().await;
    assert_eq!((mixed.status.as_u16(), mixed.code()), (400, -32020));
}

#[tokio::test]
async fn modern_headers_must_mirror_the_body() {
    let gateway = gateway().await;
    let mut alice = gateway.user("alice@acme").modern();
    let call = |alice: &mut super::support::session::Session| {
        alice.prepare(
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "hi"}}),
        )
    };
    for (what, prepared, status, code) in [
        (
            "method missing",
            call(&mut alice).without("mcp-method"),
            400,
            -32020,
        ),
        (
            "method wrong",
            call(&mut alice).header("mcp-method", "tools/list"),
            400,
            -32020,
        ),
        (
            "name missing",
            call(&mut alice).without("mcp-name"),
            400,
            -32020,
        ),
        (
            "name wrong",
            call(&mut alice).header("mcp-name", "fail"),
            400,
            -32020,
        ),
        (
            "version missing",
            call(&mut alice).without("mcp-protocol-version"),
            400,
            -32020,
        ),
        (
            "capabilities missing",
            call(&mut alice).with(
                &json!({"params": {"_meta": {"io.modelcontextprotocol/clientCapabilities": null}}}),
            ),
            400,
            -32602,
        ),
        (
            "meta missing",
            call(&mut alice).with(&json!({"params": {"_meta": null}})),
            400,
            -32602,
        ),
        (
            "bad log level",
            call(&mut alice)
                .with(&json!({"params": {"_meta": {"io.modelcontextprotocol/logLevel": "loud"}}})),
            400,
            -32602,
        ),
    ] {
        let answer = prepared.send().await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (status, code),
            "{what}: {}",
            answer.body
        );
        assert!(
            answer.message()["id"].is_number(),
            "{what}: the id is echoed"
        );
    }
    let encoded = call(&mut alice)
        .header("mcp-name", "=?base64?ZWNobw==?=")
        .send()
        .await;
    assert_eq!(encoded.text(), "hi");
    let spaced = call(&mut alice).header("mcp-name", "  echo ").send().await;
    assert_eq!(spaced.text(), "hi");
}

#[tokio::test]
async fn unknown_methods_are_told_by_era() {
    let gateway = gateway().await;
    for (era, status) in [(Era::Legacy, 200), (Era::Modern, 404)] {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        // Families that no server behind offers are empty: servers come and go.
        for family in ["resources", "prompts"] {
            let answer = alice.request(&format!("{family}/list"), json!({})).await;
            assert_eq!(answer.result()[family], json!([]), "{era:?}");
        }
        for method in ["nonsense/method", "resources/nonsense", "tasks/list"] {
            let answer = alice.request(method, json!({})).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (status, -32601),
                "{era:?} {method}"
            );
        }
    }
    let mut modern = gateway.user("alice@acme").modern();
    for removed in ["ping", "logging/setLevel"] {
        assert_eq!(
            modern.request(removed, json!({})).await.status,
            404,
            "{removed}"
        );
    }
    let mut legacy = gateway.user("alice@acme").connect(Era::Legacy).await;
    assert_eq!(legacy.request("ping", json!({})).await.result(), &json!({}));
    assert_eq!(
        legacy
            .notify("notifications/unheard_of", json!({}))
            .await
            .status,
        202
    );
}

#[tokio::test]
async fn calls_without_a_shape_are_errors_and_arguments_that_do_not_fit_are_results() {
    let gateway = gateway().await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for params in [
            json!({}),
            json!({"name": 5}),
            json!({"name": "echo", "arguments": []}),
            json!({"name": "echo", "arguments": "{}"}),
        ] {
            let prepared = alice.prepare("tools/call", params.clone());
            let prepared = if params["name"].is_string() {
                prepared
            } else {
                prepared.without("mcp-name")
            };
            let answer = prepared.send().await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, -32602),
                "{era:?} {params}"
            );
        }
        let answer = alice.call("add", json!({"a": "ten", "b": 2})).await;
        assert!(answer.is_error(), "{era:?}");
        let text = answer.text();
        for part in ["/a", "ten", "Example"] {
            assert!(text.contains(part), "{era:?}: {text}");
        }
        for nothing in [
            json!({"name": "structured"}),
            json!({"name": "structured", "arguments": null}),
        ] {
            let mut broad = gateway
                .user("alice@acme")
                .with(|token| token.scope("crm.admin crm.read"))
                .connect(era)
                .await;
            assert_eq!(broad.request("tools/call", nothing).await.status, 200);
        }
    }
}

#[tokio::test]
async fn over_the_limit_says_when_to_come_back() {
    let server = Helper::example("upstream_rmcp", &[]).await;
    let gateway = Setup::new()
        .yaml("tenants: { acme: { limits: { per_user: { rate: 3/m, burst: 3 } } } }")
        .over("up", server)
        .start()
        .await;
    for (era, who) in [(Era::Legacy, "alice@acme"), (Era::Modern, "anna@acme")] {
        let mut user = gateway.user(who).connect(era).await;
        for _ in 0..3 {
            assert_eq!(
                user.call("echo", json!({"text": "hi"})).await.status,
                200,
                "{era:?}"
            );
        }
        let refused = user.call("echo", json!({"text": "hi"})).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (429, 1429),
            "{era:?}"
        );
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        let millis = refused.error()["data"]["retryAfterMs"].as_u64().unwrap();
        assert!(
            (1..=20).contains(&wait) && millis <= wait * 1000,
            "{wait} {millis}"
        );
        assert_eq!(
            refused.header("ratelimit-policy"),
            Some("\"user\";q=3;w=60")
        );
        assert!(
            refused
                .header("ratelimit")
                .unwrap()
                .starts_with("\"user\";r=0;t=")
        );
        assert!(refused.message()["id"].is_number());
        assert!(
            !user.names().await.is_empty(),
            "lists have a budget of their own"
        );
        let hidden = user.call("nope", json!({})).await;
        assert_eq!(
            hidden.status, 429,
            "a missing tool is charged like any other"
        );
    }
    assert_eq!(
        gateway
            .other_tenant()
            .modern()
            .call("echo", json!({"text": "hi"}))
            .await
            .status,
        200
    );
    assert_eq!(
        gateway
            .audit_of(&["--outcome", "refused:limit"], 4)
            .await
            .len(),
        4
    );
}

#[tokio::test]
async fn failed_sign_ins_spend_the_address_and_good_ones_do_not() {
    let gateway = Setup::new()
        .yaml("{ server: { trusted_proxies: [127.0.0.0/8] }, edge: { per_address: { rate: 5/m, burst: 5 } } }")
        .start()
        .await;
    let from = |address: &str| [("x-forwarded-for", format!("{}, {address}", rand_address()))];
    let post = async |caller: &super::support::client::Caller, address: &str| {
        let [(name, value)] = from(address);
        caller
            .raw(
                "POST",
                &[(name, value.as_str()), ("content-type", "application/json")],
                "{}",
            )
            .await
            .status
            .as_u16()
    };
    let anonymous = gateway.anonymous();
    for turn in 0..6 {
        let want = if turn < 5 { 401 } else { 429 };
        assert_eq!(post(&anonymous, "198.51.100.4").await, want, "turn {turn}");
    }
    assert_eq!(
        post(&gateway.user("alice@acme"), "198.51.100.4").await,
        400,
        "a good token passes from the same address"
    );
    assert_eq!(
        post(&anonymous, "198.51.100.5").await,
        401,
        "another address has its own bucket"
    );
    for turn in 0..6 {
        let want = if turn < 5 { 401 } else { 429 };
        assert_eq!(
            post(&anonymous, &format!("2001:db8:1:2::{turn}")).await,
            want,
            "one key for a /64"
        );
    }
}

fn rand_address() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    std::net::Ipv4Addr::from(0x0b00_0000 + NEXT.fetch_add(1, Ordering::Relaxed)).to_string()
}

/// A real client writes the head, and the body a moment later; the next request
/// comes on the same connection.
#[tokio::test]
async fn a_refusal_before_the_body_came_leaves_the_connection_usable() {
    use std::io::{Read, Write};
    let gateway = gateway().await;
    let address = gateway.url().trim_start_matches("http://").to_owned();
    let answers = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.set_nodelay(true).unwrap();
        let patience = Some(std::time::Duration::from_secs(10));
        stream.set_read_timeout(patience).unwrap();
        let mut answers = Vec::new();
        for _ in 0..5 {
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = [0; 4096];
            let read = stream.read(&mut answer).unwrap();
            answers.push(String::from_utf8_lossy(&answer[..read]).into_owned());
            stream.write_all(b"{}").unwrap();
        }
        answers
    })
    .await
    .unwrap();
    for answer in answers {
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer:?}");
        assert!(!answer.contains("close"), "{answer}");
    }
}

/// Closing at once would reset the connection, and the answer would be lost.
#[tokio::test]
async fn a_refused_large_body_is_read_and_the_answer_says_that_the_connection_ends() {
    use std::io::{Read, Write};
    let gateway = gateway().await;
    let address = gateway.url().trim_start_matches("http://").to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let size = 24 * 1024 * 1024;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let part = vec![b' '; 1024 * 1024];
        for _ in 0..24 {
            stream.write_all(&part).unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    })
    .await
    .unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer:?}");
    assert!(answer.contains("connection: close"), "{answer}");
}
