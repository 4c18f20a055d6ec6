//! Real clients, headless, from nothing to a tool call through our own authorization
//! server. A script goes through the pages as a person would (`tests/clients/person.mjs`).
//!
//! Claude Code calls tools for a model alone: it signs in, connects and lists.
//! Gemini CLI is not among them: it signs in from inside its own terminal interface alone,
//! and what could be driven instead (the OAuth class of its core, 376 MB) calls no tool
//! without a model. What it does otherwise than all others (a HEAD first, `iss` without
//! fail) is in `answers` and `oauth_authorize`.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::support::config::TOOLGATE;
use super::support::folder::Folder;
use super::support::oauth::Documents;
use super::support::process::{Process, free_port};
use super::support::sign_in::{PASSWORD, users};
use super::support::{Gateway, Helper, PATIENCE, Setup, Value, json, real};

const CLIENTS: [&str; 9] = [
    "codex",
    "claude",
    "mcp-remote",
    "inspector",
    "ts-sdk-v1",
    "ts-client-v2",
    "python",
    "fastmcp",
    "rmcp",
];
const SECRET: &str = "the secret: of/the client";
/// Where their documents are on the internet.
const OF_CODEX: &str = "https://chatgpt.com/oauth/codex/client.json";
const OF_CLAUDE: &str = "https://claude.ai/oauth/claude-code-client-metadata";
/// Where both notations of this computer lead back to.
const BACK: [&str; 3] = [
    "http://127.0.0.1/callback",
    "http://localhost/callback",
    "http://localhost/oauth/callback",
];

async fn server(over: &Value) -> Gateway {
    let base = json!({
        "authorization_server": { "enabled": true },
        "outgoing": { "allow_networks": ["127.0.0.0/8"] },
    });
    Setup::new()
        .yaml(&base.to_string())
        .yaml(&users().to_string())
        .yaml(&over.to_string())
        .over("up", Helper::everything().await)
        .start()
        .await
}

/// Signs alice in with each client. `expected` is how the id begins that gets a grant.
async fn all_sign_in(
    gateway: &Gateway,
    way: &str,
    expected: impl Fn(&str) -> &'static str,
    environment: &[(&str, &str)],
) {
    // The Inspector listens on one fixed port: one round of clients at a time.
    static ROUND: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let mut failed = Vec::new();
    let _round = ROUND.lock().await;
    for client in CLIENTS {
        let before = grants(gateway);
        let folder = Folder::new();
        let log = folder.path().join("person");
        let person = [
            ("PERSON", "alice@acme.test"),
            ("PASSWORD", PASSWORD),
            ("PERSON_LOG", log.to_str().unwrap()),
        ];
        let environment: Vec<_> = person.iter().chain(environment).copied().collect();
        let verdict = real::sign_in(client, &gateway.audience("/mcp"), way, &environment).await;
        eprintln!("{verdict}");
        let new: Vec<String> = grants(gateway)
            .into_iter()
            .filter(|grant| !before.contains(grant))
            .collect();
        let as_it_should = new.iter().any(|grant| {
            grant
                .split(' ')
                .nth(1)
                .unwrap()
                .starts_with(expected(client))
        });
        // One click and the password: no page of ours but these two.
        let seen = std::fs::read_to_string(&log).unwrap_or_default();
        let pages: Vec<&str> = seen.lines().collect();
        let usual = matches!(pages[..], [consent, sign_in, back]
            if consent.starts_with("200 Allow ") && sign_in == "200 Sign in"
                && back.contains(" at the app with "));
        // The Inspector opens a browser for its list and for its call, side by side; of
        // two that come back to its one port, one may find it gone.
        let ours = ["200 Allow ", "200 Sign in"];
        let only_usual = pages
            .iter()
            .filter(|page| page.starts_with("200 ") && !page.contains(" at the app with "))
            .all(|page| ours.iter().any(|start| page.starts_with(start)));
        let usual = usual || (*client == *"inspector" && only_usual);
        if !verdict.starts_with("PASS ") || !as_it_should || !usual {
            failed.push(format!("{verdict}\n  granted: {new:?}\n  seen: {pages:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Each grant with its client and its last use.
fn grants(gateway: &Gateway) -> Vec<String> {
    let rows = gateway.database().psql(
        "SELECT grant_id || ' ' || client_id || ' ' || used_at || ' ' || created_at FROM oauth_grants",
    );
    rows.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_clients_register_sign_in_and_call_a_tool() {
    let no_documents =
        json!({"authorization_server": {"registration": {"metadata_documents": false}}});
    let gateway = server(&no_documents).await;
    all_sign_in(&gateway, "registered", |_| "dyn-", &[]).await;
    let names = gateway
        .database()
        .psql("SELECT string_agg(DISTINCT client_name, ', ') FROM oauth_grants");
    for name in ["Codex", "Claude Code (toolgate)", "MCP Inspector"] {
        assert!(names.contains(name), "{name} among {names}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_clients_that_are_known_beforehand_sign_in_and_call_a_tool() {
    let gateway = server(&json!({"clients": {"public": {"redirect_uris": BACK}}})).await;
    let known = [("CLIENT_ID", "public"), ("CALLBACK_PORT", &*real::port())];
    all_sign_in(&gateway, "known", |_| "public", &known).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_clients_with_a_secret_sign_in_and_call_a_tool() {
    let folder = Folder::new();
    let file = folder.file("secret", SECRET);
    let gateway = server(&json!({"clients": {
        "confidential": {"redirect_uris": BACK, "secret_file": file},
    }}))
    .await;
    let known = [
        ("CLIENT_ID", "confidential"),
        ("CLIENT_SECRET", SECRET),
        ("CALLBACK_PORT", &*real::port()),
    ];
    all_sign_in(&gateway, "known", |_| "confidential", &known).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_clients_with_metadata_documents_sign_in_and_call_a_tool() {
    let documents =
        Documents::for_hosts(&["chatgpt.com", "claude.ai", super::support::oauth::HOST]).await;
    let document = |path: &str, id: &str, name: &str| {
        let document = json!({
            "client_id": id, "client_name": name, "redirect_uris": BACK,
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        documents.put(path, &document.to_string())
    };
    document("/oauth/codex/client.json", OF_CODEX, "Codex");
    document(
        "/oauth/claude-code-client-metadata",
        OF_CLAUDE,
        "Claude Code",
    );
    let app = format!("https://{}/app", super::support::oauth::HOST);
    document("/app", &app, "An app");
    let gateway = server(&documents.config()).await;
    let given = [
        ("CLIENT_DOCUMENT", &*app),
        ("CALLBACK_PORT", &*real::port()),
    ];
    let id = |client: &str| match client {
        "codex" => OF_CODEX,
        "claude" => OF_CLAUDE,
        _ => "https://app.example.invalid/app",
    };
    all_sign_in(&gateway, "document", id, &given).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_learns_that_the_person_said_no() {
    let gateway = server(&json!({})).await;
    let environment = [
        ("PERSON", "alice@acme.test"),
        ("PASSWORD", PASSWORD),
        ("DECISION", "deny"),
    ];
    let endpoint = gateway.audience("/mcp");
    let verdict = real::sign_in("codex", &endpoint, "registered", &environment).await;
    assert!(verdict.starts_with("FAIL codex"), "{verdict}");
    assert!(verdict.contains("access_denied"), "{verdict}");
    assert!(grants(&gateway).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_quickstart_prints_for_codex_and_claude_code_works_as_it_stands() {
    let folder = Folder::new();
    // The database's own account passes through.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let address = |port: u16| format!("127.0.0.1:{port}");
    let mut quickstart = Process::start(
        "quickstart",
        Command::new(TOOLGATE)
            .args(["quickstart", "--listen", &address(free_port())])
            .args(["--admin-listen", &address(free_port()), "--data-dir"])
            .arg(folder.path().join("data")),
    );
    quickstart.output().line_with("Stop with Ctrl-C").await;
    let printed = quickstart.output().lines();
    let after = |mark: &str| {
        let line = printed.iter().find_map(|line| line.split(mark).nth(1));
        line.unwrap_or_else(|| panic!("{mark} in {printed:?}"))
            .trim()
            .to_owned()
    };
    let password = after("Users (password:").replace("):", "");
    let endpoint = after("Toolgate is running:");
    let endpoint = endpoint.split(' ').next().unwrap();
    let mut failed = Vec::new();
    for (client, mark) in [("codex", "  Codex  "), ("claude", "  Claude Code  ")] {
        let log = folder.path().join(client);
        let line = after(mark);
        let environment = [
            ("LINE", &*line),
            ("PERSON", "alice@acme.test"),
            ("PASSWORD", &password),
            ("PERSON_LOG", log.to_str().unwrap()),
            ("TOOL", "crm_find_customer"),
            ("TOOL_ARGS", r#"{"query":"Maria"}"#),
            ("EXPECT", "Maria"),
        ];
        let verdict = real::sign_in(client, endpoint, "pasted", &environment).await;
        let seen = std::fs::read_to_string(&log).unwrap_or_default();
        eprintln!("{line}: {verdict}");
        if !verdict.starts_with("PASS ") || seen.lines().count() != 3 {
            failed.push(format!("{line}: {verdict}\n{seen}"));
        }
    }
    quickstart.end(PATIENCE);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
