//! The database: a given one, or one of our own that is started and stopped here.

use anyhow::{Context, bail};
use futures_util::FutureExt;

use crate::audit::{self, Hold, Maintained, Retention, UpkeepFault};
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Loaded, Separation};
use crate::seal::Keys;
use crate::secret::Secret;
use crate::store::embedded::{Embedded, EmbeddedSettings};
use crate::store::{self, DatabaseSettings, SchemaState, Store};

/// What an operator is told who starts an old release.
pub(super) const NEWER: &str =
    "the database has the schema of a newer release; run that release, nothing was changed";

/// Where the database is, and the process where it is ours.
pub(super) struct Database {
    url: Secret<String>,
    writer_url: Option<Secret<String>>,
    own: Option<Embedded>,
}

impl Database {
    /// Finds the database, or starts one and brings it to this release's schema.
    pub(super) async fn open(config: &Config) -> anyhow::Result<Self> {
        let Some(embedded) = &config.database.embedded else {
            return Self::given(config);
        };
        let settings = EmbeddedSettings {
            directory: embedded.data_dir.clone(),
            search_path: config::search_path(),
        };
        let own = Embedded::start(&settings)
            .await
            .context("the embedded Postgres did not start")?;
        let database = Self {
            url: own.url().clone(),
            writer_url: None,
            own: Some(own),
        };
        store::migrate(&database.settings(config), SystemClock.now().date()).await?;
        Ok(database)
    }

    /// The database that the configuration names.
    fn given(config: &Config) -> anyhow::Result<Self> {
        let audit = &config.database.audit;
        Ok(Self {
            url: url(config)?,
            writer_url: match (&audit.writer_url, &audit.writer_url_file) {
                (Some(url), _) => Some(url.clone()),
                (None, Some(file)) => Some(config::read_secret_file(file)?),
                (None, None) => None,
            },
            own: None,
        })
    }

    /// Pools of connections; none is opened yet.
    pub(super) fn connect(&self, config: &Config) -> anyhow::Result<Store> {
        Ok(Store::connect(&self.settings(config))?)
    }

    fn settings<'a>(&'a self, config: &'a Config) -> DatabaseSettings<'a> {
        let database = &config.database;
        DatabaseSettings {
            url: &self.url,
            direct_url: database.direct_url.as_ref(),
            connections: database.connections,
            audit_connections: database.audit_connections,
            audit_writer_url: self.writer_url.as_ref(),
            audit_roles_required: database.audit.roles == Separation::Required,
            timeout: database.timeout.0,
        }
    }

    /// Refuses a schema that a newer release made. A database that is away, or
    /// behind, is waited for: alive and not ready. Says whether it is what this
    /// release needs.
    pub(super) async fn accept_schema(&self, store: &Store) -> anyhow::Result<bool> {
        match store.schema_state().await {
            Ok(SchemaState::Newer) => bail!(NEWER),
            Ok(SchemaState::Behind) => {
                tracing::warn!("The database has an older schema; waiting for `toolgate migrate`.");
            }
            Ok(SchemaState::Current) => return Ok(true),
            Err(error) => {
                tracing::warn!(%error, "The database is away; calls are refused until it is back.");
            }
        }
        Ok(false)
    }

    /// Stops the database where it is ours.
    pub(super) async fn close(self) {
        if let Some(own) = self.own
            && let Err(error) = own.stop().await
        {
            tracing::warn!(%error, "The embedded Postgres did not stop cleanly.");
        }
    }
}

/// The connection string, from the file or the configuration.
fn url(config: &Config) -> anyhow::Result<Secret<String>> {
    match (&config.database.url, &config.database.url_file) {
        (Some(url), _) => Ok(url.clone()),
        (None, Some(file)) => Ok(config::read_secret_file(file)?),
        (None, None) => bail!("database.url is missing"),
    }
}

/// Brings the database to this release's schema. Says what is missing where the
/// audit's roles could not be made.
///
/// # Errors
/// When it is away, newer, or a migration fails; nothing is half done.
pub async fn migrate(loaded: &Loaded) -> anyhow::Result<Option<String>> {
    let config = &loaded.config;
    if config.database.embedded.is_some() {
        bail!("an embedded database is brought to this release's schema when the service starts");
    }
    let database = Database::given(config)?;
    Ok(store::migrate(&database.settings(config), SystemClock.now().date()).await?)
}

/// The database of a configuration for a command that reads it: an embedded one
/// must be running.
pub(crate) async fn reader(loaded: &Loaded) -> anyhow::Result<Store> {
    let config = &loaded.config;
    let database = match &config.database.embedded {
        Some(embedded) => Database {
            url: Embedded::running_url(&embedded.data_dir)?,
            writer_url: None,
            own: None,
        },
        None => Database::given(config)?,
    };
    database.connect(config)
}

/// The same for statements that may take long: nobody waits for a command but a person.
pub(crate) async fn patient_reader(loaded: &Loaded) -> anyhow::Result<Store> {
    let store = reader(loaded).await?;
    // A database that is away is found out within the server's time.
    store.ping().await?;
    let mut patient = loaded.clone();
    patient.config.database.timeout.0 = PATIENCE;
    reader(&patient).await
}

/// How long a statement of a command may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_hours(1);

/// The connection strings of a configuration, each with the key that gives it.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn ways(config: &Config) -> anyhow::Result<Vec<(&'static str, Secret<String>)>> {
    if let Some(embedded) = &config.database.embedded {
        let url = Embedded::running_url(&embedded.data_dir)?;
        return Ok(vec![("database.embedded", url)]);
    }
    let database = Database::given(config)?;
    let direct = config.database.direct_url.clone();
    let ways = [
        ("database.url", Some(database.url)),
        ("database.direct_url", direct),
        ("database.audit.writer_url", database.writer_url),
    ];
    Ok(ways
        .into_iter()
        .filter_map(|(key, url)| Some((key, url?)))
        .collect())
}

/// Upkeep of the audit's tables, as the configuration wants them kept. A day that is
/// dropped is verified and signed before; with `unverified` one that does not verify
/// is signed as it is and dropped all the same.
///
/// # Errors
/// When the database is away, or the login does not own the tables.
pub(crate) async fn maintain(
    store: &Store,
    config: &Config,
    keys: &Keys,
    unverified: bool,
) -> Result<Maintained, UpkeepFault> {
    let holds = config.audit.holds.iter().map(|hold| Hold {
        from: hold.from.0,
        until: hold.until.map(|until| until.0),
    });
    let retention = Retention {
        days: config.audit.retention_days(),
        holds: holds.collect(),
    };
    let close_chains = |day| {
        async move {
            let now = SystemClock.now();
            match audit::closing::close_partition(store, keys, day, now, unverified).await {
                Ok(_) => Ok(()),
                Err(fault) => Err(fault.to_string()),
            }
        }
        .boxed()
    };
    audit::maintain(store, SystemClock.now().date(), &retention, &close_chains).await
}
