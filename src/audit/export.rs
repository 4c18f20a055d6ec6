//! Export: every entry once, oldest first, a page at a time, and again from where the
//! last export ended. And opening what was sealed.

use time::{Duration, OffsetDateTime};

use super::facts::ArgumentsRecord;
use super::search::{Entry, Filter, SearchFault};
use crate::ids::CallId;
use crate::seal::{SealFault, Sealer};
use crate::store::Store;
use crate::store::audit_calls::{CallQuery, Order};

/// Entries that are read at a time.
const PAGE: u32 = 1_000;

/// An export that is under way.
#[derive(Debug)]
pub struct Export {
    query: CallQuery,
    ended: bool,
}

impl Export {
    /// Everything that `filter` asks for, after `after`, up to `settled` before `now`:
    /// what is newer may still change (a call that runs) or appear (a count that is
    /// written a second later), and is left to the next export.
    ///
    /// # Errors
    /// When the filter cannot be used.
    pub fn new(
        filter: &Filter,
        after: Option<CallId>,
        settled: Duration,
        now: OffsetDateTime,
    ) -> Result<Self, SearchFault> {
        let mut query = filter.query()?;
        let newest = now - settled;
        query.until = Some(query.until.map_or(newest, |until| until.min(newest)));
        query.after = after;
        Ok(Self {
            query,
            ended: false,
        })
    }

    /// The next entries; empty at the end. The last one's `call_id` is the cursor.
    ///
    /// # Errors
    /// The database's fault.
    pub async fn next(&mut self, store: &Store) -> Result<Vec<Entry>, SearchFault> {
        if self.ended {
            return Ok(Vec::new());
        }
        let rows = store.list_calls(&self.query, Order::Oldest, PAGE).await?;
        self.ended = rows.len() < PAGE as usize;
        if let Some(last) = rows.last() {
            self.query.after = Some(CallId(last.call_id));
        }
        Ok(rows.into_iter().map(Entry::from).collect())
    }
}

/// The arguments of an entry that were sealed. None where there are none.
///
/// # Errors
/// When they were sealed with a key that is gone, or changed.
pub fn open(sealer: &Sealer, entry: &Entry) -> Option<Result<Vec<u8>, SealFault>> {
    let sealed = entry.arguments.as_deref()?;
    (entry.arguments_mode == ArgumentsRecord::mode_word(ArgumentsRecord::FULL))
        .then(|| sealer.open(sealed, entry.call_id.0.as_bytes()))
}

/// The columns of CSV, in order: the fields of an entry in JSON, all of them.
pub const FIELDS: [&str; 38] = [
    "time",
    "call_id",
    "kind",
    "action",
    "first_call_id",
    "tenant",
    "issuer",
    "subject",
    "client",
    "grant",
    "token_id",
    "address",
    "client_info",
    "era",
    "version",
    "upstream",
    "tool",
    "upstream_tool",
    "decision",
    "outcome",
    "reason",
    "count",
    "finished",
    "duration_ms",
    "upstream_duration_ms",
    "request_bytes",
    "response_bytes",
    "findings",
    "arguments_mode",
    "arguments",
    "details",
    "arguments_bytes",
    "arguments_digest",
    "trace_id",
    "definition_digest",
    "config_digest",
    "escaped",
    "cut",
];

/// An entry's cells, in the order of [`FIELDS`]. Text that a
/// spreadsheet would take for a formula begins with an apostrophe.
pub fn cells(entry: &Entry) -> Vec<String> {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(entry) else {
        return Vec::new();
    };
    FIELDS.iter().map(|name| cell(fields.get(*name))).collect()
}

fn cell(value: Option<&serde_json::Value>) -> String {
    match value {
        None | Some(serde_json::Value::Null) => String::new(),
        Some(serde_json::Value::String(text)) => {
            if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
                format!("'{text}")
            } else {
                text.clone()
            }
        }
        Some(other) => other.to_string(),
    }
}
