//! What was signed: each writer's checkpoints in order, what a log says of them, and
//! what was signed about days that were dropped.

use std::collections::{BTreeMap, HashMap};

use time::Date;

use super::super::chain::Digest;
use super::super::checkpoint::{CLOSING_TYPE, Checkpoint, Verifier, token_digest};
use super::super::closing::Closing;
use super::super::event::hexadecimal;
use super::findings::{Finding, FindingKind, Report};
use crate::jose::JoseFault;
use crate::store::audit_checkpoints::{CheckpointRow, ClosingRow, WriterRow};

/// A writer's checkpoints, so far.
#[derive(Debug, Default)]
struct Signed {
    number: i64,
    previous: Option<Digest>,
    last: bool,
}

/// A run of checkpoints of a day that was dropped.
#[derive(Debug)]
struct ClosedRun {
    first: i64,
    last: i64,
    digest: String,
    ended: bool,
}

/// A run of events of a day that was dropped.
#[derive(Clone, Debug)]
pub(super) struct ClosedEvents {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) link: Digest,
}

/// What the log has of a checkpoint.
#[derive(Debug)]
struct Logged {
    digest: Digest,
    checkpoint: Checkpoint,
}

/// Everything that was signed.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    writers: HashMap<i32, WriterRow>,
    signed: HashMap<i32, Signed>,
    logged: BTreeMap<(Date, i32, i64), Logged>,
    closed: HashMap<i32, Vec<ClosedRun>>,
    /// Events of dropped days, by writer and tenant.
    pub(super) closed_events: HashMap<(i32, String), Vec<ClosedEvents>>,
    /// Whether a writer's first checkpoint may lie before what is looked at.
    from_the_middle: bool,
}

impl Signatures {
    pub(super) fn new(writers: Vec<WriterRow>, from_the_middle: bool) -> Self {
        Self {
            writers: writers.into_iter().map(|row| (row.writer, row)).collect(),
            from_the_middle,
            ..Self::default()
        }
    }

    pub(super) fn writers(&self) -> impl Iterator<Item = &WriterRow> {
        self.writers.values()
    }

    pub(super) fn writer(&self, writer: i32) -> Option<&WriterRow> {
        self.writers.get(&writer)
    }

    /// Whether the writer's final checkpoint is there.
    pub(super) fn has_ended(&self, writer: i32) -> bool {
        let closed = self.closed.get(&writer).into_iter().flatten();
        self.signed.get(&writer).is_some_and(|signed| signed.last)
            || closed.into_iter().any(|run| run.ended)
    }

    /// Whether anything is left of it.
    pub(super) fn is_known(&self, writer: i32) -> bool {
        self.signed.contains_key(&writer) || self.closed.contains_key(&writer)
    }

    /// Reads tokens of a log. Those of another deployment do not matter; says how many were ours.
    pub(super) fn read_log<'a>(
        &mut self,
        verifier: &Verifier,
        tokens: impl Iterator<Item = &'a str>,
    ) -> usize {
        for token in tokens {
            if let Ok(checkpoint) = verifier.checkpoint(token) {
                let key = (
                    checkpoint.time().date(),
                    checkpoint.writer,
                    checkpoint.number,
                );
                let digest = token_digest(token);
                self.logged.insert(key, Logged { digest, checkpoint });
            }
        }
        self.logged.len()
    }

    /// Reads what was signed about dropped days.
    pub(super) fn read_closings(
        &mut self,
        verifier: &Verifier,
        rows: &[ClosingRow],
        report: &mut Report,
    ) {
        let mut previous = "0".repeat(64);
        for (number, row) in (1..).zip(rows) {
            let wrong = |why: &str| {
                let what = format!("closing {} of {}: {why}", row.number, row.day);
                Finding::new(FindingKind::AlteredClosing, what)
            };
            match verifier.read::<Closing>(&row.token, CLOSING_TYPE) {
                Ok(closing) => {
                    if row.number != number
                        || closing.number != number
                        || closing.previous != previous
                    {
                        report.add(wrong("it does not follow from the one before it"));
                    }
                    if closing.day != row.day.to_string() {
                        report.add(wrong("it was signed for another day"));
                    }
                    if closing.part == 1 {
                        report.dropped_days += 1;
                    }
                    self.closing(closing);
                }
                Err(fault) => report.add(wrong(&fault.to_string())),
            }
            previous = hexadecimal(&token_digest(&row.token));
        }
    }

    fn closing(&mut self, closing: Closing) {
        for (writer, tenant, first, last, link) in closing.events {
            let Some(link) = unhex(&link) else { continue };
            let runs = self.closed_events.entry((writer, tenant)).or_default();
            runs.push(ClosedEvents { first, last, link });
        }
        for (writer, first, last, digest, ended) in closing.checkpoints {
            let runs = self.closed.entry(writer).or_default();
            runs.push(ClosedRun {
                first,
                last,
                digest,
                ended,
            });
        }
    }

    /// One checkpoint of the table. Gives what it says, where it says anything.
    pub(super) fn row(
        &mut self,
        verifier: &Verifier,
        row: &CheckpointRow,
        report: &mut Report,
    ) -> Option<Checkpoint> {
        report.checkpoints += 1;
        let digest = token_digest(&row.token);
        let found = |kind, why: &str| {
            let mut finding = Finding::new(kind, why)
                .writer(row.writer)
                .at(row.number, row.number);
            finding.time = Some(row.at);
            finding
        };
        let key = (row.day, row.writer, row.number);
        let logged = self.logged.remove(&key);
        if logged
            .as_ref()
            .is_some_and(|logged| logged.digest != digest)
        {
            report.add(found(
                FindingKind::AlteredCheckpoint,
                "the log has another one of this number",
            ));
        }
        let checkpoint = match verifier.checkpoint(&row.token) {
            Ok(checkpoint) => checkpoint,
            Err(fault) => {
                let (kind, why) = match fault {
                    JoseFault::UnknownKey => (
                        FindingKind::UnknownKey,
                        "signed by a key that is not given; removed lines of the keys file have to be given as public keys",
                    ),
                    JoseFault::BadSignature => {
                        (FindingKind::ForgedCheckpoint, "its signature is wrong")
                    }
                    _ => (FindingKind::AlteredCheckpoint, "it is no checkpoint"),
                };
                report.add(found(kind, why));
                // What the log has of it holds.
                self.follow(row.writer, row.number, digest, false, report);
                return logged.map(|logged| logged.checkpoint);
            }
        };
        if (checkpoint.writer, checkpoint.number, checkpoint.at)
            != (
                row.writer,
                row.number,
                super::super::checkpoint::to_micros(row.at),
            )
        {
            report.add(found(
                FindingKind::AlteredCheckpoint,
                "it stands at another place than it was signed for",
            ));
        }
        self.registered(&checkpoint, report);
        self.linked(&checkpoint, report);
        self.follow(row.writer, row.number, digest, checkpoint.last, report);
        Some(checkpoint)
    }

    fn registered(&self, checkpoint: &Checkpoint, report: &mut Report) {
        let known = self.writers.get(&checkpoint.writer);
        if known.is_none_or(|row| (row.replica, row.lane) != (checkpoint.replica, checkpoint.lane))
        {
            let why = format!(
                "lane {} of replica {} signed as this writer, which is not registered as that",
                checkpoint.lane, checkpoint.replica
            );
            let finding = Finding::new(FindingKind::UnknownWriter, why).writer(checkpoint.writer);
            report.add(finding.at(checkpoint.number, checkpoint.number));
        }
        if checkpoint.number == 1
            && known.is_some_and(|row| !may_have_started(row.started_at, checkpoint))
        {
            let why = "it is registered since another time: later than it first signed, or before its process began";
            let finding = Finding::new(FindingKind::UnknownWriter, why).writer(checkpoint.writer);
            report.add(finding);
        }
    }

    /// Whether it names the one before it.
    fn linked(&self, checkpoint: &Checkpoint, report: &mut Report) {
        let before = match self.signed.get(&checkpoint.writer) {
            Some(signed) if signed.number + 1 == checkpoint.number => {
                signed.previous.map(|digest| hexadecimal(&digest))
            }
            Some(_) => None,
            None if checkpoint.number == 1 => Some("0".repeat(64)),
            None => self
                .closed_before(checkpoint.writer, checkpoint.number)
                .map(|run| run.digest.clone()),
        };
        if before.is_some_and(|before| before != checkpoint.previous) {
            let why = "it does not follow from the checkpoint before it";
            let finding =
                Finding::new(FindingKind::AlteredCheckpoint, why).writer(checkpoint.writer);
            report.add(finding.at(checkpoint.number, checkpoint.number));
        }
    }

    fn closed_before(&self, writer: i32, number: i64) -> Option<&ClosedRun> {
        let runs = self.closed.get(&writer).into_iter().flatten();
        runs.into_iter().find(|run| run.last + 1 == number)
    }

    /// Moves on to a checkpoint and says which numbers before it are gone.
    fn follow(
        &mut self,
        writer: i32,
        number: i64,
        digest: Digest,
        last: bool,
        report: &mut Report,
    ) {
        let earlier = self.signed.get(&writer).map(|signed| signed.number);
        let begins_here = earlier.is_none() && self.from_the_middle;
        let mut next = earlier.unwrap_or(0) + 1;
        let mut runs: Vec<(i64, i64)> = self
            .closed
            .get(&writer)
            .into_iter()
            .flatten()
            .map(|run| (run.first, run.last))
            .collect();
        runs.sort_unstable();
        for (first, end) in runs {
            if first <= next {
                next = next.max(end + 1);
            }
        }
        if number > next && !begins_here {
            let finding = Finding::new(FindingKind::MissingCheckpoint, "not in the table");
            report.add(finding.writer(writer).at(next, number - 1));
        }
        let signed = self.signed.entry(writer).or_default();
        signed.number = signed.number.max(number);
        signed.previous = Some(digest);
        signed.last |= last;
    }

    /// The log's checkpoints of a day that the table does not have. Called once the
    /// table's have been read.
    pub(super) fn only_logged(&mut self, day: Date, report: &mut Report) -> Vec<Checkpoint> {
        let keys: Vec<_> = self
            .logged
            .range((day, i32::MIN, i64::MIN)..=(day, i32::MAX, i64::MAX))
            .map(|(key, _)| *key)
            .collect();
        let mut missing = Vec::new();
        for key in keys {
            let Some(logged) = self.logged.remove(&key) else {
                continue;
            };
            let checkpoint = logged.checkpoint;
            let closed = self.closed.get(&checkpoint.writer).into_iter().flatten();
            if closed
                .into_iter()
                .any(|run| (run.first..=run.last).contains(&checkpoint.number))
            {
                continue;
            }
            let mut finding = Finding::new(
                FindingKind::MissingCheckpoint,
                "the log has it, the table does not",
            )
            .writer(checkpoint.writer)
            .at(checkpoint.number, checkpoint.number);
            finding.time = Some(checkpoint.time());
            report.add(finding);
            missing.push(checkpoint);
        }
        missing
    }

    /// Days of which the log has checkpoints.
    pub(super) fn logged_days(&self) -> impl Iterator<Item = Date> {
        self.logged.keys().map(|(day, _, _)| *day)
    }
}

pub(super) fn unhex(text: &str) -> Option<Digest> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut digest = [0; 32];
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// A clock may be set right by so much while a process runs.
const CLOCK_SET: time::Duration = time::Duration::minutes(1);

/// A writer is registered after its process began, which its signed id tells, and before
/// it signs for the first time.
fn may_have_started(at: time::OffsetDateTime, first: &Checkpoint) -> bool {
    let began = first.replica.get_timestamp().and_then(|began| {
        let began = i64::try_from(began.to_unix().0).ok()?;
        time::OffsetDateTime::from_unix_timestamp(began).ok()
    });
    began.is_none_or(|began| at + CLOCK_SET >= began) && at <= first.time() + CLOCK_SET
}
