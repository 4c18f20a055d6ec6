//! The image and the one-command deployment, as far as no container engine is needed:
//! what is written is held against its schemas and rules, and what would run in the
//! containers is run on this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::support::browser::{Ask, Browser};
use super::support::config::{self, TOOLGATE, yaml};
use super::support::folder::Folder;
use super::support::oauth::exchange;
use super::support::postgres::OwnPostgres;
use super::support::process::{Outcome, Process, free_port, run};
use super::support::sign_in::LOOPBACK;
use super::support::{Value, eventually, json, real};

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn image_compose_file_and_what_it_mounts_keep_to_their_rules() {
    let outcome = Outcome::of(
        Command::new(real::python())
            .arg(project().join("tests/packaging/check.py"))
            .arg(project())
            .arg(real::promtool()),
    );
    let lines: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6, "{outcome:?}");
    for line in &lines {
        assert_eq!(line["faults"], json!([]), "{line}");
    }
}

/// The secrets that the deployment's `init` makes, in a folder of this machine.
fn init(folder: &Folder) -> String {
    run(Command::new("sh")
        .arg(project().join("deploy/compose/init.sh"))
        .env("SECRETS", folder.path().join("secrets")))
}

fn secret(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path().join("secrets").join(name)).unwrap()
}

/// The deployment's own configuration, at places of this machine.
fn configuration(folder: &Folder, over: &Value) -> String {
    let secrets = folder.path().join("secrets").display().to_string();
    let text = fs::read_to_string(project().join("deploy/compose/toolgate.yaml")).unwrap();
    let text = text
        .replace("/run/secrets/", &format!("{secrets}/"))
        .replace("/usr/bin/toolgate", TOOLGATE);
    let mut config = yaml(&text);
    config::merge(&mut config, over);
    config.to_string()
}

#[test]
fn secrets_are_made_once_and_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let said = init(&folder);
    let first = secret(&folder, "toolgate/keys");
    assert!(
        first.len() == 64 && said.contains(&secret(&folder, "idp/password")),
        "{said}"
    );
    assert!(!said.contains(&first) && !said.contains(&secret(&folder, "postgres/toolgate")));
    init(&folder);
    assert_eq!(secret(&folder, "toolgate/keys"), first);
    let mode = |name: &str| {
        fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode("secrets/toolgate"), mode("secrets/toolgate/keys")),
        (0o700, 0o600)
    );
    let checked = folder.file("toolgate.yaml", &configuration(&folder, &json!({})));
    let outcome = Outcome::of(
        Command::new(TOOLGATE)
            .args(["check", "--config"])
            .arg(checked),
    );
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

/// What the containers of the deployment run: the database's first start, the sample
/// identity provider, `migrate`, the service; then a person signs in and calls a tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_command_deployment_signs_a_person_in_and_calls_a_tool() {
    let (folder, postgres) = (Folder::new(), OwnPostgres::start());
    init(&folder);
    let (port, idp_port) = (free_port(), free_port());
    let url = first_start(&folder, &postgres);
    fs::write(folder.path().join("secrets/toolgate/database"), url).unwrap();
    let issuer = format!("http://127.0.0.1:{idp_port}");
    let _idp = identity_provider(&folder, &issuer, idp_port, port).await;
    let over = json!({
        "server": {
            "listen": format!("127.0.0.1:{port}"), "admin_listen": format!("127.0.0.1:{}", free_port()),
            "public_url": format!("http://127.0.0.1:{port}"),
        },
        "identity_providers": { "company": { "issuer": issuer } },
        "telemetry": { "otlp_endpoint": null },
    });
    let file = folder.file("toolgate.yaml", &configuration(&folder, &over));
    run(Command::new(TOOLGATE)
        .args(["migrate", "--config"])
        .arg(&file));
    let toolgate = Process::start(
        "toolgate",
        Command::new(TOOLGATE)
            .args(["serve", "--config"])
            .arg(&file),
    );
    eventually("the service to be ready", async || {
        let outcome = Outcome::of(
            Command::new(TOOLGATE)
                .args(["ready", "--config"])
                .arg(&file),
        );
        let log = toolgate.output();
        assert!(!log.contains("Stopped."), "{outcome:?} {}", log.tail(40));
        (outcome.code == Some(0)).then_some(())
    })
    .await;
    let base = format!("http://127.0.0.1:{port}");
    let token = signed_in(&base, &secret(&folder, "idp/password")).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "crm_find_customer", "arguments": {"query": "Maria"},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}},
    }});
    let client = super::support::server::http_client();
    let asked = client
        .post(format!("{base}/mcp"))
        .bearer_auth(&token)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "crm_find_customer")
        .body(body.to_string());
    let answer = asked.send().await.unwrap().text().await.unwrap();
    assert!(
        answer.contains("Maria Lindqvist") && answer.contains("[REDACTED:email]"),
        "{answer}"
    );
}

/// What the database's container runs once; gives the service's connection string.
fn first_start(folder: &Folder, postgres: &OwnPostgres) -> String {
    let script = fs::read_to_string(project().join("deploy/compose/postgres/init.sh")).unwrap();
    // The cluster of the tests has a role of that name.
    let script = script
        .replace(
            "/run/secrets/postgres",
            &folder.path().join("secrets/postgres").display().to_string(),
        )
        .replace("CREATE ROLE toolgate ", "CREATE ROLE compose ")
        .replace("DATABASE toolgate", "DATABASE compose")
        .replace("OWNER toolgate", "OWNER compose");
    let file = folder.file("first-start.sh", &script);
    let direct = postgres.url("postgres");
    let port = direct
        .rsplit(':')
        .next()
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    run(Command::new("sh")
        .arg(file)
        .env("POSTGRES_USER", "postgres")
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", port));
    let password = secret(folder, "postgres/toolgate");
    format!("postgres://compose:{password}@127.0.0.1:{port}/compose")
}

async fn identity_provider(folder: &Folder, issuer: &str, port: u16, gateway: u16) -> Process {
    let modules = real::npm_file("oidc-provider/package.json");
    let modules = modules.parent().unwrap().parent().unwrap();
    let place = folder.path().join("idp");
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::symlink(modules, place.join("node_modules")).unwrap();
    for name in ["server.mjs", "package.json"] {
        fs::copy(
            project().join("deploy/compose/idp").join(name),
            place.join(name),
        )
        .unwrap();
    }
    let mut command = Command::new(real::node_program());
    command
        .arg(place.join("server.mjs"))
        .env("ISSUER", issuer)
        .env("PORT", port.to_string())
        .env("SECRETS", folder.path().join("secrets/idp"))
        .env(
            "REDIRECT_URI",
            format!("http://127.0.0.1:{gateway}/oauth/callback"),
        );
    let process = Process::start("idp", &mut command);
    let _ = process.output().line_with("listening on").await;
    process
}

/// Registers an app, goes through consent and the provider's page; gives an access token.
async fn signed_in(base: &str, password: &str) -> String {
    let metadata = json!({"client_name": "An app", "redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "none"});
    let client = super::support::server::http_client();
    let registered = client
        .post(format!("{base}/oauth/register"))
        .header("content-type", "application/json")
        .body(metadata.to_string());
    let registered: Value = registered.send().await.unwrap().json().await.unwrap();
    let id = registered["client_id"].as_str().unwrap();
    let browser = Browser::new();
    let page = browser.approve(&Ask::at(base, id, LOOPBACK)).await;
    let page = browser.follow(page, LOOPBACK).await;
    let given = [("login", "alice"), ("password", "wrong")];
    let page = browser.press(&page, "", &given).await;
    assert!(
        page.body.contains("That name or password is wrong"),
        "{page:?}"
    );
    let page = browser
        .press(&page, "", &[("login", "alice"), ("password", password)])
        .await;
    let page = browser.follow(page, LOOPBACK).await;
    let code = page
        .sent("code")
        .unwrap_or_else(|| panic!("no code: {page:?}"));
    let url = format!("{base}/oauth/token");
    let page = browser.post_with(&url, &exchange(id, &code), &[]).await;
    let tokens: Value = serde_json::from_str(&page.body).unwrap();
    tokens["access_token"]
        .as_str()
        .unwrap_or_else(|| panic!("{page:?}"))
        .to_owned()
}
