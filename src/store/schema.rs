//! The schema: what this release needs, what the database has, and the way
//! from one to the other. Replicas only ask; `migrate` is an operator's act.

use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, PgExecutor, Row};
use time::Date;
use tokio::time::{Instant, sleep, timeout};

use super::audit_partitions;
use super::connect::{DatabaseSettings, Store};
use super::error::StoreError;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Held while migrating, so that two releases do not do it at once ("toolgate" in ASCII).
const LOCK: i64 = 0x746f_6f6c_6761_7465;

/// How long to wait for another process that migrates: one that lives goes on, and of
/// one that died the server ends the session.
const LOCK_PATIENCE: Duration = Duration::from_hours(1);

/// What a session that migrates asks for. The server looks whether we still live: a
/// statement of somebody who was killed would hold the lock to its end.
const SESSION: [(&str, &str); 2] = [
    ("lock_timeout", "10s"),
    ("client_connection_check_interval", "2s"),
];

/// Locks of a session, and statements in a row, need one session of the server's.
const POOLER: &str = "the connection leads through a transaction pooler, where no lock can be held: give `database.direct_url`, which leads past it";

/// What the database's schema is to this release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// What this release needs.
    Current,
    /// Older: `toolgate migrate` has not run yet.
    Behind,
    /// Newer: this release must not touch it.
    Newer,
}

/// Brings the database's schema to what this release needs and makes the
/// audit's partitions from `today` on. Waits for another process that does the
/// same; refuses a database that a newer release has migrated.
///
/// Says what is missing where the audit's roles could not be made.
pub async fn migrate(
    settings: &DatabaseSettings<'_>,
    today: Date,
) -> Result<Option<String>, StoreError> {
    let store = Store::connect(settings)?;
    let options = store
        .direct()
        .clone()
        .application_name("toolgate migrate")
        .options(SESSION);
    let mut connection =
        connect(&options, settings.timeout)
            .await
            .map_err(|fault| match fault {
                // Poolers refuse, or pass over, what a session asks for.
                StoreError::Unavailable(reason) if reason == "SQLSTATE 08P01" => {
                    StoreError::Migration(POOLER.to_owned())
                }
                fault => fault,
            })?;
    if !keeps_settings(&mut connection).await? {
        return Err(StoreError::Migration(POOLER.to_owned()));
    }
    lock(&mut connection).await?;
    let login = store.login();
    let outcome = apply(&mut connection, &login, today).await;
    // The lock goes with the connection, however this one ends.
    let _ = timeout(settings.timeout, connection.close()).await;
    outcome
}

impl Store {
    /// What the database's schema is to this release: asked by readiness.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        let mut lease = self.lease().await?;
        let asked = async {
            let connection = lease.connection();
            if !has_migrations(&mut *connection).await? {
                return Ok(None);
            }
            newest_applied(connection).await
        };
        let outcome = timeout(self.timeout(), asked).await;
        Ok(state(lease.settle(outcome)?))
    }
}

pub(super) async fn connect(
    options: &PgConnectOptions,
    limit: Duration,
) -> Result<PgConnection, StoreError> {
    match timeout(limit, options.connect()).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(StoreError::of_connection(&error)),
        Err(_) => Err(StoreError::Unavailable("no connection in time".to_owned())),
    }
}

/// Whether the session is as we asked for it.
async fn keeps_settings(connection: &mut PgConnection) -> Result<bool, StoreError> {
    // As plain text: a pooler is no place for a statement with a name.
    let asked = sqlx::raw_sql("SELECT current_setting('lock_timeout')");
    asked
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get::<String, _>(0))
        .map(|limit| limit == "10s")
        .map_err(|error| StoreError::of_statement(&error))
}

/// Tries and sleeps rather than waits: a session that waits for a lock holds
/// a snapshot, and concurrent index builds wait for that.
async fn lock(connection: &mut PgConnection) -> Result<(), StoreError> {
    let patience = Instant::now() + LOCK_PATIENCE;
    loop {
        let locked = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "locked!""#, LOCK)
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| StoreError::of_statement(&error))?;
        if locked {
            return Ok(());
        }
        if Instant::now() > patience {
            return Err(StoreError::Migration(
                "another process has been migrating for an hour".to_owned(),
            ));
        }
        sleep(Duration::from_millis(250)).await;
    }
}

async fn apply(
    connection: &mut PgConnection,
    login: &str,
    today: Date,
) -> Result<Option<String>, StoreError> {
    let fault = |error: sqlx::Error| StoreError::of_statement(&error);
    let encoding = sqlx::query_scalar!(r#"SELECT current_setting('server_encoding') AS "name!""#)
        .fetch_one(&mut *connection)
        .await
        .map_err(fault)?;
    if encoding != "UTF8" {
        return Err(StoreError::Migration(format!(
            "the database's encoding is {encoding}; it must be UTF8, or records would be lost"
        )));
    }
    let applied = if has_migrations(&mut *connection).await.map_err(fault)? {
        newest_applied(&mut *connection).await.map_err(fault)?
    } else {
        None
    };
    if state(applied) == SchemaState::Newer {
        return Err(StoreError::SchemaNewer {
            found: applied.unwrap_or_default(),
            known: newest_known(),
        });
    }
    // Made anew below: no migration has to mind who looks through it.
    sqlx::query("DROP VIEW IF EXISTS audit_tenant_calls")
        .execute(&mut *connection)
        .await
        .map_err(fault)?;
    // `locking` off: the lock is ours, taken by trying.
    let mut migrator = Migrator::with_migrations(MIGRATIONS.iter().cloned().collect());
    migrator
        .set_locking(false)
        .run_direct(None, &mut *connection, false)
        .await
        .map_err(|error| StoreError::Migration(error.to_string()))?;
    for day in audit_partitions::days_ahead(today) {
        audit_partitions::insert(connection, day).await?;
    }
    separate_roles(connection, login).await
}

/// Roles belong to the cluster: another database's migration may make the same
/// ones at the same moment, and Postgres does not wait there but fails.
async fn separate_roles(
    connection: &mut PgConnection,
    login: &str,
) -> Result<Option<String>, StoreError> {
    let mut attempts = 0;
    loop {
        let outcome = sqlx::query_scalar!(
            "SELECT audit_separate_roles(ARRAY[current_user, $1::text]::name[])",
            login
        )
        .fetch_one(&mut *connection)
        .await;
        match outcome {
            Err(sqlx::Error::Database(fault))
                if fault.code().as_deref() == Some("XX000") && attempts < 10 =>
            {
                attempts += 1;
                sleep(Duration::from_millis(100)).await;
            }
            outcome => return outcome.map_err(|error| StoreError::of_statement(&error)),
        }
    }
}

async fn has_migrations(connection: impl PgExecutor<'_>) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT to_regclass('_sqlx_migrations') IS NOT NULL AS "exists!""#)
        .fetch_one(connection)
        .await
}

async fn newest_applied(connection: impl PgExecutor<'_>) -> Result<Option<i64>, sqlx::Error> {
    // Not checked when compiled: the table is made by the driver, not by a migration.
    sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
        .fetch_one(connection)
        .await
}

fn newest_known() -> i64 {
    MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or_default()
}

fn state(applied: Option<i64>) -> SchemaState {
    match applied {
        Some(found) if found > newest_known() => SchemaState::Newer,
        Some(found) if found == newest_known() => SchemaState::Current,
        _ => SchemaState::Behind,
    }
}
