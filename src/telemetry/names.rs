//! Names of spans, fields and metrics: one name for one thing everywhere. Those
//! of the OpenTelemetry conventions for MCP where there is one.
//!
//! Fields are used as `tracing::info!({ field::TENANT } = %tenant, "…")`.

/// Spans: `area.thing.action`.
pub mod span {
    /// One HTTP request.
    pub const HTTP_REQUEST: &str = "http.request";
    /// One MCP request within it.
    pub const MCP_REQUEST: &str = "mcp.request.handle";
    /// A request to an upstream.
    pub const UPSTREAM_REQUEST: &str = "upstream.request.send";
    /// Reading an upstream's tools again.
    pub const CATALOG_REFRESH: &str = "catalog.upstream.refresh";
    /// Fetching an identity provider's keys.
    pub const KEYS_FETCH: &str = "identity.keys.fetch";
    /// Committing a batch of audit events.
    pub const AUDIT_COMMIT: &str = "audit.batch.commit";
}

/// Fields of log lines and spans: dotted, unit last.
pub mod field {
    /// Id of an HTTP request.
    pub const REQUEST: &str = "request.id";
    /// W3C trace id.
    pub const TRACE: &str = "trace.id";
    /// Id of a `tools/call`.
    pub const CALL: &str = "call.id";
    /// Id of this process.
    pub const REPLICA: &str = "replica.id";
    /// The tenant.
    pub const TENANT: &str = "tenant.id";
    /// The upstream.
    pub const UPSTREAM: &str = "upstream.id";
    /// An entry of `identity_providers`.
    pub const PROVIDER: &str = "provider.id";
    /// The OAuth client.
    pub const CLIENT: &str = "client.id";
    /// The MCP method.
    pub const METHOD: &str = "mcp.method.name";
    /// The MCP revision that is spoken.
    pub const VERSION: &str = "mcp.protocol.version";
    /// The legacy session.
    pub const SESSION: &str = "mcp.session.id";
    /// The exposed name of a tool.
    pub const TOOL: &str = "gen_ai.tool.name";
    /// How a call ended.
    pub const OUTCOME: &str = "outcome";
    /// Why something was refused or failed.
    pub const REASON: &str = "reason";
    /// An error in words.
    pub const ERROR: &str = "error";
    /// An HTTP status.
    pub const STATUS: &str = "http.response.status_code";
    /// An address.
    pub const ADDRESS: &str = "client.address";
    /// A file.
    pub const PATH: &str = "path";
    /// How long something took.
    pub const DURATION_MS: &str = "duration_ms";
}

/// Metrics, without the unit and `_total` that the text format adds.
pub mod metric {
    /// How long MCP requests took, as seen from outside.
    pub const OPERATION_DURATION: &str = "mcp_server_operation_duration";
    /// Calls by how they ended.
    pub const CALLS: &str = "toolgate_calls";
    /// Requests refused before they reached an upstream.
    pub const REFUSALS: &str = "toolgate_refusals";
    /// Tokens that were not accepted.
    pub const AUTHENTICATION_FAILURES: &str = "toolgate_authentication_failures";
    /// What sanitising found.
    pub const SANITIZE_FINDINGS: &str = "toolgate_sanitize_findings";
    /// Events in a batch of the audit.
    pub const AUDIT_BATCH_SIZE: &str = "toolgate_audit_batch_size";
    /// How long a batch of the audit took to commit.
    pub const AUDIT_COMMIT: &str = "toolgate_audit_commit";
    /// Audit batches that could not be committed.
    pub const AUDIT_FAILURES: &str = "toolgate_audit_failures";
    /// How long an event of the audit waited until it was durable.
    pub const AUDIT_LAG: &str = "toolgate_audit_lag";
    /// Events that were to be written later and are lost.
    pub const AUDIT_LOST: &str = "toolgate_audit_lost";
    /// Events that wait in a lane.
    pub const AUDIT_QUEUE: &str = "toolgate_audit_queue";
    /// Durable events that no checkpoint covers yet.
    pub const AUDIT_UNSIGNED: &str = "toolgate_audit_unsigned_events";
    /// Calls without an end that were closed.
    pub const AUDIT_ORPHANS: &str = "toolgate_audit_orphans_closed";
    /// Days ahead that have partitions.
    pub const AUDIT_PARTITIONS_AHEAD: &str = "toolgate_audit_partitions_ahead";
    /// Rows in the default partitions.
    pub const AUDIT_DEFAULT_ROWS: &str = "toolgate_audit_default_rows";
    /// Whether the audit is written by a login that can only add to it.
    pub const AUDIT_RESTRICTED: &str = "toolgate_audit_restricted";
    /// How long the shared limits' store took to decide.
    pub const LIMITS_DECISION: &str = "toolgate_limits_decision";
    /// Whether limits are counted together with the other replicas.
    pub const LIMITS_STORE_UP: &str = "toolgate_limits_store_up";
    /// Requests that came while the shared limits' store was away.
    pub const LIMITS_AWAY: &str = "toolgate_limits_store_away";
    /// Replicas that live.
    pub const LIVE_REPLICAS: &str = "toolgate_live_replicas";
    /// Calls that run now.
    pub const INFLIGHT_CALLS: &str = "toolgate_inflight_calls";
    /// Streams that are open now.
    pub const OPEN_STREAMS: &str = "toolgate_open_streams";
    /// Whether an upstream answers.
    pub const UPSTREAM_UP: &str = "toolgate_upstream_up";
    /// Changes of the configuration file.
    pub const CONFIG_RELOADS: &str = "toolgate_config_reloads";
}
