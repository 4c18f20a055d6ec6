//! What reaches an upstream: what the gateway means it to have and nothing of the
//! caller's; and where the gateway connects to at all.

use std::sync::Arc;

use super::support::folder::Folder;
use super::support::scripted::{Say, Scripted, listing, plain, text};
use super::support::{Era, Gateway, Setup, Value, both, eventually, json};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Headers that may go to an upstream; no other does.
const ALLOWED: [&str; 12] = [
    "accept",
    "content-length",
    "content-type",
    "host",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "traceparent",
    "tracestate",
    "user-agent",
    "authorization",
];

/// A server with the tools `echo` and `away`, which redirects to another origin.
fn server(era: Era, elsewhere: &str) -> Scripted {
    let location =
        format!("HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n");
    Scripted::start(era, move |asked| match (asked.method(), asked.tool()) {
        ("tools/list", _) => listing(&[&plain("echo"), &plain("away")]),
        (_, "away") => Say::Http(location.clone()),
        _ => text("done"),
    })
}

/// Everything that the database holds, as text.
async fn whole_database(gateway: &Gateway) -> String {
    let tables = "select table_schema || '.' || table_name as name from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema')";
    let mut all = String::new();
    for table in gateway.rows(tables).await {
        let name = table["name"].as_str().unwrap();
        let rows = gateway.rows(&format!("select * from {name}")).await;
        all.push_str(&Value::from(rows).to_string());
    }
    all
}

#[tokio::test]
async fn the_callers_token_and_headers_end_at_the_gateway() {
    // C22.
    let elsewhere = Scripted::start(Era::Modern, |_| Say::Hangup);
    let folder = Folder::new();
    let secret = folder.file("up2", "Bearer UP2-d41d8cd98f\n");
    let mut setup = Setup::new();
    let mut servers = Vec::new();
    for (id, era, credential) in [
        ("m1", Era::Modern, false),
        ("m2", Era::Modern, true),
        ("l1", Era::Legacy, false),
        ("l2", Era::Legacy, true),
    ] {
        let server = server(era, &elsewhere.url());
        setup = setup
            .upstream(id, server.config())
            .yaml(&format!("upstreams: {{ {id}: {{ prefix: {id}_ }} }}"));
        if credential {
            let header = json!({"header": {"name": "Authorization", "value_file": secret}});
            setup = setup.upstream(id, json!({ "credentials": header }));
        }
        servers.push((id, credential, server));
    }
    let gateway = setup.start().await;
    let mut token = String::new();
    for era in both() {
        let mut caller = gateway.user("alice@acme");
        for (name, value) in [
            ("Cookie", "a=b"),
            ("X-Forwarded-Proto", "https"),
            ("Forwarded", "for=192.0.2.1;host=evil.example"),
            ("X-Api-Key", "k"),
            ("Connection", "x-hop"),
            ("X-Hop", "1"),
            ("Accept-Encoding", "br"),
            ("traceparent", TRACE),
            ("tracestate", "rojo=1"),
            ("User-Agent", "their-agent/1"),
        ] {
            caller = caller.header(name, value);
        }
        caller.token().clone_into(&mut token);
        let mut alice = caller.connect(era).await;
        for (id, ..) in &servers {
            let mut call = alice.prepare(
                "tools/call",
                json!({"name": format!("{id}_echo"), "arguments": {}}),
            );
            if era == Era::Modern {
                call = call
                    .header("mcp-session-id", "S")
                    .header("mcp-param-smuggled", "1");
            }
            assert_eq!(call.send().await.text(), "done", "{era:?} {id}");
            let away = alice.call(&format!("{id}_away"), json!({})).await;
            assert!(away.text().contains("302"), "{era:?} {id}: {away:?}");
        }
    }
    assert_eq!(elsewhere.accepted(), 0, "no redirect is followed");
    for (id, credential, server) in &servers {
        assert_eq!(server.calls().len(), 4, "{id}");
        for asked in server.seen() {
            for (name, value) in &asked.headers {
                assert!(ALLOWED.contains(&name.as_str()), "{id} got {name}: {value}");
            }
            let host = server.url().replace("http://", "").replace("/mcp", "");
            assert_eq!(asked.header("host"), Some(host.as_str()), "{id}");
            let expected = credential.then_some("Bearer UP2-d41d8cd98f");
            assert_eq!(asked.header("authorization"), expected, "{id}: {asked:?}");
            assert!(asked.header("user-agent").unwrap().starts_with("toolgate/"));
            assert_ne!(asked.header("mcp-session-id"), Some("S"), "{id}");
            assert!(!asked.text.contains(&token), "{id}");
        }
        for call in server.calls() {
            assert_eq!(call.header("traceparent"), Some(TRACE), "{id}");
            let meta = &call.message["params"]["_meta"];
            assert_eq!(meta["traceparent"], TRACE, "{id}");
            assert_eq!(call.header("tracestate"), Some("rojo=1"), "{id}");
            assert_eq!(meta["tracestate"], "rojo=1", "{id}");
        }
    }
    let records = gateway.audit_of(&["--trace-id", &TRACE[3..35]], 16).await;
    assert_eq!(records.len(), 16);
    let database = whole_database(&gateway).await;
    assert!(database.contains("m1_echo"), "the whole database was read");
    let logs = gateway.logs().lines().join("\n");
    let signature = token.rsplit('.').next().unwrap();
    for (what, text) in [("the log", logs), ("the database", database)] {
        for secret in [token.as_str(), signature, "UP2-d41d8cd98f"] {
            assert!(!text.contains(secret), "{what} holds {secret}");
        }
    }
}

#[tokio::test]
async fn a_trace_that_is_none_is_not_passed_on() {
    let server = server(Era::Modern, "http://192.0.2.1/");
    let gateway = Setup::new().upstream("up", server.config()).start().await;
    for bad in [
        "Bearer eyJhbGciOi",
        "00-0-0-0",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
    ] {
        for era in both() {
            let mut alice = gateway
                .user("alice@acme")
                .header("traceparent", bad)
                .connect(era)
                .await;
            alice.call("echo", json!({})).await;
            let meta = json!({"name": "echo", "_meta": {"traceparent": bad}});
            alice.request("tools/call", meta).await;
        }
    }
    assert_eq!(server.calls().len(), 24);
    for call in server.calls() {
        assert_eq!(call.header("traceparent"), None, "{call:?}");
        assert!(!call.text.contains("traceparent"), "{call:?}");
    }
    let mut alice = gateway.user("alice@acme").modern();
    let meta = json!({"name": "echo", "_meta": {"traceparent": TRACE, "com.example/note": 1, "baggage": "a=b"}});
    alice.request("tools/call", meta).await;
    let last = server.calls().pop().unwrap();
    assert_eq!(
        last.header("traceparent"),
        Some(TRACE),
        "`_meta` carries a trace too"
    );
    assert_eq!(last.message["params"]["_meta"]["com.example/note"], 1);
    assert!(!last.text.contains("baggage"));
    assert_eq!(
        gateway
            .audit_of(&["--trace-id", &TRACE[3..35]], 1)
            .await
            .len(),
        1
    );
}

#[tokio::test]
async fn a_rotated_credential_is_sent_from_then_on() {
    // C29 d: the list is asked for anew too.
    let server = Scripted::start(Era::Modern, |asked| match asked.method() {
        "tools/list" => {
            let new = asked.header("x-api-key") == Some("second");
            listing(&[&plain(if new { "new" } else { "old" })])
        }
        _ => text(asked.header("x-api-key").unwrap_or("none")),
    });
    let folder = Folder::new();
    let secret = folder.file("key", "first\n");
    let gateway = Setup::new()
        .upstream("up", server.config())
        .upstream(
            "up",
            json!({"credentials": {"header": {"name": "X-Api-Key", "value_file": secret}}}),
        )
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    assert_eq!(alice.names().await, ["old"]);
    assert_eq!(alice.call("old", json!({})).await.text(), "first");
    folder.file("key", "second\n");
    eventually("the new credential is sent", async || {
        let answer = alice.call("old", json!({})).await;
        let listed = alice.names().await == ["new"];
        // Once the list is new the old name is gone.
        (listed || answer.text() == "second").then_some(())
    })
    .await;
    eventually("the list is that of the new credential", async || {
        (alice.names().await == ["new"]).then_some(())
    })
    .await;
    assert_eq!(alice.call("new", json!({})).await.text(), "second");
    folder.file("key", "\n");
    for _ in 0..3 {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let answer = alice.call("new", json!({})).await;
        assert_eq!(
            answer.text(),
            "second",
            "a file that went wrong changes nothing"
        );
    }
}

#[tokio::test]
async fn private_addresses_are_connected_to_only_where_the_operator_says_so() {
    let server = Arc::new(server(Era::Modern, "http://192.0.2.1/"));
    let port = server.port();
    let mut setup = Setup::new();
    let hosts = [
        ("literal", "127.0.0.1"),
        ("short", "127.1"),
        ("hexadecimal", "0x7f000001"),
        ("mapped", "[::ffff:127.0.0.1]"),
        ("name", "localhost"),
    ];
    for (id, host) in hosts {
        let url = format!("http://{host}:{port}/mcp");
        setup = setup
            .upstream(id, json!({"mcp": {"url": url}}))
            .yaml(&format!("upstreams: {{ {id}: {{ prefix: {id}_ }} }}"));
    }
    // Where clouds keep their secrets, `allow_private` is not enough.
    let metadata = json!({"mcp": {"url": "http://169.254.169.254/mcp", "allow_private": true}, "prefix": "cloud_"});
    let gateway = setup.upstream("cloud", metadata).start().await;
    let mut alice = gateway.user("alice@acme").modern();
    // None can be reached, so there is nothing to list.
    let answer = alice.request("tools/list", json!({})).await;
    assert_eq!(answer.error()["code"], -32603, "{answer:?}");
    for id in hosts.map(|(id, _)| id).iter().chain(&["cloud"]) {
        let reason = eventually("the refusal is in the log", async || {
            let lines = gateway.logs().json();
            let mut about = lines.iter().filter(|line| line["upstream.id"] == *id);
            about.find_map(|line| Some(line["reason"].as_str()?.to_owned()))
        })
        .await;
        assert!(
            reason.contains("allow_private") && reason.contains("outgoing.allow_networks"),
            "the setting is named: {reason}"
        );
    }
    assert_eq!(server.accepted(), 0, "nothing was connected to");
}

#[tokio::test]
async fn a_pinned_name_leads_to_its_address_and_keeps_its_own_host() {
    let server = server(Era::Modern, "http://192.0.2.1/");
    let address = format!("127.0.0.1:{}", server.port());
    let pinned = json!({"mcp": {"url": "http://tools.up.example:81/mcp"}, "prefix": "pinned_"});
    let other_port = json!({"mcp": {"url": "http://tools.up.example:82/mcp"}, "prefix": "other_"});
    let network = json!({"mcp": {"url": server.url()}, "prefix": "network_"});
    let gateway = Setup::new()
        .upstream("pinned", pinned)
        .upstream("other", other_port)
        .upstream("network", network)
        .yaml(&format!(
            "outgoing: {{ resolve: {{ \"tools.up.example:81\": \"{address}\" }}, allow_networks: [127.0.0.1/32] }}"
        ))
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    for (tool, host) in [
        ("pinned_echo", "tools.up.example:81"),
        ("network_echo", address.as_str()),
    ] {
        assert_eq!(alice.call(tool, json!({})).await.text(), "done", "{tool}");
        let call = server.calls().pop().unwrap();
        assert_eq!(call.header("host"), Some(host), "{tool}");
    }
    assert!(
        !alice
            .names()
            .await
            .iter()
            .any(|name| name.starts_with("other_"))
    );
}
