//! Exact rules that belong to no one behaviour: in which order checks are made, which
//! code an upstream's error becomes, and what a new deployment key does to sessions
//! (`rules.md` §1.2, §2.3, §3.1).

use super::support::asking::able;
use super::support::scripted::{Say, Scripted, listing, plain, text};
use super::support::session::{Era, Prepared};
use super::support::{Setup, Value, both, config, eventually, json};

#[tokio::test]
async fn of_several_faults_the_earliest_in_the_order_is_told() {
    let server = Scripted::start(Era::Modern, |asked| match asked.method() {
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"},
            }});
            let tool = |name: &str| {
                let mut tool: Value = serde_json::from_str(&plain(name)).unwrap();
                tool["inputSchema"] = schema.clone();
                tool.to_string()
            };
            let all = ["scoped", "limited", "open", "hidden"].map(tool);
            listing(&all.iter().map(String::as_str).collect::<Vec<_>>())
        }
        _ => text("done"),
    });
    let gateway = Setup::new()
        .upstream("up", server.config())
        .yaml(
            r"
            server: { body_limit: 64KiB }
            tenants: { acme: { tools: { deny: [hidden] } } }
            tools:
              - { match: scoped, scopes: [crm.admin], limits: { rate: 1/h, burst: 1 } }
              - { match: limited, limits: { rate: 1/h, burst: 1 } }
            ",
        )
        .start()
        .await;
    let alice = gateway.user("alice@acme");
    let nobody = gateway.user("alice@acme").bearer("nonsense");
    let large = "x".repeat(65 << 10);
    let json_type = ("content-type", "application/json");
    let (plain_type, html) = (("content-type", "text/plain"), ("accept", "text/html"));
    let foreign = ("host", "evil.example");
    // Each line has the faults of all lines below it.
    for (caller, method, headers, body, status) in [
        (
            &nobody,
            "PUT",
            vec![foreign, plain_type, html],
            large.as_str(),
            403,
        ),
        (&nobody, "POST", vec![plain_type, html], large.as_str(), 401),
        (&alice, "POST", vec![plain_type, html], large.as_str(), 413),
        (&alice, "POST", vec![plain_type, html], "{", 415),
        (&alice, "POST", vec![json_type, html], "{", 406),
        (&alice, "POST", vec![json_type], "{", 400),
    ] {
        let answer = caller.raw(method, &headers, body.to_owned()).await;
        assert_eq!(answer.status.as_u16(), status, "{headers:?}: {answer:?}");
    }
    let mut modern = alice.modern();
    let mut call = |tool: &str| -> Prepared {
        let arguments = json!({"region": "eu", "n": "no number"});
        let params = json!({"name": tool, "arguments": arguments});
        let call = modern.prepare("tools/call", params);
        call.header("mcp-param-region", "us")
    };
    let code = async |call: Prepared| {
        let answer = call.send().await;
        let error = &answer.message()["error"]["code"];
        (answer.status.as_u16(), error.as_i64().unwrap_or_default())
    };
    // Visibility, scope, the tool's own limit, mirrored arguments, arguments.
    assert_eq!(code(call("hidden")).await, (200, -32602));
    for _ in 0..2 {
        assert_eq!(code(call("scoped")).await, (403, 1403));
    }
    assert_eq!(code(call("limited")).await, (400, -32020));
    assert_eq!(code(call("limited")).await, (429, 1429));
    assert_eq!(code(call("open")).await, (400, -32020));
    let agreed = call("open").header("mcp-param-region", "eu").send().await;
    assert!(
        agreed.is_error() && agreed.text().contains("/n"),
        "{agreed:?}"
    );
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn an_upstreams_error_has_the_code_that_its_caller_can_act_on() {
    let needs = json!({"requiredCapabilities": {"sampling": {}}});
    // The upstream's code and data; what a caller hears (0: a result with `isError`) who
    // has no capabilities, in the modern and in the legacy era.
    let table = [
        ("invalid", -32602, json!({}), -32602, -32602),
        ("own", 4001, json!({}), 4001, 4001),
        ("foreign", -32050, json!({}), -32603, -32603),
        ("internal", -32603, json!({}), -32603, -32603),
        ("capability", -32021, needs.clone(), -32021, 0),
        ("header", -32020, json!({}), 0, 0),
        (
            "version",
            -32022,
            json!({"supported": ["2026-07-28"], "requested": "x"}),
            0,
            0,
        ),
    ];
    for upstream in both() {
        let rows = table.clone();
        let server = Scripted::start(upstream, move |asked| {
            let row = rows.iter().find(|row| row.0 == asked.tool());
            let Some((_, code, data, ..)) = row else {
                let all: Vec<String> = rows.iter().map(|row| plain(row.0)).collect();
                return listing(&all.iter().map(String::as_str).collect::<Vec<_>>());
            };
            let error = json!({"code": code, "message": "no", "data": data});
            let body = json!({"jsonrpc": "2.0", "id": asked.message["id"], "error": error});
            let body = body.to_string();
            Say::Http(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ))
        });
        let setup = Setup::new().upstream("up", server.config());
        let gateway = setup.start().await;
        for client in both() {
            let mut alice = gateway.user("alice@acme").connect(client).await;
            for (tool, _, _, modern, legacy) in &table {
                let what = format!("{tool}, a {client:?} client over a {upstream:?} upstream");
                let call = alice.prepare("tools/call", json!({"name": tool, "arguments": {}}));
                let answer = call.send().await;
                let told = answer.message()["error"]["code"]
                    .as_i64()
                    .unwrap_or_default();
                let wanted = if client == Era::Modern {
                    modern
                } else {
                    legacy
                };
                assert_eq!(told, *wanted, "{what}: {answer:?}");
                assert_eq!(answer.message()["id"], call.id(), "{what}");
                assert!(*wanted != 0 || answer.is_error(), "{what}: {answer:?}");
            }
            // Who has the capability is not told that it lacks it.
            let mut able = gateway.user("alice@acme").able(client, able()).await;
            let answer = able.call("capability", json!({})).await;
            assert!(
                answer.is_error(),
                "{client:?} over {upstream:?}: {answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn sessions_outlive_a_new_key_and_end_with_the_old_one() {
    let server = Scripted::start(Era::Modern, |asked| match asked.method() {
        "tools/list" => listing(&[&plain("echo")]),
        _ => text("done"),
    });
    let setup = Setup::new().upstream("up", server.config());
    let mut gateway = setup.start().await;
    let mut alice = gateway.user("alice@acme").connect(Era::Legacy).await;
    let keys = gateway.folder().path().join("keys");
    let old = std::fs::read_to_string(&keys).unwrap();
    let new = config::deployment_key();
    std::fs::write(&keys, format!("{new}\n{old}\n")).unwrap();
    gateway.restart().await;
    gateway.until_ready().await;
    assert_eq!(alice.call("echo", json!({})).await.text(), "done");
    let mut later = gateway.user("alice@acme").connect(Era::Legacy).await;
    std::fs::write(&keys, format!("{new}\n")).unwrap();
    gateway.restart().await;
    gateway.until_ready().await;
    assert_eq!(alice.request("tools/list", json!({})).await.status, 404);
    eventually("the later session goes on", async || {
        later
            .names()
            .await
            .contains(&"echo".to_owned())
            .then_some(())
    })
    .await;
}
