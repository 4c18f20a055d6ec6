//! `toolgate doctor` without a URL: a sound deployment gets no finding, and each thing
//! that is wrong with what it rests on is named with what to change.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;

use super::support::folder::Folder;
use super::support::login_idp::LoginIdp;
use super::support::postgres::OwnPostgres;
use super::support::process::{Outcome, Process, free_port};
use super::support::sign_in::{federated, local};
use super::support::{Gateway, Helper, Setup, Value, config, eventually, json};

/// Findings as `--json` gives them.
#[derive(Debug)]
struct Found {
    code: Option<i32>,
    lines: Vec<Value>,
    said: String,
}

async fn doctor(gateway: &Gateway, over: &str) -> Found {
    let mut given = config::yaml(&std::fs::read_to_string(gateway.config_file()).unwrap());
    config::merge(&mut given, &config::yaml(over));
    let file = gateway.folder().file("doctor.yaml", &given.to_string());
    let mut command = Command::new(config::TOOLGATE);
    command.args(["doctor", "--json", "--timeout", "5", "--config"]);
    command.arg(file);
    let outcome = tokio::task::spawn_blocking(move || Outcome::of(&mut command));
    let Outcome {
        code,
        stdout,
        stderr,
    } = outcome.await.unwrap();
    let lines = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    Found {
        code,
        lines: lines.collect(),
        said: format!("{stdout}{stderr}"),
    }
}

impl Found {
    /// What is said at this level.
    fn at(&self, level: &str) -> Vec<&str> {
        let lines = self.lines.iter().filter(|line| line["level"] == level);
        lines.map(|line| line["text"].as_str().unwrap()).collect()
    }

    /// Whether this is named at this level; what asks for a change says why and which.
    fn names(&self, level: &str, words: &str) -> bool {
        self.lines.iter().any(|line| {
            line["level"] == level
                && line["text"].as_str().unwrap().contains(words)
                && (level == "ok" || (line["why"].is_string() && line["change"].is_string()))
        })
    }
}

fn close(gateway: &Gateway) {
    let file = gateway.folder().path().join("keys");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o400)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_deployment_has_nothing_to_change() {
    let postgres = OwnPostgres::start();
    let tools = Helper::example("upstream_rmcp", &[]).await;
    let setup = Setup::new().postgres(&postgres).over("up", tools);
    let gateway = setup.start().await;
    close(&gateway);
    let found = doctor(&gateway, "").await;
    assert_eq!(found.code, Some(0), "{}", found.said);
    assert_eq!(found.at("failure"), [""; 0], "{}", found.said);
    assert_eq!(found.at("warning"), [""; 0], "{}", found.said);
    for part in [
        "the file is in order",
        "1 key(s); the first seals",
        "the file is closed to others",
        "database.url leads there",
        "the database's clock agrees",
        "a commit outlives a crash",
        "replica(s) take up to 10 connections each",
        "the schema is this release's",
        "the audit's writer can add to it and no more",
        "7 days of partitions are made ahead",
        "corporate: 3 key(s) verify its tokens",
        "leads to this deployment",
        "up offers",
    ] {
        assert!(found.said.contains(part), "{part}: {}", found.said);
    }
    // The same for a person.
    let plain = gateway.outcome(&["doctor"]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    assert!(
        plain
            .stdout
            .ends_with("Nothing that needs to be changed.\n"),
        "{plain:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_forgets_is_named_setting_by_setting() {
    // The tests' own database is fast because it forgets everything with a power cut.
    let gateway = Gateway::start("").await;
    let database = gateway.database();
    let name = database.url().rsplit('/').next().unwrap().to_owned();
    database.psql(&format!(
        "ALTER DATABASE {name} SET synchronous_commit = off; ALTER DATABASE {name} SET log_statement = 'all'"
    ));
    let found = doctor(&gateway, "").await;
    assert_eq!(found.code, Some(1), "{}", found.said);
    for (level, words) in [
        ("failure", "fsync is off"),
        ("failure", "full_page_writes is off"),
        ("warning", "synchronous_commit is off"),
        ("warning", "logs statements with their values"),
        ("warning", "the file is open to others (mode 644)"),
    ] {
        assert!(found.names(level, words), "{words}: {}", found.said);
    }
    let plain = gateway.outcome(&["doctor"]);
    assert!(
        plain
            .stdout
            .contains("change: set fsync = on in postgresql.conf and restart PostgreSQL")
            && plain
                .stdout
                .contains("do not let people depend on it like this"),
        "{plain:?}"
    );
}

/// What is done to a sound database, and what the doctor has to say of it.
const SPOILT: [(&str, &str, &str); 6] = [
    (
        "CREATE ROLE spoiler; GRANT UPDATE ON audit_events TO spoiler",
        "failure",
        "roles that do not own the audit may alter it: spoiler",
    ),
    (
        "REVOKE toolgate_audit_writer FROM toolgate",
        "warning",
        "the audit is written by a login that could alter it",
    ),
    (
        "SELECT audit_drop_partition(current_date + n) FROM generate_series(1, 6) AS n",
        "warning",
        "1 days of partitions are made ahead",
    ),
    (
        "INSERT INTO _sqlx_migrations SELECT 99990101000000, 'newer', now(), true, checksum, 0 FROM _sqlx_migrations LIMIT 1",
        "failure",
        "the schema is newer than this release",
    ),
    (
        "DELETE FROM _sqlx_migrations WHERE version > 20261130170000",
        "failure",
        "the schema is older than this release needs",
    ),
    (
        "ALTER ROLE toolgate CONNECTION LIMIT 5",
        "warning",
        "and the database has 5 for them",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_done_to_a_database_is_named() {
    let postgres = OwnPostgres::start();
    for (sql, level, words) in SPOILT {
        let database = postgres.database();
        let folder = Folder::new();
        let file = folder.path().join("deployment.yaml");
        config::migrate(&file, &database.url());
        database.psql(sql);
        let outcome = Outcome::of(
            Command::new(config::TOOLGATE)
                .args(["doctor", "--json", "--config"])
                .arg(&file),
        );
        let named = outcome.stdout.lines().any(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["level"] == level && line["text"].as_str().unwrap().contains(words)
        });
        assert!(named, "{sql}: {outcome:?}");
        for undo in ["DROP OWNED BY spoiler", "DROP ROLE spoiler"] {
            if sql.contains("spoiler") {
                database.psql(undo);
            }
        }
        database.psql(
            "ALTER ROLE toolgate CONNECTION LIMIT -1; GRANT toolgate_audit_writer TO toolgate",
        );
    }
    // A login that may do anything.
    let database = postgres.database();
    let folder = Folder::new();
    let file = folder.path().join("deployment.yaml");
    config::migrate(&file, &database.url());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("toolgate@", "postgres@")).unwrap();
    let outcome = Outcome::of(
        Command::new(config::TOOLGATE)
            .args(["doctor", "-c"])
            .arg(&file),
    );
    assert!(
        outcome.stdout.contains("the login postgres is a superuser"),
        "{outcome:?}"
    );
}

/// Debian's pgbouncer in front of a cluster, lending a session for a transaction.
fn pooler(postgres: &OwnPostgres, port: u16, server: &str) -> Process {
    let folder = postgres.folder().join(format!("pooler-{port}"));
    std::fs::create_dir(&folder).unwrap();
    let users = folder.join("users");
    std::fs::write(&users, "\"toolgate\" \"\"\n").unwrap();
    let address = server.rsplit('@').next().unwrap();
    let (at, _) = address.split_once('/').unwrap();
    let (host, server_port) = at.split_once(':').unwrap();
    let text = format!(
        "[databases]\n* = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\n",
        users.display()
    );
    let file = folder.join("pgbouncer.ini");
    std::fs::write(&file, text).unwrap();
    OwnPostgres::give(&folder);
    let mut command = Command::new("/usr/sbin/pgbouncer");
    command.arg(file).current_dir(&folder);
    if nix::unistd::geteuid().is_root() {
        let account = nix::unistd::User::from_name("postgres").unwrap().unwrap();
        command.uid(account.uid.as_raw()).gid(account.gid.as_raw());
    }
    Process::start("pgbouncer", &mut command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_pooler_is_told_from_a_database() {
    let postgres = OwnPostgres::start();
    let gateway = Setup::new().postgres(&postgres).start().await;
    let direct = gateway.database().url();
    let port = free_port();
    let pooler = pooler(&postgres, port, &direct);
    let (_, name) = direct.rsplit_once('/').unwrap();
    let pooled = format!("postgres://toolgate@127.0.0.1:{port}/{name}");
    eventually("the pooler to listen", async || {
        std::net::TcpStream::connect(("127.0.0.1", port))
            .ok()
            .map(drop)
    })
    .await;
    let alone = doctor(&gateway, &format!("database: {{ url: {pooled} }}")).await;
    assert!(
        alone.names(
            "failure",
            "database.url leads through a transaction pooler and database.direct_url is missing"
        ),
        "{}\n{}",
        alone.said,
        pooler.output().tail(20)
    );
    let right = format!("database: {{ url: {pooled}, direct_url: {direct} }}");
    let right = doctor(&gateway, &right).await;
    assert!(
        right.names(
            "ok",
            "database.url leads there, through a transaction pooler"
        ),
        "{}",
        right.said
    );
    assert!(!right.said.contains("connection strings"), "{}", right.said);
    let swapped = format!("database: {{ url: {direct}, direct_url: {pooled} }}");
    let swapped = doctor(&gateway, &swapped).await;
    assert!(
        swapped.names(
            "failure",
            "database.direct_url leads through a transaction pooler"
        ),
        "{}",
        swapped.said
    );
    // Another database at the end of the direct way.
    let other = postgres.database();
    let other = format!("database: {{ direct_url: {} }}", other.url());
    let other = doctor(&gateway, &other).await;
    assert!(
        other.names(
            "failure",
            "database.direct_url leads to another database than database.url"
        ),
        "{}",
        other.said
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_that_lead_nowhere_are_named_and_hold_up_nothing_else() {
    let gateway = Gateway::start("").await;
    let over = json!({
        "database": { "url": "postgres://toolgate:canary-password@127.0.0.1:9/none" },
        "telemetry": { "otlp_endpoint": "http://127.0.0.1:9" },
        "redis": { "url": "redis://:canary-password@127.0.0.1:9" },
        "server": {
            "public_url": "http://127.0.0.1:9",
            "admin_tls": { "cert_file": "/nonexistent", "key_file": "/nonexistent" },
        },
        "upstreams": {
            "gone": { "mcp": { "url": "http://127.0.0.1:9/mcp", "allow_private": true } },
            "needed": { "stdio": { "command": "/nonexistent" }, "required": true },
        },
        "identity_providers": {
            "corporate": { "jwks_file": "/nonexistent" },
            "away": { "issuer": "http://127.0.0.1:9", "tenants": ["acme"] },
        },
    });
    let found = doctor(&gateway, &over.to_string()).await;
    assert_eq!(found.code, Some(1));
    for (level, words) in [
        ("failure", "database.url leads nowhere"),
        ("failure", "server.admin_tls: "),
        ("failure", "limits cannot be counted there"),
        ("warning", "the collector takes nothing: no connection"),
        ("failure", "its keys are not to be had"),
        (
            "failure",
            "away: http://127.0.0.1:9/.well-known/openid-configuration is not answered",
        ),
        ("warning", "http://127.0.0.1:9 is not answered from here"),
        ("warning", "gone: "),
        ("failure", "needed: "),
    ] {
        assert!(found.names(level, words), "{words}: {}", found.said);
    }
    assert!(!found.said.contains("canary-password"), "{}", found.said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_somebody_could_guess_are_named() {
    let gateway = Gateway::start("").await;
    let file = gateway.folder().path().join("weak");
    let lines: Vec<String> = (0..4).map(|_| config::deployment_key()).collect();
    std::fs::write(
        &file,
        format!("{}\n{}\n", "0123456789abcdef".repeat(4), lines.join("\n")),
    )
    .unwrap();
    let found = doctor(&gateway, &json!({"keys_file": file}).to_string()).await;
    assert!(
        found.names("failure", "key 1 does not look random"),
        "{}",
        found.said
    );
    assert!(
        found.names("warning", "5 keys still open"),
        "{}",
        found.said
    );
    assert!(
        lines.iter().all(|line| !found.said.contains(line)),
        "{}",
        found.said
    );
    std::fs::write(&file, "short\n").unwrap();
    let found = doctor(&gateway, &json!({"keys_file": file}).to_string()).await;
    assert!(
        found.names("failure", "line 1 of the keys file is not a key"),
        "{}",
        found.said
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_limits_is_judged_by_what_it_says() {
    let gateway = local().await;
    let port = free_port();
    let folder = Folder::new();
    let mut command = Command::new("redis-server");
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
    ]);
    command.arg(folder.path());
    let settings = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"];
    let _redis = Process::start("redis", command.args(settings));
    eventually("Redis to listen", async || {
        std::net::TcpStream::connect(("127.0.0.1", port))
            .ok()
            .map(drop)
    })
    .await;
    let over = json!({"redis": {"url": format!("redis://127.0.0.1:{port}"), "timeout": "2s"}});
    let found = doctor(&gateway, &over.to_string()).await;
    assert!(found.names("ok", "counts"), "{}", found.said);
    assert!(
        found.names("warning", "it forgets keys when it is full"),
        "{}",
        found.said
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_asked_for_what_signing_in_needs() {
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let found = doctor(&gateway, "").await;
    assert!(
        found.names("ok", "company: 3 key(s) verify its tokens"),
        "{}",
        found.said
    );
    // The same provider under a name that it does not give itself.
    let slash =
        json!({"identity_providers": {"company": {"issuer": format!("{}/", idp.issuer())}}});
    let found = doctor(&gateway, &slash.to_string()).await;
    assert!(
        found.names("failure", "company: the provider calls itself"),
        "{}",
        found.said
    );
    // One whose clock is an hour ahead, and whose keys nobody can use.
    let ahead = provider_with_a_clock_ahead().await;
    let over = json!({"identity_providers": {"company": {"issuer": ahead}}});
    let found = doctor(&gateway, &over.to_string()).await;
    assert!(found.names("failure", "clock is 3"), "{}", found.said);
    assert!(
        found.names("failure", "its key set has no key that can be used"),
        "{}",
        found.said
    );
    assert!(
        found.names("failure", "its metadata has no token_endpoint"),
        "{}",
        found.said
    );
}

async fn provider_with_a_clock_ahead() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let document = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys"), "authorization_endpoint": format!("{issuer}/authorize"), "keys": []});
    let answer = move || {
        let ahead = time::OffsetDateTime::now_utc() + time::Duration::hours(1);
        let date = ahead
            .format(&time::format_description::well_known::Rfc2822)
            .unwrap();
        let headers = [("date", date.replace("+0000", "GMT"))];
        let text = document.to_string();
        async move { (StatusCode::OK, headers, text) }
    };
    let router = Router::new().fallback(any(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    issuer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_can_be_asked_for_without_a_shell() {
    let mut gateway = Gateway::start("").await;
    let outcome = gateway.outcome(&["ready"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    gateway.kill();
    let outcome = gateway.outcome(&["ready"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
}
