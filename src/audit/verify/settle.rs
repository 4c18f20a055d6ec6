//! When all has been seen: which places are empty, which writers never ended, which
//! tails nobody signed, which erasures nobody recorded.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use time::Duration;
use uuid::Uuid;

use super::diagnose::{self, Diagnosis};
use super::examiner::{ChainKey, Examiner};
use super::findings::{Finding, FindingKind};
use super::{VerifyFault, VerifyOptions};
use crate::store::audit_scan::{AuditScan, FoundLink, Places};

/// Places that are looked up outside of the range.
const LOOKED_UP: u32 = 100_000;
/// A living writer signs within this time; what is newer may wait to be signed.
const SIGNING: Duration = Duration::seconds(15);

type Ranges = Vec<RangeInclusive<i64>>;

/// An empty stretch of a chain.
struct Gap {
    key: ChainKey,
    ranges: Ranges,
    tail: bool,
}

pub(super) async fn settle(
    scan: &mut AuditScan,
    options: &VerifyOptions<'_>,
    examiner: &mut Examiner,
) -> Result<(), VerifyFault> {
    examiner.report.chains = examiner.chains.len() as u64;
    let mut gaps = gaps(examiner, options);
    let diagnosis = diagnose::diagnose(examiner, &missing(&gaps));
    for gap in &mut gaps {
        for place in diagnosis.filled(gap.key) {
            subtract(&mut gap.ranges, place, place);
        }
    }
    anchored_by_closings(examiner);
    outside(scan, options, examiner, &mut gaps).await?;
    report_gaps(examiner, gaps);
    report_misfits(examiner, diagnosis);
    report_writers(examiner, options);
    report_erasures(scan, examiner).await?;
    Ok(())
}

/// The empty places that no closing covers.
fn gaps(examiner: &Examiner, options: &VerifyOptions<'_>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for (key, chain) in &examiner.chains {
        let closed = examiner.closed(*key);
        for (range, tail) in chain.links.gaps() {
            let leading = *range.start() == 1;
            // What lies before the range is not looked at, but for its last link.
            let mut ranges = if leading && options.since.is_some() {
                vec![*range.end()..=*range.end()]
            } else {
                vec![range]
            };
            for (first, last) in &closed {
                subtract(&mut ranges, *first, *last);
            }
            if !ranges.is_empty() {
                gaps.push(Gap {
                    key: *key,
                    ranges,
                    tail,
                });
            }
        }
    }
    gaps
}

impl Examiner {
    fn closed(&self, (writer, tenant): ChainKey) -> Vec<(i64, i64)> {
        let key = (writer, self.name(tenant));
        let runs = self
            .signatures
            .closed_events
            .get(&key)
            .into_iter()
            .flatten();
        runs.map(|run| (run.first, run.last)).collect()
    }
}

fn missing(gaps: &[Gap]) -> HashMap<ChainKey, Ranges> {
    let mut missing: HashMap<ChainKey, Ranges> = HashMap::new();
    for gap in gaps {
        missing
            .entry(gap.key)
            .or_default()
            .extend(gap.ranges.iter().cloned());
    }
    missing
}

fn subtract(ranges: &mut Ranges, first: i64, last: i64) {
    let mut left = Vec::with_capacity(ranges.len() + 1);
    for range in ranges.drain(..) {
        let (low, high) = (*range.start(), *range.end());
        if last < low || first > high {
            left.push(range);
            continue;
        }
        if low < first {
            left.push(low..=first - 1);
        }
        if high > last {
            left.push(last + 1..=high);
        }
    }
    *ranges = left;
}

/// Whether what follows a dropped day follows from it.
fn anchored_by_closings(examiner: &mut Examiner) {
    let mut broken = Vec::new();
    for (key, chain) in &examiner.chains {
        let name = (key.0, examiner.name(key.1));
        for run in examiner
            .signatures
            .closed_events
            .get(&name)
            .into_iter()
            .flatten()
        {
            if !chain.links.anchor(run.last + 1, &run.link) {
                broken.push((*key, run.last + 1));
            }
        }
    }
    report_broken(examiner, broken);
}

fn report_broken(examiner: &mut Examiner, broken: Vec<(ChainKey, i64)>) {
    for ((writer, tenant), place) in broken {
        let why = "it does not follow from the event before it, which lies out of range";
        let finding = Finding::new(FindingKind::BrokenChain, why);
        let finding = finding
            .chain(writer, examiner.name(tenant))
            .at(place, place);
        examiner.report.add(finding);
    }
}

/// Looks for empty places on days that were not looked at.
async fn outside(
    scan: &mut AuditScan,
    options: &VerifyOptions<'_>,
    examiner: &mut Examiner,
    gaps: &mut [Gap],
) -> Result<(), VerifyFault> {
    let low = options.since;
    let high = options.until.and_then(time::Date::next_day);
    if (low.is_none() && high.is_none()) || gaps.is_empty() {
        return Ok(());
    }
    let places: Vec<Places> = gaps
        .iter()
        .flat_map(|gap| gap.ranges.iter().map(|range| (gap.key, range)))
        .map(|((writer, tenant), range)| Places {
            writer,
            tenant,
            first: *range.start(),
            last: *range.end(),
        })
        .collect();
    let found = scan.links(&places, low, high, LOOKED_UP).await?;
    let mut broken = Vec::new();
    for FoundLink {
        writer,
        tenant,
        sequence,
        link,
    } in found
    {
        let key = (writer, tenant);
        for gap in gaps.iter_mut().filter(|gap| gap.key == key) {
            subtract(&mut gap.ranges, sequence, sequence);
        }
        let follows = examiner
            .chains
            .get(&key)
            .is_none_or(|chain| chain.links.anchor(sequence + 1, &link));
        if !follows {
            broken.push((key, sequence + 1));
        }
    }
    report_broken(examiner, broken);
    Ok(())
}

fn report_gaps(examiner: &mut Examiner, gaps: Vec<Gap>) {
    for gap in gaps {
        let (writer, tenant) = gap.key;
        for range in gap.ranges {
            let (kind, why) = if gap.tail {
                (
                    FindingKind::TruncatedTail,
                    "its writer signed these last events, and they are gone",
                )
            } else {
                (FindingKind::MissingEvents, "these events are gone")
            };
            let finding = Finding::new(kind, why)
                .chain(writer, examiner.name(tenant))
                .at(*range.start(), *range.end());
            examiner.report.add(finding);
        }
    }
}

fn report_misfits(examiner: &mut Examiner, diagnosis: Diagnosis) {
    for finding in diagnosis.findings {
        examiner.report.add(finding);
    }
    if examiner.more_misfits > 0 && diagnosis.unexplained > 0 {
        let why = format!(
            "{} more events are not what their digests cover",
            examiner.more_misfits
        );
        examiner
            .report
            .add(Finding::new(FindingKind::AlteredEvent, why));
    }
}

/// Writers that are not registered, never ended, or left a tail unsigned.
fn report_writers(examiner: &mut Examiner, options: &VerifyOptions<'_>) {
    let mut findings = Vec::new();
    let mut seen: HashSet<i32> = HashSet::new();
    for ((writer, tenant), chain) in &examiner.chains {
        let last = chain.links.last();
        if last == 0 {
            continue;
        }
        let registered = examiner.signatures.writer(*writer);
        if seen.insert(*writer) && registered.is_none() {
            let why = "events name a writer that is not registered";
            findings.push(Finding::new(FindingKind::UnknownWriter, why).writer(*writer));
        }
        let closed = examiner.closed((*writer, *tenant));
        let closed = closed.iter().map(|(_, last)| *last).max().unwrap_or(0);
        let signed = chain.links.signed.max(closed);
        let alive = registered.is_some_and(|row| row.alive);
        let fresh = chain
            .newest
            .is_some_and(|newest| newest + SIGNING > options.now);
        if last > signed && !(alive && fresh) {
            let why = "no checkpoint covers these events: they could have been altered, or more of them removed";
            let first = chain.links.first().unwrap_or(1).max(signed + 1);
            let finding = Finding::new(FindingKind::UnsignedTail, why);
            findings.push(
                finding
                    .chain(*writer, examiner.name(*tenant))
                    .at(first, last),
            );
        }
    }
    // A range that ends earlier cannot tell who ended later.
    let to_the_present = options
        .until
        .is_none_or(|until| until >= options.now.date());
    for row in examiner.signatures.writers() {
        let known = seen.contains(&row.writer) || examiner.signatures.is_known(row.writer);
        if row.alive || !to_the_present || examiner.signatures.has_ended(row.writer) {
            continue;
        }
        let (lane, replica) = (row.lane, row.replica);
        if known {
            let why = format!(
                "lane {lane} of replica {replica} ended without its final checkpoint: it was killed, or its last events and checkpoints were removed"
            );
            findings.push(Finding::new(FindingKind::WriterNeverClosed, why).writer(row.writer));
        } else if options.since.is_none() && options.tenant.is_none() {
            let why = format!(
                "lane {lane} of replica {replica} is registered, and nothing of it is left"
            );
            findings.push(Finding::new(FindingKind::EmptyWriter, why).writer(row.writer));
        }
    }
    for finding in findings {
        examiner.report.add(finding);
    }
}

/// Whether each erasure is on record, and emptied as much as it says.
async fn report_erasures(scan: &mut AuditScan, examiner: &mut Examiner) -> Result<(), VerifyFault> {
    let ids = examiner.erasures.ids();
    let recorded: HashSet<Uuid> = scan.recorded_erasures(&ids).await?.into_iter().collect();
    for finding in examiner.erasures.findings(|id| recorded.contains(id)) {
        examiner.report.add(finding);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_where_something_was_found() {
        let cut = |ranges: &[RangeInclusive<i64>], first, last| {
            let mut ranges = ranges.to_vec();
            subtract(&mut ranges, first, last);
            ranges
        };
        assert_eq!(cut(&[1..=9], 4, 5), [1..=3, 6..=9]);
        assert_eq!(cut(&[1..=9], 1, 9), []);
        assert_eq!(cut(&[1..=2, 8..=9], 3, 8), [1..=2, 9..=9]);
        assert_eq!(cut(&[5..=5], 6, 7), [5..=5]);
    }
}
