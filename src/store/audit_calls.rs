//! View `audit_calls`: one row a call, for search, export and following along.
//! An operator's view over all tenants: `tenant` is a filter here like any
//! other, and who may leave it out is decided above.

use time::OffsetDateTime;
use tokio::time::timeout;
use uuid::Uuid;

use super::audit_rare;
use super::connect::Store;
use super::error::StoreError;
use super::session::{Lent, Session};
use crate::ids::CallId;

/// What calls are looked for. What is absent does not matter.
#[derive(Clone, Debug, Default)]
pub struct CallQuery {
    /// Not before this.
    pub since: Option<OffsetDateTime>,
    /// Before this.
    pub until: Option<OffsetDateTime>,
    /// Exact name.
    pub tenant: Option<String>,
    /// Exact `sub`.
    pub subject: Option<String>,
    /// Exact client id.
    pub client: Option<String>,
    /// Exact exposed name.
    pub tool: Option<String>,
    /// An outcome; `refused` stands for all its steps.
    pub outcome: Option<String>,
    /// A label that sanitising found.
    pub finding: Option<String>,
    /// Any of these kinds of event; none for all.
    pub events: Option<Vec<i16>>,
    /// 16 bytes.
    pub trace_id: Option<Vec<u8>>,
    /// Any of these calls.
    pub call_ids: Option<Vec<CallId>>,
    /// Only calls older than this one.
    pub before: Option<CallId>,
    /// Only calls newer than this one.
    pub after: Option<CallId>,
}

/// Newest or oldest call first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Newest first.
    Newest,
    /// Oldest first.
    Oldest,
}

/// A row of `audit_calls`.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the columns of the view, documented where they are shown: audit::Entry"
)]
pub struct CallRow {
    pub call_id: Uuid,
    pub at: OffsetDateTime,
    pub event: i16,
    pub linked_call_id: Option<Uuid>,
    pub tenant: String,
    pub issuer: Option<String>,
    pub subject: Option<String>,
    pub client: Option<String>,
    pub grant_id: Option<String>,
    pub token_id: Option<String>,
    pub address: Option<String>,
    pub client_info: Option<String>,
    pub version: Option<String>,
    pub upstream: Option<String>,
    pub tool: Option<String>,
    pub upstream_tool: Option<String>,
    pub definition_digest: Option<String>,
    pub configuration_digest: Option<String>,
    pub arguments_mode: Option<i16>,
    pub arguments: Option<String>,
    pub arguments_digest: Option<Vec<u8>>,
    pub marks: Option<i16>,
    pub arguments_bytes: Option<i32>,
    pub request_bytes: Option<i32>,
    pub trace_id: Option<Vec<u8>>,
    pub calls: i64,
    pub outcome: String,
    pub reason: Option<String>,
    pub findings: Option<String>,
    pub finished_at: Option<OffsetDateTime>,
    pub upstream_micros: Option<i64>,
    pub total_micros: Option<i64>,
    pub response_bytes: Option<i32>,
}

/// The one question, asked in either order. The order has to stand in the
/// text: as a parameter it would keep the index from giving rows in order.
macro_rules! calls {
    ($order:tt, $query:expr, $bounds:expr, $limit:expr) => {
        sqlx::query_as!(
            CallRow,
            r#"SELECT call_id AS "call_id!", at AS "at!", event AS "event!", linked_call_id,
                   tenant AS "tenant!", issuer, subject, client, grant_id, token_id, address,
                   client_info, version, upstream, tool, upstream_tool, definition_digest,
                   configuration_digest, arguments_mode, arguments, arguments_digest, marks,
                   arguments_bytes, request_bytes, trace_id, calls AS "calls!",
                   outcome AS "outcome!", reason, findings, finished_at, upstream_micros,
                   total_micros, response_bytes
               FROM audit_calls
               WHERE call_id > $1 AND call_id < $2
                 AND ($3::timestamptz IS NULL OR at >= $3)
                 AND ($4::timestamptz IS NULL OR at < $4)
                 AND ($5::text IS NULL OR tenant = $5)
                 AND ($6::text IS NULL OR subject = $6)
                 AND ($7::text IS NULL OR client = $7)
                 AND ($8::text IS NULL OR tool = $8)
                 AND ($9::text IS NULL OR outcome = $9 OR starts_with(outcome, $9 || ':'))
                 AND ($10::text IS NULL OR position($10 IN findings) > 0)
                 AND ($11::bytea IS NULL OR trace_id = $11)
                 AND ($12::uuid[] IS NULL OR call_id = ANY($12))
                 AND ($14::int2[] IS NULL OR event = ANY($14))
               ORDER BY call_id "#
                + $order
                + " LIMIT $13",
            $bounds.low,
            $bounds.high,
            $bounds.since,
            $bounds.until,
            $query.tenant,
            $query.subject,
            $query.client,
            $query.tool,
            $query.outcome,
            $query.finding,
            $query.trace_id,
            $bounds.ids.as_deref(),
            $limit,
            $query.events.as_deref()
        )
    };
}

impl Store {
    /// At most `limit` calls that `query` asks for.
    #[tracing::instrument(name = "db.audit.list_calls", level = "debug", skip_all)]
    pub async fn list_calls(
        &self,
        query: &CallQuery,
        order: Order,
        limit: u32,
    ) -> Result<Vec<CallRow>, StoreError> {
        let mut lease = self.lease().await?;
        let asked = calls(lease.connection(), query, order, i64::from(limit));
        let outcome = timeout(self.timeout(), asked).await;
        lease.settle(outcome)
    }
}

async fn calls(
    connection: &mut Session<Lent>,
    query: &CallQuery,
    order: Order,
    limit: i64,
) -> sqlx::Result<Vec<CallRow>> {
    let mut bounds = Bounds::of(query);
    // Calls that are named are looked up, and few enough to be looked at each.
    if bounds.ids.is_none()
        && bounds.is_long()
        && let Some(few) = audit_rare::few(connection, query, &bounds).await?
    {
        bounds.ids = Some(few);
    }
    match order {
        Order::Newest => {
            calls!("DESC", query, bounds, limit)
                .fetch_all(connection)
                .await
        }
        Order::Oldest => {
            calls!("ASC", query, bounds, limit)
                .fetch_all(connection)
                .await
        }
    }
}

/// The same bounds twice: of call ids (`UUIDv7`), which the index goes by, and
/// of times, which partitions are pruned by.
pub(super) struct Bounds {
    pub(super) low: Uuid,
    pub(super) high: Uuid,
    pub(super) since: Option<OffsetDateTime>,
    until: Option<OffsetDateTime>,
    ids: Option<Vec<Uuid>>,
}

/// Calls of less time than this are looked through in their order.
const LONG: time::Duration = time::Duration::HOUR;

/// A call's id and its time are read from the clock one after the other.
const SLACK: time::Duration = time::Duration::seconds(1);

impl Bounds {
    fn of(query: &CallQuery) -> Self {
        let ids: Option<Vec<Uuid>> = query
            .call_ids
            .as_ref()
            .map(|ids| ids.iter().map(|id| id.0).collect());
        let least = ids.as_ref().and_then(|ids| ids.iter().min());
        let greatest = ids.as_ref().and_then(|ids| ids.iter().max());
        let after = query.after.map(|id| id.0);
        let before = query.before.map(|id| id.0);
        let low = query.since.map(|at| floor_id(at - SLACK)).max(after);
        let high = query.until.map(|at| floor_id(at + SLACK));
        Self {
            low: low.unwrap_or(Uuid::nil()),
            high: high.into_iter().chain(before).min().unwrap_or(Uuid::max()),
            since: [query.since]
                .into_iter()
                .chain([after, least.copied()].map(|id| id.and_then(time_of).map(|at| at - SLACK)))
                .max()
                .flatten(),
            until: [before, greatest.copied()]
                .map(|id| id.and_then(time_of).map(|at| at + SLACK))
                .into_iter()
                .chain([query.until])
                .flatten()
                .min(),
            ids,
        }
    }

    /// Whether they hold more time than is looked through call by call.
    fn is_long(&self) -> bool {
        match (time_of(self.low), time_of(self.high)) {
            (Some(low), Some(high)) => high - low > LONG,
            _ => true,
        }
    }
}

/// The lowest call id of a moment (RFC 9562 §5.7: 48 bits of milliseconds first).
pub fn floor_id(at: OffsetDateTime) -> Uuid {
    let millis = u64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    Uuid::from_u128(u128::from(millis) << 80)
}

/// The moment that a call id was made at; none where it is no `UUIDv7` of our times.
fn time_of(id: Uuid) -> Option<OffsetDateTime> {
    let nanos = i128::try_from(id.as_u128() >> 80).ok()? * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()
}
