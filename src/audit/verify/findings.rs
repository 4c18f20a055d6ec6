//! What verification says: findings by kind, each with its place.

use std::collections::BTreeMap;

use crate::clock::timestamp;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

/// What is wrong, in words that scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// An event is not what its digest covers.
    AlteredEvent,
    /// A body is not what its digest covers, or was removed.
    AlteredBody,
    /// A caller is not what its digest covers, or was removed.
    AlteredCaller,
    /// An entry of the dictionary reads otherwise than when it was used.
    AlteredName,
    /// An event's time was changed.
    BackDatedEvent,
    /// An event stands at another place of its chain than it was written at.
    ReorderedEvent,
    /// An event was written by another writer, or for another tenant.
    MovedEvent,
    /// Two events claim one place.
    DuplicatedEvent,
    /// Events are gone.
    MissingEvents,
    /// The last events of a chain are gone.
    TruncatedTail,
    /// An event does not follow from the one before it.
    BrokenChain,
    /// Events were replaced by others: they differ from what was signed.
    RewrittenChain,
    /// Events that no checkpoint covers.
    UnsignedTail,
    /// A checkpoint's text, number or place was changed.
    AlteredCheckpoint,
    /// A checkpoint is gone.
    MissingCheckpoint,
    /// A checkpoint was not signed by a key of this deployment.
    ForgedCheckpoint,
    /// A checkpoint was signed by a key that was not given.
    UnknownKey,
    /// What was signed about a dropped day was changed or removed.
    AlteredClosing,
    /// A writer that is not registered, or not as it says.
    UnknownWriter,
    /// A registered writer of which nothing is left.
    EmptyWriter,
    /// A writer ended without its final checkpoint.
    WriterNeverClosed,
    /// Text and salt are gone without an erasure on record.
    UnrecordedErasure,
}

impl FindingKind {
    /// Whether it may come of a crash as well as of tampering: reported, and told
    /// apart by the exit code.
    pub fn is_notice(self) -> bool {
        matches!(
            self,
            Self::UnsignedTail | Self::EmptyWriter | Self::WriterNeverClosed
        )
    }

    /// The word.
    pub fn word(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => word,
            _ => String::new(),
        }
    }
}

/// Something that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// The chain's writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<i32>,
    /// The chain's tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The place in the chain, or the checkpoint's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// The last place, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<i64>,
    /// When it says that it was.
    #[serde(
        serialize_with = "timestamp::serialize_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub time: Option<OffsetDateTime>,
    /// The call or act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Uuid>,
    /// In words.
    pub detail: String,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            writer: None,
            tenant: None,
            sequence: None,
            last: None,
            time: None,
            call_id: None,
            detail: detail.into(),
        }
    }

    pub(super) fn writer(mut self, writer: i32) -> Self {
        self.writer = Some(writer);
        self
    }

    pub(super) fn chain(self, writer: i32, tenant: impl Into<String>) -> Self {
        let mut this = self.writer(writer);
        this.tenant = Some(tenant.into());
        this
    }

    pub(super) fn at(mut self, first: i64, last: i64) -> Self {
        self.sequence = Some(first);
        self.last = (last > first).then_some(last);
        self
    }
}

/// Findings that are listed of one kind; all are counted.
const LISTED: usize = 1_000;

/// What verification has found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Events that were looked at.
    pub events: u64,
    /// Checkpoints whose signature was checked.
    pub checkpoints: u64,
    /// Chains: writer and tenant.
    pub chains: u64,
    /// Callers and bodies that were erased, lawfully as far as the record says.
    pub erased: u64,
    /// Days that were dropped, with what was signed about them.
    pub dropped_days: u64,
    /// Findings of each kind.
    pub counts: BTreeMap<FindingKind, u64>,
    /// The findings; at most a thousand of a kind.
    pub findings: Vec<Finding>,
}

impl Report {
    pub(super) fn add(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.kind).or_default();
        *count += 1;
        if *count <= LISTED as u64 {
            self.findings.push(finding);
        }
    }

    /// Whether something was altered.
    pub fn is_tampered(&self) -> bool {
        self.counts.keys().any(|kind| !kind.is_notice())
    }

    /// Whether nothing at all was found.
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }
}
