//! The official suite's authorization-server scenarios: it prints an address, the
//! test opens it as a person would, and the suite judges what comes of it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::support::browser::Browser;
use super::support::oauth::{body, register, text};
use super::support::process::free_port;
use super::support::sign_in::local_setup;
use super::support::{Gateway, json, real};

/// What the suite said of a run, without colours.
async fn suite(gateway: &Gateway, client: &[&str], port: u16, resource: &str) -> String {
    let mut command = Command::new("timeout");
    command
        .arg("120")
        .arg(real::node_program())
        .arg(real::npm_file(
            "@modelcontextprotocol/conformance/dist/index.js",
        ))
        .args(["authorization", "--url", &gateway.audience("")])
        .args(["--port", &port.to_string(), "--resource", resource])
        .args(client)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel::<String>();
    let outputs: [Box<dyn std::io::Read + Send>; 2] = [
        Box::new(child.stdout.take().unwrap()),
        Box::new(child.stderr.take().unwrap()),
    ];
    for output in outputs {
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
    }
    drop(sender);
    let address = regex::Regex::new(r"https?://\S*response_type=code\S*").unwrap();
    let colour = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    let mut printed = String::new();
    let mut opened = false;
    while let Some(line) = lines.recv().await {
        let line = colour.replace_all(&line, "").into_owned();
        if let Some(found) = address.find(&line).filter(|_| !opened) {
            opened = true;
            approve(found.as_str(), port).await;
        }
        printed += &line;
        printed.push('\n');
    }
    tokio::task::spawn_blocking(move || child.wait())
        .await
        .unwrap()
        .unwrap();
    printed
}

/// Approves, signs in, and takes the answer back to the suite.
async fn approve(address: &str, port: u16) {
    let browser = Browser::new();
    let page = browser.get(address).await;
    let page = browser.press(&page, "approve", &[]).await;
    let out = browser.sign_in(&page, "alice@acme.test").await;
    let back = out.location().unwrap_or_else(|| panic!("{out:?}"));
    assert!(
        back.starts_with(&format!("http://127.0.0.1:{port}/callback?")),
        "{back}"
    );
    browser.get(&back).await;
}

fn passes(printed: &str) {
    for scenario in [
        "authorization-server-metadata-endpoint",
        "authorization-code-grant",
    ] {
        let line = format!(r"(?m)^✓\s+{scenario}: [1-9]\d* passed, 0 failed");
        let passed = regex::Regex::new(&line).unwrap().is_match(printed);
        assert!(passed, "{scenario}: {printed}");
    }
    for word in ["WARNING", "SKIPPED", "FAILURE"] {
        assert!(!printed.contains(word), "{word}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_authorization_server_scenarios_pass_for_a_registered_public_client() {
    let gateway = local_setup().await.start().await;
    let port = free_port();
    let metadata = json!({
        "client_name": "conformance", "redirect_uris": [format!("http://127.0.0.1:{port}/callback")],
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "token_endpoint_auth_method": "none", "application_type": "native",
    });
    let client = body(&register(&gateway, &metadata).await);
    let id = ["--client-id", text(&client, "client_id")];
    passes(&suite(&gateway, &id, port, &gateway.audience("/mcp")).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_authorization_server_scenarios_pass_for_a_known_client_and_a_tenants_endpoint() {
    // With a secret the suite cannot be run here: it prefers `none` wherever a server
    // has that for public clients, and a client with a secret has to prove itself.
    let gateway = local_setup().await.start().await;
    let id = ["--client-id", "desk"];
    passes(&suite(&gateway, &id, free_port(), &gateway.audience("/t/acme/mcp")).await);
}
