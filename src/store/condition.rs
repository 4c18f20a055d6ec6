//! What an operator has to know of a database before calls depend on it: settings
//! that decide whether a commit lasts, who may do what, and whether a connection
//! string leads through a pooler. Asked by `toolgate doctor`; nothing is changed.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use super::connect::{Store, parse};
use super::error::StoreError;
use super::schema::connect;
use super::session::{Lent, Session};
use crate::secret::Secret;

/// The settings that are asked for.
const SETTINGS: [&str; 15] = [
    "autovacuum",
    "fsync",
    "full_page_writes",
    "log_min_duration_statement",
    "log_parameter_max_length",
    "log_statement",
    "max_connections",
    "reserved_connections",
    "server_encoding",
    "server_version",
    "server_version_num",
    "superuser_reserved_connections",
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_level",
];

/// What the server says of itself and of the login that asks.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    settings: HashMap<String, String>,
    /// The login.
    pub login: String,
    /// Whether it may do anything at all.
    pub is_superuser: bool,
    /// Whether it owns the audit's tables; `None` where there are none.
    pub owns_audit: Option<bool>,
    /// How many connections the login or the database may have, where that is limited.
    pub connection_limit: Option<i32>,
    /// Whether it is a standby.
    pub is_standby: bool,
    /// Whether the way there is encrypted, or stays on this machine.
    pub is_private: bool,
    /// Replicas of the service that were heard of within the last half minute.
    pub live_replicas: i64,
    /// Tables beside the audit that the login may not read or change.
    pub closed_tables: Vec<String>,
    /// Roles that may alter the audit though they do not own it.
    pub audit_changers: Vec<String>,
}

impl Condition {
    /// A setting as the server writes it; empty where it does not have it.
    pub fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", String::as_str)
    }

    /// A setting that is a number; 0 where it is none.
    pub fn number(&self, name: &str) -> i64 {
        self.setting(name).parse().unwrap_or_default()
    }
}

/// What stands at the end of a connection string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Whether two connections met in one session of the server: a pooler in
    /// transaction mode.
    pub is_pooled: bool,
    /// Tells databases apart: when the server started, and which of its databases it is.
    pub database: String,
}

impl Store {
    /// What the server says of itself and of this login.
    #[tracing::instrument(name = "db.condition.load", level = "debug", skip_all)]
    pub async fn load_condition(&self) -> Result<Condition, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(self.timeout(), condition(lease.connection())).await;
        lease.settle(outcome)
    }
}

async fn condition(connection: &mut Session<Lent>) -> Result<Condition, sqlx::Error> {
    let names = SETTINGS.map(str::to_owned);
    let settings = sqlx::query!(
        r#"SELECT name AS "name!", setting AS "setting!" FROM pg_settings WHERE name = ANY($1)"#,
        &names
    )
    .fetch_all(&mut *connection)
    .await?;
    let login = sqlx::query!(
        r#"SELECT current_user::text AS "login!", rolsuper AS "is_superuser!",
                  (SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class
                   WHERE oid = to_regclass('audit_events')) AS owns_audit,
                  (SELECT min(most) FROM (
                       SELECT rolconnlimit UNION ALL
                       SELECT datconnlimit FROM pg_database WHERE datname = current_database()
                   ) AS limits (most) WHERE most >= 0) AS connection_limit,
                  pg_is_in_recovery() AS "is_standby!",
                  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
                      OR inet_client_addr() IS NULL OR inet_client_addr() = inet_server_addr()
                      AS "is_private!"
           FROM pg_roles WHERE rolname = current_user"#
    )
    .fetch_one(&mut *connection)
    .await?;
    Ok(Condition {
        settings: settings
            .into_iter()
            .map(|row| (row.name, row.setting))
            .collect(),
        login: login.login,
        is_superuser: login.is_superuser,
        owns_audit: login.owns_audit,
        connection_limit: login.connection_limit,
        is_standby: login.is_standby,
        is_private: login.is_private,
        live_replicas: live_replicas(&mut *connection).await?,
        closed_tables: closed_tables(&mut *connection).await?,
        audit_changers: audit_changers(connection).await?,
    })
}

/// None where the table is not there yet, or not this login's to read.
async fn live_replicas(connection: &mut Session<Lent>) -> Result<i64, sqlx::Error> {
    let readable = sqlx::query_scalar!(
        r#"SELECT coalesce(has_table_privilege(to_regclass('replicas'), 'SELECT'), false) AS "readable!""#
    )
    .fetch_one(&mut *connection)
    .await?;
    if !readable {
        return Ok(0);
    }
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "live!" FROM replicas
           WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '30 seconds'"#
    )
    .fetch_one(connection)
    .await
}

async fn closed_tables(connection: &mut Session<Lent>) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT relname::text AS "name!" FROM pg_class
           WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
             AND NOT relispartition AND relname NOT LIKE 'audit\_%' AND relname <> '_sqlx_migrations'
             AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
                      AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
           ORDER BY 1"#
    )
    .fetch_all(connection)
    .await
}

async fn audit_changers(connection: &mut Session<Lent>) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT DISTINCT role.rolname::text AS "role!"
           FROM pg_class part, pg_roles role, unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS act
           WHERE part.oid IN (to_regclass('audit_events'), to_regclass('audit_bodies'),
                              to_regclass('audit_callers'), to_regclass('audit_checkpoints'),
                              to_regclass('audit_closings'), to_regclass('audit_names'))
             AND NOT role.rolsuper AND role.rolname NOT LIKE 'pg\_%'
             AND NOT pg_has_role(role.oid, part.relowner, 'MEMBER')
             AND has_table_privilege(role.oid, part.oid, act)
           ORDER BY 1"#
    )
    .fetch_all(connection)
    .await
}

/// Finds out what stands at the end of a connection string, by two connections that
/// ask in turn: between their statements a pooler in transaction mode lends one session
/// of the server to both.
///
/// # Errors
/// When it cannot be connected to.
pub async fn try_way(url: &Secret<String>, limit: Duration) -> Result<Way, StoreError> {
    // Poolers refuse settings that they do not know, and a pooler is to be told here.
    let options = parse(url)?
        .application_name("toolgate doctor")
        .extra_float_digits(None);
    let mut one = connect(&options, limit).await?;
    let mut other = connect(&options, limit).await?;
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        ones.push(asked(&mut one, limit).await?);
        others.push(asked(&mut other, limit).await?);
    }
    let database = ones.first().map(|(_, place)| place.clone());
    Ok(Way {
        is_pooled: ones
            .iter()
            .any(|(pid, _)| others.iter().any(|(other, _)| other == pid)),
        database: database.unwrap_or_default(),
    })
}

/// The session of the server, and which database of which server it is in. Not a
/// prepared statement: those that a pooler forgets would be mistaken for a fault.
async fn asked(
    connection: &mut PgConnection,
    limit: Duration,
) -> Result<(i32, String), StoreError> {
    const QUERY: &str =
        "SELECT pg_backend_pid(), pg_postmaster_start_time()::text || ' ' || current_database()";
    let asking = sqlx::raw_sql(QUERY).fetch_one(connection);
    let read = |row: sqlx::postgres::PgRow| Ok((row.try_get(0)?, row.try_get(1)?));
    match timeout(limit, asking).await {
        Ok(row) => row
            .and_then(read)
            .map_err(|error| StoreError::of_statement(&error)),
        Err(_) => Err(StoreError::Unavailable("no answer in time".to_owned())),
    }
}
