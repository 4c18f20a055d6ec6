//! `toolgate quickstart` as a newcomer runs it: one command, then plain curl.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::sys::signal::Signal;

use super::support::browser::{Browser, VERIFIER};
use super::support::config::TOOLGATE;
use super::support::folder::Folder;
use super::support::process::{Process, free_port};
use super::support::{PATIENCE, Value, json};

/// A folder that the database's own account can pass through.
struct Place {
    _folder: Folder,
    data: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        Self {
            _folder: folder,
            data,
        }
    }
}

struct Quickstart {
    process: Process,
    url: String,
}

/// Runs the command and waits until it says that it runs.
async fn start(command: &mut Command, data: &Path) -> Quickstart {
    let port = free_port();
    let process = Process::start(
        "quickstart",
        command
            .arg("quickstart")
            .arg("--listen")
            .arg(format!("127.0.0.1:{port}"))
            .arg("--admin-listen")
            .arg(format!("127.0.0.1:{}", free_port()))
            .arg("--data-dir")
            .arg(data),
    );
    process.output().line_with("Toolgate is running").await;
    process.output().line_with("Stop with Ctrl-C").await;
    Quickstart {
        process,
        url: format!("http://127.0.0.1:{port}/mcp"),
    }
}

fn toolgate(args: &[&str]) -> Output {
    Command::new(TOOLGATE).args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn token(data: &Path, user: &str) -> String {
    let output = toolgate(&[
        "token",
        "--user",
        user,
        "--data-dir",
        data.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{output:?}");
    said(&output).trim().to_owned()
}

fn call(url: &str, token: &str, args: &[&str]) -> Output {
    let mut all = vec!["call"];
    all.extend_from_slice(args);
    all.extend_from_slice(&["--url", url, "--token", token]);
    toolgate(&all)
}

/// A request by curl: status, then headers and body as they came.
fn curl(url: &str, token: &str, headers: &[&str], body: &Value) -> (u16, String) {
    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--include",
        "--noproxy",
        "*",
        "--max-time",
        "30",
        url,
    ]);
    for header in headers {
        command.args(["-H", header]);
    }
    let bearer = format!("Authorization: Bearer {token}");
    command.args(["-H", &bearer, "-H", "Content-Type: application/json"]);
    command.args(["-H", "Accept: application/json, text/event-stream"]);
    let output = command.args(["-d", &body.to_string()]).output().unwrap();
    let text = said(&output);
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{output:?}")), text)
}

fn modern(url: &str, token: &str, name: &str, arguments: &Value) -> (u16, String) {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
    "name": name, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let name = format!("Mcp-Name: {name}");
    let headers = [
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        &name,
    ];
    curl(url, token, &headers, &body)
}

fn interrupted(quickstart: &mut Quickstart) {
    quickstart.process.signal(Signal::SIGINT);
    let status = quickstart.process.wait(PATIENCE).expect("it ends");
    assert!(
        status.success(),
        "{status}: {}",
        quickstart.process.output().tail(20)
    );
    // What it printed last may still be on its way to us.
    let until = std::time::Instant::now() + PATIENCE;
    while !quickstart
        .process
        .output()
        .contains("Stopped. The data stays in")
    {
        assert!(std::time::Instant::now() < until, "it says that it stopped");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story, or one table, read from top to bottom"
)]
async fn a_newcomer_gets_everything_from_one_command() {
    let place = Place::new();
    let mut running = start(&mut Command::new(TOOLGATE), &place.data).await;
    let url = running.url.clone();
    let alice = token(&place.data, "alice@acme.test");
    let admin = token(&place.data, "admin@acme.test");
    let bob = token(&place.data, "bob@globex.test");

    // Different tenants and roles see different tools.
    let list = |token: &str| said(&call(&url, token, &[]));
    let (of_alice, of_admin, of_bob) = (list(&alice), list(&admin), list(&bob));
    assert!(of_alice.contains("crm_find_customer") && !of_alice.contains("crm_delete_customer"));
    assert!(of_admin.contains("crm_delete_customer"));
    assert!(of_bob.contains("warehouse_find_shipment") && !of_bob.contains("crm_"));
    assert!(!of_bob.contains("warehouse_cancel_shipment"));
    let hidden = call(
        &url,
        &alice,
        &[
            "crm_delete_customer",
            "--args",
            r#"{"customer_id":"C-1004"}"#,
        ],
    );
    assert_eq!(hidden.status.code(), Some(2), "{hidden:?}");

    // A secret and hidden text are gone, in both forms of the answer.
    let maria = call(
        &url,
        &alice,
        &[
            "crm_find_customer",
            "--args",
            r#"{"query":"Maria"}"#,
            "--json",
        ],
    );
    let maria = said(&maria);
    assert!(
        maria.contains("[REDACTED:github_token]") && !maria.contains("ghp_"),
        "{maria}"
    );
    let (status, priya) = modern(
        &url,
        &alice,
        "crm_find_customer",
        &json!({"query": "C-1003"}),
    );
    assert_eq!(status, 200, "{priya}");
    assert!(
        !priya.contains('\u{e0049}') && !priya.contains("\\udb40"),
        "{priya}"
    );

    // Plain curl in the legacy era.
    let opening = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "curl", "version": "8"}}});
    let (status, opened) = curl(&url, &alice, &[], &opening);
    assert_eq!(status, 200, "{opened}");
    let session = opened
        .lines()
        .find(|line| line.to_lowercase().starts_with("mcp-session-id"));
    let session = session.unwrap().trim().to_owned();
    let headers = [session.as_str(), "MCP-Protocol-Version: 2025-11-25"];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(curl(&url, &alice, &headers, &ready).0, 202);
    let weather = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "crm_get_weather", "arguments": {"city": "Bern"}}});
    let (status, weather) = curl(&url, &alice, &headers, &weather);
    assert!(status == 200 && weather.contains("Bern: "), "{weather}");

    // A limit: five a minute, the sixth is refused. Somebody else is not.
    let echo = |token: &str, name: &str| modern(&url, token, name, &json!({"text": "hi"}));
    for _ in 0..5 {
        assert_eq!(echo(&alice, "crm_echo").0, 200);
    }
    let (status, limited) = echo(&alice, "crm_echo");
    assert_eq!(status, 429, "{limited}");
    assert!(
        limited.to_lowercase().contains("retry-after:") && limited.contains("1429"),
        "{limited}"
    );
    assert_eq!(echo(&bob, "warehouse_echo").0, 200);

    // No token is told where to get one.
    let nobody = Command::new("curl")
        .args(["--silent", "--include", "--noproxy", "*", &url])
        .output()
        .unwrap();
    assert!(said(&nobody).contains("resource_metadata="), "{nobody:?}");

    // All of it is on record.
    let config = place.data.join("toolgate.yaml");
    let search = |filters: &[&str]| {
        let mut args = vec![
            "audit",
            "search",
            "--json",
            "--config",
            config.to_str().unwrap(),
        ];
        args.extend_from_slice(filters);
        let output = toolgate(&args);
        assert!(output.status.success(), "{output:?}");
        said(&output)
    };
    assert_eq!(search(&["--outcome", "refused:limit"]).lines().count(), 1);
    assert_eq!(
        search(&["--outcome", "refused:visibility"]).lines().count(),
        1
    );
    assert!(search(&["--finding", "github_token"]).contains("alice@acme.test"));
    let before = search(&["--tenant", "acme"]).lines().count();
    assert!(before >= 9, "{before}");

    // Only we may read the keys.
    for name in ["issuer-key.pem", "keys"] {
        let mode = std::fs::metadata(place.data.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name} {mode:o}");
    }

    // A second one on the same folder is refused clearly, and harms nothing.
    let second = Command::new(TOOLGATE)
        .args([
            "quickstart",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(&place.data)
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    let why = String::from_utf8_lossy(&second.stderr);
    assert!(why.contains("in use by another running toolgate"), "{why}");
    let weather = modern(&url, &admin, "crm_get_weather", &json!({"city": "Bern"}));
    assert_eq!(weather.0, 200);
    assert_eq!(
        token_endpoint(&place.data),
        url,
        "the first one's configuration stays"
    );

    // Data and tokens outlive it, and a kill.
    interrupted(&mut running);
    let mut running = start(&mut Command::new(TOOLGATE), &place.data).await;
    assert!(search(&["--tenant", "acme"]).lines().count() > before);
    running.process.kill();
    let mut running = start(&mut Command::new(TOOLGATE), &place.data).await;
    assert!(search(&["--tenant", "acme"]).lines().count() > before);
    let alice = token(&place.data, "alice@acme.test");
    assert!(said(&call(&running.url, &alice, &[])).contains("crm_find_customer"));
    interrupted(&mut running);
}

/// The endpoint that tokens are made for, out of a token's `aud`.
fn token_endpoint(data: &Path) -> String {
    use base64::Engine as _;
    let token = token(data, "alice@acme.test");
    let claims = token.split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(claims)
        .unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["aud"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_ordinary_user_needs_no_more() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(&place.data).unwrap();
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    nix::unistd::chown(&place.data, Some(nobody.uid), Some(nobody.gid)).unwrap();
    let program = place.data.parent().unwrap().join("toolgate");
    std::fs::copy(TOOLGATE, &program).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "nobody", "--regid"])
        .arg(nobody.gid.to_string())
        .arg("--clear-groups")
        .arg(&program)
        .env("HOME", &place.data);
    let mut running = start(&mut command, &place.data).await;
    let alice = token(&place.data, "alice@acme.test");
    let found = call(
        &running.url,
        &alice,
        &["crm_find_customer", "--args", r#"{"query":"Maria"}"#],
    );
    assert!(
        said(&found).contains("[REDACTED:github_token]"),
        "{found:?}"
    );
    interrupted(&mut running);
}

#[test]
fn what_cannot_work_is_refused_with_advice() {
    for (args, why) in [
        (
            &["quickstart", "--listen", "0.0.0.0:8080"][..],
            "--listen must be a loopback address",
        ),
        (
            &[
                "token",
                "--user",
                "alice@acme.test",
                "--data-dir",
                "/nonexistent",
            ],
            "run `toolgate quickstart` first",
        ),
        (
            &["call", "x", "--token", "t", "--args", "[1]"],
            "--args must be a JSON object",
        ),
        (&["call", "x"], "--token-file"),
    ] {
        let output = toolgate(args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

#[tokio::test]
async fn a_newcomer_signs_in_with_what_is_printed() {
    let place = Place::new();
    let mut running = start(&mut Command::new(TOOLGATE), &place.data).await;
    let output = running.process.output();
    let users = output.line_with("Users (password: ").await;
    let password = users.split("password: ").nth(1).unwrap();
    let password = password.split(')').next().unwrap().to_owned();
    for client in [
        "codex mcp add toolgate --url",
        "claude mcp add --transport http toolgate",
        "gemini mcp add --transport http toolgate",
        "code --add-mcp",
        "~/.cursor/mcp.json",
    ] {
        let line = output.line_with(client).await;
        assert!(line.contains(&running.url), "{line}");
    }
    // As Codex does it: registers itself, opens a browser, exchanges the code.
    let base = running.url.trim_end_matches("/mcp").to_owned();
    let http = super::support::server::http_client();
    let redirect = "http://127.0.0.1:1/callback";
    let body = json!({"client_name": "Codex", "redirect_uris": [redirect],
        "token_endpoint_auth_method": "none"});
    let registered = http
        .post(format!("{base}/oauth/register"))
        .header("content-type", "application/json")
        .body(body.to_string())
        .send();
    let registered: Value =
        serde_json::from_str(&registered.await.unwrap().text().await.unwrap()).unwrap();
    let id = registered["client_id"].as_str().unwrap();
    let query = format!(
        "response_type=code&client_id={id}&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback&state=s\
         &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
    );
    let browser = Browser::new();
    let page = browser
        .get(&format!("{base}/oauth/authorize?{query}"))
        .await;
    let page = browser.press(&page, "approve", &[]).await;
    let given = [("username", "alice@acme.test"), ("password", &*password)];
    let out = browser.press(&page, "", &given).await;
    let code = out.sent("code").unwrap_or_else(|| panic!("{out:?}"));
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", &*code),
        ("client_id", id),
        ("redirect_uri", redirect),
        ("code_verifier", VERIFIER),
    ];
    let answer = browser
        .post_with(&format!("{base}/oauth/token"), &fields, &[])
        .await;
    let tokens: Value = serde_json::from_str(&answer.body).unwrap();
    let alice = tokens["access_token"].as_str().unwrap();
    let tools = said(&call(&running.url, alice, &[]));
    assert!(tools.contains("crm_find_customer"), "{tools}");
    interrupted(&mut running);
}
