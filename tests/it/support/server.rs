//! The program under test, started as an operator starts it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::client::Caller;
use super::folder::Folder;
use super::idp::Idp;
use super::postgres::{self, Database, OwnPostgres};
use super::process::{Outcome, Output, Process, free_port, run};
use super::{Helper, PATIENCE, Value, config, eventually, json};

/// What a server is to be started with.
#[derive(Debug)]
pub(crate) struct Setup {
    over: Value,
    idp: Idp,
    postgres: Option<Arc<OwnPostgres>>,
    environment: Vec<(String, String)>,
    kept: Vec<Helper>,
}

/// A running server. Ended when dropped; its database goes with it.
#[derive(Debug)]
pub(crate) struct Gateway {
    process: Process,
    url: String,
    admin_url: String,
    config: Value,
    config_file: PathBuf,
    environment: Vec<(String, String)>,
    http: reqwest::Client,
    shared: Arc<Shared>,
    /// Upstreams that live as long as the server.
    kept: Vec<Helper>,
}

/// What the replicas of one deployment have in common.
#[derive(Debug)]
struct Shared {
    folder: Folder,
    database: Database,
    idp: Idp,
}

impl Setup {
    /// The defaults of [`config::defaults`], the shared Postgres and identity
    /// provider, no upstream.
    pub(crate) fn new() -> Self {
        Self {
            over: json!({}),
            idp: Idp::shared(),
            postgres: None,
            environment: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Lays YAML over what there is.
    pub(crate) fn yaml(mut self, fragment: &str) -> Self {
        config::merge(&mut self.over, &config::yaml(fragment));
        self
    }

    /// Adds an upstream.
    pub(crate) fn upstream(mut self, id: &str, upstream: impl Into<Value>) -> Self {
        config::merge(&mut self.over, &json!({"upstreams": {id: upstream.into()}}));
        self
    }

    /// Adds an upstream that lives as long as the server.
    pub(crate) fn over(mut self, id: &str, upstream: Helper) -> Self {
        let config = upstream.config();
        self.kept.push(upstream);
        self.upstream(id, config)
    }

    /// With a Postgres of the test's own.
    pub(crate) fn postgres(mut self, postgres: &Arc<OwnPostgres>) -> Self {
        self.postgres = Some(Arc::clone(postgres));
        self
    }

    /// Trusting the tokens of this provider, by the keys in a file.
    pub(crate) fn idp(mut self, idp: &Idp) -> Self {
        self.idp = idp.clone();
        self
    }

    /// With a variable in its environment.
    pub(crate) fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(self) -> Gateway {
        let gateway = self.launch();
        gateway.until_ready().await;
        gateway
    }

    /// Starts it and waits only until it lives.
    pub(crate) async fn start_unready(self) -> Gateway {
        let gateway = self.launch();
        gateway.until("/healthz").await;
        gateway
    }

    fn launch(self) -> Gateway {
        let database = self.postgres.unwrap_or_else(postgres::shared).database();
        let folder = Folder::new();
        let port = free_port();
        let jwks_file = folder.path().join("jwks.json");
        self.idp.write_jwks(&jwks_file, &[]);
        let keys_file = folder.file("keys", &config::deployment_key());
        let mut config = config::defaults();
        let given = json!({
            "server": {
                "listen": format!("127.0.0.1:{port}"),
                "admin_listen": format!("127.0.0.1:{}", free_port()),
                "public_url": format!("http://127.0.0.1:{port}"),
            },
            "database": { "url": database.url() },
            "keys_file": keys_file,
            "identity_providers": { "corporate": {
                "issuer": self.idp.issuer, "tenants": ["acme", "globex"], "jwks_file": jwks_file,
            } },
        });
        config::merge(&mut config, &given);
        config::merge(&mut config, &self.over);
        let config_file = folder.file("toolgate.yaml", &config.to_string());
        let shared = Shared {
            folder,
            database,
            idp: self.idp,
        };
        let mut gateway = Gateway::launch(config, config_file, self.environment, Arc::new(shared));
        gateway.kept = self.kept;
        gateway
    }
}

impl Gateway {
    /// A server with the defaults and this YAML over them.
    pub(crate) async fn start(fragment: &str) -> Self {
        Setup::new().yaml(fragment).start().await
    }

    /// A server with one upstream, `up`, without a prefix.
    pub(crate) async fn over(upstream: Helper) -> Self {
        Setup::new().over("up", upstream).start().await
    }

    fn launch(
        config: Value,
        config_file: PathBuf,
        environment: Vec<(String, String)>,
        shared: Arc<Shared>,
    ) -> Self {
        let address = |key: &str| format!("http://{}", config["server"][key].as_str().unwrap());
        Self {
            process: start_process(&config_file, &environment),
            url: address("listen"),
            admin_url: address("admin_listen"),
            config,
            config_file,
            environment,
            http: http_client(),
            shared,
            kept: Vec::new(),
        }
    }

    /// A second replica of the same deployment, on ports of its own.
    pub(crate) async fn replica(&self) -> Self {
        let replica = self.replica_unready("{}", &[]);
        replica.until_ready().await;
        replica
    }

    /// The same with YAML over its configuration and variables in its environment; not
    /// waited for.
    pub(crate) fn replica_unready(&self, over: &str, environment: &[(&str, &str)]) -> Self {
        let mut config = self.config.clone();
        config::merge(&mut config, &config::yaml(over));
        let listen = |port: u16| json!(format!("127.0.0.1:{port}"));
        config["server"]["listen"] = listen(free_port());
        config["server"]["admin_listen"] = listen(free_port());
        let name = format!(
            "replica-{}.yaml",
            config["server"]["listen"]
                .as_str()
                .unwrap()
                .replace(':', "-")
        );
        let file = self.shared.folder.file(&name, &config.to_string());
        let more = environment.iter();
        let more = more.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = self.environment.iter().cloned().chain(more).collect();
        Self::launch(config, file, environment, Arc::clone(&self.shared))
    }

    /// Waits until it is ready.
    pub(crate) async fn until_ready(&self) {
        self.until("/readyz").await;
    }

    async fn until(&self, path: &str) {
        let what = format!("{path} of\n{}", self.config);
        eventually(&what, async || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))
                .unwrap_or_default();
            assert!(
                !state.is_empty() && !state.contains(") Z"),
                "it ended:\n{}",
                self.logs().tail(40)
            );
            (self.admin_status(path).await? == 200).then_some(())
        })
        .await;
    }

    /// The status that a path of the admin listener answers with, if it listens.
    pub(crate) async fn admin_status(&self, path: &str) -> Option<u16> {
        let answer = self
            .http
            .get(format!("{}{path}", self.admin_url))
            .send()
            .await;
        answer.ok().map(|answer| answer.status().as_u16())
    }

    /// The metrics, as Prometheus reads them.
    pub(crate) async fn metrics(&self) -> String {
        let answer = self
            .http
            .get(format!("{}/metrics", self.admin_url))
            .send()
            .await
            .unwrap();
        answer.text().await.unwrap()
    }

    /// A caller without a token.
    pub(crate) fn anonymous(&self) -> Caller {
        Caller::new(self, None)
    }

    /// A user, written `name@tenant`, without a role.
    pub(crate) fn user(&self, who: &str) -> Caller {
        Caller::new(
            self,
            Some(self.shared.idp.token(who, &self.audience("/mcp"))),
        )
    }

    /// An administrator of the first tenant.
    pub(crate) fn admin(&self) -> Caller {
        self.user("admin@acme")
            .with(|token| token.roles(&["admin"]))
    }

    /// A user of the other tenant.
    pub(crate) fn other_tenant(&self) -> Caller {
        self.user("bob@globex")
    }

    /// Where it listens, such as `http://127.0.0.1:12345`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Where its listeners are: the public one's and the admin one's.
    pub(crate) fn addresses(&self) -> (String, String) {
        let of = |key: &str| self.config["server"][key].as_str().unwrap().to_owned();
        (of("listen"), of("admin_listen"))
    }

    /// Has its callers come by another address, such as a balancer's.
    pub(crate) fn answer_at(&mut self, url: &str) {
        url.clone_into(&mut self.url);
    }

    /// The audience of one of its endpoints.
    pub(crate) fn audience(&self, path: &str) -> String {
        let public_url = self.config["server"]["public_url"].as_str();
        format!("{}{path}", public_url.unwrap_or(&self.url))
    }

    /// The HTTP client of this test.
    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Whose tokens it believes.
    pub(crate) fn idp(&self) -> &Idp {
        &self.shared.idp
    }

    /// Its database.
    pub(crate) fn database(&self) -> &Database {
        &self.shared.database
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Folder {
        &self.shared.folder
    }

    /// Its process.
    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// What it has logged.
    pub(crate) fn logs(&self) -> &Output {
        self.process.output()
    }

    /// Its configuration file.
    pub(crate) fn config_file(&self) -> &Path {
        &self.config_file
    }

    /// Lays YAML over the configuration in its file, while it runs.
    pub(crate) fn reload(&mut self, fragment: &str) {
        config::merge(&mut self.config, &config::yaml(fragment));
        config::write(&self.config_file, &self.config.to_string());
    }

    /// Ends it and starts it again with the same file.
    pub(crate) async fn restart(&mut self) {
        self.process.end(PATIENCE);
        self.start_again().await;
    }

    /// Kills it, as the end of a machine would.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again after it ended.
    pub(crate) async fn start_again(&mut self) {
        self.process = start_process(&self.config_file, &self.environment);
        self.until_ready().await;
    }

    /// Starts it again after it ended, and waits only until it lives.
    pub(crate) async fn start_again_unready(&mut self) {
        self.process = start_process(&self.config_file, &self.environment);
        self.until("/healthz").await;
    }

    /// Asks it to end and waits for that.
    pub(crate) async fn sigterm_and_wait(&mut self) -> ExitStatus {
        self.process.signal(Signal::SIGTERM);
        for _ in 0..PATIENCE.as_millis() / 10 {
            if let Some(status) = self.process.ended() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it does not end when asked to:\n{}", self.logs().tail(40));
    }

    /// Runs a command of the program with this server's configuration file, however it ends.
    pub(crate) fn outcome(&self, args: &[&str]) -> Outcome {
        Outcome::of(
            Command::new(config::TOOLGATE)
                .args(args)
                .arg("--config")
                .arg(&self.config_file),
        )
    }

    /// Runs a command of the program with this server's configuration file.
    pub(crate) fn command(&self, args: &[&str]) -> String {
        run(Command::new(config::TOOLGATE)
            .args(args)
            .arg("--config")
            .arg(&self.config_file))
    }
}

fn start_process(config_file: &Path, environment: &[(String, String)]) -> Process {
    let mut command = Command::new(config::TOOLGATE);
    command.env_clear();
    for name in ["PATH", "HOME", "LANG", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let command = command.envs(environment.iter().cloned());
    Process::start(
        "toolgate",
        command.arg("serve").arg("--config").arg(config_file),
    )
}

/// A client that goes nowhere but where it is told: no proxy, no redirects.
pub(crate) fn http_client() -> reqwest::Client {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    builder.tls_certs_only([]).build().unwrap()
}
