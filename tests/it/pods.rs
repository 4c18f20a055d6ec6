//! Two pods of one release, run from what the chart renders (C34): one Secret with the
//! keys, a root that cannot be written, a user id without an account. What one pod gave
//! out is good at the other and after a roll-out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::chart::{config_of, container, manifest, mounts};
use super::support::browser::{Ask, Browser, Page};
use super::support::config::{self, TOOLGATE, migrate, yaml};
use super::support::folder::Folder;
use super::support::login_idp::LoginIdp;
use super::support::oauth::exchange;
use super::support::postgres::{self, Database};
use super::support::process::{Outcome, Process, free_port};
use super::support::sign_in::LOOPBACK;
use super::support::{Value, eventually, json};

/// The value set with sign-in.
const SET: &str = "sign-in";

/// A release: what its pods share.
struct Release {
    folder: Folder,
    database: Database,
    idp: LoginIdp,
    /// What clients call it: the first pod's address stands for the load balancer's.
    public: u16,
    secrets: BTreeMap<String, PathBuf>,
}

/// A running pod.
struct Pod {
    process: Process,
    url: String,
}

impl Release {
    async fn install() -> Self {
        let folder = Folder::new();
        let database = postgres::shared().database();
        migrate(&folder.path().join("migrate.yaml"), &database.url());
        let idp = LoginIdp::serve().await;
        // The Secrets are made once, as an operator makes them.
        let secrets = mounts(
            &pod_spec(),
            &folder.path().join("secrets"),
            "",
            &database.url(),
        );
        Self {
            folder,
            database,
            idp,
            public: free_port(),
            secrets,
        }
    }

    /// What the `ConfigMap` has, at addresses of this machine.
    fn config(&self, listen: u16, admin: u16) -> Value {
        let mut config = yaml(&config_of(SET));
        let over = json!({
            "server": {
                "listen": format!("127.0.0.1:{listen}"), "admin_listen": format!("127.0.0.1:{admin}"),
                "public_url": format!("http://127.0.0.1:{}", self.public), "drain_delay": "50ms",
            },
            "redis": null,
            "identity_providers": { "company": { "issuer": self.idp.issuer() } },
            "outgoing": { "allow_networks": ["127.0.0.0/8"] },
        });
        config::merge(&mut config, &over);
        config
    }

    /// Runs the rendered pod with the release's Secrets.
    async fn pod(&self, name: &str, listen: u16) -> Pod {
        let admin = free_port();
        let volumes = self.folder.path().join(format!("volumes-{name}-{admin}"));
        let text = self.config(listen, admin).to_string();
        let mut mounted = mounts(&pod_spec(), &volumes, &text, &self.database.url());
        for (place, files) in &self.secrets {
            if place.starts_with("/run/secrets/") {
                mounted.insert(place.clone(), files.clone());
            }
        }
        let script = container(&volumes.join("root"), &mounted);
        let args = pod_spec()["containers"][0]["args"].clone();
        let args = args
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| arg.as_str().unwrap());
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", &script, "pod"])
            .args(args);
        let process = Process::start("toolgate", &mut command);
        let ready = format!("http://127.0.0.1:{admin}/readyz");
        eventually(&format!("{name} to be ready"), async || {
            let answer = reqwest::get(&ready).await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
        Pod {
            process,
            url: format!("http://127.0.0.1:{listen}"),
        }
    }
}

fn pod_spec() -> Value {
    manifest(SET, "deployment-toolgate")["spec"]["template"]["spec"].clone()
}

impl Pod {
    /// The end that a roll-out brings.
    fn end(mut self) {
        self.process.signal(Signal::SIGTERM);
        let ended = self.process.wait(Duration::from_secs(20)).unwrap();
        assert!(ended.success(), "{ended:?}");
    }

    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let url = format!("{}{path}", self.url);
        Browser::new().post_with(&url, fields, &[]).await
    }

    /// The status of a list of tools with a token.
    async fn status(&self, token: &str) -> u16 {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "pods", "version": "1"},
        }});
        let client = super::support::server::http_client();
        let asked = client
            .post(format!("{}/mcp", self.url))
            .bearer_auth(token)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.to_string());
        asked.send().await.unwrap().status().as_u16()
    }

    /// Whether a browser's cookies count here.
    async fn knows(&self, browser: &Browser) -> bool {
        browser.get(&format!("{}/account", self.url)).await.status == 200
    }

    async fn key_ids(&self) -> Vec<String> {
        let page = Browser::new()
            .get(&format!("{}/oauth/jwks", self.url))
            .await;
        let keys: Value = serde_json::from_str(&page.body).unwrap();
        let ids = keys["keys"].as_array().unwrap().iter();
        ids.map(|key| key["kid"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn tokens(page: &Page) -> (String, String) {
    let answer: Value = serde_json::from_str(&page.body).unwrap();
    let text = |name: &str| {
        answer[name]
            .as_str()
            .unwrap_or_else(|| panic!("{page:?}"))
            .to_owned()
    };
    (text("access_token"), text("refresh_token"))
}

/// C34
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_pod_gives_out_is_good_at_the_other_and_after_a_roll_out() {
    let release = Release::install().await;
    let second = free_port();
    let a = release.pod("a", release.public).await;
    let b = release.pod("b", second).await;
    // The consent at one pod, the way back from the provider at the other one.
    let browser = Browser::new();
    let ask = Ask::at(&a.url, "desk", LOOPBACK);
    let mut page = browser.approve(&ask).await;
    while let Some(to) = page.location().filter(|to| !to.starts_with(LOOPBACK)) {
        page = browser.get(&to.replace(&a.url, &b.url)).await;
    }
    let code = page
        .sent("code")
        .unwrap_or_else(|| panic!("no code: {page:?}"));
    // Exchanged at the first, used and refreshed at the second.
    let (access, refresh) = tokens(&a.post("/oauth/token", &exchange("desk", &code)).await);
    assert_eq!(
        (a.status(&access).await, b.status(&access).await),
        (200, 200)
    );
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &*refresh),
        ("client_id", "desk"),
    ];
    let (second_access, second_refresh) = tokens(&b.post("/oauth/token", &fields).await);
    assert!(a.knows(&browser).await && b.knows(&browser).await);
    assert_eq!(a.key_ids().await, b.key_ids().await);
    // A roll-out: pods that have never seen any of it, over the same Secrets.
    a.end();
    let a = release.pod("a", release.public).await;
    b.end();
    let b = release.pod("b", second).await;
    for pod in [&a, &b] {
        assert_eq!(pod.status(&second_access).await, 200);
        assert!(pod.knows(&browser).await);
    }
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &*second_refresh),
        ("client_id", "desk"),
    ];
    let (third, _) = tokens(&a.post("/oauth/token", &fields).await);
    assert_eq!(b.status(&third).await, 200);
    // A rotation of the signing keys leaves tokens of the old one good, at both.
    let before = a.key_ids().await;
    rotate(&release);
    eventually(
        "both to publish the next key beside the old one",
        async || {
            // Whoever asks without a pause is limited by address.
            tokio::time::sleep(Duration::from_millis(250)).await;
            let (at_a, at_b) = (a.key_ids().await, b.key_ids().await);
            let grown = at_a.len() == before.len() + 1 && at_a == at_b;
            (grown && before.iter().all(|kid| at_a.contains(kid))).then_some(())
        },
    )
    .await;
    assert_eq!((a.status(&third).await, b.status(&third).await), (200, 200));
    a.end();
    b.end();
}

/// As an operator does, with the files of the release.
fn rotate(release: &Release) {
    let mut config = release.config(release.public, free_port());
    let file = |place: &str, name: &str| release.secrets[place].join(name);
    let over = json!({
        "keys_file": file("/run/secrets/toolgate-keys", "keys"),
        "database": { "url_file": file("/run/secrets/toolgate-database", "url") },
        "identity_providers": { "company": { "login": { "client_secret_file": file("/run/secrets/idp", "client-secret") } } },
    });
    config::merge(&mut config, &over);
    let file = release.folder.file("operator.yaml", &config.to_string());
    let outcome = Outcome::of(
        Command::new(TOOLGATE)
            .args(["keys", "rotate", "--config"])
            .arg(file),
    );
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

/// C34: a pod whose Secret has other keys must not pass for one of the release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_with_keys_of_its_own_is_found_out() {
    let mut release = Release::install().await;
    let a = release.pod("a", release.public).await;
    let browser = Browser::new();
    let page = browser
        .connect_through(&Ask::at(&a.url, "desk", LOOPBACK))
        .await;
    let code = page.sent("code").unwrap();
    let (access, _) = tokens(&a.post("/oauth/token", &exchange("desk", &code)).await);
    let other = release.folder.path().join("other-keys");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("keys"), config::deployment_key()).unwrap();
    release
        .secrets
        .insert("/run/secrets/toolgate-keys".to_owned(), other);
    let b = release.pod("b", free_port()).await;
    assert_eq!(b.status(&access).await, 401);
    assert!(!b.knows(&browser).await);
    b.end();
    a.end();
}
