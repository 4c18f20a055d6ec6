//! The pages in a real browser (Debian's chromium): mouse, keyboard alone, light and
//! dark, phone width, axe. Screenshots go to `target/pages`.

use std::path::Path;
use std::process::{Command, Stdio};

use super::continuation;
use super::support::asking::able;
use super::support::browser::Ask;
use super::support::process::free_port;
use super::support::sign_in::{PASSWORD, local_setup};
use super::support::{Era, Gateway, json, real};

/// Runs the script; gives its verdict.
async fn in_browser(gateway: &Gateway, plan: &serde_json::Value) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules = real::npm_file("axe-core/axe.min.js");
    let modules = modules.parent().unwrap().parent().unwrap();
    let plan = gateway.folder().file("plan.json", &plan.to_string());
    let mut command = Command::new("timeout");
    command
        .arg("240")
        .arg(real::node_program())
        .arg(root.join("tests/clients/browser.mjs"))
        .arg(plan)
        .env("CLIENT_MODULES", modules)
        .env("HOME", gateway.folder().path())
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", said(&output.stdout), said(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_work_in_a_real_browser() {
    let server = continuation::server(Era::Modern);
    let admins = json!({"admins": [
        {"provider": "users", "claim": "email", "value": "alice@acme.test", "role": "admin", "tenant": "acme"},
    ]});
    let setup = local_setup().await.yaml(&admins.to_string());
    let gateway = setup.upstream("billing", server.config()).start().await;
    let alice = continuation::alice(&gateway).await;
    let mut session = alice.able(Era::Modern, able()).await;
    let onward = continuation::asked(session.call("visit", json!({})).await.result());
    gateway.database().psql("DELETE FROM oauth_grants");
    let redirect = format!("http://127.0.0.1:{}/callback", free_port());
    let ask = Ask::new(&gateway, "desk", &redirect).with("scope", "mcp echo.use");
    let shots = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/pages");
    let plan = json!({
        "authorize": ask.url(), "account": format!("{}/account", gateway.url()), "onward": onward,
        "unknown": Ask::new(&gateway, "nobody", &redirect).url(), "redirect": redirect,
        "user": "alice@acme.test", "password": PASSWORD, "shots": shots,
    });
    let verdict = in_browser(&gateway, &plan).await;
    assert!(verdict.starts_with("PASS "), "{verdict}");
}
