//! Debian's `PgBouncer` in transaction mode, before one of the tests' Postgres.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::eventually;
use super::folder::Folder;
use super::process::{Process, free_port};

/// A running pooler.
#[derive(Debug)]
pub(crate) struct Pooler {
    port: u16,
    _process: Process,
    _folder: Folder,
}

impl Pooler {
    /// One before the Postgres of this connection string, with few connections to it, so
    /// that callers take turns on them.
    pub(crate) async fn before(url: &str) -> Self {
        Self::ignoring(url, "").await
    }

    /// The same that passes over these settings of a session instead of refusing them.
    pub(crate) async fn ignoring(url: &str, ignored: &str) -> Self {
        let server = url.rsplit_once(':').unwrap().1.split('/').next().unwrap();
        let (port, folder) = (free_port(), Folder::new());
        let users = folder.file("users", "\"toolgate\" \"\"\n");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = trust\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = 4\nmax_client_conn = 500\nunix_socket_dir =\n\
             ignore_startup_parameters = {ignored}\n",
            users.display()
        );
        let file = folder.file("pgbouncer.ini", &settings);
        let mut command = Command::new(program());
        command.arg(file);
        if nix::unistd::geteuid().is_root() {
            // It refuses to run as root.
            let account = nix::unistd::User::from_name("nobody").unwrap().unwrap();
            for file in [folder.path(), &folder.path().join("users")] {
                nix::unistd::chown(file, Some(account.uid), Some(account.gid)).unwrap();
            }
            command.uid(account.uid.as_raw()).gid(account.gid.as_raw());
        }
        let process = Process::start("pgbouncer", &mut command);
        eventually("the pooler listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .ok()
        })
        .await;
        Self {
            port,
            _process: process,
            _folder: folder,
        }
    }

    /// The connection string of a database, through it.
    pub(crate) fn url(&self, database: &str) -> String {
        let name = database.rsplit_once('/').unwrap().1;
        format!("postgres://toolgate@127.0.0.1:{}/{name}", self.port)
    }

    /// YAML of a database that is reached through it, and past it where that is needed.
    pub(crate) fn config(&self, database: &str) -> String {
        super::json!({"database": {"url": self.url(database), "direct_url": database}}).to_string()
    }
}

fn program() -> &'static str {
    let debian = "/usr/sbin/pgbouncer";
    if std::path::Path::new(debian).exists() {
        debian
    } else {
        "pgbouncer"
    }
}
