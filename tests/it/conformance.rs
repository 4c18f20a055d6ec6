//! The official conformance suite, against Toolgate as a server (with an upstream of
//! each era behind it) and against its upstream side as a client.
//!
//! Every scored scenario passes, and so does every other one that an upstream can be
//! behind: of a legacy upstream nobody gets tasks, so those scenarios are run over it
//! and reported. Nothing is skipped, and the suite gets no file of expected failures.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};

use super::support::client::Caller;
use super::support::session::Session;
use super::support::{Gateway, Helper, Setup, Value, json, real};

/// One run of the suite.
struct Run {
    revision: &'static str,
    /// The era of the upstream behind Toolgate.
    upstream: &'static str,
    /// How many scenarios there are.
    scenarios: usize,
}

const SERVER_RUNS: [Run; 4] = [
    Run {
        revision: "2025-11-25",
        upstream: "legacy",
        scenarios: 33,
    },
    Run {
        revision: "2025-11-25",
        upstream: "modern",
        scenarios: 33,
    },
    Run {
        revision: "2026-07-28",
        upstream: "legacy",
        scenarios: 50,
    },
    Run {
        revision: "2026-07-28",
        upstream: "modern",
        scenarios: 50,
    },
];

/// Client scenarios that need no OAuth client.
const CLIENT_RUNS: [(&str, &[&str]); 2] = [
    (
        "2025-11-25",
        &[
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "sse-retry",
            "json-schema-2020-12-preservation",
        ],
    ),
    (
        "2026-07-28",
        &[
            "tools_call",
            "request-metadata",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "json-schema-2020-12-preservation",
        ],
    ),
];

fn suite(args: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg("300").arg(real::node_program());
    command.arg(real::npm_file(
        "@modelcontextprotocol/conformance/dist/index.js",
    ));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it to its end beside the test; gives what it printed.
async fn output(mut command: Command) -> String {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Checks passed and failed, by scenario.
fn verdicts(printed: &str) -> BTreeMap<String, (u32, u32)> {
    let line = regex::Regex::new(r"(?m)^[✓✗]\s+(\S+): (\d+) passed, (\d+) failed").unwrap();
    line.captures_iter(printed)
        .map(|found| {
            let number = |at: usize| found[at].parse().unwrap();
            (found[1].to_owned(), (number(2), number(3)))
        })
        .collect()
}

fn failing(verdicts: &BTreeMap<String, (u32, u32)>) -> Vec<&str> {
    let failed = verdicts.iter().filter(|(_, (_, failed))| *failed > 0);
    failed.map(|(name, _)| name.as_str()).collect()
}

/// A proxy on loopback that puts a token on what passes: the suite has none, and
/// Toolgate lets nobody in without.
async fn with_token(caller: &Caller) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let target = Arc::new((
        reqwest::Client::builder().no_proxy().build().unwrap(),
        caller.endpoint(),
        format!("Bearer {}", caller.token()),
    ));
    let pages = axum::Router::new().fallback(pass).with_state(target);
    tokio::spawn(async move { axum::serve(listener, pages).await });
    url
}

type Target = Arc<(reqwest::Client, String, String)>;

async fn pass(State(target): State<Target>, request: Request) -> Response {
    let (http, url, bearer) = &*target;
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let mut onward = http.request(parts.method, url).body(body);
    for (name, value) in &parts.headers {
        if !matches!(name.as_str(), "content-length" | "connection") {
            onward = onward.header(name, value);
        }
    }
    let Ok(answer) = onward.header("authorization", bearer).send().await else {
        return http::StatusCode::BAD_GATEWAY.into_response();
    };
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers() {
        if !matches!(name.as_str(), "transfer-encoding" | "connection") {
            response = response.header(name, value);
        }
    }
    let chunks = futures_util::stream::unfold(answer, |mut answer| async {
        let chunk = answer.chunk().await.ok()??;
        Some((Ok::<Bytes, std::io::Error>(chunk), answer))
    });
    response.body(Body::from_stream(chunks)).unwrap()
}

async fn server_run(run: &Run) {
    let upstream = Helper::example("upstream_everything", &["--era", run.upstream]).await;
    let gateway = Gateway::over(upstream).await;
    let url = with_token(&gateway.user("alice@acme")).await;
    let printed = output(suite(&[
        "server",
        "--url",
        &url,
        "--requirements",
        run.revision,
    ]))
    .await;
    let verdicts = verdicts(&printed);
    let (passed, failed) = verdicts.values().fold((0, 0), |(passed, failed), one| {
        (passed + one.0, failed + one.1)
    });
    let what = format!("{} over a {} upstream", run.revision, run.upstream);
    eprintln!(
        "conformance {what}: {} scenarios, {passed} checks passed, {failed} failed",
        verdicts.len()
    );
    // A legacy server has no tasks to give.
    let (tasks, failing): (Vec<&str>, Vec<&str>) = failing(&verdicts)
        .into_iter()
        .partition(|name| run.upstream == "legacy" && name.starts_with("tasks-"));
    for name in tasks {
        eprintln!("conformance {what}: {name} cannot pass");
    }
    assert!(failing.is_empty(), "{what}: {failing:?}\n{printed}");
    assert_eq!(verdicts.len(), run.scenarios, "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_of_2025_11_25_passes_over_a_legacy_upstream() {
    server_run(&SERVER_RUNS[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_of_2025_11_25_passes_over_a_modern_upstream() {
    server_run(&SERVER_RUNS[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_of_2026_07_28_passes_over_a_legacy_upstream() {
    server_run(&SERVER_RUNS[2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_of_2026_07_28_passes_over_a_modern_upstream() {
    server_run(&SERVER_RUNS[3]).await;
}

/// The client under test: Toolgate with the suite's server as its upstream, driven
/// by somebody who uses all that it offers.
async fn drive(url: &str, scenario: &str, context: &Value) -> String {
    let setup = Setup::new().over("up", Helper::at(url));
    let gateway = setup.start().await;
    let capabilities = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
    let mut alice = Session::modern(gateway.user("alice@acme")).able(capabilities);
    let mut told = Vec::new();
    // A list that is still being read is empty; some scenarios have no tools at all.
    let mut tools = alice.list().await;
    for _ in 0..50 {
        if !tools.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        tools = alice.list().await;
    }
    for tool in &tools {
        let name = tool["name"].as_str().unwrap().to_owned();
        let arguments = arguments(tool, &tools, context);
        let params = json!({"name": name, "arguments": arguments});
        told.push(ask(&mut alice, "tools/call", params, &tool["inputSchema"]).await);
    }
    let prompts = alice.request("prompts/list", json!({})).await;
    for prompt in prompts.result()["prompts"].as_array().unwrap() {
        let params = json!({"name": prompt["name"], "arguments": {}});
        told.push(ask(&mut alice, "prompts/get", params, &Value::Null).await);
    }
    let resources = alice.request("resources/list", json!({})).await;
    for resource in resources.result()["resources"].as_array().unwrap() {
        let params = json!({"uri": resource["uri"]});
        told.push(ask(&mut alice, "resources/read", params, &Value::Null).await);
    }
    format!(
        "{scenario}: {}\n{}",
        told.join("\n"),
        gateway.logs().tail(60)
    )
}

/// What the scenario wants a tool to be called with; else what fits its schema.
fn arguments(tool: &Value, tools: &[Value], context: &Value) -> Value {
    let calls = context["toolCalls"].as_array();
    let wanted = calls.and_then(|calls| calls.iter().find(|call| call["name"] == tool["name"]));
    if let Some(call) = wanted {
        let mut arguments = call["arguments"].clone();
        // Toolgate lets no `null` pass where the schema has none: it is left out.
        let members = arguments.as_object_mut().unwrap();
        members.retain(|_, value| !value.is_null());
        return arguments;
    }
    let mut arguments = fitting(&tool["inputSchema"]);
    let focal = |tool: &&Value| tool["name"] == "json_schema_2020_12_tool";
    if let (Some(schema), Some(focal)) = (arguments.get_mut("schema"), tools.iter().find(focal)) {
        *schema = focal["inputSchema"].clone();
    }
    arguments
}

/// Asks, and brings the input that is asked for, with the defaults of its schema.
async fn ask(alice: &mut Session, method: &str, mut params: Value, schema: &Value) -> String {
    for _ in 0..5 {
        let mut request = alice.prepare(method, params.clone());
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let value = &params["arguments"][name];
            if let (Some(header), false) = (property["x-mcp-header"].as_str(), value.is_null()) {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                let text = super::support::session::header_value(&text);
                request = request.header(&format!("mcp-param-{}", header.to_lowercase()), &text);
            }
        }
        let answer = request.send().await;
        let Some(result) = answer.message().get("result") else {
            return answer.body;
        };
        if result["resultType"] != "input_required" {
            return answer.body;
        }
        let mut responses = json!({});
        for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
            responses[key] = match request["method"].as_str().unwrap() {
                "roots/list" => json!({"roots": []}),
                "sampling/createMessage" => json!({
                    "role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"},
                }),
                _ => json!({
                    "action": "accept", "content": fitting(&request["params"]["requestedSchema"]),
                }),
            };
        }
        params["inputResponses"] = responses;
        params["requestState"] = result["requestState"].clone();
        if params["requestState"].is_null() {
            params.as_object_mut().unwrap().remove("requestState");
        }
    }
    "asked without end".to_owned()
}

/// Arguments that fit a schema: its defaults, and something of the type.
fn fitting(schema: &Value) -> Value {
    let mut arguments = json!({});
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        arguments[name] = match (&property["default"], property["type"].as_str()) {
            (Value::Null, Some("integer" | "number")) => json!(5),
            (Value::Null, Some("boolean")) => json!(true),
            (Value::Null, Some("array")) => json!([]),
            (Value::Null, Some("object")) => json!({}),
            (Value::Null, _) => match &property["enum"][0] {
                Value::Null => json!("text"),
                first => first.clone(),
            },
            (default, _) => default.clone(),
        };
    }
    arguments
}

async fn client_runs(run: usize) {
    let (revision, scenarios) = CLIENT_RUNS[run];
    // The suite starts a command; the command tells the test, which is the client.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = format!("http://{}", listener.local_addr().unwrap());
    let pages = axum::Router::new().fallback(|body: String| async move {
        let order: Value = serde_json::from_str(&body).unwrap();
        let text = |key: &str| order[key].as_str().unwrap_or_default().to_owned();
        let (url, scenario, context) = (text("url"), text("scenario"), order["context"].clone());
        // What a test awaits need not be `Send`.
        let runtime = tokio::runtime::Handle::current();
        let driven = move || runtime.block_on(drive(&url, &scenario, &context));
        tokio::task::spawn_blocking(driven).await.unwrap()
    });
    tokio::spawn(async move { axum::serve(listener, pages).await });
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/clients/conformance_client.mjs"
    );
    let command = format!("{} {script} {control}", real::node_program().display());
    let mut failed = Vec::new();
    let counted = regex::Regex::new(r"Passed: (\d+)/(\d+), (\d+) failed").unwrap();
    for scenario in scenarios {
        let printed = output(suite(&[
            "client",
            "--command",
            &command,
            "--scenario",
            scenario,
            "--spec-version",
            revision,
            "--timeout",
            "60000",
            "--verbose",
        ]))
        .await;
        let verdict = counted.captures(&printed);
        let passes = verdict
            .as_ref()
            .is_some_and(|found| &found[3] == "0" && &found[1] != "0");
        eprintln!(
            "conformance client {revision} {scenario}: {}",
            verdict.map_or("no verdict".to_owned(), |found| found[0].to_owned())
        );
        if !passes {
            eprintln!("{printed}");
            failed.push(*scenario);
        }
    }
    assert!(failed.is_empty(), "{revision}: {failed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_scenarios_of_2025_11_25_pass() {
    client_runs(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_scenarios_of_2026_07_28_pass() {
    client_runs(1).await;
}
