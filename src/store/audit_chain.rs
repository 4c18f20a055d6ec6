//! The chain as it is stored: every event of one writer and tenant in order of
//! sequence, with its texts, caller and body, so that leaf and link can be
//! computed anew from what an auditor would read.

use time::OffsetDateTime;
use tokio::time::timeout;
use uuid::Uuid;

use super::audit_rows::{Measures, StoredBody, StoredCaller};
use super::connect::Store;
use super::error::StoreError;
use crate::ids::TenantId;

/// One event, names in place of ids.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the columns of audit_events, documented at EventRow"
)]
pub struct StoredEvent {
    pub writer: i32,
    pub tenant: String,
    pub sequence: i64,
    pub at: OffsetDateTime,
    pub call_id: Uuid,
    pub linked_call_id: Option<Uuid>,
    pub event: i16,
    pub version: Option<String>,
    pub tool: Option<String>,
    pub upstream: Option<String>,
    pub upstream_tool: Option<String>,
    pub definition: Option<String>,
    pub configuration: Option<String>,
    pub arguments_mode: Option<i16>,
    pub outcome: Option<String>,
    pub measures: Measures,
    pub trace_id: Option<Vec<u8>>,
    pub caller: Option<StoredCaller>,
    pub body: Option<StoredBody>,
    pub leaf: Vec<u8>,
    pub link: Vec<u8>,
}

impl Store {
    /// The writers that have written for `tenant` since `since`, each with its highest sequence.
    #[tracing::instrument(name = "db.audit.list_chains", level = "debug", skip_all)]
    pub async fn list_chains(
        &self,
        tenant: &TenantId,
        since: OffsetDateTime,
    ) -> Result<Vec<(i32, i64)>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                r#"SELECT writer_id, max(sequence) AS "head!" FROM audit_events
                   WHERE tenant_id = (SELECT name_id FROM audit_names WHERE name = $1) AND at >= $2
                   GROUP BY writer_id ORDER BY writer_id"#,
                tenant.as_str(),
                since
            )
            .fetch_all(lease.connection()),
        )
        .await;
        let rows = lease.settle(outcome)?;
        Ok(rows
            .into_iter()
            .map(|row| (row.writer_id, row.head))
            .collect())
    }

    /// At most `limit` events of the chain of `tenant` and `writer`, after sequence `after`.
    #[tracing::instrument(name = "db.audit.list_chain", level = "debug", skip_all)]
    pub async fn list_chain(
        &self,
        tenant: &TenantId,
        writer: i32,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(
                ChainRow,
                r#"SELECT e.writer_id, tenant.name AS tenant, e.sequence, e.at, e.call_id,
                       e.linked_call_id, e.event, version.name AS "version?",
                       tool.name AS "tool?", upstream.name AS "upstream?",
                       upstream_tool.name AS "upstream_tool?", definition.name AS "definition?",
                       configuration.name AS "configuration?", outcome.name AS "outcome?",
                       e.request_bytes, e.arguments_bytes, e.response_bytes, e.upstream_micros,
                       e.total_micros, e.refused_count, e.arguments_mode, e.trace_id, e.leaf, e.link,
                       caller.salt AS "caller_salt?", caller.digest AS "caller_digest?",
                       caller.issuer AS "issuer?", caller.subject AS "subject?",
                       caller.client AS "client?", caller.grant_id AS "grant_id?",
                       caller.token_id AS "token_id?", caller.address AS "address?",
                       caller.client_info AS "client_info?",
                       body.salt AS "body_salt?", body.digest AS "body_digest?",
                       body.marks AS "marks?",
                       body.arguments_digest AS "arguments_digest?",
                       body.arguments AS "arguments?", body.tool AS "body_tool?",
                       body.reason AS "reason?", body.findings AS "findings?"
                   FROM audit_events e
                   JOIN audit_names tenant ON tenant.name_id = e.tenant_id
                   LEFT JOIN audit_names version ON version.name_id = e.version_id
                   LEFT JOIN audit_names tool ON tool.name_id = e.tool_id
                   LEFT JOIN audit_names upstream ON upstream.name_id = e.upstream_id
                   LEFT JOIN audit_names upstream_tool ON upstream_tool.name_id = e.upstream_tool_id
                   LEFT JOIN audit_names definition ON definition.name_id = e.definition_id
                   LEFT JOIN audit_names configuration ON configuration.name_id = e.configuration_id
                   LEFT JOIN audit_names outcome ON outcome.name_id = e.outcome_id
                   LEFT JOIN audit_callers caller ON caller.day = (e.at AT TIME ZONE 'UTC')::date
                       AND caller.writer_id = e.writer_id AND caller.caller_id = e.caller_id
                   LEFT JOIN audit_bodies body ON body.day = (e.at AT TIME ZONE 'UTC')::date
                       AND body.call_id = e.call_id AND body.event = e.event
                   WHERE tenant.name = $1 AND e.writer_id = $2 AND e.sequence > $3
                   ORDER BY e.sequence LIMIT $4"#,
                tenant.as_str(),
                writer,
                after,
                i64::from(limit)
            )
            .fetch_all(lease.connection()),
        )
        .await;
        let rows = lease.settle(outcome)?;
        Ok(rows.into_iter().map(StoredEvent::from).collect())
    }
}

struct ChainRow {
    writer_id: i32,
    tenant: String,
    sequence: i64,
    at: OffsetDateTime,
    call_id: Uuid,
    linked_call_id: Option<Uuid>,
    event: i16,
    version: Option<String>,
    tool: Option<String>,
    upstream: Option<String>,
    upstream_tool: Option<String>,
    definition: Option<String>,
    configuration: Option<String>,
    outcome: Option<String>,
    request_bytes: Option<i32>,
    arguments_bytes: Option<i32>,
    response_bytes: Option<i32>,
    upstream_micros: Option<i64>,
    total_micros: Option<i64>,
    refused_count: Option<i64>,
    trace_id: Option<Vec<u8>>,
    leaf: Vec<u8>,
    link: Vec<u8>,
    caller_salt: Option<Vec<u8>>,
    caller_digest: Option<Vec<u8>>,
    issuer: Option<String>,
    subject: Option<String>,
    client: Option<String>,
    grant_id: Option<String>,
    token_id: Option<String>,
    address: Option<String>,
    client_info: Option<String>,
    body_salt: Option<Vec<u8>>,
    body_digest: Option<Vec<u8>>,
    arguments_mode: Option<i16>,
    marks: Option<i16>,
    arguments_digest: Option<Vec<u8>>,
    arguments: Option<String>,
    body_tool: Option<String>,
    reason: Option<String>,
    findings: Option<String>,
}

impl From<ChainRow> for StoredEvent {
    fn from(row: ChainRow) -> Self {
        let caller = row.caller_digest.map(|digest| StoredCaller {
            salt: row.caller_salt,
            digest,
            issuer: row.issuer,
            subject: row.subject,
            client: row.client,
            grant: row.grant_id,
            token_id: row.token_id,
            address: row.address,
            client_info: row.client_info,
        });
        let body = row.body_digest.map(|digest| StoredBody {
            marks: row.marks.unwrap_or_default(),
            salt: row.body_salt,
            digest,
            arguments_digest: row.arguments_digest,
            arguments: row.arguments,
            tool: row.body_tool,
            reason: row.reason,
            findings: row.findings,
        });
        Self {
            writer: row.writer_id,
            tenant: row.tenant,
            sequence: row.sequence,
            at: row.at,
            call_id: row.call_id,
            linked_call_id: row.linked_call_id,
            event: row.event,
            version: row.version,
            tool: row.tool,
            upstream: row.upstream,
            upstream_tool: row.upstream_tool,
            definition: row.definition,
            configuration: row.configuration,
            arguments_mode: row.arguments_mode,
            outcome: row.outcome,
            measures: Measures {
                request_bytes: row.request_bytes,
                arguments_bytes: row.arguments_bytes,
                response_bytes: row.response_bytes,
                upstream_micros: row.upstream_micros,
                total_micros: row.total_micros,
                refused_count: row.refused_count,
            },
            trace_id: row.trace_id,
            caller,
            body,
            leaf: row.leaf,
            link: row.link,
        }
    }
}
