//! The daily partitions of `audit_events`, `audit_bodies` and `audit_callers`:
//! made ahead, filled from the default partitions, dropped. An owner's work, over
//! a connection of its own; one day a statement, so that no lock lasts.

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::Connection;
use sqlx::PgExecutor;
use sqlx::postgres::PgConnection;
use time::{Date, Month};
use tokio::time::{sleep, timeout};

use super::connect::Store;
use super::error::StoreError;
use super::schema::connect;

/// How many daily partitions are there from today on: today and seven ahead.
pub const PARTITION_DAYS: u16 = 8;

/// Rows of a day that is still being written which are moved out of the default
/// partition while writers wait. A day with more is moved when it is over.
const MOVED_AT_ONCE: i32 = 50_000;

/// How long a step waits for its locks: whoever comes behind it waits as long.
const LOCK_PATIENCE: &str = "500ms";

/// How often a step is tried that did not get its locks.
const ATTEMPTS: u32 = 20;

/// How long one step may take: a whole day's rows may have to be moved.
const STEP: Duration = Duration::from_mins(10);

/// Held by the one that drops partitions ("tgdrop" in ASCII).
const DROPPING: i64 = 0x7467_6472_6f70;

/// Today and the days ahead.
pub fn days_ahead(today: Date) -> impl Iterator<Item = Date> {
    (0..PARTITION_DAYS)
        .filter_map(move |ahead| today.checked_add(time::Duration::days(ahead.into())))
}

/// What became of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Its partitions are there; so many rows were moved into them.
    Moved(u64),
    /// Left for later: too much of it lies in the default partition while it is
    /// still being written.
    Waits,
}

/// An owner's connection for upkeep.
pub struct PartitionUpkeep(PgConnection);

/// What is known of the partitions from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionFigures {
    /// Days whose partitions are all there, oldest first.
    pub days: Vec<Date>,
    /// Rows in the default partitions, counted up to 10,001.
    pub in_default: i64,
}

impl Store {
    /// Connects for upkeep. `None`: this login does not own the tables, or there are none.
    #[tracing::instrument(name = "db.audit.maintain", level = "debug", skip_all)]
    pub async fn partition_upkeep(&self) -> Result<Option<PartitionUpkeep>, StoreError> {
        let options = self
            .direct()
            .clone()
            .application_name("toolgate audit maintain")
            .options([("lock_timeout", LOCK_PATIENCE)]);
        let mut connection = connect(&options, self.timeout()).await?;
        let owns = limited(
            self.timeout(),
            sqlx::query_scalar!(
                r#"SELECT pg_has_role(relowner, 'MEMBER') AS "owns!" FROM pg_class
                   WHERE oid = to_regclass('audit_events')"#
            )
            .fetch_optional(&mut connection),
        )
        .await?;
        if owns == Some(true) {
            return Ok(Some(PartitionUpkeep(connection)));
        }
        let _ = timeout(self.timeout(), connection.close()).await;
        Ok(None)
    }

    /// Which days have partitions, and what lies outside of them. Any login may ask.
    #[tracing::instrument(name = "db.audit.list_partitions", level = "debug", skip_all)]
    pub async fn partition_figures(&self) -> Result<PartitionFigures, StoreError> {
        let mut lease = self.lease().await?;
        let connection = lease.connection();
        let asked = async {
            let days = partition_days(&mut *connection).await?;
            let in_default = sqlx::query_scalar!(
                r#"SELECT count(*) AS "rows!" FROM (
                       (SELECT FROM audit_events_default LIMIT 10001)
                       UNION ALL
                       (SELECT FROM audit_bodies_default LIMIT 10001)
                   ) AS outside"#
            )
            .fetch_one(connection)
            .await?;
            Ok(PartitionFigures { days, in_default })
        };
        let outcome = timeout(self.timeout(), asked).await;
        lease.settle(outcome)
    }
}

impl PartitionUpkeep {
    /// The days whose partitions are all there, oldest first.
    pub async fn list_days(&mut self) -> Result<Vec<Date>, StoreError> {
        patiently(&mut self.0, |connection| partition_days(connection).boxed()).await
    }

    /// The days of which rows lie in a default partition, oldest first; at most 400.
    pub async fn list_default_days(&mut self) -> Result<Vec<Date>, StoreError> {
        patiently(&mut self.0, |connection| {
            sqlx::query_scalar!(
                r#"SELECT DISTINCT day AS "day!" FROM (
                       SELECT (at AT TIME ZONE 'UTC')::date AS day FROM audit_events_default
                       UNION ALL SELECT day FROM audit_bodies_default
                       UNION ALL SELECT day FROM audit_callers_default
                   ) AS rows ORDER BY 1 LIMIT 400"#
            )
            .fetch_all(connection)
            .boxed()
        })
        .await
    }

    /// Makes a day's partitions where they are missing, with what the default ones hold of it.
    pub async fn insert_day(&mut self, day: Date) -> Result<Placed, StoreError> {
        insert(&mut self.0, day).await
    }

    /// Whether this is the only one that drops, from now on until it ends.
    pub async fn may_drop(&mut self) -> Result<bool, StoreError> {
        limited(
            STEP,
            sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "locked!""#, DROPPING)
                .fetch_one(&mut self.0),
        )
        .await
    }

    /// Drops a day's partitions, and says whether there were any.
    pub async fn delete_day(&mut self, day: Date) -> Result<bool, StoreError> {
        patiently(&mut self.0, |connection| {
            sqlx::query_scalar!(r#"SELECT audit_drop_partition($1) AS "dropped!""#, day)
                .fetch_one(connection)
                .boxed()
        })
        .await
    }

    /// Says good-bye to the server.
    pub async fn close(self) {
        let _ = timeout(Duration::from_secs(2), self.0.close()).await;
    }
}

// The driver's options print their password.
impl fmt::Debug for PartitionUpkeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionUpkeep").finish_non_exhaustive()
    }
}

pub(super) async fn insert(connection: &mut PgConnection, day: Date) -> Result<Placed, StoreError> {
    let moved = patiently(connection, |connection| {
        sqlx::query_scalar!("SELECT audit_make_partition($1, $2)", day, MOVED_AT_ONCE)
            .fetch_one(connection)
            .boxed()
    })
    .await?;
    Ok(moved.map_or(Placed::Waits, |moved| {
        Placed::Moved(moved.try_into().unwrap_or_default())
    }))
}

async fn partition_days(connection: impl PgExecutor<'_>) -> Result<Vec<Date>, sqlx::Error> {
    let names = sqlx::query_scalar!(
        r#"SELECT right(part.relname, 8) AS "day!"
           FROM pg_inherits JOIN pg_class part ON part.oid = inhrelid
           WHERE inhparent IN (to_regclass('audit_events'), to_regclass('audit_bodies'),
                               to_regclass('audit_callers'))
             AND part.relname ~ '_[0-9]{8}$' AND NOT inhdetachpending
           GROUP BY 1 HAVING count(*) = 3 ORDER BY 1"#
    )
    .fetch_all(connection)
    .await?;
    Ok(names.iter().filter_map(|name| day_of(name)).collect())
}

/// `20260728`
fn day_of(name: &str) -> Option<Date> {
    let month: u8 = name.get(4..6)?.parse().ok()?;
    Date::from_calendar_date(
        name.get(..4)?.parse().ok()?,
        Month::try_from(month).ok()?,
        name.get(6..8)?.parse().ok()?,
    )
    .ok()
}

/// Tries again what did not get its locks in time: others were to go first.
async fn patiently<T>(
    connection: &mut PgConnection,
    step: impl for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match limited(STEP, step(&mut *connection)).await {
            Err(StoreError::Unavailable(reason))
                if attempt < ATTEMPTS
                    && (reason.ends_with("55P03") || reason.ends_with("40P01")) =>
            {
                sleep(Duration::from_millis(100) * attempt).await;
            }
            outcome => return outcome,
        }
    }
}

async fn limited<T>(
    limit: Duration,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    match timeout(limit, statement).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(StoreError::of_statement(&error)),
        Err(_) => Err(StoreError::InDoubt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::date;

    #[test]
    fn a_partition_s_name_says_its_day() {
        assert_eq!(day_of("20260728"), Some(date!(2026 - 07 - 28)));
        assert_eq!(day_of("20261328"), None);
        assert_eq!(day_of("_default"), None);
    }
}
