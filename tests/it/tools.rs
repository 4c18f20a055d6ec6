//! Tools on their way from upstream to caller and results on their way back: what
//! is listed, what is left out, and that nothing is changed that need not be.

use std::time::{Duration, Instant};

use super::support::process::free_port;
use super::support::scripted::{Say, Scripted, listing, plain, text};
use super::support::{Era, Helper, Setup, Value, both, eventually, json};

/// A server of one era with these definitions, whose tools answer with this result.
fn server(era: Era, definitions: &[&str], result: &str) -> Scripted {
    let definitions: Vec<String> = definitions.iter().map(|text| (*text).to_owned()).collect();
    let result = result.to_owned();
    Scripted::start(era, move |asked| match asked.method() {
        "tools/list" => {
            let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
            listing(&definitions)
        }
        _ => Say::Result(result.clone()),
    })
}

#[tokio::test]
async fn of_two_tools_with_one_name_the_earlier_upstream_has_it() {
    let answering = |name: &'static str, tools: [&'static str; 2]| {
        Scripted::start(Era::Modern, move |asked| match asked.method() {
            "tools/list" => listing(&tools.map(plain).each_ref().map(String::as_str)),
            _ => text(name),
        })
    };
    // Later by name, earlier by place.
    let first = answering("first", ["find", "x_get"]);
    let second = answering("second", ["find", "get"]);
    let third = answering("third", ["get", "find"]);
    let mut gateway = Setup::new()
        .upstream("z", first.config())
        .upstream("b", second.config())
        .upstream("a", third.config())
        .yaml("upstreams: { a: { prefix: x_ } }")
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        assert_eq!(
            alice.names().await,
            ["find", "get", "x_find", "x_get"],
            "{era:?}"
        );
        for (tool, by) in [
            ("find", "first"),
            ("get", "second"),
            ("x_find", "third"),
            ("x_get", "first"),
        ] {
            assert_eq!(
                alice.call(tool, json!({})).await.text(),
                by,
                "{era:?} {tool}"
            );
        }
    }
    assert_eq!(
        third.calls()[0].tool(),
        "find",
        "an upstream hears its own name"
    );
    let warned = |upstream: &str, tool: &str| {
        let lines = gateway.logs().json();
        let about = lines.iter().filter(|line| {
            line["level"] == "WARN"
                && line["upstream.id"] == upstream
                && line["gen_ai.tool.name"] == tool
        });
        about.count()
    };
    assert_eq!((warned("b", "find"), warned("a", "x_get")), (1, 1));
    gateway.reload("upstreams: { z: null }");
    let mut alice = gateway.user("alice@acme").modern();
    eventually("the next in order takes the name", async || {
        (alice.call("find", json!({})).await.text() == "second").then_some(())
    })
    .await;
    assert_eq!(alice.names().await, ["find", "get", "x_find", "x_get"]);
}

#[tokio::test]
async fn a_definition_that_cannot_be_used_is_left_out_alone() {
    // C20 a, c; C32, names with control characters.
    let decoy = Scripted::start(Era::Modern, |_| Say::Hangup);
    let deep = format!(
        r#"{{"name":"deep","inputSchema":{{"type":"object","properties":{{"x":{}{{"type":"string"}}{}}}}}}}"#,
        r#"{"anyOf":["#.repeat(10_000),
        "]}".repeat(10_000)
    );
    let remote = |name: &str, reference: &str| {
        json!({"name": name, "inputSchema": {"type": "object", "properties": {"x": {"$ref": reference}}}}).to_string()
    };
    let definitions = [
        plain("first"),
        remote("metadata", "http://169.254.169.254/latest/meta-data/"),
        remote("remote", &decoy.url()),
        remote("file", "file:///etc/passwd"),
        remote("dangling", "#/$defs/none"),
        plain("with space"),
        plain(&"n".repeat(129)),
        plain("red\u{1b}[31m"),
        r#"{"description":"no name","inputSchema":{"type":"object"}}"#.to_owned(),
        r#"{"name":"no_schema"}"#.to_owned(),
        r#"{"name":"of_array","inputSchema":{"type":"array"}}"#.to_owned(),
        r#"{"name":"wrong_type","description":5,"inputSchema":{"type":"object"}}"#.to_owned(),
        r#"{"name":"invalid","inputSchema":{"type":"object","properties":{"x":{"type":"strnig"}}}}"#.to_owned(),
        r#"{"name":"dialect","inputSchema":{"$schema":"https://schema.example/unknown","type":"object"}}"#.to_owned(),
        r##"{"name":"endless","inputSchema":{"type":"object","$ref":"#"}}"##.to_owned(),
        r#"{"name":"header","inputSchema":{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}}"#.to_owned(),
        plain("first"),
        r#"{"name":"regex","description":"Matches.","inputSchema":{"type":"object","properties":{"x":{"type":"string","pattern":"^(a+)+$"}}}}"#.to_owned(),
        plain("last"),
    ];
    let listed: Vec<&str> = definitions.iter().map(String::as_str).collect();
    let upstream = server(Era::Modern, &listed, r#"{"content":[]}"#);
    // Too deep even to be read as JSON: it costs its own server's list alone.
    let too_deep = server(Era::Modern, &[&deep], r#"{"content":[]}"#);
    let gateway = Setup::new()
        .upstream("up", upstream.config())
        .upstream("deep", too_deep.config())
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        assert_eq!(alice.names().await, ["first", "last", "regex"], "{era:?}");
        assert_eq!(
            alice.call("remote", json!({"x": 1})).await.code(),
            -32602,
            "{era:?}"
        );
        let began = Instant::now();
        let long = format!("{}!", "a".repeat(60_000));
        let refused = alice.call("regex", json!({"x": long})).await;
        assert!(
            refused.is_error() && refused.text().contains("/x"),
            "{era:?}: {}",
            refused.text()
        );
        assert!(refused.text().len() < 2_000, "what came is shortened");
        assert!(
            !alice
                .call("regex", json!({"x": "a".repeat(60_000)}))
                .await
                .is_error(),
            "{era:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(2), "{era:?}");
    }
    assert_eq!(decoy.accepted(), 0, "nothing is fetched");
    let warnings = gateway.logs().json();
    for word in [
        "remote",
        "metadata",
        "file",
        "dangling",
        "no_schema",
        "dialect",
        "invalid",
        "header",
        "endless",
    ] {
        let told = warnings.iter().any(|line| {
            line["level"] == "WARN"
                && line["gen_ai.tool.name"]
                    .as_str()
                    .is_some_and(|name| name.contains(word))
        });
        assert!(told, "{word} is left out with a warning");
    }
    let unknown = warnings
        .iter()
        .find(|line| line["gen_ai.tool.name"] == "\"dialect\"")
        .unwrap();
    assert!(
        unknown["reason"]
            .as_str()
            .unwrap()
            .contains("https://schema.example/unknown"),
        "{unknown}"
    );
    assert!(
        gateway
            .logs()
            .lines()
            .iter()
            .all(|line| line.len() < 16_000)
    );
}

#[tokio::test]
async fn a_schema_is_listed_as_it_was_written() {
    // C16 A.
    let schema = r##"{"type":"object","additionalProperties":false,"properties":{"f":{"$ref":"#/$defs/F"}},"$defs":{"F":{"enum":["fast","exact"]}}}"##;
    let odd = r##"{ "type" : "object", "$comment":"\u0041\/B", "properties":{"n":{"$ref":"#node"},"x":{"default":1.50,"maximum":1E+2,"x-vendor":{"z":1,"a":[ ]}}},"$defs":{"N":{"$anchor":"node","type":"object","properties":{"next":{"$ref":"#node"}}}} }"##;
    let definitions = [
        format!(
            r#"{{"name":"refers","description":"Refers.","inputSchema":{schema},"x-own":{{"b":1.0}}}}"#
        ),
        format!(
            r#"{{"inputSchema":{odd},"name":"odd","description":"Odd.","_meta":{{"com.example/k":[1.0]}}}}"#
        ),
    ];
    for upstream_era in both() {
        let upstream = server(
            upstream_era,
            &definitions.each_ref().map(String::as_str),
            r#"{"content":[]}"#,
        );
        for prefix in ["", "p_"] {
            let gateway = Setup::new()
                .upstream("up", upstream.config())
                .yaml(&format!("upstreams: {{ up: {{ prefix: \"{prefix}\" }} }}"))
                .start()
                .await;
            for era in both() {
                let mut alice = gateway.user("alice@acme").connect(era).await;
                let body = alice.request("tools/list", json!({})).await.body;
                for text in [
                    schema,
                    odd,
                    r#""x-own":{"b":1.0}"#,
                    r#""_meta":{"com.example/k":[1.0]}"#,
                ] {
                    assert!(
                        body.contains(text),
                        "{upstream_era:?} {era:?}: {text} is not in {body}"
                    );
                }
                if prefix.is_empty() {
                    assert!(
                        body.contains(&definitions[0]) && body.contains(&definitions[1]),
                        "{body}"
                    );
                }
                let tool = |name: &str| format!("{prefix}{name}");
                assert!(
                    !alice
                        .call(&tool("refers"), json!({"f": "fast"}))
                        .await
                        .is_error()
                );
                let wrong = alice.call(&tool("refers"), json!({"f": "slow"})).await;
                assert!(
                    wrong.is_error() && wrong.text().contains("/f"),
                    "{}",
                    wrong.text()
                );
                assert!(
                    alice
                        .call(&tool("refers"), json!({"g": 1}))
                        .await
                        .is_error()
                );
                let nested = json!({"n": {"next": {"next": {}}}});
                assert!(!alice.call(&tool("odd"), nested).await.is_error());
                assert!(
                    alice
                        .call(&tool("odd"), json!({"n": {"next": 5}}))
                        .await
                        .is_error()
                );
            }
        }
    }
}

#[tokio::test]
async fn an_upstream_may_be_away_at_the_start_and_later() {
    let port = free_port();
    let lists_long = |asked: &super::support::scripted::Asked| match asked.method() {
        "tools/list" => Say::Result(format!(
            r#"{{"resultType":"complete","ttlMs":50000,"cacheScope":"private","tools":[{}]}}"#,
            plain("late")
        )),
        _ => text("here"),
    };
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let mut setup = Setup::new()
        .upstream(
            "late",
            json!({"mcp": {"url": format!("http://127.0.0.1:{port}/mcp"), "allow_private": true}}),
        )
        .over("good", Helper::example("upstream_rmcp", &[]).await);
    for mode in [
        "hang",
        "die",
        "garbage",
        "html_500",
        "endless_json",
        "unauthorized",
    ] {
        setup = setup
            .upstream(mode, hostile.config_of(&format!("/all/{mode}")))
            .yaml(&format!(
                "upstreams: {{ {mode}: {{ timeout: {{ connect: 500ms, call: 500ms }} }} }}"
            ));
    }
    // Ready: nothing of it is required.
    let gateway = setup.start().await;
    let mut alice = gateway.user("alice@acme").modern();
    assert!(alice.names().await.contains(&"echo".to_owned()));
    assert_eq!(alice.call("echo", json!({"text": "hi"})).await.text(), "hi");
    assert_eq!(alice.call("late", json!({})).await.code(), -32602);

    let late = Scripted::at_port(port, Era::Modern, lists_long);
    eventually("it comes up by itself", async || {
        alice
            .names()
            .await
            .contains(&"late".to_owned())
            .then_some(())
    })
    .await;
    assert_eq!(alice.call("late", json!({})).await.text(), "here");
    assert_eq!(gateway.admin_status("/readyz").await, Some(200));

    drop(late);
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let away = alice.call("late", json!({})).await;
        assert_eq!(away.status, 200, "{era:?}");
        for word in [
            "server \"late\"",
            "cannot be reached",
            "Nothing was run",
            "Retry",
        ] {
            assert!(away.text().contains(word), "{era:?}: {}", away.text());
        }
        assert!(away.is_error());
        assert!(
            alice.names().await.contains(&"late".to_owned()),
            "{era:?}: it stays listed"
        );
    }
    eventually("lists are fresh for a short time only", async || {
        alice.call("late", json!({})).await;
        let list = alice.request("tools/list", json!({})).await;
        (list.result()["ttlMs"].as_u64().unwrap() <= 5000).then_some(())
    })
    .await;
    assert!(alice.names().await.contains(&"late".to_owned()));
    assert_eq!(gateway.admin_status("/readyz").await, Some(200));

    let _late = Scripted::at_port(port, Era::Modern, lists_long);
    eventually("it is back", async || {
        let answer = alice.call("late", json!({})).await;
        (!answer.is_error() && answer.text() == "here").then_some(())
    })
    .await;
}

#[tokio::test]
async fn only_a_required_upstream_keeps_the_service_from_being_ready() {
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let gateway = Setup::new()
        .upstream(
            "needed",
            json!({"mcp": {"url": url, "allow_private": true}, "required": true}),
        )
        .upstream("other", Helper::nowhere().config())
        .start_unready()
        .await;
    assert_eq!(gateway.admin_status("/readyz").await, Some(503));
    assert_eq!(gateway.admin_status("/healthz").await, Some(200));
    let server = server_at(port);
    gateway.until_ready().await;
    drop(server);
}

fn server_at(port: u16) -> Scripted {
    Scripted::at_port(port, Era::Modern, |_| listing(&[&plain("late")]))
}

const OUTPUT: &str = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;

/// A server whose tools each answer with one of these results.
fn answering(era: Era, tools: &'static [(&'static str, &'static str, &'static str)]) -> Scripted {
    Scripted::start(era, move |asked| {
        if asked.method() == "tools/list" {
            let definitions: Vec<String> = tools
                .iter()
                .map(|(name, schema, _)| format!(r#"{{"name":"{name}","description":"Answers.","inputSchema":{{"type":"object"}},"outputSchema":{schema}}}"#))
                .collect();
            let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
            return listing(&definitions);
        }
        let found = tools.iter().find(|(name, ..)| *name == asked.tool());
        Say::Result(found.unwrap().2.to_owned())
    })
}

#[tokio::test]
async fn a_result_is_held_against_the_schema_that_the_tool_promised() {
    // C17.
    const ARRAY: &str = r#"{"type":"array","items":{"type":"integer"}}"#;
    const TOOLS: &[(&str, &str, &str)] = &[
        (
            "a",
            OUTPUT,
            r#"{"isError":true,"content":[{"type":"text","text":"quota used up"}]}"#,
        ),
        (
            "b",
            OUTPUT,
            r#"{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}"#,
        ),
        ("c", OUTPUT, r#"{"content":[{"type":"text","text":"hi"}]}"#),
        (
            "d",
            OUTPUT,
            r#"{"content":[{"type":"text","text":"still said"}],"structuredContent":{"n":"x"}}"#,
        ),
        (
            "e",
            ARRAY,
            r#"{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]}"#,
        ),
        ("f", ARRAY, r#"{"content":[],"structuredContent":[1,2]}"#),
    ];
    for upstream_era in both() {
        let upstream = answering(upstream_era, TOOLS);
        let gateway = Setup::new().upstream("up", upstream.config()).start().await;
        for era in both() {
            let what = format!("{upstream_era:?} to {era:?}");
            let mut alice = gateway.user("alice@acme").connect(era).await;
            let a = alice.call("a", json!({})).await;
            assert!(a.is_error(), "{what}");
            assert!(
                a.body.contains(
                    r#""isError":true,"content":[{"type":"text","text":"quota used up"}]"#
                ),
                "{what}: {}",
                a.body
            );
            let b = alice.call("b", json!({})).await;
            assert_eq!(
                (b.is_error(), b.text().as_str()),
                (false, r#"{"n":1}"#),
                "{what}"
            );
            assert_eq!(b.result()["structuredContent"], json!({"n": 1}), "{what}");
            for (tool, rule, kept) in [("c", "structuredContent", "hi"), ("d", "/n", "still said")]
            {
                let broken = alice.call(tool, json!({})).await;
                assert!(broken.is_error(), "{what} {tool}: {broken:?}");
                assert!(broken.text().contains("output schema"), "{what} {tool}");
                assert!(
                    broken.text().contains(rule),
                    "{what} {tool}: {}",
                    broken.text()
                );
                assert!(
                    broken.text().ends_with(kept),
                    "{what} {tool}: {}",
                    broken.text()
                );
            }
            let tools = alice.list().await;
            let listed = |name: &str| {
                tools
                    .iter()
                    .find(|tool| tool["name"] == name)
                    .unwrap()
                    .get("outputSchema")
                    .cloned()
            };
            let e = alice.call("e", json!({})).await;
            assert_eq!(
                (e.is_error(), e.text().as_str()),
                (false, "[1,2]"),
                "{what}"
            );
            assert_eq!(
                listed("b"),
                Some(serde_json::from_str(OUTPUT).unwrap()),
                "{what}"
            );
            let f = alice.call("f", json!({})).await;
            match era {
                Era::Modern => {
                    assert!(listed("e").is_some());
                    assert_eq!(e.result()["structuredContent"], json!([1, 2]), "{what}");
                    assert_eq!(f.result()["structuredContent"], json!([1, 2]), "{what}");
                }
                Era::Legacy => {
                    assert_eq!(
                        listed("e"),
                        None,
                        "{what}: old clients refuse the whole list over it"
                    );
                    assert_eq!(e.result().get("structuredContent"), None, "{what}");
                    assert_eq!(f.text(), "[1,2]", "{what}: the value is not lost");
                }
            }
        }
        let records = gateway.audit_of(&["--tool", "d"], 2).await;
        assert!(
            records
                .iter()
                .all(|record| record["outcome"] == "upstream_error"),
            "{records:?}"
        );
        let passed = gateway.audit_of(&["--tool", "a"], 2).await;
        assert!(
            passed
                .iter()
                .all(|record| record["outcome"] == "tool_error"),
            "{passed:?}"
        );
    }
}

#[tokio::test]
async fn mirrored_arguments_are_checked_and_written_anew() {
    let definition = r#"{"name":"place","description":"Places.","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Count"},"deep":{"type":"object","properties":{"on":{"type":"boolean","x-mcp-header":"On"}}},"free":{"type":"string"}}}}"#;
    let upstream = server(Era::Modern, &[definition], r#"{"content":[]}"#);
    let gateway = Setup::new().upstream("up", upstream.config()).start().await;
    let mut alice = gateway.user("alice@acme").modern();
    let arguments = json!({"region": "größe", "n": 42, "deep": {"on": true}, "free": "x"});
    let good = [
        ("mcp-param-region", "=?base64?Z3LDtsOfZQ==?="),
        ("mcp-param-count", "42.0"),
        ("mcp-param-on", "true"),
        ("mcp-param-unknown", "smuggled"),
    ];
    let mut call = |leave_out: &str, change: Option<(&str, &str)>, arguments: &Value| {
        let params = json!({"name": "place", "arguments": arguments});
        let mut call = alice.prepare("tools/call", params);
        for (name, value) in good.into_iter().filter(|(name, _)| *name != leave_out) {
            call = call.header(name, value);
        }
        match change {
            Some((name, value)) => call.header(name, value),
            None => call,
        }
    };
    for (what, bad) in [
        ("missing", call("mcp-param-region", None, &arguments)),
        ("integer missing", call("mcp-param-count", None, &arguments)),
        ("nested missing", call("mcp-param-on", None, &arguments)),
        (
            "different",
            call("", Some(("mcp-param-region", "us-west1")), &arguments),
        ),
        (
            "another number",
            call("", Some(("mcp-param-count", "43")), &arguments),
        ),
        (
            "bad base64",
            call("", Some(("mcp-param-region", "=?base64?%%%?=")), &arguments),
        ),
        (
            "header without argument",
            call("", None, &json!({"region": "größe", "n": 42})),
        ),
    ] {
        let answer = bad.send().await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, -32020),
            "{what}: {answer:?}"
        );
        assert_eq!(answer.message()["id"], bad.id(), "{what}");
    }
    assert_eq!(upstream.calls().len(), 0);
    let refused = gateway.audit_of(&["--outcome", "refused:headers"], 7).await;
    assert_eq!(refused.len(), 7);
    assert!(!call("", None, &arguments).send().await.is_error());
    // Null is no value: no header is due (C18).
    let nothing = json!({"region": null, "n": null});
    let none = alice.call("place", nothing).await;
    assert!(
        none.is_error() && none.text().contains("/region"),
        "the schema alone refuses it: {none:?}"
    );
    // A legacy caller sends none; the upstream gets them all the same.
    let mut legacy = gateway.user("alice@acme").connect(Era::Legacy).await;
    assert!(!legacy.call("place", arguments).await.is_error());
    let calls = upstream.calls();
    assert_eq!(calls.len(), 2);
    for call in calls {
        assert_eq!(
            call.header("mcp-param-region"),
            Some("=?base64?Z3LDtsOfZQ==?=")
        );
        assert_eq!(call.header("mcp-param-count"), Some("42"));
        assert_eq!(call.header("mcp-param-on"), Some("true"));
        assert_eq!(call.header("mcp-param-unknown"), None);
        assert_eq!(call.header("mcp-name"), Some("place"));
    }
}

#[tokio::test]
async fn every_era_of_upstream_serves_every_era_of_caller() {
    let mut setup = Setup::new();
    let mut servers = Vec::new();
    for name in ["legacy", "modern", "both"] {
        let server = Helper::example("upstream_rmcp", &["--era", name]).await;
        setup = setup
            .upstream(name, server.config())
            .yaml(&format!("upstreams: {{ {name}: {{ prefix: {name}_ }} }}"));
        servers.push(server);
        let stdio =
            super::support::upstream::stdio_example("upstream_rmcp", &["--stdio", "--era", name]);
        setup = setup
            .upstream(&format!("{name}-child"), stdio)
            .yaml(&format!(
                "upstreams: {{ {name}-child: {{ prefix: {name}-child_ }} }}"
            ));
    }
    let gateway = setup.start().await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let names = alice.names().await;
        for upstream in [
            "legacy",
            "modern",
            "both",
            "legacy-child",
            "modern-child",
            "both-child",
        ] {
            let what = format!("{upstream} to {era:?}");
            let tool = |name: &str| format!("{upstream}_{name}");
            for name in ["echo", "fail", "structured"] {
                assert!(names.contains(&tool(name)), "{what}: {names:?}");
            }
            let echo = alice.call(&tool("echo"), json!({"text": "größe ✅"})).await;
            assert_eq!(echo.text(), "größe ✅", "{what}");
            let weather = alice
                .call(&tool("structured"), json!({"city": "Köln"}))
                .await;
            assert_eq!(
                weather.result()["structuredContent"],
                json!({"city": "Köln", "celsius": 21.5}),
                "{what}"
            );
            let fail = alice.call(&tool("fail"), json!({})).await;
            assert_eq!(
                (fail.is_error(), fail.text().as_str()),
                (true, "the disk is full"),
                "{what}"
            );
            let complete = echo.result().get("resultType");
            assert_eq!(complete.is_some(), era == Era::Modern, "{what}");
        }
    }
}

#[tokio::test]
async fn unknown_fields_and_numbers_pass_as_they_were_written() {
    const PARTS: [&str; 5] = [
        r#""structuredContent":{"n":1.50,"big":123456789012345678901234567890,"e":1e400,"tiny":-0.0,"k":1E+2}"#,
        r#""annotations":{"priority":1.50,"x-unknown":{"b":1e400,"a":[ ]}}"#,
        r#""com.example/x":[1.0,{"z":1,"a":2}]"#,
        r#""x-extra":null"#,
        r#""text":"a\u0041\/\u00e9 é""#,
    ];
    let [structured, annotations, meta, extra, words] = PARTS;
    let whole = format!(
        r#"{{{extra},"content":[{{{words},"type":"text",{annotations}}}],{structured},"_meta":{{{meta}}}}}"#
    );
    let dirty = format!(
        r#"{{{extra},"content":[{{{words},"type":"text",{annotations}}},{{"type":"text","text":"token {}"}}],{structured},"_meta":{{{meta}}}}}"#,
        dirty_token()
    );
    for upstream_era in both() {
        let (whole, dirty) = (whole.clone(), dirty.clone());
        let upstream = Scripted::start(upstream_era, move |asked| {
            match (asked.method(), asked.tool()) {
                ("tools/list", _) => listing(&[&plain("whole"), &plain("dirty")]),
                (_, "dirty") => Say::Result(dirty.clone()),
                _ => Say::Result(whole.clone()),
            }
        });
        let gateway = Setup::new().upstream("up", upstream.config()).start().await;
        for era in both() {
            let what = format!("{upstream_era:?} to {era:?}");
            let mut alice = gateway.user("alice@acme").connect(era).await;
            for tool in ["whole", "dirty"] {
                let arguments = r#"{"n":1.50,"s":"\u0041\/","z":1,"a":1E+2}"#;
                let call = alice.prepare("tools/call", json!({"name": tool, "arguments": "HERE"}));
                let body = call.body.to_string().replace("\"HERE\"", arguments);
                let answer = call.open_with(body).await.text().await.unwrap();
                for part in PARTS {
                    assert!(
                        answer.contains(part),
                        "{what} {tool}: {part} is not in {answer}"
                    );
                }
                assert!(!answer.contains(&dirty_token()), "{what}: {answer}");
                let sent = upstream.calls().pop().unwrap().text;
                assert!(
                    sent.contains(&format!(r#""arguments":{arguments}"#)),
                    "{what}: {sent}"
                );
            }
        }
    }
}

/// Something that sanitising takes out, so that the result is written anew.
fn dirty_token() -> String {
    ["ghp", "_16C7e42F292c6912E7710c838347Ae178B4a"].concat()
}
