//! The database: a given one, or one of our own that is started and stopped here.

use anyhow::{Context, bail};

use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Loaded};
use crate::secret::Secret;
use crate::store::embedded::{Embedded, EmbeddedSettings};
use crate::store::{self, DatabaseSettings, SchemaState, Store};

/// What an operator is told who starts an old release.
pub(super) const NEWER: &str =
    "the database has the schema of a newer release; run that release, nothing was changed";

/// Where the database is, and the process where it is ours.
pub(super) struct Database {
    url: Secret<String>,
    own: Option<Embedded>,
}

impl Database {
    /// Finds the database, or starts one and brings it to this release's schema.
    pub(super) async fn open(config: &Config) -> anyhow::Result<Self> {
        let Some(embedded) = &config.database.embedded else {
            return Ok(Self {
                url: url(config)?,
                own: None,
            });
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
            own: Some(own),
        };
        store::migrate(&database.settings(config), SystemClock.now().date()).await?;
        Ok(database)
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

/// Brings the database to this release's schema.
///
/// # Errors
/// When it is away, newer, or a migration fails; nothing is half done.
pub async fn migrate(loaded: &Loaded) -> anyhow::Result<()> {
    let config = &loaded.config;
    if config.database.embedded.is_some() {
        bail!("an embedded database is brought to this release's schema when the service starts");
    }
    let database = Database {
        url: url(config)?,
        own: None,
    };
    store::migrate(&database.settings(config), SystemClock.now().date()).await?;
    Ok(())
}

/// The database of a configuration for a command that reads it: an embedded one
/// must be running.
pub(crate) async fn reader(loaded: &Loaded) -> anyhow::Result<Store> {
    let config = &loaded.config;
    let url = match &config.database.embedded {
        Some(embedded) => Embedded::running_url(&embedded.data_dir)?,
        None => url(config)?,
    };
    let database = Database { url, own: None };
    database.connect(config)
}
