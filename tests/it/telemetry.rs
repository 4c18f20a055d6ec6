//! Traces, metrics and logs as a collector gets them (OTLP), held against the
//! OpenTelemetry conventions for MCP.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

use super::support::asking::{self, able};
use super::support::collector::{Collector, SeenSpan, attributes, hex};
use super::support::process::free_port;
use super::support::scripted::{Asked, Say, Scripted, listing, plain, text};
use super::support::upstream::stdio_example;
use super::support::{Era, Gateway, Setup, Value, both, eventually, json};

const CLIENTS_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENTS_SPAN: &str = "b7ad6b7169203331";

fn traceparent(flags: &str) -> String {
    format!("00-{CLIENTS_TRACE}-{CLIENTS_SPAN}-{flags}")
}

/// A server with the tools `echo`, `fails` and `refuses`.
fn server(era: Era) -> Scripted {
    Scripted::start(era, |asked| match (asked.method(), asked.tool()) {
        ("tools/list", _) => listing(&[&plain("echo"), &plain("fails"), &plain("refuses")]),
        (_, "fails") => {
            let content = json!([{"type": "text", "text": "SECRET-OF-THE-ERROR"}]);
            Say::Result(json!({"content": content, "isError": true}).to_string())
        }
        (_, "refuses") => {
            let error = json!({"code": -32050, "message": "SECRET-OF-THE-REFUSAL"});
            let id = &asked.message["id"];
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
            Say::Http(format!(
                "{head}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ))
        }
        _ => text("SECRET-OF-THE-RESULT"),
    })
}

async fn gateway(collector: &Collector, server: &Scripted) -> Gateway {
    let setup = Setup::new().upstream("up", server.config());
    setup.yaml(&collector.yaml()).start().await
}

/// The server span of a call of this trace.
async fn served(collector: &Collector, trace: &str, name: &str) -> SeenSpan {
    let what = format!("the span {name} of {trace}");
    let is =
        |span: &SeenSpan| span.kind == SpanKind::Server && span.trace == trace && span.name == name;
    collector.span(&what, is).await
}

/// The client span of the upstream's request, below the step that dispatched it.
async fn sent(collector: &Collector, served: &SeenSpan) -> SeenSpan {
    let dispatch = collector
        .span("the step", |span| {
            span.name == "dispatch" && span.parent == served.id && span.trace == served.trace
        })
        .await;
    collector
        .span("the client span", |span| {
            // A session at the upstream may have been opened for it.
            span.kind == SpanKind::Client
                && span.parent == dispatch.id
                && span.get("mcp.method.name") == served.get("mcp.method.name")
        })
        .await
}

/// What the upstream was told of the trace: the same in headers and `_meta`.
fn told(call: &Asked) -> (String, String) {
    let header = call.header("traceparent").unwrap();
    let meta = &call.message["params"]["_meta"];
    assert_eq!(meta["traceparent"], header, "{call:?}");
    assert_eq!(meta["tracestate"].as_str(), call.header("tracestate"));
    (header[3..35].to_owned(), header[36..52].to_owned())
}

fn is(span: &SeenSpan, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(span.get(key), *value, "{key} of {span:#?}");
    }
}

const STEPS: [&str; 7] = [
    "arguments",
    "audit.finished",
    "audit.started",
    "dispatch",
    "limits",
    "sanitize",
    "visibility",
];

#[tokio::test]
async fn a_call_is_one_trace_from_the_client_to_the_upstream() {
    for upstream in both() {
        let collector = Collector::start().await;
        let server = server(upstream);
        let gateway = gateway(&collector, &server).await;
        for (number, era) in both().into_iter().enumerate() {
            let what = format!("{era:?} over {upstream:?}");
            let trace = format!("{number}{}", &CLIENTS_TRACE[1..]);
            let parent = format!("00-{trace}-{CLIENTS_SPAN}-01");
            let caller = gateway
                .user("alice@acme")
                .header("traceparent", &parent)
                .header("tracestate", "rojo=1")
                .header("tracestate", "congo=t61")
                .header("baggage", "user=alice");
            let mut alice = caller.connect(era).await;
            let call = alice.prepare("tools/call", json!({"name": "echo", "arguments": {}}));
            let id = call.id().to_string();
            assert_eq!(call.send().await.text(), "SECRET-OF-THE-RESULT", "{what}");
            let served = served(&collector, &trace, "tools/call echo").await;
            assert_eq!(served.parent, CLIENTS_SPAN, "{what}");
            assert_eq!(
                served.state, "congo=t61",
                "the later header counts in this kit"
            );
            assert!(!served.failed && served.links.is_empty(), "{served:#?}");
            let version = match era {
                Era::Legacy => "2025-11-25",
                Era::Modern => "2026-07-28",
            };
            let expected = [
                ("mcp.method.name", "tools/call"),
                ("gen_ai.tool.name", "echo"),
                ("gen_ai.operation.name", "execute_tool"),
                ("jsonrpc.request.id", id.as_str()),
                ("mcp.protocol.version", version),
                ("network.transport", "tcp"),
                ("network.protocol.name", "http"),
                ("client.address", "127.0.0.1"),
                ("tenant.id", "acme"),
                ("upstream.id", "up"),
                ("outcome", "ok"),
                ("error.type", ""),
                ("rpc.response.status_code", ""),
            ];
            is(&served, &expected);
            assert_eq!(served.get("mcp.session.id").is_empty(), era == Era::Modern);
            if let Some(key) = alice.id() {
                assert_ne!(
                    served.get("mcp.session.id"),
                    key,
                    "the key itself is no name"
                );
            }
            let sent = sent(&collector, &served).await;
            let steps: Vec<String> = eventually("all steps", async || {
                let below = collector.below(&served);
                (below.len() >= STEPS.len()).then(|| below.into_iter().map(|s| s.name).collect())
            })
            .await;
            assert_eq!(steps, STEPS, "{what}");
            assert_eq!(sent.name, "tools/call echo", "{what}");
            let spoken = match upstream {
                Era::Legacy => "2025-11-25",
                Era::Modern => "2026-07-28",
            };
            let port = server.port().to_string();
            let expected = [
                ("mcp.method.name", "tools/call"),
                ("gen_ai.tool.name", "echo"),
                ("gen_ai.operation.name", "execute_tool"),
                ("mcp.protocol.version", spoken),
                ("network.transport", "tcp"),
                ("server.address", "127.0.0.1"),
                ("server.port", port.as_str()),
            ];
            is(&sent, &expected);
            let call = server.calls().pop().unwrap();
            assert_eq!(
                sent.get("jsonrpc.request.id"),
                call.message["id"].to_string()
            );
            assert_eq!(told(&call), (trace.clone(), sent.id.clone()), "{what}");
            assert_eq!(call.header("tracestate"), Some("congo=t61"), "{what}");
            assert!(!call.text.contains("baggage"), "{what}");
            let session = call.header("mcp-session-id");
            assert_eq!(sent.get("mcp.session.id").is_empty(), session.is_none());
            assert_ne!(Some(sent.get("mcp.session.id")), session);
            // The record has the same trace, and the call's id is in both.
            let record = gateway
                .audit_of(&["--trace-id", &trace], 1)
                .await
                .pop()
                .unwrap();
            assert_eq!(record["call_id"], served.get("call.id"), "{what}");
            assert!(sent.took <= served.took && sent.took > Duration::ZERO);
        }
        let resource = collector.spans().pop().unwrap().resource;
        assert_eq!(resource["service.name"], "toolgate");
        assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(resource["service.instance.id"].len(), 36);
        // Opening and reading the upstream are traces of the gateway's own.
        for method in ["tools/list", "server/discover"] {
            let own = collector.span(method, |span| {
                span.name == method && span.kind == SpanKind::Client
            });
            assert_eq!(own.await.parent, "", "{method}");
        }
    }
}

#[tokio::test]
async fn a_place_in_meta_is_the_parent_and_the_connections_is_linked() {
    let collector = Collector::start().await;
    let server = server(Era::Modern);
    let gateway = gateway(&collector, &server).await;
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let meta = json!({"traceparent": format!("00-{trace}-{span}-01"), "tracestate": "a=b", "baggage": "c=d"});
    for era in both() {
        let caller = gateway
            .user("alice@acme")
            .header("traceparent", &traceparent("01"));
        let mut alice = caller.connect(era).await;
        let params = json!({"name": "echo", "arguments": {}, "_meta": meta});
        alice.request("tools/call", params).await;
        let call = server.calls().pop().unwrap();
        let (of, by) = told(&call);
        assert_eq!(of, trace, "{era:?}");
        assert_eq!(call.header("tracestate"), Some("a=b"), "{era:?}");
        assert!(!call.text.contains("baggage"), "{era:?}");
        let sent = collector
            .span("the client span", |seen| seen.id == by)
            .await;
        let served = collector
            .span("the server span", |seen| {
                let links = [(CLIENTS_TRACE.to_owned(), CLIENTS_SPAN.to_owned())];
                seen.kind == SpanKind::Server && seen.trace == trace && seen.links == links
            })
            .await;
        assert_eq!(
            (served.parent.as_str(), served.state.as_str()),
            (span, "a=b")
        );
        assert_eq!(sent.trace, trace);
    }
}

#[tokio::test]
async fn errors_and_refusals_say_which_and_never_in_whose_words() {
    let collector = Collector::start().await;
    let server = server(Era::Modern);
    let gateway = gateway(&collector, &server).await;
    for era in both() {
        let caller = gateway
            .user("alice@acme")
            .header("traceparent", &traceparent("01"));
        let mut alice = caller.connect(era).await;
        for (tool, name, error, status) in [
            ("fails", "tools/call fails", "tool_error", ""),
            ("refuses", "tools/call refuses", "-32050", "-32050"),
            ("SECRET-NAME", "tools/call", "-32602", "-32602"),
        ] {
            let call = alice.prepare("tools/call", json!({"name": tool, "arguments": {}}));
            let id = call.id().to_string();
            call.send().await;
            let served = collector
                .span(tool, |span| {
                    let version = span.get("mcp.protocol.version") == "2025-11-25";
                    span.kind == SpanKind::Server
                        && span.get("jsonrpc.request.id") == id
                        && version == (era == Era::Legacy)
                        && span.get("mcp.method.name") == "tools/call"
                })
                .await;
            assert!(served.failed && served.words.is_empty(), "{served:#?}");
            assert_eq!(served.name, name);
            if tool == "refuses" {
                // How the gateway tells of it is its own business; what came is not.
                let sent = sent(&collector, &served).await;
                is(
                    &sent,
                    &[("error.type", error), ("rpc.response.status_code", status)],
                );
                assert!(sent.failed);
                continue;
            }
            is(
                &served,
                &[("error.type", error), ("rpc.response.status_code", status)],
            );
            if tool == "fails" {
                let sent = sent(&collector, &served).await;
                is(&sent, &[("error.type", error)]);
                continue;
            }
            // Refused at the step that refuses; nothing was sent.
            let names: Vec<String> = eventually("the steps", async || {
                let below = collector.below(&served);
                (below.len() == 3).then(|| below.into_iter().map(|span| span.name).collect())
            })
            .await;
            assert_eq!(names, ["audit.finished", "limits", "visibility"]);
            let step = collector.below(&served).pop().unwrap();
            assert!(step.failed && served.get("gen_ai.tool.name").is_empty());
        }
        alice
            .request("tools/nonsense-SECRET-METHOD", json!({}))
            .await;
        let unknown = collector.span("the unknown method", |span| span.name == "_OTHER");
        is(&unknown.await, &[("error.type", "-32601")]);
    }
    assert!(!collector.everything().contains("SECRET-"));
}

#[tokio::test]
async fn nothing_secret_and_no_argument_is_exported() {
    let collector = Collector::start().await;
    let server = server(Era::Legacy);
    let setup = Setup::new().upstream("up", server.config());
    let setup = setup.yaml(&collector.yaml());
    let folder = super::support::folder::Folder::new();
    let headers = folder.file(
        "headers",
        "Authorization: Bearer SECRET-OF-COLLECTOR\nx-scope: t1\n",
    );
    let credential = folder.file("key", "SECRET-OF-UPSTREAM\n");
    let header = json!({"header": {"name": "X-Api-Key", "value_file": credential}});
    let setup = setup
        .upstream("up", json!({"credentials": header}))
        .yaml(&format!("telemetry: {{ otlp_headers_file: {}, resource: {{ deployment.environment.name: test }} }}", headers.display()));
    let gateway = setup.start().await;
    for era in both() {
        let caller = gateway.user("alice@acme");
        let token = caller.token().to_owned();
        let mut alice = caller.connect(era).await;
        let arguments = json!({"note": "SECRET-OF-ARGUMENT"});
        alice.call("echo", arguments.clone()).await;
        alice.call("SECRET-NAME", arguments).await;
        let uri = "test://x?key=SECRET-IN-URI";
        alice.request("resources/read", json!({"uri": uri})).await;
        let session = alice.id().map(str::to_owned);
        eventually("the spans and logs are there", async || {
            let spans = collector.spans();
            let reads = spans.iter().filter(|span| span.name == "resources/read");
            (reads.count() > usize::from(era == both()[1])).then_some(())
        })
        .await;
        let all = collector.everything();
        assert!(
            !all.contains("SECRET-"),
            "{:?}",
            all.split("SECRET-").nth(1).map(|s| &s[..40])
        );
        assert!(!all.contains(token.rsplit('.').next().unwrap()));
        assert!(session.is_none_or(|session| !all.contains(&session)));
        assert!(!all.contains("alice"), "nor who it was");
    }
    for signal in ["traces", "metrics", "logs"] {
        let (headers, _) = eventually(signal, async || collector.requests(signal).pop()).await;
        assert_eq!(
            headers["authorization"], "Bearer SECRET-OF-COLLECTOR",
            "{signal}"
        );
        assert_eq!(headers["x-scope"], "t1");
        assert_eq!(headers["content-type"], "application/x-protobuf");
    }
    let resource = &collector.logs()[0].resource;
    assert_eq!(resource["deployment.environment.name"], "test");
    assert!(
        !gateway
            .logs()
            .lines()
            .join("\n")
            .contains("SECRET-OF-COLLECTOR")
    );
}

#[tokio::test]
async fn over_standard_streams_the_trace_goes_on_in_meta() {
    let collector = Collector::start().await;
    let setup = Setup::new().upstream("child", stdio_example("upstream_rmcp", &["--stdio"]));
    let gateway = setup.yaml(&collector.yaml()).start().await;
    let caller = gateway
        .user("alice@acme")
        .header("traceparent", &traceparent("01"));
    let mut alice = caller.modern();
    let called = alice.call("echo", json!({"text": "hi"})).await;
    assert_eq!(called.text(), "hi", "{called:?}");
    let served = served(&collector, CLIENTS_TRACE, "tools/call echo").await;
    let sent = sent(&collector, &served).await;
    is(
        &sent,
        &[
            ("network.transport", "pipe"),
            ("network.protocol.name", ""),
            ("server.address", ""),
            ("gen_ai.tool.name", "echo"),
            ("upstream.id", "child"),
        ],
    );
}

#[tokio::test]
async fn what_an_upstream_asks_is_part_of_the_trace_both_ways() {
    let collector = Collector::start().await;
    let server = asking::server(Era::Legacy);
    let setup = Setup::new().upstream("up", server.config());
    let gateway = setup.yaml(&collector.yaml()).start().await;
    let caller = gateway
        .user("alice@acme")
        .header("traceparent", &traceparent("01"));
    let mut alice = caller.able(Era::Legacy, able()).await;
    let call = alice.prepare("tools/call", json!({"name": "elicit", "arguments": {}}));
    let id = call.id();
    let mut events = call.stream().await;
    let question = loop {
        let message = events.message().await.expect("a question comes");
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let outcome = json!({"result": asking::answer("elicit")});
    alice.reply(&question["id"], outcome).await;
    events.until_response(&id).await;
    let served = served(&collector, CLIENTS_TRACE, "tools/call elicit").await;
    let sent = sent(&collector, &served).await;
    // Asked by the upstream: its request, handled; and our own, to the client.
    let taken = collector
        .span("the upstream's request", |span| {
            span.kind == SpanKind::Server && span.name == "elicitation/create"
        })
        .await;
    assert_eq!((&taken.trace, &taken.parent), (&sent.trace, &sent.id));
    let asked = collector
        .span("the request to the client", |span| {
            span.kind == SpanKind::Client && span.name == "elicitation/create"
        })
        .await;
    assert_eq!((&asked.trace, &asked.parent), (&taken.trace, &taken.id));
    is(
        &asked,
        &[("jsonrpc.request.id", question["id"].as_str().unwrap())],
    );
    let told = question["params"]["_meta"]["traceparent"].as_str().unwrap();
    assert_eq!(told, format!("00-{CLIENTS_TRACE}-{}-01", asked.id));
}

#[tokio::test]
async fn a_retry_is_linked_to_the_exchange_that_it_goes_on_with() {
    let collector = Collector::start().await;
    let server = asking::server(Era::Legacy);
    let setup = Setup::new().upstream("up", server.config());
    let gateway = setup.yaml(&collector.yaml()).start().await;
    let mut alice = gateway.user("alice@acme").able(Era::Modern, able()).await;
    let params = json!({"name": "elicit", "arguments": {}});
    let first = alice.request("tools/call", params.clone()).await;
    let result = first.result();
    let key = result["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let mut retry = params;
    retry["inputResponses"] = json!({key: asking::answer("elicit")});
    retry["requestState"] = result["requestState"].clone();
    let last = alice.request("tools/call", retry).await;
    assert!(last.text().contains("Ada"), "{last:?}");
    let of_calls = eventually("both calls", async || {
        let mut spans = collector.spans();
        spans.retain(|span| span.kind == SpanKind::Server && span.name == "tools/call elicit");
        (spans.len() == 2).then_some(spans)
    })
    .await;
    let (retry, first): (Vec<_>, Vec<_>) = of_calls
        .into_iter()
        .partition(|span| !span.links.is_empty());
    let (retry, first) = (&retry[0], &first[0]);
    assert_ne!(
        retry.trace, first.trace,
        "each message has a trace of its own"
    );
    assert_eq!(retry.links, [(first.trace.clone(), first.id.clone())]);
    // The exchange that waited belongs to the first.
    sent(&collector, first).await;
}

#[tokio::test]
async fn who_is_not_sampled_is_passed_on_and_not_exported() {
    let collector = Collector::start().await;
    let server = server(Era::Modern);
    let setup = Setup::new().upstream("up", server.config());
    let setup = setup.yaml(&collector.yaml());
    let gateway = setup.yaml("telemetry: { sampling_ratio: 0 }").start().await;
    for (given, flags) in [(Some("00"), "00"), (None, "00"), (Some("01"), "01")] {
        let mut caller = gateway.user("alice@acme");
        if let Some(given) = given {
            caller = caller.header("traceparent", &traceparent(given));
        }
        let mut alice = caller.modern();
        alice.call("echo", json!({})).await;
        let call = server.calls().pop().unwrap();
        let (trace, span) = told(&call);
        let header = call.header("traceparent").unwrap();
        assert!(header.ends_with(flags), "{given:?}: {header}");
        assert_eq!(trace == CLIENTS_TRACE, given.is_some());
        assert_ne!(span, CLIENTS_SPAN);
        // On record it is in any case.
        let found = gateway.audit_of(&["--trace-id", &trace], 1).await;
        assert!(!found.is_empty(), "{given:?}");
    }
    // Only the last one, whose caller has decided.
    served(&collector, CLIENTS_TRACE, "tools/call echo").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let served: Vec<_> = collector.spans();
    let calls = served.iter().filter(|span| span.kind == SpanKind::Server);
    assert_eq!(calls.count(), 1);
}

#[tokio::test]
async fn metrics_have_the_names_units_and_buckets_of_the_conventions() {
    let collector = Collector::start().await;
    let server = server(Era::Legacy);
    let setup = Setup::new()
        .upstream("up", server.config())
        .yaml(&collector.yaml());
    let gateway = setup
        .yaml("telemetry: { tenant_metrics: true }")
        .start()
        .await;
    let caller = gateway
        .user("alice@acme")
        .header("traceparent", &traceparent("01"));
    let mut alice = caller.connect(Era::Legacy).await;
    alice.call("echo", json!({})).await;
    alice.call("nothing-SECRET", json!({})).await;
    alice.delete().await;
    let metrics = eventually("the metrics of the calls", async || {
        let metrics = collector.metrics();
        let ended = |metric: &&opentelemetry_proto::tonic::metrics::v1::Metric| {
            let Some(Data::Histogram(data)) = &metric.data else {
                return false;
            };
            metric.name == "mcp.server.session.duration" && !data.data_points.is_empty()
        };
        metrics.iter().find(ended).is_some().then_some(metrics)
    })
    .await;
    let points = |name: &str| {
        let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
        assert_eq!(metric.unit, "s", "{name}");
        let Some(Data::Histogram(data)) = &metric.data else {
            panic!("{name}")
        };
        for point in &data.data_points {
            let bounds = [
                0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
            ];
            assert_eq!(point.explicit_bounds, bounds, "{name}");
            assert_eq!(
                point.bucket_counts.iter().sum::<u64>(),
                point.count,
                "{name}"
            );
            assert!(point.start_time_unix_nano > 0);
        }
        data.data_points.clone()
    };
    let find = |name: &str, wanted: &[(&str, &str)]| {
        let found = points(name).into_iter().find(|point| {
            let has = attributes(&point.attributes);
            wanted
                .iter()
                .all(|(key, value)| has.get(*key).map_or("", String::as_str) == *value)
        });
        found.unwrap_or_else(|| panic!("{name} {wanted:?}: {:#?}", points(name)))
    };
    let ok = find(
        "mcp.server.operation.duration",
        &[
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "echo"),
            ("gen_ai.operation.name", "execute_tool"),
            ("network.transport", "tcp"),
            ("upstream.id", "up"),
            ("error.type", ""),
        ],
    );
    assert_eq!(ok.count, 1);
    let example = &ok.exemplars[0];
    let trace = hex(&example.trace_id);
    assert_eq!(trace, CLIENTS_TRACE);
    assert_eq!(example.span_id.len(), 8);
    let refused = [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "other"),
        ("error.type", "-32602"),
        ("rpc.response.status_code", "-32602"),
    ];
    find("mcp.server.operation.duration", &refused);
    let initialize = [("mcp.method.name", "initialize"), ("gen_ai.tool.name", "")];
    find("mcp.server.operation.duration", &initialize);
    let sent = [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "echo"),
        ("network.transport", "tcp"),
        ("upstream.id", "up"),
    ];
    assert_eq!(find("mcp.client.operation.duration", &sent).count, 1);
    let session = [("mcp.protocol.version", "2025-11-25")];
    find("mcp.server.session.duration", &session);
    let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    for name in [
        "toolgate.calls",
        "toolgate.telemetry_lost",
        "process.memory.usage",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    // The same is shown to Prometheus, the exemplar too.
    let shown = gateway.metrics().await;
    let series = "mcp_server_operation_duration_seconds_bucket{";
    let exemplar = format!("trace_id=\"{CLIENTS_TRACE}\"");
    let with_exemplar = shown
        .lines()
        .any(|line| line.starts_with(series) && line.contains(&exemplar));
    assert!(with_exemplar, "{shown}");
    let tenant = "toolgate_tenant_calls_total{tenant=\"acme\",outcome=\"ok\"} 1";
    assert!(shown.contains(tenant), "{shown}");
    assert!(!shown.contains("SECRET"));
}

#[tokio::test]
async fn logs_name_their_trace_and_their_request() {
    let collector = Collector::start().await;
    let server = server(Era::Modern);
    let gateway = gateway(&collector, &server).await;
    let caller = gateway
        .user("alice@acme")
        .header("traceparent", &traceparent("01"));
    let mut alice = caller.modern();
    // A body that is cut off in the answer is told of in the log, at debug.
    drop(server);
    let answer = alice.call("echo", json!({})).await;
    let request = answer.header("x-request-id").unwrap().to_owned();
    let log = eventually("a record about the request", async || {
        let mut logs = collector.logs().into_iter();
        logs.find(|log| {
            log.attributes
                .get("request.id")
                .is_some_and(|id| *id == request)
        })
    })
    .await;
    assert_eq!(log.trace, CLIENTS_TRACE, "{log:#?}");
    assert!(!log.span.is_empty() && !log.body.is_empty() && !log.severity.is_empty());
    assert_eq!(log.resource["service.name"], "toolgate");
    let line = gateway
        .logs()
        .json()
        .into_iter()
        .find(|line| {
            let spans = line["spans"].as_array();
            spans.is_some_and(|spans| spans.iter().any(|span| span["request.id"] == *request))
        })
        .unwrap();
    let spans: &Value = &line["spans"];
    assert_eq!(spans[0]["trace.id"], CLIENTS_TRACE, "{line}");
    // What exporting says of itself is not exported.
    assert!(
        collector
            .logs()
            .iter()
            .all(|log| !log.body.contains("collector"))
    );
}

#[tokio::test]
async fn a_collector_that_is_away_costs_telemetry_and_no_call() {
    let server = server(Era::Modern);
    // One that refuses, and one that never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    for port in [free_port(), silent.local_addr().unwrap().port()] {
        let setup = Setup::new().upstream("up", server.config());
        let yaml = format!(
            "telemetry: {{ otlp_endpoint: \"http://127.0.0.1:{port}\", otlp_timeout: 300ms, metrics_interval: 300ms }}"
        );
        let mut gateway = setup.yaml(&yaml).start().await;
        let mut alice = gateway.user("alice@acme").modern();
        let begun = Instant::now();
        for _ in 0..20 {
            assert_eq!(alice.call("echo", json!({})).await.status, 200);
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{:?}",
            begun.elapsed()
        );
        eventually("the loss is counted", async || {
            let shown = gateway.metrics().await;
            shown
                .lines()
                .any(|line| {
                    line.starts_with("toolgate_telemetry_lost_total{signal=\"traces\"")
                        && !line.ends_with(" 0")
                })
                .then_some(())
        })
        .await;
        let said = gateway.logs().lines();
        let warned = said
            .iter()
            .filter(|line| line.contains("does not take telemetry"));
        assert_eq!(warned.count(), 1, "said once");
        let begun = Instant::now();
        assert!(gateway.sigterm_and_wait().await.success());
        assert!(begun.elapsed() < Duration::from_secs(15));
    }
}

#[tokio::test]
async fn a_collector_that_comes_back_gets_what_waited_and_the_end_is_flushed() {
    let collector = Collector::start().await;
    let server = server(Era::Modern);
    let mut gateway = gateway(&collector, &server).await;
    collector.answer(503);
    let caller = gateway
        .user("alice@acme")
        .header("traceparent", &traceparent("01"));
    caller.modern().call("echo", json!({})).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    collector.answer(200);
    served(&collector, CLIENTS_TRACE, "tools/call echo").await;
    let last = "1af7651916cd43dd8448eb211c80319d";
    let caller = gateway.user("alice@acme");
    let caller = caller.header("traceparent", &format!("00-{last}-{CLIENTS_SPAN}-01"));
    caller.modern().call("echo", json!({})).await;
    assert!(gateway.sigterm_and_wait().await.success());
    // Everything is there when the process is gone.
    assert!(
        collector
            .spans()
            .iter()
            .any(|span| span.trace == last && span.name == "tools/call echo")
    );
    assert!(collector.logs().iter().any(|log| log.body == "Stopped."));
}
