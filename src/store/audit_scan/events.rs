//! A day's events with their bodies, one after the other.

use futures_util::TryStreamExt as _;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::{AuditScan, bounds, fault};
use crate::store::audit_rows::{Measures, StoredBody};
use crate::store::error::StoreError;

/// An event as it is stored: names are ids of the dictionary.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the columns of audit_events, documented at EventRow"
)]
pub struct ScannedEvent {
    pub writer: i32,
    pub tenant: i32,
    pub sequence: i64,
    pub at: OffsetDateTime,
    pub call_id: Uuid,
    pub event: i16,
    pub linked_call_id: Option<Uuid>,
    pub version: Option<i32>,
    pub tool: Option<i32>,
    pub upstream: Option<i32>,
    pub upstream_tool: Option<i32>,
    pub definition: Option<i32>,
    pub configuration: Option<i32>,
    pub arguments_mode: Option<i16>,
    pub outcome: Option<i32>,
    pub measures: Measures,
    pub trace_id: Option<Vec<u8>>,
    pub caller: Option<i32>,
    pub body: Option<StoredBody>,
    pub body_erased_by: Option<Uuid>,
    pub body_tenant: Option<i32>,
    pub leaf: Vec<u8>,
    pub link: Vec<u8>,
}

/// The one question, with and without an order, which has to stand in the text.
macro_rules! events {
    ($order:literal, $low:expr, $high:expr, $day:expr, $tenant:expr) => {
        sqlx::query_as!(
            EventRow,
            r#"SELECT e.writer_id, e.tenant_id, e.sequence, e.at, e.call_id, e.event,
                   e.linked_call_id, e.version_id, e.tool_id, e.upstream_id, e.upstream_tool_id,
                   e.definition_id, e.configuration_id, e.arguments_mode, e.outcome_id,
                   e.request_bytes, e.arguments_bytes, e.response_bytes, e.upstream_micros,
                   e.total_micros, e.refused_count, e.trace_id, e.caller_id, e.leaf, e.link,
                   b.salt AS "salt?", b.digest AS "digest?", b.marks AS "marks?",
                   b.arguments_digest AS "arguments_digest?", b.arguments AS "arguments?",
                   b.tool AS "tool?", b.reason AS "reason?", b.findings AS "findings?",
                   b.erased_by AS "erased_by?", b.tenant_id AS "body_tenant?"
               FROM audit_events e
               LEFT JOIN audit_bodies b
                   ON b.day = $3 AND b.call_id = e.call_id AND b.event = e.event
               WHERE e.at >= $1 AND e.at < $2 AND ($4::int4 IS NULL OR e.tenant_id = $4) "#
                + $order,
            $low,
            $high,
            $day,
            $tenant
        )
    };
}

struct EventRow {
    writer_id: i32,
    tenant_id: i32,
    sequence: i64,
    at: OffsetDateTime,
    call_id: Uuid,
    event: i16,
    linked_call_id: Option<Uuid>,
    version_id: Option<i32>,
    tool_id: Option<i32>,
    upstream_id: Option<i32>,
    upstream_tool_id: Option<i32>,
    definition_id: Option<i32>,
    configuration_id: Option<i32>,
    arguments_mode: Option<i16>,
    outcome_id: Option<i32>,
    request_bytes: Option<i32>,
    arguments_bytes: Option<i32>,
    response_bytes: Option<i32>,
    upstream_micros: Option<i64>,
    total_micros: Option<i64>,
    refused_count: Option<i64>,
    trace_id: Option<Vec<u8>>,
    caller_id: Option<i32>,
    leaf: Vec<u8>,
    link: Vec<u8>,
    salt: Option<Vec<u8>>,
    digest: Option<Vec<u8>>,
    marks: Option<i16>,
    arguments_digest: Option<Vec<u8>>,
    arguments: Option<String>,
    tool: Option<String>,
    reason: Option<String>,
    findings: Option<String>,
    erased_by: Option<Uuid>,
    body_tenant: Option<i32>,
}

impl From<EventRow> for ScannedEvent {
    fn from(row: EventRow) -> Self {
        let body = row.digest.map(|digest| StoredBody {
            marks: row.marks.unwrap_or_default(),
            salt: row.salt,
            digest,
            arguments_digest: row.arguments_digest,
            arguments: row.arguments,
            tool: row.tool,
            reason: row.reason,
            findings: row.findings,
        });
        Self {
            writer: row.writer_id,
            tenant: row.tenant_id,
            sequence: row.sequence,
            at: row.at,
            call_id: row.call_id,
            event: row.event,
            linked_call_id: row.linked_call_id,
            version: row.version_id,
            tool: row.tool_id,
            upstream: row.upstream_id,
            upstream_tool: row.upstream_tool_id,
            definition: row.definition_id,
            configuration: row.configuration_id,
            arguments_mode: row.arguments_mode,
            outcome: row.outcome_id,
            measures: Measures {
                request_bytes: row.request_bytes,
                arguments_bytes: row.arguments_bytes,
                response_bytes: row.response_bytes,
                upstream_micros: row.upstream_micros,
                total_micros: row.total_micros,
                refused_count: row.refused_count,
            },
            trace_id: row.trace_id,
            caller: row.caller_id,
            body,
            body_erased_by: row.erased_by,
            body_tenant: row.body_tenant,
            leaf: row.leaf,
            link: row.link,
        }
    }
}

impl AuditScan {
    /// Every event of a day with its body, in the order in which they lie, or of each
    /// chain in order of its places (`ordered`, which the database has to sort for).
    /// Ends early when `each` says so.
    pub async fn events(
        &mut self,
        day: Date,
        tenant: Option<i32>,
        ordered: bool,
        mut each: impl FnMut(ScannedEvent) -> bool,
    ) -> Result<(), StoreError> {
        let (low, high) = bounds(day);
        // A join that hashes would give the events in no order at all.
        self.joins(ordered).await?;
        let mut rows = if ordered {
            events!(
                "ORDER BY e.writer_id, e.tenant_id, e.sequence",
                low,
                high,
                day,
                tenant
            )
            .fetch(&mut self.0)
        } else {
            events!("", low, high, day, tenant).fetch(&mut self.0)
        };
        while let Some(row) = rows.try_next().await.map_err(fault)? {
            if !each(row.into()) {
                break;
            }
        }
        Ok(())
    }
}
