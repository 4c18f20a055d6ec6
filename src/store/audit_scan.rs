//! Long reads of the audit: a day at a time, row by row, in bounded memory, over a
//! connection of their own that no server's time limit cuts off.

mod events;

use std::fmt;

use futures_util::TryStreamExt as _;
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnection;
use time::{Date, Duration, OffsetDateTime, Time};
use tokio::time::timeout;
use uuid::Uuid;

use super::audit_rows::StoredCaller;
use super::connect::Store;
use super::error::StoreError;

pub use events::ScannedEvent;

/// A connection for long reads.
pub struct AuditScan(PgConnection);

/// A caller as it is stored.
#[derive(Clone, Debug)]
pub struct ScannedCaller {
    /// Who numbers it.
    pub writer: i32,
    /// Its number.
    pub caller: i32,
    /// Who it is.
    pub stored: StoredCaller,
    /// The erasure that took text and salt away.
    pub erased_by: Option<Uuid>,
    /// Whose readers see it.
    pub tenant: Option<i32>,
}

/// The places of a chain that are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// The chain's writer.
    pub writer: i32,
    /// The chain's tenant, an id of the dictionary.
    pub tenant: i32,
    /// The first place.
    pub first: i64,
    /// The last place.
    pub last: i64,
}

/// An event in such a place.
#[derive(Clone, Copy, Debug)]
pub struct FoundLink {
    /// The chain's writer.
    pub writer: i32,
    /// The chain's tenant.
    pub tenant: i32,
    /// The place.
    pub sequence: i64,
    /// The link there.
    pub link: [u8; 32],
}

/// Consecutive events of one chain within a day.
#[derive(Clone, Debug)]
pub struct Run {
    /// The chain's writer.
    pub writer: i32,
    /// The chain's tenant.
    pub tenant: String,
    /// The first place.
    pub first: i64,
    /// The last place.
    pub last: i64,
    /// The last link.
    pub link: Vec<u8>,
}

impl Store {
    /// A connection for long reads.
    pub async fn scan(&self) -> Result<AuditScan, StoreError> {
        // Rows come in the order in which they lie, which is nearly that of the chains:
        // nothing is sorted, and no read begins in the middle to share another's pages.
        let options = self
            .direct()
            .clone()
            .application_name("toolgate audit scan")
            .options([
                ("statement_timeout", "0"),
                ("synchronize_seqscans", "off"),
                ("max_parallel_workers_per_gather", "0"),
                ("timezone", "UTC"),
            ]);
        match timeout(self.timeout(), options.connect()).await {
            Ok(Ok(connection)) => Ok(AuditScan(connection)),
            Ok(Err(error)) => Err(StoreError::of_connection(&error)),
            Err(_) => Err(StoreError::Unavailable("no connection in time".to_owned())),
        }
    }
}

/// The first moment of a day and of the next.
pub(super) fn bounds(day: Date) -> (OffsetDateTime, OffsetDateTime) {
    let low = day.with_time(Time::MIDNIGHT).assume_utc();
    (low, low + Duration::DAY)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the form that `map_err` takes"
)]
pub(super) fn fault(error: sqlx::Error) -> StoreError {
    StoreError::of_statement(&error)
}

impl AuditScan {
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.0
    }

    /// The whole dictionary.
    pub async fn names(&mut self) -> Result<Vec<(i32, String)>, StoreError> {
        let rows = sqlx::query!("SELECT name_id, name FROM audit_names")
            .fetch_all(&mut self.0)
            .await
            .map_err(fault)?;
        Ok(rows
            .into_iter()
            .map(|row| (row.name_id, row.name))
            .collect())
    }

    /// The days that have partitions, rows in the default partition, or checkpoints.
    pub async fn days(&mut self) -> Result<Vec<Date>, StoreError> {
        sqlx::query_scalar!(
            r#"WITH RECURSIVE signed AS (
                   (SELECT min(day) AS day FROM audit_checkpoints)
                   UNION ALL
                   SELECT (SELECT min(c.day) FROM audit_checkpoints c WHERE c.day > signed.day)
                   FROM signed WHERE signed.day IS NOT NULL
               ), parts AS (
                   SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid),
                       'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') AS bound
                   FROM pg_partition_tree('audit_events') t JOIN pg_class c ON c.oid = t.relid
                   WHERE t.isleaf
               )
               SELECT day AS "day!" FROM signed WHERE day IS NOT NULL
               UNION
               SELECT generate_series(bound[1]::timestamptz AT TIME ZONE 'UTC',
                   (bound[2]::timestamptz AT TIME ZONE 'UTC') - interval '1 second',
                   interval '1 day')::date
               FROM parts WHERE bound IS NOT NULL
               UNION
               SELECT (at AT TIME ZONE 'UTC')::date FROM audit_events_default
               ORDER BY 1"#
        )
        .fetch_all(&mut self.0)
        .await
        .map_err(fault)
    }

    /// About how many events there are.
    pub async fn estimate(&mut self) -> Result<i64, StoreError> {
        sqlx::query_scalar!(
            r#"SELECT coalesce(sum(greatest(reltuples, 0)), 0)::int8 AS "rows!"
               FROM pg_partition_tree('audit_events') t JOIN pg_class c ON c.oid = t.relid
               WHERE t.isleaf"#
        )
        .fetch_one(&mut self.0)
        .await
        .map_err(fault)
    }

    /// Every caller of a day.
    pub async fn callers(
        &mut self,
        day: Date,
        mut each: impl FnMut(ScannedCaller),
    ) -> Result<(), StoreError> {
        let mut rows = sqlx::query!(
            "SELECT writer_id, caller_id, salt, digest, issuer, subject, client, grant_id,
                 token_id, address, client_info, erased_by, tenant_id
             FROM audit_callers WHERE day = $1",
            day
        )
        .fetch(&mut self.0);
        while let Some(row) = rows.try_next().await.map_err(fault)? {
            each(ScannedCaller {
                writer: row.writer_id,
                caller: row.caller_id,
                stored: StoredCaller {
                    salt: row.salt,
                    digest: row.digest,
                    issuer: row.issuer,
                    subject: row.subject,
                    client: row.client,
                    grant: row.grant_id,
                    token_id: row.token_id,
                    address: row.address,
                    client_info: row.client_info,
                },
                erased_by: row.erased_by,
                tenant: row.tenant_id,
            });
        }
        Ok(())
    }

    /// Whether joins may give rows in any order.
    async fn joins(&mut self, any_order: bool) -> Result<(), StoreError> {
        sqlx::query_scalar!(
            r#"SELECT set_config('enable_hashjoin', $1, false)
                   || set_config('enable_mergejoin', $1, false) AS "set!""#,
            if any_order { "on" } else { "off" }
        )
        .fetch_one(&mut self.0)
        .await
        .map(drop)
        .map_err(fault)
    }

    /// The links in some places, of events before `low` or from `high` on.
    pub async fn links(
        &mut self,
        places: &[Places],
        low: Option<Date>,
        high: Option<Date>,
        limit: u32,
    ) -> Result<Vec<FoundLink>, StoreError> {
        self.joins(true).await?;
        let column = |of: fn(&Places) -> i64| -> Vec<i64> { places.iter().map(of).collect() };
        let writers: Vec<i32> = places.iter().map(|places| places.writer).collect();
        let tenants: Vec<i32> = places.iter().map(|places| places.tenant).collect();
        let rows = sqlx::query!(
            "SELECT e.writer_id, e.tenant_id, e.sequence, e.link
             FROM UNNEST($1::int4[], $2::int4[], $3::int8[], $4::int8[])
                 AS wanted (writer_id, tenant_id, first, last)
             JOIN audit_events e ON e.writer_id = wanted.writer_id
                 AND e.tenant_id = wanted.tenant_id
                 AND e.sequence BETWEEN wanted.first AND wanted.last
             WHERE (e.at < $5 OR e.at >= $6) LIMIT $7",
            &writers,
            &tenants,
            &column(|places| places.first),
            &column(|places| places.last),
            low.map(|day| bounds(day).0),
            high.map(|day| bounds(day).0),
            i64::from(limit)
        )
        .fetch_all(&mut self.0)
        .await
        .map_err(fault)?;
        rows.into_iter()
            .map(|row| {
                Ok(FoundLink {
                    writer: row.writer_id,
                    tenant: row.tenant_id,
                    sequence: row.sequence,
                    link: array(&row.link)?,
                })
            })
            .collect()
    }

    /// Of `ids` those that are on record as erasures.
    pub async fn recorded_erasures(&mut self, ids: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
        sqlx::query_scalar!(
            "SELECT e.call_id FROM audit_events e
             JOIN audit_names action ON action.name_id = e.tool_id
             WHERE e.call_id = ANY($1) AND e.event = 22 AND action.name = 'audit.erase'",
            ids
        )
        .fetch_all(&mut self.0)
        .await
        .map_err(fault)
    }

    /// The runs of consecutive places that a day's events make up.
    pub async fn runs(&mut self, day: Date) -> Result<Vec<Run>, StoreError> {
        let (low, high) = bounds(day);
        sqlx::query_as!(
            Run,
            r#"SELECT writer_id AS writer, tenant.name AS tenant, min(sequence) AS "first!",
                   max(sequence) AS "last!", (array_agg(link ORDER BY sequence DESC))[1] AS "link!"
               FROM (
                   SELECT writer_id, tenant_id, sequence, link, sequence - row_number()
                       OVER (PARTITION BY writer_id, tenant_id ORDER BY sequence) AS island
                   FROM audit_events WHERE at >= $1 AND at < $2
               ) e JOIN audit_names tenant ON tenant.name_id = e.tenant_id
               GROUP BY writer_id, tenant.name, island ORDER BY 1, 2, 3"#,
            low,
            high
        )
        .fetch_all(&mut self.0)
        .await
        .map_err(fault)
    }
}

fn array(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes
        .try_into()
        .map_err(|_| StoreError::Inconsistent("link"))
}

// The driver's connection prints its options.
impl fmt::Debug for AuditScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditScan").finish_non_exhaustive()
    }
}
