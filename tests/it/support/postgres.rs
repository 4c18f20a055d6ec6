//! Real Postgres: one for all tests of the process, and own ones for tests
//! that take it away.
//!
//! Each test gets a database of its own, copied from a template that the real
//! `toolgate migrate` made.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::User;
use sqlx::PgPool;

use super::keeper::{self, Ending};
use super::process::{free_port, run, send};
use super::{PATIENCE, config};

/// The role that the server connects as. It owns its database, may make roles and is no
/// superuser.
const ROLE: &str = "toolgate";

/// A cluster of this process.
#[derive(Debug)]
pub(crate) struct OwnPostgres {
    folder: PathBuf,
    port: u16,
    durable: bool,
    server: Mutex<Option<Child>>,
    template: OnceLock<()>,
    copying: Mutex<()>,
}

/// A migrated database of one test, dropped with it.
#[derive(Debug)]
pub(crate) struct Database {
    cluster: Arc<OwnPostgres>,
    name: String,
}

/// The Postgres that tests share. Fast, and forgets everything with a power cut.
pub(crate) fn shared() -> Arc<OwnPostgres> {
    static SHARED: OnceLock<Arc<OwnPostgres>> = OnceLock::new();
    Arc::clone(SHARED.get_or_init(|| OwnPostgres::new(false)))
}

impl OwnPostgres {
    /// A cluster of the test's own, which syncs like one in production.
    pub(crate) fn start() -> Arc<Self> {
        Self::new(true)
    }

    fn new(durable: bool) -> Arc<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolgate-it-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        keeper::keep_folder(&folder);
        if let Some(account) = account() {
            let (user, group) = (account.uid, account.gid);
            nix::unistd::chown(&folder, Some(user), Some(group)).unwrap();
        }
        let cluster = Self {
            port: free_port(),
            folder,
            durable,
            server: Mutex::new(None),
            template: OnceLock::new(),
            copying: Mutex::new(()),
        };
        run(cluster
            .program("initdb")
            .args([
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ])
            .arg("--pgdata")
            .arg(cluster.data()));
        cluster.resume();
        cluster.psql("postgres", &format!("create role {ROLE} login createrole"));
        Arc::new(cluster)
    }

    /// Starts it again, on the same port, after `stop` or `crash`.
    pub(crate) fn resume(&self) {
        let mut server = self.server.lock().unwrap();
        assert!(server.is_none(), "it runs already");
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.folder.join("log"))
            .unwrap();
        let mut command = self.program("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()]);
        for setting in self.settings() {
            command.arg("-c").arg(setting);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            // Out of reach of Ctrl-C: the keeper ends it in its own way.
            .process_group(0)
            .spawn()
            .unwrap();
        keeper::keep(child.id(), Ending::Quit);
        *server = Some(child);
        drop(server);
        self.wait_until_ready();
    }

    fn settings(&self) -> Vec<String> {
        let on = if self.durable { "on" } else { "off" };
        vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", self.folder.display()),
            "max_connections=400".to_owned(),
            format!("fsync={on}"),
            format!("full_page_writes={on}"),
            "log_min_messages=warning".to_owned(),
        ]
    }

    fn wait_until_ready(&self) {
        let start = Instant::now();
        let ready = || {
            let mut probe = self.program("pg_isready");
            probe.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            probe.status().is_ok_and(|status| status.success())
        };
        while !ready() {
            let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(
                start.elapsed() < PATIENCE,
                "Postgres does not come up:\n{}",
                log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it in an orderly way: open connections are cut.
    pub(crate) fn stop(&self) {
        self.end(Signal::SIGINT);
    }

    /// Ends it as a crash would: what was not synced must be replayed.
    pub(crate) fn crash(&self) {
        self.end(Signal::SIGQUIT);
    }

    fn end(&self, signal: Signal) {
        if let Some(mut child) = self.server.lock().unwrap().take() {
            send(child.id(), signal);
            child.wait().unwrap();
            keeper::forget(child.id());
        }
    }

    /// Stops every one of its processes where it is: connections stay open and
    /// nothing answers.
    pub(crate) fn freeze(&self) {
        self.signal_all(Signal::SIGSTOP);
    }

    /// Lets it go on after `freeze`.
    pub(crate) fn thaw(&self) {
        self.signal_all(Signal::SIGCONT);
    }

    fn signal_all(&self, signal: Signal) {
        let server = self.server.lock().unwrap();
        let Some(postmaster) = server.as_ref().map(Child::id) else {
            return;
        };
        // The parent first, so that it starts no child that we do not see.
        send(postmaster, signal);
        for child in children(postmaster) {
            send(child, signal);
        }
    }

    /// Runs SQL as superuser.
    pub(crate) fn psql(&self, database: &str, sql: &str) -> String {
        let mut command = self.program("psql");
        command.args([
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-h",
            "127.0.0.1",
        ]);
        run(command.args(["-p", &self.port.to_string(), "-d", database, "-c", sql]))
    }

    /// What `pg_dump` makes of one of its databases.
    pub(crate) fn dump(&self, database: &str) -> String {
        let mut command = self.program("pg_dump");
        command.args(["-U", "postgres", "-h", "127.0.0.1", "-d", database]);
        run(command.args(["-p", &self.port.to_string()]))
    }

    /// The connection string of one of its databases.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://{ROLE}@127.0.0.1:{}/{database}", self.port)
    }

    /// A migrated database.
    pub(crate) fn database(self: &Arc<Self>) -> Database {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        self.template.get_or_init(|| {
            self.psql(
                "postgres",
                &format!("create database template_it owner {ROLE}"),
            );
            config::migrate(&self.folder.join("migrate.yaml"), &self.url("template_it"));
        });
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        // A template may have one copy made of it at a time.
        let copying = self.copying.lock().unwrap();
        self.psql(
            "postgres",
            &format!("create database {name} owner {ROLE} template template_it"),
        );
        drop(copying);
        Database {
            cluster: Arc::clone(self),
            name,
        }
    }

    /// A database without a table.
    pub(crate) fn empty_database(self: &Arc<Self>, name: &str) -> Database {
        self.psql("postgres", &format!("create database {name} owner {ROLE}"));
        Database {
            cluster: Arc::clone(self),
            name: name.to_owned(),
        }
    }

    /// Where it keeps everything.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives a folder to the account that it runs as.
    pub(crate) fn give(folder: &Path) {
        if let Some(account) = account() {
            nix::unistd::chown(folder, Some(account.uid), Some(account.gid)).unwrap();
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(programs().join(name));
        command.current_dir(&self.folder);
        if let Some(account) = account() {
            command.uid(account.uid.as_raw()).gid(account.gid.as_raw());
        }
        command
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        self.thaw();
        self.crash();
        // What is left the keeper removes.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Database {
    /// Its connection string.
    pub(crate) fn url(&self) -> String {
        self.cluster.url(&self.name)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The cluster that it is in.
    pub(crate) fn cluster(&self) -> &Arc<OwnPostgres> {
        &self.cluster
    }

    /// Its backup.
    pub(crate) fn dump(&self) -> String {
        self.cluster.dump(&self.name)
    }

    /// A new database of the same cluster that a backup was restored into.
    pub(crate) fn restored(&self, name: &str, dump: &str) -> Self {
        let restored = self.cluster.empty_database(name);
        let file = self.cluster.folder.join(format!("{name}.sql"));
        std::fs::write(&file, dump).unwrap();
        OwnPostgres::give(&file);
        let mut command = self.cluster.program("psql");
        command.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-U", "postgres"]);
        command.args(["-h", "127.0.0.1", "-p", &self.cluster.port.to_string()]);
        run(command.args(["-d", name, "-f"]).arg(file));
        restored
    }

    /// Connections to it.
    pub(crate) async fn pool(&self) -> PgPool {
        let options = sqlx::postgres::PgPoolOptions::new()
            .max_connections(2)
            .acquire_timeout(Duration::from_secs(3));
        options.connect(&self.url()).await.unwrap()
    }

    /// Runs SQL on it as superuser: one row a line, columns parted by `|`.
    pub(crate) fn psql(&self, sql: &str) -> String {
        self.cluster.psql(&self.name, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let running = self
            .cluster
            .server
            .lock()
            .is_ok_and(|server| server.is_some());
        if running && !std::thread::panicking() {
            self.cluster.psql(
                "postgres",
                &format!("drop database if exists {} with (force)", self.name),
            );
        }
    }
}

/// The account that Postgres runs as where the tests run as root, which it refuses.
fn account() -> Option<User> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let find = |name| User::from_name(name).ok().flatten();
    Some(
        find("postgres")
            .or_else(|| find("nobody"))
            .expect("an account that is not root"),
    )
}

/// The folder of the newest Postgres on this machine.
fn programs() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let versions = std::fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten();
        let numbered =
            versions.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        match numbered.max() {
            Some(newest) => PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin")),
            None => on_path("postgres").expect("Postgres is installed: `make setup` does that"),
        }
    })
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join(program).is_file())
}

/// The processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| -> io::Result<bool> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // pid (name) state parent …; the name may hold anything.
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        Ok(after_name.split_whitespace().nth(1) == Some(parent.to_string().as_str()))
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let numbered = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbered
        .filter(|pid| is_child(pid).unwrap_or(false))
        .collect()
}
