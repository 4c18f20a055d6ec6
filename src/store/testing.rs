//! For tests: one Postgres a process, a database of its own for each test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use time::OffsetDateTime;
use tokio::sync::OnceCell;

use super::embedded::{Embedded, EmbeddedSettings};
use super::{DatabaseSettings, Store, migrate};
use crate::clock::{Clock, SystemClock, new_session_id};
use crate::secret::Secret;

/// A server of its own, gone with all its data when the process is.
pub(crate) struct TestServer {
    pub(crate) embedded: Embedded,
    pub(crate) directory: PathBuf,
    _watchdog: Watchdog,
}

/// Waits for the end of this process, or for being dropped.
pub(crate) struct Watchdog {
    _child: Child,
}

/// A migrated database of its own.
pub(crate) struct TestDatabase {
    pub(crate) url: Secret<String>,
    pub(crate) store: Store,
}

static SHARED: OnceCell<TestServer> = OnceCell::const_new();
static TEMPLATE: OnceCell<()> = OnceCell::const_new();

/// A name that nobody else has, for a database or a directory.
pub(crate) fn fresh_name() -> String {
    format!("t{}", new_session_id(&SystemClock).0.simple())
}

/// A scratch directory that nobody else has.
pub(crate) fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("toolgate-test-{}", fresh_name()))
}

/// Ends the server and removes its directory once this process is gone,
/// however it ended: its end of the pipe closes then.
pub(crate) fn watchdog(directory: &Path) -> Watchdog {
    let child = Command::new("sh")
        .arg("-c")
        .arg(
            "cat >/dev/null; p=$(head -n 1 \"$0/data/postmaster.pid\" 2>/dev/null); \
             [ -n \"$p\" ] && kill -QUIT \"$p\"; sleep 1; rm -rf \"$0\"",
        )
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Watchdog { _child: child }
}

/// Starts a server of its own, for tests that stop or kill it.
pub(crate) async fn server() -> TestServer {
    let directory = scratch();
    let watchdog = watchdog(&directory);
    let embedded = Embedded::start(&settings(&directory)).await.unwrap();
    TestServer {
        embedded,
        directory,
        _watchdog: watchdog,
    }
}

pub(crate) fn settings(directory: &Path) -> EmbeddedSettings {
    EmbeddedSettings {
        directory: directory.to_path_buf(),
        search_path: Vec::new(),
    }
}

/// A new, migrated database on the shared server.
pub(crate) async fn database() -> TestDatabase {
    let server = SHARED.get_or_init(server).await;
    let url = server.embedded.url();
    TEMPLATE.get_or_init(|| migrated(url)).await;
    let name = fresh_name();
    run(
        &named(url, "postgres"),
        &format!("CREATE DATABASE {name} TEMPLATE toolgate"),
    )
    .await;
    let url = named(url, &name);
    let store = connect(&url);
    TestDatabase { url, store }
}

async fn migrated(url: &Secret<String>) {
    let missing = migrate(&database_settings(url), SystemClock.now().date()).await;
    assert_eq!(missing, Ok(None), "the owner may make roles");
}

/// The same server, another database.
pub(crate) fn named(url: &Secret<String>, name: &str) -> Secret<String> {
    let (head, tail) = url.expose().split_once('?').unwrap();
    let (server, _) = head.rsplit_once('/').unwrap();
    Secret::new(format!("{server}/{name}?{tail}"))
}

pub(crate) fn database_settings(url: &Secret<String>) -> DatabaseSettings<'_> {
    DatabaseSettings {
        url,
        direct_url: None,
        connections: 4,
        audit_connections: 4,
        audit_writer_url: None,
        audit_roles_required: true,
        timeout: Duration::from_secs(2),
    }
}

pub(crate) fn connect(url: &Secret<String>) -> Store {
    Store::connect(&database_settings(url)).unwrap()
}

/// Runs SQL as the owner, as an intruder or a broken disk would.
pub(crate) async fn run(url: &Secret<String>, sql: &str) {
    let mut connection = PgConnection::connect(url.expose()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

/// The one number that `sql` gives.
pub(crate) async fn number(url: &Secret<String>, sql: &str) -> i64 {
    let mut connection = PgConnection::connect(url.expose()).await.unwrap();
    let value: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    value
}

/// The machine's time, to the microsecond.
pub(crate) fn now() -> OffsetDateTime {
    SystemClock.now()
}
