//! Finding calls again: the rows of the view as one flat entry a call.

use serde::Serialize;
use time::OffsetDateTime;

use super::act::ActKind;
use super::event::{Kind, Marks, hexadecimal};
use super::facts::ArgumentsRecord;
use crate::clock::timestamp;
use crate::ids::CallId;
use crate::protocol::Version;
use crate::store::audit_calls::{CallQuery, CallRow, Order};
use crate::store::{Store, StoreError};

/// What calls are looked for. What is absent does not matter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Not before this.
    pub since: Option<OffsetDateTime>,
    /// Before this.
    pub until: Option<OffsetDateTime>,
    /// The tenant's id.
    pub tenant: Option<String>,
    /// `sub`.
    pub subject: Option<String>,
    /// OAuth client id.
    pub client: Option<String>,
    /// Exposed name, or what the caller took for one.
    pub tool: Option<String>,
    /// An outcome of `rules.md` §7; `refused` stands for all its steps.
    pub outcome: Option<String>,
    /// A label of sanitising.
    pub finding: Option<String>,
    /// Trace id, 32 hexadecimal digits.
    pub trace_id: Option<String>,
    /// The call.
    pub call_id: Option<CallId>,
    /// What sort of entries.
    pub kinds: Kinds,
}

/// What sort of entries are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kinds {
    /// Calls.
    #[default]
    Calls,
    /// Acts of one kind.
    Acts(ActKind),
    /// Everything.
    Any,
}

impl Kinds {
    /// `call`, `any`, or the word of an act.
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "call" => Some(Self::Calls),
            "any" => Some(Self::Any),
            _ => ActKind::of_word(word).map(Self::Acts),
        }
    }

    fn events(self) -> Option<Vec<i16>> {
        match self {
            Self::Calls => Some(vec![Kind::Started as i16, Kind::Refused as i16]),
            Self::Acts(kind) => Some(vec![kind.number()]),
            Self::Any => None,
        }
    }
}

/// A call as it is shown: flat, and whole once it has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// When it came in.
    #[serde(serialize_with = "timestamp::serialize")]
    pub time: OffsetDateTime,
    /// The call.
    pub call_id: CallId,
    /// The first call of the exchange, where this is a later round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_call_id: Option<CallId>,
    /// `call`, or what sort of act.
    pub kind: &'static str,
    /// What was done, where it is an act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The tenant; empty for an act that belongs to none.
    pub tenant: String,
    /// `iss`; absent once erased, as is everything else about the caller.
    pub issuer: Option<String>,
    /// `sub`.
    pub subject: Option<String>,
    /// OAuth client.
    pub client: Option<String>,
    /// Grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// `jti`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// Address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What the client says it is; unverified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_info: Option<String>,
    /// `legacy` or `modern`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<&'static str>,
    /// Protocol revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Exposed name.
    pub tool: Option<String>,
    /// The name at the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_tool: Option<String>,
    /// `allowed` or `refused`.
    pub decision: &'static str,
    /// How it ended; `unknown` while nobody knows, or for ever.
    pub outcome: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many refusals this stands for; 1 for a call.
    pub count: i64,
    /// When it ended.
    #[serde(
        serialize_with = "timestamp::serialize_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub finished: Option<OffsetDateTime>,
    /// Time from request to answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// Time in the upstream, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_duration_ms: Option<f64>,
    /// Bytes of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<i32>,
    /// Bytes of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<i32>,
    /// What sanitising found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<String>,
    /// `redacted`, `full`, `digest` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_mode: Option<&'static str>,
    /// The excerpt; sealed where the mode is `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Facts about an act, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Bytes of the arguments as they came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_bytes: Option<i32>,
    /// SHA-256 of the arguments as they came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<String>,
    /// Texts had NULs, which are shown as `\u0000`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub escaped: bool,
    /// Texts were too long and were cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Trace id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Digest of the definition that the caller was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition_digest: Option<String>,
    /// Digest of the configuration that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_digest: Option<String>,
}

/// Some entries, newest first, and where the next page begins.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    /// The entries.
    pub entries: Vec<Entry>,
    /// What to pass as `before` for older ones; none when these were the last.
    pub next: Option<CallId>,
}

/// Why nothing could be looked up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchFault {
    /// Not 32 hexadecimal digits.
    #[error("`{0}` is no trace id: it has 32 hexadecimal digits")]
    TraceId(String),
    /// The database's fault.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The calls that `filter` asks for, newest first, at most `limit` of them,
/// older than `before` where a page came before this one.
pub async fn search(
    store: &Store,
    filter: &Filter,
    before: Option<CallId>,
    limit: u32,
) -> Result<Page, SearchFault> {
    let query = CallQuery {
        before,
        ..filter.query()?
    };
    let limit = limit.clamp(1, 10_000);
    // One more than asked for tells whether there is another page.
    let mut rows = store.list_calls(&query, Order::Newest, limit + 1).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let entries: Vec<Entry> = rows.into_iter().map(Entry::from).collect();
    let next = entries.last().filter(|_| more).map(|entry| entry.call_id);
    Ok(Page { entries, next })
}

impl Filter {
    pub(super) fn query(&self) -> Result<CallQuery, SearchFault> {
        let trace_id = self
            .trace_id
            .as_deref()
            .map(|text| unhex(text).ok_or_else(|| SearchFault::TraceId(text.to_owned())))
            .transpose()?;
        Ok(CallQuery {
            since: self.since,
            until: self.until,
            tenant: self.tenant.clone(),
            subject: self.subject.clone(),
            client: self.client.clone(),
            tool: self.tool.clone(),
            outcome: self.outcome.clone(),
            finding: self.finding.clone(),
            trace_id,
            call_ids: self.call_id.map(|id| vec![id]),
            events: self.kinds.events(),
            before: None,
            after: None,
        })
    }
}

impl From<CallRow> for Entry {
    fn from(row: CallRow) -> Self {
        let refused = row.outcome == "refused" || row.outcome.starts_with("refused:");
        let marks = row.marks.unwrap_or_default();
        let act = ActKind::ALL
            .into_iter()
            .find(|kind| kind.number() == row.event);
        let (tool, action) = if act.is_some() {
            (None, row.tool)
        } else {
            (row.tool, None)
        };
        let (arguments, details) = if act.is_some() {
            (None, row.arguments)
        } else {
            (row.arguments, None)
        };
        Self {
            kind: act.map_or("call", ActKind::word),
            action,
            details,
            time: row.at,
            call_id: CallId(row.call_id),
            first_call_id: row.linked_call_id.map(CallId),
            tenant: row.tenant,
            issuer: row.issuer,
            subject: row.subject,
            client: row.client,
            grant: row.grant_id,
            token_id: row.token_id,
            address: row.address,
            client_info: row.client_info,
            era: row
                .version
                .as_deref()
                .and_then(Version::parse)
                .map(|version| version.era().name()),
            version: row.version,
            upstream: row.upstream,
            tool,
            upstream_tool: row.upstream_tool,
            decision: if refused { "refused" } else { "allowed" },
            outcome: row.outcome,
            reason: row.reason,
            count: row.calls,
            finished: row.finished_at,
            duration_ms: row.total_micros.map(millis),
            upstream_duration_ms: row.upstream_micros.map(millis),
            request_bytes: row.request_bytes,
            response_bytes: row.response_bytes,
            findings: row.findings,
            arguments_mode: row.arguments_mode.and_then(ArgumentsRecord::mode_word),
            arguments,
            arguments_bytes: row.arguments_bytes,
            arguments_digest: row.arguments_digest.as_deref().map(hexadecimal),
            escaped: marks & Marks::NUL_ESCAPED != 0,
            cut: marks & Marks::CUT != 0,
            trace_id: row.trace_id.as_deref().map(hexadecimal),
            definition_digest: row.definition_digest,
            config_digest: row.configuration_digest,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds for reading; 2^53 microseconds are 285 years"
)]
fn millis(micros: i64) -> f64 {
    micros as f64 / 1_000.0
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    (0..16)
        .map(|at| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_32_digits_and_nothing_else() {
        assert_eq!(
            unhex("0af7651916cd43dd8448eb211c80319c").map(|id| hexadecimal(&id)),
            Some("0af7651916cd43dd8448eb211c80319c".to_owned())
        );
        assert_eq!(unhex("0af7"), None);
        assert_eq!(unhex("0af7651916cd43dd8448eb211c8031zz"), None);
        let filter = Filter {
            trace_id: Some("abc".to_owned()),
            ..Filter::default()
        };
        assert!(filter.query().is_err());
    }
}
