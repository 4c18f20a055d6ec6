//! The cases of the protocol (C11 to C19, C21 to C23), each with a client of either era
//! over an upstream of either era. The files named after a behaviour have them in depth;
//! here none of the four combinations can be forgotten.

use std::time::{Duration, Instant};

use super::support::answer::Answer;
use super::support::asking::able;
use super::support::scripted::{Asked, Say, Scripted, listing, plain, text};
use super::support::session::{Prepared, Session};
use super::support::talking::Talking;
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

/// One of the four.
struct Combo<'a> {
    gateway: &'a Gateway,
    client: Era,
    what: String,
}

impl Combo<'_> {
    async fn alice(&self) -> Session {
        let alice = self.gateway.user("alice@acme");
        alice.able(self.client, able()).await
    }

    /// A call in this client's form.
    async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.alice().await.call(tool, arguments).await
    }

    fn is_modern(&self) -> bool {
        self.client == Era::Modern
    }
}

/// Runs something in both client eras over this gateway.
async fn in_both(gateway: &Gateway, upstream: Era, run: impl AsyncFn(Combo<'_>)) {
    for client in both() {
        let what = format!("a {client:?} client over a {upstream:?} upstream");
        run(Combo {
            gateway,
            client,
            what,
        })
        .await;
    }
}

/// A gateway over one upstream whose tools are listed.
async fn over(config: Value, yaml: &str) -> Gateway {
    let setup = Setup::new().upstream("up", config).yaml(yaml);
    let gateway = setup.start().await;
    let mut alice = gateway.user("alice@acme").modern();
    eventually("the tools are listed", async || {
        (!alice.names().await.is_empty()).then_some(())
    })
    .await;
    gateway
}

fn with_schema(name: &str, member: &str, schema: &Value) -> String {
    let mut tool: Value = serde_json::from_str(&plain(name)).unwrap();
    tool[member] = schema.clone();
    tool.to_string()
}

const REFS: &str = r##"{"type":"object","additionalProperties":false,"properties":{"f":{"$ref":"#/$defs/F"}},"$defs":{"F":{"enum":["fast","exact"]}}}"##;

fn definitions() -> Vec<String> {
    let number =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let limited = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"limit": {"type": "integer"}, "nick": {"type": ["string", "null"]}},
    });
    let list = json!({"type": "array", "items": {"type": "integer"}});
    vec![
        plain("echo"),
        with_schema("refs", "inputSchema", &serde_json::from_str(REFS).unwrap()),
        with_schema("limited", "inputSchema", &limited),
        with_schema("contract", "outputSchema", &number),
        with_schema("array", "outputSchema", &list),
        plain("fails"),
        plain("refuses"),
        plain("dies"),
        plain("odd"),
        plain("lone"),
    ]
}

/// What the event stream of `odd` says, and how it is told: U+0085 cuts no line of the
/// stream; it is a control character, and leaves as the line end that it stands for.
const ODD: &str = "a\u{2028}b\u{85}c ✅";
const ODD_TOLD: &str = "a\u{2028}b\nc ✅";

fn said(asked: &Asked) -> Say {
    let arguments = &asked.message["params"]["arguments"];
    let id = &asked.message["id"];
    let http = |kind: &str, body: &str| {
        let length = body.len();
        Say::Http(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    };
    let block = |text: &str| json!([{"type": "text", "text": text}]);
    match (asked.method(), asked.tool()) {
        ("tools/list", _) => {
            let all = definitions();
            listing(&all.iter().map(String::as_str).collect::<Vec<_>>())
        }
        (_, "contract") => Say::Result(
            match arguments["case"].as_str().unwrap_or_default() {
                "a" => json!({"isError": true, "content": block("quota used up")}),
                "b" => json!({"content": block("{\"n\":1}"), "structuredContent": {"n": 1}}),
                "c" => json!({"content": block("hi")}),
                _ => json!({"content": block("hi"), "structuredContent": {"n": "x"}}),
            }
            .to_string(),
        ),
        (_, "array") => {
            Say::Result(json!({"content": block("[1,2]"), "structuredContent": [1, 2]}).to_string())
        }
        (_, "fails") => {
            Say::Result(json!({"isError": true, "content": block("disk full")}).to_string())
        }
        (_, "refuses") => {
            let error = json!({"code": -32602, "message": "Unknown tool"});
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
            http("application/json", &body.to_string())
        }
        (_, "dies") => Say::Hangup,
        (_, "odd") => {
            // C23 e, f, h: every line end there is, data in several lines, no charset.
            let kind = r#""resultType":"complete""#;
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
            let words = json!(ODD).to_string();
            let body = format!(
                ": hello\r\ndata: {head}\rdata: \"result\":{{{kind},\"content\":[{{\"type\":\"text\",\ndata: \"text\":{words}}}]}}}}\r\n\r\n"
            );
            http("text/event-stream", &body)
        }
        (_, "lone") => {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"x\ud800y"}}]}}}}"#
            );
            http("application/json", &body)
        }
        _ => text(&arguments.to_string()),
    }
}

/// What came of an upstream that answers what the cases need.
async fn scripted(run: impl AsyncFn(Combo<'_>, &Scripted)) {
    for upstream in both() {
        let server = Scripted::start(upstream, said);
        let gateway = over(server.config(), "").await;
        in_both(&gateway, upstream, async |combo| run(combo, &server).await).await;
    }
}

#[tokio::test]
async fn c11_sessions_are_known_or_gone_and_never_half_there() {
    for upstream in both() {
        let server = Scripted::start(upstream, said);
        let mut gateway = over(server.config(), "").await;
        let other = gateway.replica().await;
        let alice = gateway.user("alice@acme");
        let mut session = alice.connect(Era::Legacy).await;
        // C11 1: the other replica serves it, calls too.
        let mut there = session.used_by(alice.clone().through(&other));
        assert_eq!(
            there.call("echo", json!({"a": 1})).await.text(),
            r#"{"a":1}"#
        );
        // C11 2: a restart ends nothing.
        gateway.restart().await;
        gateway.until_ready().await;
        assert!(
            session.names().await.contains(&"echo".to_owned()),
            "{upstream:?}"
        );
        assert_eq!(
            session.call("echo", json!({"a": 2})).await.text(),
            r#"{"a":2}"#
        );
        // C11 3 and 4.
        let call = session.prepare("tools/list", json!({}));
        assert_eq!(
            call.clone().without("mcp-session-id").send().await.status,
            400
        );
        let mut foreign = session.used_by(gateway.other_tenant());
        let forbidden = foreign.request("tools/list", json!({})).await;
        let unknown = call.header("mcp-session-id", "unknown").send().await;
        assert_eq!(
            (forbidden.status.as_u16(), unknown.status.as_u16()),
            (404, 404)
        );
        assert_eq!(forbidden.error()["message"], unknown.error()["message"]);
        // C11 6, for a client that has no sessions.
        let mut modern = alice.modern();
        let call = modern.prepare("tools/call", json!({"name": "echo", "arguments": {}}));
        let answer = call
            .header("mcp-session-id", session.id().unwrap())
            .send()
            .await;
        assert_eq!(
            (answer.text().as_str(), answer.header("mcp-session-id")),
            ("{}", None)
        );
        // C11 5.
        assert_eq!(session.delete().await.status, 204);
        for replica in [&gateway, &other] {
            let mut ended = session.used_by(alice.clone().through(replica));
            eventually("the session is gone everywhere", async || {
                let gone = ended.request("tools/list", json!({})).await;
                (gone.status == 404).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn c12_a_quiet_stream_has_headers_at_once_and_comments() {
    for upstream in both() {
        let server = Talking::start(upstream, &["quiet"], |mut talk| async move {
            tokio::time::sleep(Duration::from_millis(3500)).await;
            talk.progress(1).await;
            talk.text("late").await;
        });
        let gateway = over(server.config(), "server: { keep_alive: 1s }").await;
        in_both(&gateway, upstream, async |combo| {
            let mut alice = combo.alice().await;
            let meta = json!({"progressToken": "p"});
            let params = json!({"name": "quiet", "arguments": {}, "_meta": meta});
            let call = alice
                .prepare("tools/call", params)
                .header("accept-encoding", "gzip");
            let begun = Instant::now();
            let mut events = call.stream().await;
            assert!(
                begun.elapsed() < Duration::from_millis(2500),
                "{}",
                combo.what
            );
            let header = |name: &str| events.headers()[name].to_str().unwrap().to_owned();
            assert!(header("cache-control").starts_with("no-"), "{}", combo.what);
            assert_eq!(header("x-accel-buffering"), "no", "{}", combo.what);
            assert!(events.headers().get("content-encoding").is_none());
            let (mut comments, mut told) = (0, Vec::new());
            while let Some(event) = events.next().await {
                assert_eq!(event.name.filter(|name| name != "message"), None);
                comments += u32::from(event.comment.is_some());
                told.extend(serde_json::from_str::<Value>(&event.data).ok());
            }
            assert!(comments > 0, "{}", combo.what);
            assert_eq!(
                told[0]["method"], "notifications/progress",
                "{}",
                combo.what
            );
            assert_eq!(told[1]["result"]["content"][0]["text"], "late");
        })
        .await;
    }
}

/// Sends a body as it stands.
async fn raw(call: &Prepared, body: &str) -> Answer {
    let answer = call.open_with(body.to_owned()).await;
    Answer::read(answer, &Value::Null).await
}

#[tokio::test]
async fn c13_arrays_and_doubled_keys_carry_nothing_past_the_checks() {
    scripted(async |combo, server| {
        let before = server.calls().len();
        let mut alice = combo.alice().await;
        let call = alice.prepare("tools/call", json!({"name": "echo", "arguments": {}}));
        let one = call.body.to_string();
        let many = vec![one.as_str(); 500].join(",");
        let doubled = one.replacen(
            "\"method\":\"tools/call\"",
            "\"method\":\"tools/list\",\"method\":\"tools/call\"",
            1,
        );
        assert_ne!(doubled, one);
        for body in [
            format!("[{one}]"),
            format!("  \n[{many}]"),
            "[]".to_owned(),
            doubled,
            format!("{one}{one}"),
        ] {
            let answer = raw(&call, &body).await;
            assert_eq!(answer.status, 400, "{} {body:.80}", combo.what);
            assert!(
                matches!(answer.code(), -32600 | -32700),
                "{}: {answer:?}",
                combo.what
            );
        }
        assert_eq!(server.calls().len(), before, "{}", combo.what);
        let marked = raw(&call, &format!("\u{feff}{one}")).await;
        assert!(
            marked.status == 200 || marked.status == 400,
            "{}",
            combo.what
        );
    })
    .await;
}

const VERSION: &str = "mcp-protocol-version";

#[tokio::test]
async fn c14_versions_are_judged_by_body_and_header() {
    scripted(async |combo, _| {
        let mut alice = combo.alice().await;
        let list = alice.prepare("tools/list", json!({}));
        let status = async |call: Prepared| {
            let answer = call.send().await;
            let code = answer.message()["error"]["code"].as_i64();
            (answer.status.as_u16(), code.unwrap_or_default())
        };
        if combo.is_modern() {
            let meta = |key: &str, value: Value| {
                let key = format!("io.modelcontextprotocol/{key}");
                json!({"params": {"_meta": {key: value}}})
            };
            // b, c, e, h
            let older = list
                .clone()
                .with(&meta("protocolVersion", json!("2025-11-25")));
            assert_eq!(status(older).await, (400, -32020));
            let newer = list.clone().header(VERSION, "2030-01-01");
            let answer = newer
                .with(&meta("protocolVersion", json!("2030-01-01")))
                .send()
                .await;
            assert_eq!((answer.status.as_u16(), answer.code()), (400, -32022));
            assert_eq!(answer.error()["data"]["requested"], "2030-01-01");
            let discovered = alice.request("server/discover", json!({})).await;
            assert_eq!(
                discovered.result()["supportedVersions"][0],
                answer.error()["data"]["supported"][0]
            );
            let unable = list.with(&meta("clientCapabilities", Value::Null));
            assert_eq!(status(unable).await, (400, -32602));
        } else {
            // a, d, f, g
            assert_eq!(
                status(list.clone().header(VERSION, "1999-01-01")).await.0,
                400
            );
            let bare = list.clone().without(VERSION).without("mcp-session-id");
            assert_eq!(status(bare).await.0, 400);
            let other = list.header(VERSION, "2025-06-18");
            assert_eq!(status(other).await, (200, 0));
            let caller = combo.gateway.user("alice@acme");
            let newest = Session::initialize(caller, "2030-01-01").await;
            assert_eq!(newest.opening().result()["protocolVersion"], "2025-11-25");
        }
    })
    .await;
}

#[tokio::test]
async fn c15_a_client_that_goes_away_stops_the_upstream_or_says_so_itself() {
    for upstream in both() {
        let server = Talking::start(upstream, &["endless"], |mut talk| async move {
            talk.progress(1).await;
            talk.cancelled().await;
        });
        let gateway = over(server.config(), "tools: [{ match: endless, timeout: 20s }]").await;
        in_both(&gateway, upstream, async |combo| {
            let begun = server.seen_of("tools/call").len();
            let mut alice = combo.alice().await;
            let meta = json!({"progressToken": 1});
            let params = json!({"name": "endless", "arguments": {}, "_meta": meta});
            let call = alice.prepare("tools/call", params);
            let mut events = call.stream().await;
            events.notification("notifications/progress").await;
            assert_eq!(server.seen_of("tools/call").len(), begun + 1);
            drop(events);
            let cancelled = async || {
                let records = gateway.audit(&["--outcome", "cancelled"]);
                let of_era = if combo.is_modern() {
                    "2026-07-28"
                } else {
                    "2025-11-25"
                };
                records
                    .iter()
                    .any(|record| record.to_string().contains(of_era))
            };
            if !combo.is_modern() {
                // c: hanging up is no cancellation; the notification is.
                tokio::time::sleep(Duration::from_millis(500)).await;
                assert!(!cancelled().await, "{}", combo.what);
                let params = json!({"requestId": call.id(), "reason": "enough"});
                alice.notify("notifications/cancelled", params).await;
            }
            eventually(&combo.what, async || cancelled().await.then_some(())).await;
        })
        .await;
    }
    // d
    scripted(async |combo, _| {
        let answer = combo.call("dies", json!({})).await;
        assert!(answer.is_error(), "{}: {answer:?}", combo.what);
    })
    .await;
}

#[tokio::test]
async fn c16_references_stay_with_what_they_refer_to() {
    scripted(async |combo, server| {
        let mut alice = combo.alice().await;
        let tools = alice.list().await;
        let refs = tools.iter().find(|tool| tool["name"] == "refs").unwrap();
        let wanted: Value = serde_json::from_str(REFS).unwrap();
        assert_eq!(refs["inputSchema"], wanted, "{}", combo.what);
        let before = server.calls().len();
        let wrong = alice.call("refs", json!({"f": "slow"})).await;
        assert!(
            wrong.is_error() && wrong.text().contains("/f"),
            "{}: {wrong:?}",
            combo.what
        );
        assert_eq!(server.calls().len(), before);
        assert_eq!(
            alice.call("refs", json!({"f": "fast"})).await.text(),
            r#"{"f":"fast"}"#
        );
    })
    .await;
}

#[tokio::test]
async fn c17_what_a_tool_promised_of_its_output_is_held_or_told() {
    scripted(async |combo, _| {
        let a = combo.call("contract", json!({"case": "a"})).await;
        assert!(
            a.is_error() && a.text() == "quota used up",
            "{}: {a:?}",
            combo.what
        );
        let b = combo.call("contract", json!({"case": "b"})).await;
        assert_eq!(
            b.result()["structuredContent"],
            json!({"n": 1}),
            "{}",
            combo.what
        );
        assert_eq!(b.text(), "{\"n\":1}", "{}", combo.what);
        for case in ["c", "d"] {
            let broken = combo.call("contract", json!({"case": case})).await;
            assert!(broken.is_error(), "{} {case}: {broken:?}", combo.what);
            assert!(
                broken.text().contains("hi"),
                "{} {case}: {broken:?}",
                combo.what
            );
        }
        // e
        let e = combo.call("array", json!({})).await;
        assert!(
            !e.is_error() && e.text().contains("[1,2]"),
            "{}: {e:?}",
            combo.what
        );
        let tools = combo.alice().await.list().await;
        let array = tools.iter().find(|tool| tool["name"] == "array").unwrap();
        assert_eq!(array.get("outputSchema").is_some(), combo.is_modern());
        assert_eq!(
            e.result().get("structuredContent").is_some(),
            combo.is_modern()
        );
    })
    .await;
}

#[tokio::test]
async fn c18_arguments_are_absent_null_or_an_object() {
    scripted(async |combo, server| {
        let mut alice = combo.alice().await;
        let tool = |params: Value| {
            let mut all = json!({"name": "limited"});
            super::support::config::merge(&mut all, &params);
            all
        };
        for given in [json!({}), json!({"arguments": {}})] {
            let answer = alice.request("tools/call", tool(given)).await;
            assert_eq!(answer.text(), "{}", "{}", combo.what);
        }
        let call = alice.prepare("tools/call", tool(json!({"arguments": "HERE"})));
        let null = raw(&call, &call.body.to_string().replace("\"HERE\"", "null")).await;
        assert_eq!(null.text(), "{}", "{}", combo.what);
        let before = server.calls().len();
        for wrong in [json!({"arguments": []}), json!({"arguments": "{}"})] {
            let answer = alice.request("tools/call", tool(wrong)).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, -32602),
                "{}",
                combo.what
            );
        }
        for (name, arguments) in [
            ("limit", json!({"limit": null})),
            ("unknown", json!({"unknown": 1})),
        ] {
            let call = alice.prepare("tools/call", tool(json!({"arguments": "HERE"})));
            let body = call
                .body
                .to_string()
                .replace("\"HERE\"", &arguments.to_string());
            let answer = raw(&call, &body).await;
            assert!(
                answer.is_error() && answer.text().contains(name),
                "{}: {answer:?}",
                combo.what
            );
        }
        assert_eq!(server.calls().len(), before, "{}", combo.what);
        let call = alice.prepare("tools/call", tool(json!({"arguments": "HERE"})));
        let body = call.body.to_string().replace("\"HERE\"", "{\"nick\":null}");
        assert_eq!(
            raw(&call, &body).await.text(),
            r#"{"nick":null}"#,
            "{}",
            combo.what
        );
    })
    .await;
}

#[tokio::test]
async fn c19_changes_of_lists_travel_through() {
    for upstream in ["legacy", "modern"] {
        let server = Helper::example("upstream_everything", &["--era", upstream]).await;
        let yaml = "tenants: { globex: { tools: { deny: ['*'] } } }";
        let gateway = Setup::new().over("up", server).yaml(yaml).start().await;
        for client in both() {
            let what = format!("a {client:?} client over a {upstream} upstream");
            let mut p = gateway.user("alice@acme").connect(client).await;
            let mut q = gateway.other_tenant().connect(client).await;
            let (mut heard, mut other) = (p.listen().await, q.listen().await);
            let had = p.names().await.contains(&"extra_tool".to_owned());
            p.call("test_trigger_tool_change", json!({})).await;
            let news = heard.notification("notifications/tools/list_changed").await;
            let subscription = &news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(subscription.is_null(), client == Era::Legacy, "{what}");
            // New at once, and what is gone is not called.
            assert_ne!(
                p.names().await.contains(&"extra_tool".to_owned()),
                had,
                "{what}"
            );
            let call = p.call("extra_tool", json!({})).await;
            assert_eq!(
                call.message().get("error").is_some(),
                had,
                "{what}: {call:?}"
            );
            while let Some(event) = other.within(Duration::from_millis(300)).await {
                assert!(!event.data.contains("list_changed"), "{what}: {event:?}");
            }
        }
    }
}

#[tokio::test]
async fn c21_failures_of_upstreams_have_the_form_that_they_have() {
    scripted(async |combo, _| {
        // d, e, f, g
        let d = combo.call("dies", json!({})).await;
        assert!(d.status == 200 && d.is_error(), "{}: {d:?}", combo.what);
        let f = combo.call("fails", json!({})).await;
        assert!(
            f.is_error() && f.text() == "disk full",
            "{}: {f:?}",
            combo.what
        );
        for name in ["refuses", "nowhere"] {
            let mut alice = combo.alice().await;
            let call = alice.prepare("tools/call", json!({"name": name, "arguments": {}}));
            let answer = call.send().await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, -32602),
                "{}",
                combo.what
            );
            assert_eq!(answer.message()["id"], call.id(), "{}", combo.what);
        }
    })
    .await;
}

#[tokio::test]
async fn c22_the_callers_headers_end_here() {
    scripted(async |combo, server| {
        let caller = combo.gateway.user("alice@acme");
        let token = caller.token().to_owned();
        let caller = caller.header("cookie", "a=b").header("x-api-key", "k");
        let mut alice = caller
            .header("x-forwarded-proto", "https")
            .connect(combo.client)
            .await;
        alice.call("echo", json!({})).await;
        for asked in server.seen() {
            for name in ["authorization", "cookie", "x-api-key", "x-forwarded-proto"] {
                assert_eq!(asked.header(name), None, "{}: {asked:?}", combo.what);
            }
            assert!(!asked.text.contains(&token), "{}", combo.what);
        }
    })
    .await;
}

#[tokio::test]
async fn c23_text_is_whole_whatever_its_lines_and_pieces() {
    scripted(async |combo, _| {
        assert_eq!(
            combo.call("odd", json!({})).await.text(),
            ODD_TOLD,
            "{}",
            combo.what
        );
        let lone = combo.call("lone", json!({})).await;
        assert_eq!(lone.status, 200, "{}: {lone:?}", combo.what);
        let passes = lone.is_error() || lone.text().starts_with('x');
        assert!(passes, "{}: {lone:?}", combo.what);
    })
    .await;
}
