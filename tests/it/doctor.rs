//! `toolgate doctor`: says nothing about our own server, and names each fault of
//! others in plain words.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

use toolgate::jose::{Algorithm, SigningKey};

use super::support::browser::Browser;
use super::support::config::TOOLGATE;
use super::support::folder::Folder;
use super::support::process::{Outcome, Process};
use super::support::sign_in::{local, local_setup};
use super::support::{PATIENCE, Value, json, real};

/// One fault each: what is wrong, what has to be said about it, and whether it keeps
/// clients out.
const FAULTS: [(&str, &str, bool); 38] = [
    ("403", "403 in the place of 401", true),
    ("redirects", "the endpoint redirects to /elsewhere", true),
    ("404", "there is no MCP endpoint at this path", true),
    (
        "no challenge",
        "401 without a `WWW-Authenticate: Bearer`",
        false,
    ),
    (
        "no place",
        "the challenge has no `resource_metadata`",
        false,
    ),
    (
        "error at once",
        "the challenge has an `error` though no token was sent",
        false,
    ),
    (
        "late",
        "only `tools/list` of 2026-07-28 asks for a token",
        false,
    ),
    ("GET 405", "GET is answered with 405", false),
    (
        "bad token 403",
        "a bad token is not answered with 401",
        false,
    ),
    (
        "wrong place",
        "the place that the challenge names has no document",
        true,
    ),
    (
        "other resource",
        "`resource` is \"https://other.example/mcp\"",
        true,
    ),
    ("resource above", "which is above", false),
    (
        "no servers",
        "`authorization_servers` is missing or empty",
        true,
    ),
    (
        "no server document",
        "no metadata of the authorization server",
        true,
    ),
    ("issuer with slash", "a slash at the end counts", true),
    (
        "no S256",
        "`code_challenge_methods_supported` lacks S256",
        true,
    ),
    ("plain PKCE", "`plain` PKCE is offered too", false),
    (
        "no CORS",
        "no Access-Control-Allow-Origin on the metadata",
        false,
    ),
    (
        "iss unsaid",
        "`iss` in its answers is not advertised",
        false,
    ),
    ("no registration", "no way to register", false),
    ("confidential", "public clients are not offered", false),
    (
        "registration refused",
        "a client like Codex is refused: 400 (invalid_redirect_uri: no loopback)",
        true,
    ),
    ("registration 200", "200 in the place of 201", false),
    (
        "redirects anywhere",
        "an unregistered redirect URI is sent the browser",
        true,
    ),
    (
        "no PKCE",
        "a request without PKCE is not refused at once",
        false,
    ),
    ("framed", "its page may be framed by other sites", false),
    (
        "refuses",
        "a request like that of a desktop client is refused: 400 (invalid_scope)",
        true,
    ),
    ("state", "`state` did not come back as it was sent", true),
    ("other iss", "`iss` is \"https://other.example\"", true),
    (
        "no iss",
        "no `iss` in the answer, though the metadata promises it",
        true,
    ),
    ("denied", "the answer is an error: access_denied", true),
    (
        "code refused",
        "the code is not taken: 400 (invalid_grant)",
        true,
    ),
    ("cached", "`Cache-Control: no-store` is missing", false),
    ("no expiry", "`expires_in` is missing", false),
    (
        "token refused",
        "the endpoint does not take the token that its own authorization server issued",
        true,
    ),
    (
        "no refresh",
        "no refresh token: people sign in again",
        false,
    ),
    (
        "refresh refused",
        "a refresh is refused: 400 (invalid_grant)",
        true,
    ),
    (
        "refresh once",
        "a refresh that is repeated at once is refused",
        false,
    ),
];

/// A server that does everything right but one thing.
struct Faulty {
    fault: &'static str,
    origin: String,
    refreshed: AtomicU32,
}

impl Faulty {
    async fn serve(fault: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Self {
            fault,
            origin: origin.clone(),
            refreshed: AtomicU32::new(0),
        });
        let routes = axum::Router::new().fallback(answer).with_state(state);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        format!("{origin}/mcp")
    }

    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn endpoint(&self, method: &Method, bearer: Option<&str>, body: &Value) -> Response {
        let origin = &self.origin;
        let place = if self.has("wrong place") {
            "/nowhere"
        } else {
            "/.well-known/oauth-protected-resource/mcp"
        };
        let challenge = match self.fault {
            "no challenge" if bearer.is_none_or(|token| token == "Bearer not-a-token") => {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            "no place" => "Bearer scope=\"mcp\"".to_owned(),
            "error at once" => format!(
                "Bearer error=\"invalid_token\", scope=\"mcp\", resource_metadata=\"{origin}{place}\""
            ),
            _ if bearer.is_some() => "Bearer error=\"invalid_token\"".to_owned(),
            _ => format!("Bearer scope=\"mcp\", resource_metadata=\"{origin}{place}\""),
        };
        let unauthorized =
            (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response();
        match (self.fault, bearer) {
            ("403", _) | ("bad token 403", Some("Bearer not-a-token")) => {
                StatusCode::FORBIDDEN.into_response()
            }
            ("404", _) => StatusCode::NOT_FOUND.into_response(),
            ("redirects", _) => {
                (StatusCode::PERMANENT_REDIRECT, [("location", "/elsewhere")]).into_response()
            }
            ("late", None) if body["method"] == "initialize" => StatusCode::OK.into_response(),
            ("GET 405", None) if method == Method::GET => {
                StatusCode::METHOD_NOT_ALLOWED.into_response()
            }
            (fault, Some("Bearer access")) if fault != "token refused" => json_answer(
                200,
                &json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
            ),
            _ => unauthorized,
        }
    }

    fn resource(&self) -> Response {
        let origin = &self.origin;
        let resource = match self.fault {
            "other resource" => "https://other.example/mcp".to_owned(),
            "resource above" => origin.clone(),
            _ => format!("{origin}/mcp"),
        };
        let servers = if self.has("no servers") {
            json!([])
        } else {
            json!([origin])
        };
        json_answer(
            200,
            &json!({"resource": resource, "authorization_servers": servers, "scopes_supported": ["mcp"]}),
        )
    }

    fn server(&self) -> Response {
        let origin = &self.origin;
        if self.has("no server document") {
            return StatusCode::NOT_FOUND.into_response();
        }
        let mut document = json!({
            "issuer": if self.has("issuer with slash") { format!("{origin}/") } else { origin.clone() },
            "authorization_endpoint": format!("{origin}/authorize"), "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"), "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true, "client_id_metadata_document_supported": true,
        });
        match self.fault {
            "no S256" => document["code_challenge_methods_supported"] = json!([]),
            "plain PKCE" => document["code_challenge_methods_supported"] = json!(["S256", "plain"]),
            "iss unsaid" => {
                document["authorization_response_iss_parameter_supported"] = json!(false);
            }
            "confidential" => {
                document["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"]);
            }
            "no registration" => {
                document["registration_endpoint"] = Value::Null;
                document["client_id_metadata_document_supported"] = Value::Null;
            }
            _ => {}
        }
        let mut answer = json_answer(200, &document);
        if !self.has("no CORS") {
            answer
                .headers_mut()
                .insert("access-control-allow-origin", "*".parse().unwrap());
        }
        answer
    }

    fn register(&self, asked: &Value) -> Response {
        let mut registered = asked.clone();
        registered["client_id"] = json!("registered");
        match self.fault {
            "registration refused" => json_answer(
                400,
                &json!({"error": "invalid_redirect_uri", "error_description": "no loopback"}),
            ),
            "registration 200" => json_answer(200, &registered),
            _ => json_answer(201, &registered),
        }
    }

    fn authorize(&self, query: &str) -> Response {
        let asked = |name: &str| {
            form_urlencoded::parse(query.as_bytes())
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        let redirect = asked("redirect_uri").unwrap();
        if !redirect.starts_with("http://127.0.0.1:") && !self.has("redirects anywhere") {
            return StatusCode::BAD_REQUEST.into_response();
        }
        if asked("code_challenge").is_none() && !self.has("no PKCE") {
            return StatusCode::BAD_REQUEST.into_response();
        }
        let iss = if self.has("other iss") {
            "https://other.example"
        } else {
            self.origin.as_str()
        };
        let state = if self.has("state") {
            "another".to_owned()
        } else {
            asked("state").unwrap()
        };
        let mut back = vec![("state", state.as_str())];
        match self.fault {
            "framed" => return "<!doctype html><form></form>".into_response(),
            "refuses" => return json_answer(400, &json!({"error": "invalid_scope"})),
            "denied" => back.push(("error", "access_denied")),
            _ => back.push(("code", "code")),
        }
        if !self.has("no iss") {
            back.push(("iss", iss));
        }
        let back = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(back)
            .finish();
        (
            StatusCode::FOUND,
            [("location", format!("{redirect}?{back}"))],
        )
            .into_response()
    }

    fn token(&self, body: &str) -> Response {
        let refreshes = body.contains("grant_type=refresh_token");
        let repeated = refreshes && self.refreshed.fetch_add(1, Ordering::SeqCst) > 0;
        let refused = match self.fault {
            "code refused" => !refreshes,
            "refresh refused" => refreshes,
            "refresh once" => repeated,
            _ => false,
        };
        if refused || body.contains("code=not-a-code") {
            return json_answer(400, &json!({"error": "invalid_grant"}));
        }
        let mut tokens = json!({"access_token": "access", "token_type": "Bearer", "expires_in": 60, "refresh_token": "refresh"});
        match self.fault {
            "no expiry" => _ = tokens.as_object_mut().unwrap().shift_remove("expires_in"),
            "no refresh" => {
                _ = tokens
                    .as_object_mut()
                    .unwrap()
                    .shift_remove("refresh_token");
            }
            _ => {}
        }
        let mut answer = json_answer(200, &tokens);
        if !self.has("cached") {
            answer
                .headers_mut()
                .insert("cache-control", "no-store".parse().unwrap());
        }
        answer
    }
}

fn json_answer(status: u16, value: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (
        status,
        [("content-type", "application/json")],
        value.to_string(),
    )
        .into_response()
}

async fn answer(State(server): State<Arc<Faulty>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let text = String::from_utf8_lossy(&body);
    let object: Value = serde_json::from_str(&text).unwrap_or_default();
    let bearer = head
        .headers
        .get("authorization")
        .map(|value| value.to_str().unwrap());
    match head.uri.path() {
        "/mcp" => server.endpoint(&head.method, bearer, &object),
        "/.well-known/oauth-protected-resource/mcp" | "/.well-known/oauth-protected-resource" => {
            server.resource()
        }
        "/.well-known/oauth-authorization-server" => server.server(),
        "/register" => server.register(&object),
        "/authorize" => server.authorize(head.uri.query().unwrap()),
        "/token" => server.token(&text),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn doctor(url: String, more: &'static [&'static str]) -> Outcome {
    let asked = move || Outcome::of(Command::new(TOOLGATE).arg("doctor").arg(url).args(more));
    tokio::task::spawn_blocking(asked).await.unwrap()
}

const NOTHING: &str = "Nothing that a client would stumble over.";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_server_has_nothing_to_stumble_over() {
    let gateway = local().await;
    let plainly: &[&str] = &[];
    for more in [plainly, &["--read-only"]] {
        let outcome = doctor(gateway.audience("/mcp"), more).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains(NOTHING), "{}", outcome.stdout);
    }
    let outcome = doctor(gateway.audience("/t/acme/mcp"), &["--json"]).await;
    for line in outcome.stdout.lines() {
        let finding: Value = serde_json::from_str(line).unwrap();
        assert!(
            ["ok", "note"].contains(&finding["level"].as_str().unwrap()),
            "{line}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_sign_in_is_walked_through_a_browser() {
    let gateway = local().await;
    let endpoint = gateway.audience("/mcp");
    let mut doctor = Process::start(
        "doctor",
        Command::new(TOOLGATE).args(["doctor", &endpoint, "--sign-in", "--patience", "60"]),
    );
    let line = doctor.output().line_with("response_type=code").await;
    let url = line.split_whitespace().last().unwrap();
    let browser = Browser::new();
    let page = browser.get(url).await;
    let page = browser.press(&page, "approve", &[]).await;
    let mut out = browser.sign_in(&page, "alice@acme.test").await;
    let endpoint = |page: &super::support::browser::Page| page.location().unwrap_or_default();
    if !endpoint(&out).starts_with("http://127.0.0.1:") {
        out = browser.press(&out, "approve", &[]).await;
    }
    let back = browser.get(&endpoint(&out)).await;
    assert!(back.body.contains("You can close this window"), "{back:?}");
    let status = doctor.wait(PATIENCE).expect("it ends");
    let said = doctor.output().tail(60);
    assert!(status.success() && said.contains(NOTHING), "{said}");
    for part in [
        "the token opens the endpoint",
        "the refresh token rotates",
        "a lost answer logs nobody out",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_fault_gets_no_finding_and_each_fault_is_named() {
    let sound = Faulty::serve("").await;
    let outcome = doctor(sound, &["--sign-in"]).await;
    assert!(
        outcome.code == Some(0) && outcome.stdout.contains(NOTHING),
        "{}",
        outcome.stdout
    );
    let mut missed = Vec::new();
    for (fault, words, keeps_out) in FAULTS {
        let url = Faulty::serve(fault).await;
        let more: &[&str] = if fault == "framed" {
            &[]
        } else {
            &["--sign-in", "--patience", "5"]
        };
        let outcome = doctor(url, more).await;
        let mark = if keeps_out { "FAIL" } else { "warn" };
        let named = outcome
            .stdout
            .lines()
            .any(|line| line.starts_with(mark) && line.contains(words));
        if !named || outcome.code != Some(i32::from(keeps_out)) {
            missed.push(format!(
                "{fault}: {:?}\n{}{}",
                outcome.code, outcome.stdout, outcome.stderr
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_server_or_no_url_is_said_so() {
    let nobody = doctor("http://127.0.0.1:9/mcp".to_owned(), &[]).await;
    assert_eq!(nobody.code, Some(1));
    assert!(
        nobody.stdout.contains("the endpoint cannot be asked"),
        "{}",
        nobody.stdout
    );
    let no_url = doctor("tools.example.com".to_owned(), &[]).await;
    assert_eq!(no_url.code, Some(1), "{}", no_url.stdout);
    let plain = doctor("http://tools.example.invalid/mcp".to_owned(), &[]).await;
    assert!(
        plain.stdout.contains("plain http away from this machine"),
        "{}",
        plain.stdout
    );
}

/// What the doctor has to say at the servers of the official suite's scenarios for
/// clients: all of them. Most take any request; what the scenario is about must be named
/// all the same.
const SCENARIOS: [(&str, &[&str]); 33] = [
    ("metadata-default", &[OPENED]),
    ("metadata-var1", &[OPENED, "no `resource_metadata`"]),
    ("metadata-var2", &[OPENED, "which is above"]),
    ("metadata-var3", &[OPENED]),
    ("basic-cimd", &[OPENED, "by document or dynamically"]),
    ("scope-from-www-authenticate", &[OPENED]),
    ("scope-from-scopes-supported", &[OPENED, "names no scope"]),
    ("scope-omitted-when-undefined", &[OPENED, "names no scope"]),
    ("scope-retry-limit", &[]),
    ("token-endpoint-auth-basic", &[OPENED]),
    ("token-endpoint-auth-post", &[OPENED]),
    ("token-endpoint-auth-none", &[OPENED]),
    ("pre-registration", &[OPENED, "no way to register"]),
    (
        "2025-03-26-oauth-metadata-backcompat",
        &[OPENED, "no protected resource metadata anywhere"],
    ),
    (
        "2025-03-26-oauth-endpoint-fallback",
        &[
            OPENED,
            "warn  server         no metadata of an authorization server: clients that still do as 2025-03-26",
        ],
    ),
    ("scope-step-up", &[OPENED]),
    ("authorization-server-migration", &[OPENED]),
    (
        "iss-unexpected",
        &["FAIL  authorize      `iss` is \"https://evil.example.com\""],
    ),
    (
        "client-credentials-basic",
        &[OPENED, "by client_secret_basic", "machines get tokens"],
    ),
    ("client-credentials-jwt", &[OPENED, "by private_key_jwt"]),
    (
        "enterprise-managed-authorization",
        &[OPENED, "assertions of an identity provider are taken"],
    ),
    (
        "wif-jwt-bearer",
        &[OPENED, "conformance-wif-workload, by none"],
    ),
    ("dpop", &["warn  challenge      a DPoP challenge"]),
    ("dpop-nonce", &["warn  challenge      a DPoP challenge"]),
    (
        "resource-mismatch",
        &["FAIL  resource       `resource` is \"https://evil.example.com/mcp\""],
    ),
    ("offline-access-scope", &[OPENED]),
    ("offline-access-not-supported", &[OPENED]),
    ("iss-supported", &[OPENED, "`iss` names the issuer"]),
    (
        "iss-not-advertised",
        &[OPENED, "`iss` in its answers is not advertised"],
    ),
    (
        "iss-supported-missing",
        &["FAIL  authorize      no `iss` in the answer, though the metadata promises it"],
    ),
    (
        "iss-wrong-issuer",
        &["FAIL  authorize      `iss` is \"https://evil.example.com\""],
    ),
    ("iss-normalized", &["FAIL  authorize      `iss` is"]),
    (
        "metadata-issuer-mismatch",
        &["FAIL  server         `issuer` is \"https://attacker.example.com\""],
    ),
];
const OPENED: &str = "ok    tools          the token ";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_of_the_official_suite_are_understood() {
    let mut missed = Vec::new();
    for (scenario, words) in SCENARIOS {
        let mut command = Command::new("timeout");
        command.arg("60").arg(real::node_program());
        command.arg(real::npm_file(
            "@modelcontextprotocol/conformance/dist/index.js",
        ));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/doctor.sh");
        command.args(["client", "--verbose", "--command", script, "--scenario"]);
        let folder = Folder::new();
        let said = folder.path().join("said");
        command
            .arg(format!("auth/{scenario}"))
            .env("TOOLGATE", TOOLGATE)
            .env("NODE", real::node_program())
            .env("SAID", &said);
        let outcome = tokio::task::spawn_blocking(move || Outcome::of(&mut command));
        // The suite itself dies of a bad token in some scenarios.
        let outcome = outcome.await.unwrap();
        let said = std::fs::read_to_string(&said).unwrap_or(outcome.stdout + &outcome.stderr);
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| {
                ["ok  ", "warn", "FAIL", "    "]
                    .iter()
                    .any(|mark| line.starts_with(mark))
            })
            .collect();
        let without: Vec<_> = words
            .iter()
            .filter(|words| !said.contains(**words))
            .collect();
        if !without.is_empty() || !said.contains("  challenge  ") {
            missed.push(format!(
                "{scenario} lacks {without:?}:\n{}",
                lines.join("\n")
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_is_walked_in_by_its_secret_its_key_and_an_assertion() {
    let folder = Folder::new();
    let own = SigningKey::generate(Algorithm::Es256).unwrap();
    let secret = folder.file("secret", "the machine's secret");
    let jwks = folder.file("jwks", &json!({"keys": [own.public_jwk()]}).to_string());
    let key = folder.file("key.pem", own.to_pem().expose());
    let wrong = folder.file("wrong", "another secret");
    let machine = |more: Value| {
        let mut machine = json!({"grants": ["client_credentials"], "tenant": "acme", "roles": ["support"], "scopes": ["mcp"]});
        super::support::config::merge(&mut machine, &more);
        machine
    };
    let clients = json!({"clients": {
        "nightly": machine(json!({"secret_file": secret})),
        "signer": machine(json!({"jwks_file": jwks})),
    }});
    let gateway = local_setup().await.yaml(&clients.to_string()).start().await;
    let endpoint = gateway.audience("/mcp");
    let walk = async |client: &str, more: &[&str]| {
        let mut command = Command::new(TOOLGATE);
        command.args(["doctor", &endpoint, "--machine", "--client-id", client]);
        command.args(more);
        tokio::task::spawn_blocking(move || Outcome::of(&mut command))
            .await
            .unwrap()
    };
    let path = |file: &std::path::Path| file.to_str().unwrap().to_owned();
    for (client, option, file) in [
        ("nightly", "--client-secret-file", path(&secret)),
        ("signer", "--client-key-file", path(&key)),
    ] {
        let outcome = walk(client, &[option, &file]).await;
        assert_eq!(outcome.code, Some(0), "{client}: {}", outcome.stdout);
        assert!(
            outcome.stdout.contains(OPENED) && outcome.stdout.contains(NOTHING),
            "{}",
            outcome.stdout
        );
    }
    let refused = walk("nightly", &["--client-secret-file", &path(&wrong)]).await;
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stdout.contains("no token: 401 (invalid_client"),
        "{}",
        refused.stdout
    );
    let bare = walk("nightly", &[]).await;
    assert!(
        bare.stdout.contains("a machine has to prove who it is"),
        "{}",
        bare.stdout
    );
    let no_key = walk("signer", &["--client-key-file", &path(&wrong)]).await;
    assert!(no_key.stdout.contains("holds no key"), "{}", no_key.stdout);
}
