//! A Postgres of our own, for `quickstart` and `database.embedded`: the
//! machine's own binaries where there are any, its data kept between runs, and
//! as durable as any other (`fsync` stays on: the audit relies on it).
//!
//! Knows nothing of what is stored. Layout of the directory:
//! `data` (the cluster), `run` (its socket and log), `password`, `lock` and,
//! where the machine has no Postgres, `binaries`. As root only what the server
//! writes is given to its user, never the directory itself.

mod account;
mod binaries;
mod cluster;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions, Connection};
use tokio::time::timeout;

use super::error::StoreError;
use crate::secret::Secret;
use account::Account;
use binaries::Binaries;
use cluster::{Cluster, Place};

/// Where the database lives and where to look for its programs.
#[derive(Clone, Debug)]
pub struct EmbeddedSettings {
    /// The directory that holds everything; made when it is missing.
    pub directory: PathBuf,
    /// The folders of `PATH`, searched when the usual places have no Postgres.
    pub search_path: Vec<PathBuf>,
}

/// Where the data lives unless the operator says otherwise: the data directory
/// of the user (XDG Base Directory), and `/var/lib/toolgate` for root, since the
/// server runs as another user then, who cannot reach a private home.
pub fn default_directory(data_home: Option<&Path>, home: Option<&Path>) -> PathBuf {
    if account::is_root() {
        return PathBuf::from("/var/lib/toolgate");
    }
    let data_home = data_home
        .filter(|path| path.is_absolute())
        .map(Path::to_path_buf)
        .or_else(|| home.map(|home| home.join(".local/share")));
    data_home.map_or_else(
        || PathBuf::from("/var/lib/toolgate"),
        |data_home| data_home.join("toolgate"),
    )
}

/// Why there is no Postgres of our own.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedFault {
    /// Another process of ours has it.
    #[error("{} is in use by another running toolgate", .0.display())]
    InUse(PathBuf),
    /// Nothing runs there.
    #[error("no database of ours runs in {}: start the service first", .0.display())]
    NotRunning(PathBuf),
    /// Not on this machine, and not to be fetched.
    #[error("no Postgres was found on this machine and none could be fetched: {0}")]
    NoBinaries(String),
    /// The data was made by a release that is not here.
    #[error(
        "the data in {} is of PostgreSQL {data}, but this machine has only PostgreSQL {found}", .directory.display()
    )]
    WrongVersion {
        /// Where the data is.
        directory: PathBuf,
        /// Its major version.
        data: u32,
        /// The versions at hand.
        found: String,
    },
    /// Postgres refuses to run as root, and the user it runs as instead has no way in.
    #[error(
        "the database server runs as user `{user}`, who cannot reach {}: choose a directory outside private homes", .path.display()
    )]
    Unreachable {
        /// Whom the server runs as.
        user: String,
        /// The first directory that is closed to them.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// One of Postgres' own programs failed.
    #[error("{program} failed: {message}")]
    Command {
        /// Which one.
        program: String,
        /// The end of what it said.
        message: String,
    },
    /// The server runs but does not let us in.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where a running server's connection string is left for other commands.
const URL_FILE: &str = "url";

fn write_private(path: &Path, text: &str) -> Result<(), EmbeddedFault> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let fault = |source| EmbeddedFault::Io {
        path: path.to_path_buf(),
        source,
    };
    let _ = std::fs::remove_file(path);
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(fault)
}

/// The database's name and that of its owner.
const NAME: &str = "toolgate";

/// A Postgres that runs for this process. Its data outlives it; the server is
/// to be stopped with [`Embedded::stop`]. If the process is killed instead, the
/// next start ends the server that was left over, which flushes what it holds.
#[derive(Debug)]
pub struct Embedded {
    cluster: Cluster,
    url: Secret<String>,
    url_file: PathBuf,
    // Held for as long as the cluster is ours; the system lets go of it if we die.
    _lock: File,
}

impl Embedded {
    /// Starts it: makes the cluster at first, ends a server that an earlier
    /// process left over, and clears away what a crash of the machine left.
    pub async fn start(settings: &EmbeddedSettings) -> Result<Self, EmbeddedFault> {
        let place = Place::open(&settings.directory)?;
        let lock = lock(&place)?;
        let account = Account::choose(&place.data())?;
        if let Some(account) = &account {
            account.check_reach(&place.data())?;
        }
        let binaries = Binaries::find(settings, &place, account.as_ref()).await?;
        let cluster = Cluster::new(place, binaries, account);
        let password = cluster.prepare().await?;
        cluster.end_leftover().await?;
        let endpoint = cluster.configure()?;
        cluster.start().await?;
        let url = endpoint.url(NAME, &password, NAME);
        let url_file = settings.directory.join(URL_FILE);
        if let Err(fault) = ensure_database(&endpoint.url(NAME, &password, "postgres")).await {
            let _ = cluster.stop().await;
            return Err(fault.into());
        }
        write_private(&url_file, url.expose())?;
        Ok(Self {
            cluster,
            url,
            url_file,
            _lock: lock,
        })
    }

    /// How to connect to the database that another process of ours runs in
    /// `directory`; for commands that read it. Holds the password.
    pub fn running_url(directory: &Path) -> Result<Secret<String>, EmbeddedFault> {
        let path = directory.join(URL_FILE);
        match std::fs::read_to_string(&path) {
            Ok(url) => Ok(Secret::new(url)),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                Err(EmbeddedFault::NotRunning(directory.to_path_buf()))
            }
            Err(source) => Err(EmbeddedFault::Io { path, source }),
        }
    }

    /// How to connect. Holds the password.
    pub fn url(&self) -> &Secret<String> {
        &self.url
    }

    /// Stops the server: disconnects everyone, writes everything down.
    pub async fn stop(&self) -> Result<(), EmbeddedFault> {
        let _ = std::fs::remove_file(&self.url_file);
        self.cluster.stop().await
    }

    /// The process id of the server, for as long as it runs.
    pub fn server_id(&self) -> Option<u32> {
        self.cluster.server_id()
    }

    /// Starts the server again after [`Embedded::stop`], at the same address.
    pub async fn restart(&self) -> Result<(), EmbeddedFault> {
        self.cluster.end_leftover().await?;
        self.cluster.start().await
    }
}

fn lock(place: &Place) -> Result<File, EmbeddedFault> {
    let path = place.directory.join("lock");
    let io = |source| EmbeddedFault::Io {
        path: path.clone(),
        source,
    };
    let file = File::create(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(EmbeddedFault::InUse(place.directory.clone())),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// How long the server may take to let us in.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

async fn ensure_database(url: &Secret<String>) -> Result<(), StoreError> {
    let options = super::connect::parse(url)?;
    let making = async {
        let mut connection = options
            .connect()
            .await
            .map_err(|error| StoreError::of_connection(&error))?;
        let outcome = make_database(&mut connection).await;
        let _ = connection.close().await;
        outcome.map_err(|error| StoreError::of_statement(&error))
    };
    timeout(PATIENCE, making)
        .await
        .unwrap_or_else(|_| Err(StoreError::Unavailable("no connection in time".to_owned())))
}

async fn make_database(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let found = sqlx::query("SELECT FROM pg_database WHERE datname = $1")
        .bind(NAME)
        .fetch_optional(&mut *connection)
        .await?;
    if found.is_none() {
        sqlx::query("CREATE DATABASE toolgate")
            .execute(connection)
            .await?;
    }
    Ok(())
}
