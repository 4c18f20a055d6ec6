//! Two ways to the database: a pool for everything but the audit, and
//! connections of the audit's own, so that neither waits behind the other.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions, PgRow, Postgres};
use sqlx::query::{Map, Query, QueryScalar};
use sqlx::{ConnectOptions, FromRow};
use tokio::sync::Semaphore;
use tokio::time::{error::Elapsed, timeout};

use super::error::StoreError;
use super::session::{Lent, Session};
use crate::secret::Secret;

/// How to reach the database: the configuration's `database` with its secrets read.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseSettings<'a> {
    /// Connection string; may lead through a transaction pooler.
    pub url: &'a Secret<String>,
    /// Connection string for migrations and `LISTEN`, where `url` will not do.
    pub direct_url: Option<&'a Secret<String>>,
    /// Connections for everything but the audit.
    pub connections: u32,
    /// Connections for writing the audit. Three lanes hold one each; with fewer
    /// than three the last lane would starve, so three is the least.
    pub audit_connections: u32,
    /// Connection string for writing the audit, of a login that may do no more
    /// than `toolgate_audit_writer` may. Without it the lanes come over `url` and
    /// take that role on.
    pub audit_writer_url: Option<&'a Secret<String>>,
    /// Whether the audit is rather not written than by a login that could alter it.
    pub audit_roles_required: bool,
    /// How long a connection or a statement may take.
    pub timeout: Duration,
}

/// The database. Cheap to clone; every clone shares the connections.
#[derive(Clone)]
pub struct Store {
    general: PgPool,
    audit: Arc<AuditAccess>,
    audit_slots: Arc<Semaphore>,
    direct: Arc<PgConnectOptions>,
    timeout: Duration,
    /// Whether `url` leads through a transaction pooler.
    pooled: bool,
}

/// How the lanes of the audit reach the database, and what they may do there.
#[derive(Debug)]
pub(super) struct AuditAccess {
    pub(super) options: PgConnectOptions,
    /// Whether the session takes the writer's role on. Not behind a transaction
    /// pooler: the role would meet somebody else's statements.
    pub(super) takes_role: bool,
    /// Whether its connections lead through a transaction pooler.
    pub(super) pooled: bool,
    pub(super) required: bool,
    pub(super) is_restricted: AtomicBool,
    /// Whether somebody has been told that it is not.
    pub(super) warned: AtomicBool,
}

/// The least that `audit_connections` comes to: one for each lane.
const AUDIT_LANES: u32 = 3;

impl Store {
    /// Prepares the ways to the database and connects nothing: connections are
    /// made when they are first needed, so that a server starts while the
    /// database is away.
    pub fn connect(settings: &DatabaseSettings<'_>) -> Result<Self, StoreError> {
        let general = parse(settings.url)?.application_name("toolgate");
        let audit = parse(settings.audit_writer_url.unwrap_or(settings.url))?
            .application_name("toolgate audit");
        // A direct connection string besides means that `url` leads through a
        // transaction pooler: what a session asks for would be refused there, or
        // meet some other session. Our own clocks and statements must do then.
        let pooled = settings.direct_url.is_some();
        let (general, audit) = if pooled {
            // Poolers refuse settings that they do not know.
            (
                general.extra_float_digits(None),
                audit.extra_float_digits(None),
            )
        } else {
            let limit = settings.timeout.as_millis().to_string();
            let limits = [
                ("statement_timeout", limit.as_str()),
                ("lock_timeout", limit.as_str()),
                ("idle_in_transaction_session_timeout", limit.as_str()),
            ];
            (
                // Search plans depend much on what is filtered by: plans made
                // without the values are poor ones.
                general
                    .options(limits)
                    .options([("plan_cache_mode", "force_custom_plan")]),
                audit
                    .options(limits)
                    .options([("synchronous_commit", "on")]),
            )
        };
        let slots = settings.audit_connections.max(AUDIT_LANES);
        Ok(Self {
            general: PgPoolOptions::new()
                .max_connections(settings.connections.max(1))
                .acquire_timeout(settings.timeout)
                .connect_lazy_with(general),
            audit: Arc::new(AuditAccess {
                options: audit,
                takes_role: !pooled,
                pooled,
                required: settings.audit_roles_required,
                is_restricted: AtomicBool::new(false),
                warned: AtomicBool::new(false),
            }),
            audit_slots: Arc::new(Semaphore::new(slots as usize)),
            direct: Arc::new(
                parse(settings.direct_url.unwrap_or(settings.url))?
                    .application_name("toolgate direct"),
            ),
            timeout: settings.timeout,
            pooled,
        })
    }

    /// Closes the pool; connections that are lent out close when they come back.
    pub async fn close(&self) {
        // A server that is gone must not hold up our own end.
        let _ = timeout(self.timeout, self.general.close()).await;
    }

    /// How long a connection or a statement may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whom the general connections log in as.
    pub(super) fn login(&self) -> String {
        self.general.connect_options().get_username().to_owned()
    }

    pub(super) fn direct(&self) -> &PgConnectOptions {
        &self.direct
    }

    pub(super) fn audit_access(&self) -> Arc<AuditAccess> {
        Arc::clone(&self.audit)
    }

    /// Whether the audit is written by somebody who can do no more than add to
    /// it. False before the first connection too.
    pub fn audit_is_restricted(&self) -> bool {
        self.audit.is_restricted.load(Ordering::Relaxed)
    }

    pub(super) fn audit_slots(&self) -> Arc<Semaphore> {
        Arc::clone(&self.audit_slots)
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout,
            sqlx::query!("SELECT 1 AS one").fetch_one(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Whether the database takes writes. One that does not any more, such as a
    /// primary that became a standby, is not asked again over the same connection.
    pub async fn is_writable(&self) -> Result<bool, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout,
            sqlx::query_scalar!(
                r#"SELECT current_setting('transaction_read_only') = 'off' AS "writable!""#
            )
            .fetch_one(lease.connection()),
        )
        .await;
        lease.settle_if(outcome, |writable| *writable)
    }

    /// How far the database's clock is ahead of `now`, in microseconds.
    pub async fn clock_skew_micros(&self, now: time::OffsetDateTime) -> Result<i64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout,
            sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#)
                .fetch_one(lease.connection()),
        )
        .await;
        let theirs = lease.settle(outcome)?;
        Ok(i64::try_from((theirs - now).whole_microseconds()).unwrap_or(i64::MAX))
    }

    /// Runs a statement, and says how many rows it touched.
    pub(super) async fn execute(
        &self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<u64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(self.timeout, query.execute(lease.connection())).await;
        Ok(lease.settle(outcome)?.rows_affected())
    }

    /// Runs a query that has one row of one column.
    pub(super) async fn fetch_scalar<T>(
        &self,
        query: QueryScalar<'_, Postgres, T, PgArguments>,
    ) -> Result<T, StoreError>
    where
        T: Send + Unpin,
        (T,): for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut lease = self.lease().await?;
        let outcome = timeout(self.timeout, query.fetch_one(lease.connection())).await;
        lease.settle(outcome)
    }

    /// The same where there may be none.
    pub(super) async fn fetch_optional_scalar<T>(
        &self,
        query: QueryScalar<'_, Postgres, T, PgArguments>,
    ) -> Result<Option<T>, StoreError>
    where
        T: Send + Unpin,
        (T,): for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut lease = self.lease().await?;
        let outcome = timeout(self.timeout, query.fetch_optional(lease.connection())).await;
        lease.settle(outcome)
    }

    /// Runs a query that has one row at most.
    pub(super) async fn fetch_optional<F, T>(
        &self,
        query: Map<'_, Postgres, F, PgArguments>,
    ) -> Result<Option<T>, StoreError>
    where
        F: FnMut(PgRow) -> Result<T, sqlx::Error> + Send,
        T: Send + Unpin,
    {
        let mut lease = self.lease().await?;
        let outcome = timeout(self.timeout, query.fetch_optional(lease.connection())).await;
        lease.settle(outcome)
    }

    /// Runs a query, and gives all its rows.
    pub(super) async fn fetch_all<F, T>(
        &self,
        query: Map<'_, Postgres, F, PgArguments>,
    ) -> Result<Vec<T>, StoreError>
    where
        F: FnMut(PgRow) -> Result<T, sqlx::Error> + Send,
        T: Send + Unpin,
    {
        let mut lease = self.lease().await?;
        let outcome = timeout(self.timeout, query.fetch_all(lease.connection())).await;
        lease.settle(outcome)
    }

    pub(super) async fn lease(&self) -> Result<Lease, StoreError> {
        match timeout(self.timeout, self.general.acquire()).await {
            Ok(Ok(connection)) => Ok(Lease(Session::new(Lent::new(connection), self.pooled))),
            Ok(Err(error)) => Err(StoreError::of_connection(&error)),
            Err(_) => Err(StoreError::Unavailable("no connection in time".to_owned())),
        }
    }
}

// The driver's options print their password.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

/// One connection of the general pool, for one function of the store.
pub(super) struct Lease(Session<Lent>);

impl Lease {
    pub(super) fn connection(&mut self) -> &mut Session<Lent> {
        &mut self.0
    }

    /// Ends the lease: a connection that is in doubt does not go back to the pool.
    pub(super) fn settle<T>(
        self,
        outcome: Result<Result<T, sqlx::Error>, Elapsed>,
    ) -> Result<T, StoreError> {
        self.settle_if(outcome, |_| true)
    }

    /// The same where the answer itself may say that the connection is of no use.
    fn settle_if<T>(
        mut self,
        outcome: Result<Result<T, sqlx::Error>, Elapsed>,
        useful: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        let fault = match outcome {
            Ok(Ok(value)) => {
                if !useful(&value) {
                    self.0.inner().give_up();
                }
                return Ok(value);
            }
            Ok(Err(error)) => StoreError::of_statement(&error),
            Err(_) => StoreError::InDoubt,
        };
        if fault.ends_connection() {
            self.0.inner().give_up();
        }
        Err(fault)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Nobody else may go on with a statement that was cut off.
        if self.0.is_open() {
            self.0.inner().give_up();
        }
    }
}

/// The options of a connection string. Statements are never logged: the driver
/// would do so at levels of its own.
pub(super) fn parse(url: &Secret<String>) -> Result<PgConnectOptions, StoreError> {
    PgConnectOptions::from_str(url.expose())
        .map(ConnectOptions::disable_statement_logging)
        .map_err(|_| StoreError::BadUrl)
}
