//! The rows of the audit's tables, as their writers and verification see them.

use time::{Date, OffsetDateTime};

use crate::ids::CallId;

/// A row of `audit_events`. Texts are ids of `audit_names`.
#[derive(Clone, Debug)]
pub struct EventRow {
    /// When, to the microsecond.
    pub at: OffsetDateTime,
    /// Position in the chain of writer and tenant, from 1.
    pub sequence: i64,
    /// The call.
    pub call_id: CallId,
    /// The first call of a multi-round exchange.
    pub linked_call_id: Option<CallId>,
    /// Kind of event.
    pub event: i16,
    /// Who writes.
    pub writer: i32,
    /// Whose call.
    pub tenant: i32,
    /// A row of `audit_callers` of the same writer and day.
    pub caller: Option<i32>,
    /// Protocol revision.
    pub version: Option<i32>,
    /// Exposed name, when it was resolved.
    pub tool: Option<i32>,
    /// The upstream.
    pub upstream: Option<i32>,
    /// The tool's name there.
    pub upstream_tool: Option<i32>,
    /// Digest of the tool's definition, as a name.
    pub definition: Option<i32>,
    /// Digest of the configuration, as a name.
    pub configuration: Option<i32>,
    /// 1 redacted, 2 full (sealed), 3 digest, 4 none.
    pub arguments_mode: Option<i16>,
    /// How it ended.
    pub outcome: Option<i32>,
    /// Sizes and times of the event.
    pub measures: Measures,
    /// Trace id, 16 bytes.
    pub trace_id: Option<Vec<u8>>,
    /// Digest of all the above.
    pub leaf: [u8; 32],
    /// Digest of the previous link and this leaf.
    pub link: [u8; 32],
}

/// What an event is known by: the key of `audit_events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKey {
    /// The call.
    pub call_id: CallId,
    /// Kind of event.
    pub event: i16,
    /// When, to the microsecond.
    pub at: OffsetDateTime,
}

impl EventRow {
    /// Its key.
    pub fn key(&self) -> EventKey {
        EventKey {
            call_id: self.call_id,
            event: self.event,
            at: self.at,
        }
    }
}

/// The numbers of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Bytes of the request.
    pub request_bytes: Option<i32>,
    /// Bytes of the arguments as they came.
    pub arguments_bytes: Option<i32>,
    /// Bytes of the answer.
    pub response_bytes: Option<i32>,
    /// Time in the upstream, in microseconds.
    pub upstream_micros: Option<i64>,
    /// Time from the request to the answer, in microseconds.
    pub total_micros: Option<i64>,
    /// How many refusals one row stands for.
    pub refused_count: Option<i64>,
}

/// A row of `audit_bodies`.
#[derive(Clone, Debug)]
pub struct BodyRow {
    /// The call.
    pub call_id: CallId,
    /// The event's day, UTC.
    pub day: Date,
    /// Kind of event.
    pub event: i16,
    /// Whose call: what readers may see goes by it.
    pub tenant: i32,
    /// What the body says.
    pub body: StoredBody,
}

/// What a body says, and the salt and digest that bind it to its event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredBody {
    /// 1 a NUL was escaped, 2 the arguments were cut.
    pub marks: i16,
    /// Absent once erased.
    pub salt: Option<Vec<u8>>,
    /// SHA-256 of salt and body.
    pub digest: Vec<u8>,
    /// SHA-256 of the arguments as they came.
    pub arguments_digest: Option<Vec<u8>>,
    /// The excerpt.
    pub arguments: Option<String>,
    /// A tool's name that was not resolved: a caller's text.
    pub tool: Option<String>,
    /// Why it ended so.
    pub reason: Option<String>,
    /// What sanitising found.
    pub findings: Option<String>,
}

/// A row of `audit_callers`.
#[derive(Clone, Debug)]
pub struct CallerRow {
    /// The day, UTC.
    pub day: Date,
    /// The writer that numbers it.
    pub writer: i32,
    /// Its number.
    pub caller: i32,
    /// Whose calls it makes: what readers may see goes by it.
    pub tenant: i32,
    /// Who it is.
    pub stored: StoredCaller,
}

/// Who called, and the salt and digest that bind it to its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCaller {
    /// Absent once erased.
    pub salt: Option<Vec<u8>>,
    /// SHA-256 of salt and caller.
    pub digest: Vec<u8>,
    /// `iss`.
    pub issuer: Option<String>,
    /// `sub`.
    pub subject: Option<String>,
    /// OAuth client.
    pub client: Option<String>,
    /// Grant.
    pub grant: Option<String>,
    /// `jti`.
    pub token_id: Option<String>,
    /// Address.
    pub address: Option<String>,
    /// What the client says it is.
    pub client_info: Option<String>,
}

/// Everything that one commit brings.
#[derive(Clone, Debug, Default)]
pub struct EventBatch {
    /// Events, in order of their sequences.
    pub events: Vec<EventRow>,
    /// Their bodies.
    pub bodies: Vec<BodyRow>,
    /// Callers that no earlier batch brought.
    pub callers: Vec<CallerRow>,
}
