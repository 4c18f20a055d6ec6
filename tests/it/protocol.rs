//! The protocol's own rules: versions (C14), arguments (C18), batches (C13),
//! pages of lists, and what browsers are told.

use super::support::client::Caller;
use super::support::session::{LEGACY_VERSIONS, Session};
use super::support::tool_server::{ToolServer, tool};
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

const KIND: (&str, &str) = ("content-type", "application/json");
const NEWEST_LEGACY: &str = "2025-11-25";

async fn over_rmcp(yaml: &str) -> Gateway {
    let server = Helper::example("upstream_rmcp", &[]).await;
    Setup::new().over("up", server).yaml(yaml).start().await
}

#[tokio::test]
async fn versions_are_judged_by_header_and_body() {
    let gateway = over_rmcp("").await;
    let caller = gateway.user("alice@acme");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let mut modern = caller.modern();
    let version = |over: &str| json!({"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": over}}});
    // C14 a
    let answer = caller.raw(
        "POST",
        &[KIND, ("mcp-protocol-version", "1999-01-01")],
        list.clone(),
    );
    let answer = answer.await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32600));
    // b
    let mismatch = modern
        .prepare("tools/list", json!({}))
        .with(&version(NEWEST_LEGACY));
    let answer = mismatch.send().await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32020));
    // c
    let future = modern
        .prepare("tools/list", json!({}))
        .with(&version("2030-01-01"))
        .header("mcp-protocol-version", "2030-01-01");
    let unsupported = future.send().await;
    assert_eq!(
        (unsupported.status.as_u16(), unsupported.code()),
        (400, -32022)
    );
    assert_eq!(unsupported.error()["data"]["requested"], "2030-01-01");
    // h: before anything else, and in agreement with c.
    let mut fresh = gateway.user("fresh@acme").modern();
    let answer = fresh.request("server/discover", json!({})).await;
    let versions = &answer.result()["supportedVersions"];
    assert_eq!(*versions, unsupported.error()["data"]["supported"]);
    assert!(versions.as_array().unwrap().contains(&json!("2026-07-28")));
    // d: taken as legacy, which needs a session.
    let answer = caller.raw("POST", &[KIND], list).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32600));
    // e
    let bare = json!({"params": {"_meta": {"io.modelcontextprotocol/clientCapabilities": null}}});
    let answer = modern
        .prepare("tools/list", json!({}))
        .with(&bare)
        .send()
        .await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32602));
    // The header alone says modern, and `_meta` is missing.
    let bare = json!({"params": {"_meta": null}});
    let answer = modern
        .prepare("tools/list", json!({}))
        .with(&bare)
        .send()
        .await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, -32602));
}

#[tokio::test]
async fn a_session_has_one_revision_and_takes_the_header_of_any() {
    let gateway = over_rmcp("").await;
    let caller = gateway.user("alice@acme");
    // C14 f
    for asked in ["2030-01-01", "2026-07-28", "nonsense"] {
        let params = json!({"protocolVersion": asked, "capabilities": {}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let headers = [KIND, ("mcp-protocol-version", asked)];
        let answer = caller.raw("POST", &headers, body.to_string()).await;
        assert_eq!(answer.result()["protocolVersion"], NEWEST_LEGACY, "{asked}");
        assert!(answer.header("mcp-session-id").is_some());
    }
    // g: any legacy revision that is spoken here, or none, is accepted in a session.
    for agreed in LEGACY_VERSIONS {
        let mut session = caller.legacy(agreed).await;
        for sent in LEGACY_VERSIONS {
            let request = session.prepare("tools/list", json!({}));
            let answer = request.header("mcp-protocol-version", sent).send().await;
            assert_eq!(answer.status, 200, "{agreed} {sent}");
        }
        let request = session.prepare("tools/list", json!({}));
        let request = request.without("mcp-protocol-version");
        assert_eq!(request.send().await.status, 200, "{agreed}");
        for wrong in ["1999-01-01", "latest"] {
            let request = session.prepare("tools/list", json!({}));
            let answer = request.header("mcp-protocol-version", wrong).send().await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (400, -32600),
                "{wrong}"
            );
        }
    }
}

/// A gateway over `any`, which takes everything, and `find`, which does not.
async fn over_scripted() -> (Gateway, ToolServer) {
    let plain = json!({"type": "object"});
    let strict = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"limit": {"type": "integer"}, "nick": {"type": ["string", "null"]}},
    });
    let server = ToolServer::start(vec![tool("any", &plain), tool("find", &strict)], 60_000).await;
    let gateway = Setup::new().upstream("up", server.config()).start().await;
    (gateway, server)
}

#[tokio::test]
async fn absent_null_and_empty_arguments_are_the_same_and_others_are_checked() {
    let (gateway, server) = over_scripted().await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let before = server.calls().len();
        // C18 a, b, c
        for params in [
            json!({"name": "any"}),
            json!({"name": "any", "arguments": null}),
            json!({"name": "any", "arguments": {}}),
        ] {
            let mut call = alice.prepare("tools/call", params.clone());
            call.body["params"]["arguments"] = params["arguments"].clone();
            if params.get("arguments").is_none() {
                call.body["params"]
                    .as_object_mut()
                    .unwrap()
                    .shift_remove("arguments");
            }
            let answer = call.send().await;
            assert_eq!(answer.text(), "{}", "{era:?} {params}: {answer:?}");
        }
        let sent = server.calls().split_off(before).into_iter();
        let sent: Vec<_> = sent.map(|call| call["arguments"].clone()).collect();
        assert_eq!(sent, [json!({}), json!({}), json!({})]);
        // f, h
        for (arguments, field) in [
            (json!({"limit": null}), "limit"),
            (json!({"unknown": 1}), "unknown"),
        ] {
            let answer = alice.call("find", arguments).await;
            assert!(
                answer.is_error() && answer.text().contains(field),
                "{era:?}: {answer:?}"
            );
        }
        assert_eq!(server.calls().len(), before + 3, "{era:?}: none was run");
        // g
        let answer = alice.call("find", json!({"nick": null})).await;
        assert_eq!(answer.text(), r#"{"nick":null}"#, "{era:?}");
        let last = server.calls().pop().unwrap();
        assert_eq!(last["arguments"], json!({"nick": null}));
    }
}

#[tokio::test]
async fn a_call_of_a_wrong_shape_is_an_error_and_runs_nothing() {
    let (gateway, server) = over_scripted().await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        // C18 d, e
        for wrong in [json!([]), json!("{}"), json!(5), json!(true)] {
            let answer = alice.call("find", wrong.clone()).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, -32602),
                "{era:?} {wrong}"
            );
            let words = answer.error()["message"].as_str().unwrap();
            assert!(words.contains("object"), "{words}");
        }
        // i, j
        let call = alice.prepare("tools/call", json!({"name": "find"}));
        let missing = match era {
            // Without `_meta` nobody could tell that it is modern.
            Era::Modern => call.clone().with(&json!({"params": {"name": null}})),
            Era::Legacy => call.clone().with(&json!({"params": null})),
        };
        let number = call.with(&json!({"params": {"name": 5}}));
        for malformed in [missing, number] {
            let answer = malformed.without("mcp-name").send().await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, -32602),
                "{era:?} {answer:?}"
            );
            assert!(
                answer.error()["message"]
                    .as_str()
                    .unwrap()
                    .contains("params")
            );
        }
    }
    assert_eq!(server.calls(), Vec::<Value>::new());
}

fn member(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn echo(id: u64) -> Value {
    member(
        id,
        "tools/call",
        &json!({"name": "echo", "arguments": {"text": id.to_string()}}),
    )
}

async fn batch(session: &mut Session, members: &[Value]) -> super::support::answer::Answer {
    let response = session
        .prepare("ping", json!({}))
        .open_with(Value::from(members).to_string())
        .await;
    super::support::answer::Answer::read(response, &Value::Null).await
}

fn by_id(answer: &super::support::answer::Answer, id: u64) -> &Value {
    let replies = answer.message().as_array().unwrap();
    replies.iter().find(|reply| reply["id"] == id).unwrap()
}

/// Something to refuse by visibility and by scope.
const MIXED: &str = r#"
        tenants: { acme: { tools: { allow: ["*"], deny: ["fail"] } } }
        tools: [{ match: "structured", scopes: ["crm.read"] }]
        "#;

#[tokio::test]
async fn a_batch_is_its_members_each_checked_and_recorded_alone() {
    let gateway = over_rmcp("").await;
    let mut alice = gateway.user("alice@acme").legacy("2025-03-26").await;
    let calls: Vec<_> = (1..=20).map(echo).collect();
    let answer = batch(&mut alice, &calls).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.message().as_array().unwrap().len(), 20);
    for id in 1..=20 {
        let text = &by_id(&answer, id)["result"]["content"][0]["text"];
        assert_eq!(*text, id.to_string());
    }
    let records = gateway
        .audit_of(&["--tool", "echo", "--outcome", "ok"], 20)
        .await;
    assert_eq!(records.len(), 20);
    let only = [json!({"jsonrpc": "2.0", "method": "notifications/initialized"})];
    let answer = batch(&mut alice, &only).await;
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (202, ""));
}

#[tokio::test]
async fn refused_members_of_a_batch_are_error_objects_among_the_rest() {
    let gateway = over_rmcp(MIXED).await;
    let mut alice = gateway.user("alice@acme").legacy("2025-03-26").await;
    let mixed = [
        echo(1),
        member(2, "tools/call", &json!({"name": "fail"})),
        member(3, "tools/call", &json!({"name": "structured"})),
        member(
            4,
            "initialize",
            &json!({"protocolVersion": "2025-03-26", "capabilities": {}}),
        ),
        member(5, "tools/list", &json!({})),
        member(6, "nonsense", &json!({})),
        member(7, "tools/call", &json!({"arguments": {}})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 8}),
        json!({"jsonrpc": "2.0", "id": 9, "result": {}}),
        json!([echo(10)]),
    ];
    let answer = batch(&mut alice, &mixed).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(answer.message().as_array().unwrap().len(), 9, "{answer:?}");
    assert_eq!(by_id(&answer, 1)["result"]["content"][0]["text"], "1");
    for (id, code) in [
        (2, -32602),
        (3, 1403),
        (4, -32600),
        (6, -32601),
        (7, -32602),
        (8, -32600),
    ] {
        assert_eq!(by_id(&answer, id)["error"]["code"], code, "{id}");
    }
    assert!(by_id(&answer, 5)["result"]["tools"].is_array());
    for (outcome, count) in [
        ("refused:visibility", 1),
        ("refused:scope", 1),
        ("refused:invalid", 3),
    ] {
        eventually(&format!("{count} {outcome}"), async || {
            let records = gateway.audit(&["--outcome", outcome]);
            let counted = records
                .iter()
                .map(|record| record["count"].as_u64().unwrap());
            (counted.sum::<u64>() == count).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_batch_is_charged_by_member_and_can_be_cancelled_by_member() {
    let gateway = over_rmcp(
        "tenants: { acme: { limits: { per_user: { rate: 1/m, burst: 3, concurrent: 10 } } } }",
    )
    .await;
    let mut alice = gateway.user("alice@acme").legacy("2025-03-26").await;
    let slow = member(
        1,
        "tools/call",
        &json!({"name": "slow", "arguments": {"ms": 60_000}}),
    );
    let mut runner = alice.clone();
    let running = tokio::spawn(async move { batch(&mut runner, &[slow, echo(2)]).await });
    gateway
        .audit_of(&["--tool", "echo", "--outcome", "ok"], 1)
        .await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(batch(&mut alice, &[cancel]).await.status, 202);
    let answer = running.await.unwrap();
    assert_eq!(answer.message().as_array().unwrap().len(), 1, "{answer:?}");
    assert_eq!(by_id(&answer, 2)["result"]["content"][0]["text"], "2");
    gateway
        .audit_of(&["--tool", "slow", "--outcome", "cancelled"], 1)
        .await;
    // One of three is left.
    let answer = batch(&mut alice, &[echo(3), echo(4), echo(5)]).await;
    assert_eq!(answer.status, 200);
    let limited = answer.message().as_array().unwrap().iter();
    let limited = limited.filter(|reply| reply["error"]["code"] == 1429);
    assert_eq!(limited.count(), 2, "{answer:?}");
}

#[tokio::test]
async fn a_batch_that_may_not_be_is_refused_whole_with_one_record() {
    let gateway = over_rmcp("").await;
    let caller = gateway.user("alice@acme");
    let calls: Vec<_> = (1..=21).map(echo).collect();
    let mut refused = 0;
    for version in LEGACY_VERSIONS {
        let mut session = caller.legacy(version).await;
        let mut batches = vec![&calls[..], &[]];
        if version != "2025-03-26" {
            batches.push(&calls[..1]);
        }
        for members in batches {
            let answer = batch(&mut session, members).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (400, -32600),
                "{version}"
            );
            assert_eq!(answer.messages.len(), 1);
            refused += 1;
        }
    }
    // C13 a, in no session and in the modern era.
    let hidden = member(1, "tools/call", &json!({"name": "hidden", "arguments": {}}));
    let body = Value::from(&[hidden][..]).to_string();
    for headers in [
        vec![KIND],
        vec![KIND, ("mcp-protocol-version", "2026-07-28")],
    ] {
        let answer = caller.raw("POST", &headers, body.clone()).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32600));
        refused += 1;
    }
    eventually("one record for each", async || {
        let records = gateway.audit(&["--outcome", "refused:invalid"]);
        let counted = records
            .iter()
            .map(|record| record["count"].as_u64().unwrap());
        (counted.sum::<u64>() == refused).then_some(())
    })
    .await;
    assert_eq!(gateway.audit(&["--outcome", "ok"]), Vec::<Value>::new());
    // C13 f: a byte order mark is passed over, and what follows is judged.
    let mut session = caller.legacy("2025-11-25").await;
    let marked = session.prepare("ping", json!({}));
    let response = marked.open_with(format!("\u{feff}{}", calls[0])).await;
    let answer = super::support::answer::Answer::read(response, &Value::Null).await;
    assert_eq!(answer.text(), "1");
}

/// Every page of the list, and its cursors.
async fn pages(session: &mut Session) -> (Vec<Vec<String>>, Vec<String>) {
    let (mut pages, mut cursors) = (Vec::new(), Vec::<String>::new());
    loop {
        let params = cursors
            .last()
            .map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let answer = session.request("tools/list", params).await;
        let result = answer.result();
        let modern = session.era() == Era::Modern;
        assert_eq!(result["ttlMs"].is_u64(), modern, "{result}");
        assert_eq!(result["cacheScope"] == "private", modern);
        assert_eq!(result["resultType"] == "complete", modern);
        for field in ["ttlMs", "cacheScope", "resultType"] {
            assert_eq!(result.get(field).is_some(), modern, "{field}");
        }
        let tools = result["tools"].as_array().unwrap();
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        pages.push(names.collect());
        match result.get("nextCursor") {
            Some(cursor) => cursors.push(cursor.as_str().unwrap().to_owned()),
            None => return (pages, cursors),
        }
    }
}

#[tokio::test]
async fn a_list_has_pages_in_a_stable_order_and_cursors_of_its_own() {
    let plain = json!({"type": "object"});
    let names = ["delta", "alpha", "echo", "charlie", "bravo"];
    let tools: Vec<_> = names.iter().map(|name| tool(name, &plain)).collect();
    let server = ToolServer::start(tools, 60_000).await;
    let gateway = Setup::new()
        .upstream("up", server.config())
        .yaml("server: { page_size: 2 }")
        .start()
        .await;
    let replica = gateway.replica().await;
    let caller = gateway.user("alice@acme");
    let want = [
        vec!["alpha", "bravo"],
        vec!["charlie", "delta"],
        vec!["echo"],
    ];
    let mut cursors = Vec::new();
    for era in both() {
        for caller in [caller.clone(), caller.clone().through(&replica)] {
            let mut alice = caller.connect(era).await;
            for _ in 0..2 {
                let (pages, met) = pages(&mut alice).await;
                assert_eq!(pages, want, "{era:?}");
                cursors.extend(met);
            }
        }
    }
    // One's own is no secret of one session.
    let mut again = caller.modern();
    let params = json!({ "cursor": cursors[0] });
    let answer = again.request("tools/list", params).await;
    assert_eq!(answer.result()["tools"][0]["name"], "charlie");
}

#[tokio::test]
async fn a_cursor_is_its_callers_alone() {
    let plain = json!({"type": "object"});
    let server = ToolServer::start(vec![tool("a", &plain), tool("b", &plain)], 60_000).await;
    let gateway = Setup::new()
        .upstream("up", server.config())
        .yaml("server: { page_size: 1 }")
        .start()
        .await;
    let caller = gateway.user("alice@acme");
    let (_, cursors) = pages(&mut caller.modern()).await;
    let cursor = &cursors[0];
    let bytes: Vec<_> = cursor.bytes().collect();
    let mut changed = bytes.clone();
    let middle = changed.len() / 2;
    changed[middle] = if changed[middle] == b'A' { b'B' } else { b'A' };
    let tampered = String::from_utf8(changed).unwrap();
    let refused = async |caller: &Caller, cursor: Value| {
        for era in both() {
            let mut session = caller.connect(era).await;
            let answer = session
                .request("tools/list", json!({ "cursor": cursor }))
                .await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, -32602),
                "{era:?} {cursor}"
            );
        }
    };
    for wrong in [
        json!(tampered),
        json!("alpha"),
        json!(""),
        json!(5),
        json!({}),
    ] {
        refused(&caller, wrong).await;
    }
    // Somebody else's, in whatever respect.
    refused(&gateway.user("carol@acme"), json!(cursor)).await;
    refused(&gateway.other_tenant(), json!(cursor)).await;
    let other_client = caller.clone().with(|token| token.client("another"));
    refused(&other_client, json!(cursor)).await;
}

const APP: (&str, &str) = ("origin", "https://app.example.com");
/// Everything that a refusal spends is nearly spent.
const BROWSED: &str = r#"
        server: { allowed_origins: ["https://app.example.com"] }
        edge: { per_address: { rate: 1/m, burst: 2 } }
        tenants: { acme: { limits: { per_user: { rate: 1/m, burst: 1, concurrent: 1 } } } }
        "#;

#[tokio::test]
async fn a_preflight_is_answered_without_a_token_and_without_a_charge() {
    let gateway = over_rmcp(BROWSED).await;
    let app = APP;
    let stranger = ("origin", "https://evil.example");
    let anonymous = gateway.anonymous();
    let asked = "authorization, content-type, mcp-protocol-version, mcp-method, mcp-name, mcp-param-x, mcp-session-id, last-event-id, x-other";
    // Unauthenticated and uncharged, however often.
    for _ in 0..10 {
        let preflight = [
            app,
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", asked),
        ];
        let answer = anonymous.raw("OPTIONS", &preflight, "").await;
        assert_eq!(answer.status, 204);
        assert_eq!(answer.header("access-control-allow-origin"), Some(app.1));
        let methods = answer.header("access-control-allow-methods").unwrap();
        for method in ["POST", "GET", "DELETE"] {
            assert!(methods.contains(method), "{methods}");
        }
        let allowed = answer.header("access-control-allow-headers").unwrap();
        let allowed: Vec<_> = allowed.split(", ").collect();
        let wanted: Vec<_> = asked
            .split(", ")
            .filter(|name| *name != "x-other")
            .collect();
        assert_eq!(allowed, wanted);
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    let preflight = [stranger, ("access-control-request-method", "POST")];
    let answer = anonymous.raw("OPTIONS", &preflight, "").await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn a_page_may_read_what_it_needs_of_every_answer() {
    let gateway = over_rmcp(BROWSED).await;
    let app = APP;
    let anonymous = gateway.anonymous();
    let mut alice = gateway.user("alice@acme").header(app.0, app.1).modern();
    let served = alice.call("echo", json!({"text": "x"})).await;
    let limited = alice.call("echo", json!({"text": "x"})).await;
    let challenged = anonymous.raw("POST", &[app, KIND], "{}").await;
    let challenged_again = anonymous.raw("POST", &[app, KIND], "{}").await;
    let by_address = anonymous.raw("POST", &[app, KIND], "{}").await;
    let statuses = [
        (&served, 200),
        (&limited, 429),
        (&challenged, 401),
        (&challenged_again, 401),
        (&by_address, 429),
    ];
    for (answer, status) in statuses {
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(app.1));
        let exposed = answer.header("access-control-expose-headers").unwrap();
        for name in [
            "WWW-Authenticate",
            "Retry-After",
            "Mcp-Session-Id",
            "MCP-Protocol-Version",
        ] {
            assert!(exposed.contains(name), "{status}: {exposed}");
        }
    }
    assert!(by_address.header("retry-after").is_some());
}

#[tokio::test]
async fn metadata_is_for_pages_of_everybody() {
    let gateway = Gateway::start("").await;
    for path in ["", "/mcp", "/t/acme/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        for origin in ["https://elsewhere.example", "null"] {
            let caller = gateway.anonymous().sent_to(&path);
            let answer = caller.raw("GET", &[("origin", origin)], "").await;
            assert_eq!(answer.status, 200, "{path} {origin}");
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            let preflight = [
                ("origin", origin),
                ("access-control-request-method", "GET"),
                ("access-control-request-headers", "mcp-protocol-version"),
            ];
            let answer = caller.raw("OPTIONS", &preflight, "").await;
            assert_eq!(answer.status, 204, "{path} {origin}");
            let allowed = answer.header("access-control-allow-headers");
            assert_eq!(allowed, Some("mcp-protocol-version"));
        }
        // A name that is not ours stays refused (DNS rebinding).
        let caller = gateway.anonymous().sent_to(&path);
        let answer = caller.raw("GET", &[("host", "evil.example")], "").await;
        assert_eq!(answer.status, 403, "{path}");
    }
}
