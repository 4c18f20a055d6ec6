//! The cluster itself: made once, configured at every start, driven by
//! Postgres' own programs.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::process::Command;
use tokio::time::timeout;

use super::EmbeddedFault;
use super::account::Account;
use super::binaries::Binaries;
use crate::clock::random;
use crate::secret::Secret;

/// The directory and what lies where in it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) directory: PathBuf,
}

/// Where the server is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A socket in this directory, named for port 5432.
    Socket(PathBuf),
    /// A port of 127.0.0.1: the socket's path would be too long.
    Loopback(u16),
}

/// A cluster and the programs that drive it.
#[derive(Debug)]
pub(super) struct Cluster {
    place: Place,
    binaries: Binaries,
    account: Option<Account>,
}

/// `sun_path` has 108 bytes, one of them the NUL (unix(7)); the file is `/.s.PGSQL.5432`.
const SOCKET_DIRECTORY_MAX: usize = 107 - "/.s.PGSQL.5432".len();

/// How long one of Postgres' programs may take; recovery after a crash is inside it.
const PATIENCE: Duration = Duration::from_mins(2);

impl Place {
    /// The directory as an absolute path; made when it is missing.
    pub(super) fn open(directory: &Path) -> Result<Self, EmbeddedFault> {
        let io = |source| EmbeddedFault::Io {
            path: directory.to_path_buf(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)
            .map_err(io)?;
        Ok(Self {
            directory: fs::canonicalize(directory).map_err(io)?,
        })
    }

    pub(super) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn run(&self) -> PathBuf {
        self.directory.join("run")
    }

    fn password(&self) -> PathBuf {
        self.directory.join("password")
    }

    /// The release that made the data, if there is data.
    pub(super) fn major(&self) -> Option<u32> {
        fs::read_to_string(self.data().join("PG_VERSION"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

impl Endpoint {
    pub(super) fn url(&self, user: &str, password: &Secret<String>, name: &str) -> Secret<String> {
        let password = password.expose();
        Secret::new(match self {
            Self::Socket(directory) => format!(
                "postgres://{user}:{password}@localhost:5432/{name}?host={}",
                percent_encoded(directory)
            ),
            Self::Loopback(port) => {
                format!("postgres://{user}:{password}@127.0.0.1:{port}/{name}")
            }
        })
    }
}

fn percent_encoded(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

impl Cluster {
    pub(super) fn new(place: Place, binaries: Binaries, account: Option<Account>) -> Self {
        Self {
            place,
            binaries,
            account,
        }
    }

    /// Makes the cluster where there is none, and gives its password.
    pub(super) async fn prepare(&self) -> Result<Secret<String>, EmbeddedFault> {
        let password = self.password()?;
        if self.place.major().is_some() {
            return Ok(password);
        }
        // Made aside and moved into place, so that a start that is cut short leaves no half cluster.
        let unfinished = self.place.directory.join("data.new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(|source| fault(&unfinished, source))?;
        }
        self.make(&unfinished)?;
        let arguments = [
            "--auth=scram-sha-256",
            "--username=toolgate",
            "--encoding=UTF8",
            "--locale=C",
            "--data-checksums",
        ];
        let mut initdb = self.command("initdb");
        initdb
            .args(arguments)
            .arg("--pwfile")
            .arg(self.place.password())
            .arg("--pgdata")
            .arg(&unfinished);
        run("initdb", initdb).await?;
        let included = unfinished.join("postgresql.conf");
        fs::OpenOptions::new()
            .append(true)
            .open(&included)
            .and_then(|mut file| file.write_all(b"\ninclude_if_exists = 'toolgate.conf'\n"))
            .map_err(|source| fault(&included, source))?;
        let data = self.place.data();
        fs::rename(&unfinished, &data).map_err(|source| fault(&data, source))?;
        Ok(password)
    }

    fn password(&self) -> Result<Secret<String>, EmbeddedFault> {
        let path = self.place.password();
        if let Ok(kept) = fs::read_to_string(&path)
            && !kept.trim().is_empty()
        {
            return Ok(Secret::new(kept.trim().to_owned()));
        }
        let fresh = URL_SAFE_NO_PAD.encode(random::<32>());
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(fresh.as_bytes()))
            .map_err(|source| fault(&path, source))?;
        self.own(&path)?;
        Ok(Secret::new(fresh))
    }

    /// Writes what the server has to know at each start.
    pub(super) fn configure(&self) -> Result<Endpoint, EmbeddedFault> {
        let run = self.place.run();
        self.make(&run)?;
        let endpoint = if run.as_os_str().len() <= SOCKET_DIRECTORY_MAX {
            Endpoint::Socket(run)
        } else {
            Endpoint::Loopback(free_port().map_err(|source| fault(&run, source))?)
        };
        let path = self.place.data().join("toolgate.conf");
        fs::write(&path, configuration(&endpoint)).map_err(|source| fault(&path, source))?;
        self.own(&path)?;
        Ok(endpoint)
    }

    /// Ends a server that an earlier process of ours left running, and clears
    /// away the mark of one that no longer runs. Postgres trusts that mark as
    /// soon as any process of the same user has the number, which in a container
    /// it often has.
    pub(super) async fn end_leftover(&self) -> Result<(), EmbeddedFault> {
        if self.server_id().is_some() {
            tracing::info!("The database server of an earlier run is still there; ending it.");
            return self.stop().await;
        }
        let mark = self.place.data().join("postmaster.pid");
        match fs::remove_file(&mark) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(fault(&mark, source))
            }
            _ => Ok(()),
        }
    }

    /// The number of the server that runs over our data. The server's working
    /// directory is its data: that tells it from a stranger with its number.
    pub(super) fn server_id(&self) -> Option<u32> {
        let data = self.place.data();
        let mark = fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let id: u32 = mark.lines().next()?.trim().parse().ok()?;
        let process = PathBuf::from(format!("/proc/{id}"));
        if Path::new("/proc/self").exists() {
            let works_in = fs::read_link(process.join("cwd")).ok()?;
            return (works_in == data).then_some(id);
        }
        let raw = nix::unistd::Pid::from_raw(i32::try_from(id).ok()?);
        nix::sys::signal::kill(raw, None).ok().map(|()| id)
    }

    pub(super) async fn start(&self) -> Result<(), EmbeddedFault> {
        let log = self.place.run().join("log");
        // One earlier log is kept; what runs for long writes little.
        let _ = fs::rename(&log, self.place.run().join("log.old"));
        let mut start = self.command("pg_ctl");
        start
            .args(["start", "--silent", "--wait", "--timeout=100", "--pgdata"])
            .arg(self.place.data())
            .arg("--log")
            .arg(&log);
        run("pg_ctl start", start).await.map_err(|failed| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            match failed {
                EmbeddedFault::Command { program, message } => EmbeddedFault::Command {
                    program,
                    message: format!("{message} {}", tail(&said)),
                },
                other => other,
            }
        })
    }

    pub(super) async fn stop(&self) -> Result<(), EmbeddedFault> {
        if self.server_id().is_none() {
            return Ok(());
        }
        let mut stop = self.command("pg_ctl");
        stop.args([
            "stop",
            "--silent",
            "--mode=fast",
            "--wait",
            "--timeout=60",
            "--pgdata",
        ])
        .arg(self.place.data());
        run("pg_ctl stop", stop).await
    }

    /// A directory that is closed to everyone but the server.
    fn make(&self, path: &Path) -> Result<(), EmbeddedFault> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| fault(path, source))?;
        self.own(path)
    }

    fn own(&self, path: &Path) -> Result<(), EmbeddedFault> {
        self.account
            .as_ref()
            .map_or(Ok(()), |account| account.own(path))
    }

    /// One of Postgres' programs, as the server's user, in a directory that user can be in.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.program(program));
        command
            .current_dir(&self.place.directory)
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", &self.binaries.directory)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(account) = &self.account {
            command.uid(account.user).gid(account.group);
        }
        command
    }
}

async fn run(name: &str, mut command: Command) -> Result<(), EmbeddedFault> {
    let failed = |message: String| EmbeddedFault::Command {
        program: name.to_owned(),
        message,
    };
    let said = match timeout(PATIENCE, command.output()).await {
        Ok(Ok(said)) => said,
        Ok(Err(source)) => return Err(failed(source.to_string())),
        Err(_) => return Err(failed("did not end in two minutes".to_owned())),
    };
    if said.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&said.stderr);
    let output = String::from_utf8_lossy(&said.stdout);
    Err(failed(format!("{} {}", tail(&output), tail(&errors))))
}

/// The end of what a program said: enough to act on.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}

fn fault(path: &Path, source: std::io::Error) -> EmbeddedFault {
    EmbeddedFault::Io {
        path: path.to_path_buf(),
        source,
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

fn configuration(endpoint: &Endpoint) -> String {
    let (addresses, port, sockets) = match endpoint {
        Endpoint::Socket(directory) => ("", 5432, directory.to_string_lossy().replace('\'', "''")),
        Endpoint::Loopback(port) => ("127.0.0.1", *port, String::new()),
    };
    format!(
        "# Written by toolgate at every start; settings of your own belong into postgresql.conf.\n\
         listen_addresses = '{addresses}'\n\
         port = {port}\n\
         unix_socket_directories = '{sockets}'\n\
         unix_socket_permissions = 0700\n\
         password_encryption = 'scram-sha-256'\n\
         max_connections = 60\n\
         fsync = on\n\
         full_page_writes = on\n\
         synchronous_commit = on\n\
         timezone = 'UTC'\n\
         log_timezone = 'UTC'\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_socket_s_directory_whatever_is_in_its_name() {
        let password = Secret::new("pw".to_owned());
        let socket = Endpoint::Socket(PathBuf::from("/srv/a b&c/run"));
        assert_eq!(
            socket.url("toolgate", &password, "toolgate").expose(),
            "postgres://toolgate:pw@localhost:5432/toolgate?host=%2Fsrv%2Fa%20b%26c%2Frun"
        );
        let loopback = Endpoint::Loopback(4711);
        assert_eq!(
            loopback.url("toolgate", &password, "toolgate").expose(),
            "postgres://toolgate:pw@127.0.0.1:4711/toolgate"
        );
    }

    #[test]
    fn the_server_listens_on_its_socket_alone_and_stays_durable() {
        let text = configuration(&Endpoint::Socket(PathBuf::from("/srv/it's/run")));
        assert!(text.contains("listen_addresses = ''"));
        assert!(text.contains("unix_socket_directories = '/srv/it''s/run'"));
        assert!(text.contains("fsync = on"));
    }
}
