//! What was done to events that are not what their digests cover: whatever, undone,
//! makes the digest come out right again.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use time::{Duration, OffsetDateTime};

use super::super::chain::Leaf;
use super::super::event::Kind;
use super::super::facts::ArgumentsRecord;
use super::examiner::{Chain, ChainKey, Examiner, Misfit, array, names_of};
use super::findings::{Finding, FindingKind};
use crate::store::audit_scan::ScannedEvent;

/// What is known about the misfits.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    pub(super) findings: Vec<Finding>,
    /// Places that have an event after all, altered or put elsewhere.
    filled: HashMap<ChainKey, Vec<i64>>,
    /// Misfits that no altered name explains.
    pub(super) unexplained: u64,
}

impl Diagnosis {
    pub(super) fn filled(&self, key: ChainKey) -> impl Iterator<Item = i64> {
        self.filled.get(&key).into_iter().flatten().copied()
    }

    fn fill(&mut self, key: ChainKey, place: i64) {
        self.filled.entry(key).or_default().push(place);
    }
}

/// Places that are tried for one event.
const TRIED: usize = 2_000;
/// Names that are tried for one event.
const NAMES: usize = 5_000;
/// Events whose names and microseconds are tried.
const CLOSELY: usize = 50;
/// A call's id and its time are read one after the other.
const SLACK: Duration = Duration::seconds(2);

pub(super) fn diagnose(
    examiner: &Examiner,
    missing: &HashMap<ChainKey, Vec<RangeInclusive<i64>>>,
) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let suspects = examiner.usage.suspects();
    let renamed: HashSet<i32> = suspects
        .iter()
        .filter(|(_, bad)| **bad > 1)
        .map(|(id, _)| *id)
        .collect();
    let places = places(examiner, missing);
    let mut explained: HashMap<i32, Option<Finding>> = HashMap::new();
    for (nth, misfit) in examiner.misfits.iter().enumerate() {
        let event = &misfit.event;
        let key = (event.writer, event.tenant);
        if let Some((kind, why, from)) = displaced(examiner, misfit, &places) {
            diagnosis.unexplained += 1;
            diagnosis.fill(from, event.sequence);
            diagnosis.fill(from, why.1);
            diagnosis
                .findings
                .push(examiner.placed(Finding::new(kind, why.0), event));
            continue;
        }
        let taken = |chain: &Chain| chain.links.covers(event.sequence);
        if !misfit.placed && examiner.chains.get(&key).is_some_and(taken) {
            diagnosis.unexplained += 1;
            let why =
                "another event stands at its place, and this one is not what its digest covers";
            let finding = Finding::new(FindingKind::DuplicatedEvent, why);
            diagnosis.findings.push(examiner.placed(finding, event));
            continue;
        }
        diagnosis.fill(key, event.sequence);
        let guilty = names_of(event).find(|id| renamed.contains(id));
        if let Some(id) = guilty.filter(|_| !misfit.caller_gone) {
            let first = explained.entry(id).or_default();
            if first.is_none() {
                *first = Some(examiner.placed(altered_name(examiner, id, &suspects), event));
            }
            continue;
        }
        diagnosis.unexplained += 1;
        let finding = altered(examiner, misfit, nth < CLOSELY, &suspects);
        diagnosis.findings.push(examiner.placed(finding, event));
    }
    diagnosis.findings.extend(explained.into_values().flatten());
    diagnosis
}

fn altered_name(examiner: &Examiner, id: i32, suspects: &HashMap<i32, u64>) -> Finding {
    let events = suspects.get(&id).copied().unwrap_or_default();
    let why = format!(
        "entry {id} of the dictionary reads `{}`; all {events} events that use it are not what their digests cover, this one first: it was renamed, or they were altered",
        examiner.name(id)
    );
    Finding::new(FindingKind::AlteredName, why)
}

/// The places that displaced events may have come from.
fn places(
    examiner: &Examiner,
    missing: &HashMap<ChainKey, Vec<RangeInclusive<i64>>>,
) -> HashMap<ChainKey, Vec<i64>> {
    let mut places: HashMap<ChainKey, Vec<i64>> = HashMap::new();
    for (key, ranges) in missing {
        let all = ranges.iter().cloned().flatten().take(TRIED);
        places.entry(*key).or_default().extend(all);
    }
    for misfit in examiner.misfits.iter().take(TRIED) {
        let key = (misfit.event.writer, misfit.event.tenant);
        places.entry(key).or_default().push(misfit.event.sequence);
    }
    places
}

type Displaced = (FindingKind, (String, i64), ChainKey);

/// Whether the event was written at another place, for another tenant or by another
/// writer: the chain and place where its digest comes out right.
fn displaced(
    examiner: &Examiner,
    misfit: &Misfit,
    places: &HashMap<ChainKey, Vec<i64>>,
) -> Option<Displaced> {
    let event = &misfit.event;
    let own = (event.writer, event.tenant);
    let fits = |change: &dyn Fn(Leaf<'_>) -> (i32, i64)| {
        let leaf = examiner.leaf_of(event, misfit.caller, |leaf| {
            let (writer, sequence) = change(leaf);
            Leaf {
                writer,
                sequence,
                ..leaf
            }
        });
        leaf.is_some() && leaf == array(&event.leaf)
    };
    for place in places.get(&own).into_iter().flatten() {
        if fits(&|leaf| (leaf.writer, *place)) {
            let why = format!("it was written at place {place}");
            return Some((FindingKind::ReorderedEvent, (why, *place), own));
        }
    }
    for (key, empty) in places.iter().filter(|(key, _)| **key != own) {
        for place in std::iter::once(&event.sequence).chain(empty) {
            let elsewhere = event.caller.and(misfit.elsewhere.get(&key.0));
            let caller = elsewhere.copied().or(misfit.caller);
            let leaf = examiner.leaf_of(event, caller, |leaf| Leaf {
                writer: key.0,
                tenant: examiner.names.get(&key.1).map_or(leaf.tenant, |name| name),
                sequence: *place,
                ..leaf
            });
            if leaf.is_some() && leaf == array(&event.leaf) {
                let why = format!(
                    "it was written by writer {} for tenant `{}` at place {place}",
                    key.0,
                    examiner.name(key.1)
                );
                return Some((FindingKind::MovedEvent, (why, *place), *key));
            }
        }
    }
    None
}

/// An event at its place that says something else than it did.
fn altered(
    examiner: &Examiner,
    misfit: &Misfit,
    closely: bool,
    suspects: &HashMap<i32, u64>,
) -> Finding {
    let event = &misfit.event;
    if let Some(finding) = back_dated(examiner, misfit, closely) {
        return finding;
    }
    if misfit.caller_gone {
        return Finding::new(FindingKind::AlteredCaller, "its caller was removed");
    }
    let wants_body = matches!(event.event, 1 | 3)
        && event
            .arguments_mode
            .is_some_and(|mode| mode != ArgumentsRecord::NONE);
    if event.body.is_none() && wants_body {
        return Finding::new(FindingKind::AlteredBody, "its body was removed");
    }
    if let Some(why) = closely.then(|| renamed_field(examiner, misfit)).flatten() {
        return Finding::new(FindingKind::AlteredEvent, why);
    }
    let mut why = "the event is not what its digest covers".to_owned();
    if let Some(id) = names_of(event).find(|id| suspects.contains_key(id)) {
        why = format!(
            "{why}; or the entry `{}` of the dictionary, which nothing else uses, was renamed",
            examiner.name(id)
        );
    }
    Finding::new(FindingKind::AlteredEvent, why)
}

/// A call's id holds the millisecond at which it was made: what was in time with it
/// and is not any more was moved in time.
fn back_dated(examiner: &Examiner, misfit: &Misfit, closely: bool) -> Option<Finding> {
    let event = &misfit.event;
    let made = made_at(event)?;
    let ends = [Kind::Finished, Kind::Corrected, Kind::Closed]
        .iter()
        .any(|kind| event.event == *kind as i16);
    let early = event.at < made - SLACK;
    if early || (!ends && event.at > made + SLACK) {
        let why = format!("its id was made at {made}");
        return Some(Finding::new(FindingKind::BackDatedEvent, why));
    }
    if ends || !closely {
        return None;
    }
    (-2_000..3_000).find_map(|micros| {
        let at = made + Duration::microseconds(micros);
        let leaf = examiner.leaf_of(event, misfit.caller, |leaf| Leaf { at, ..leaf });
        (leaf.is_some() && leaf == array(&event.leaf)).then(|| {
            Finding::new(
                FindingKind::BackDatedEvent,
                format!("it was written at {at}"),
            )
        })
    })
}

fn made_at(event: &ScannedEvent) -> Option<OffsetDateTime> {
    let millis = i128::try_from(event.call_id.as_u128() >> 80).ok()?;
    OffsetDateTime::from_unix_timestamp_nanos(millis * 1_000_000).ok()
}

/// The field and the name with which the digest comes out right.
fn renamed_field(examiner: &Examiner, misfit: &Misfit) -> Option<String> {
    type Set = for<'a> fn(Leaf<'a>, &'a str) -> Leaf<'a>;
    let fields: [(&str, Set); 7] = [
        ("outcome", |leaf, name| Leaf {
            outcome: Some(name),
            ..leaf
        }),
        ("tool", |leaf, name| Leaf {
            tool: Some(name),
            ..leaf
        }),
        ("upstream", |leaf, name| Leaf {
            upstream: Some(name),
            ..leaf
        }),
        ("upstream's tool", |leaf, name| Leaf {
            upstream_tool: Some(name),
            ..leaf
        }),
        ("version", |leaf, name| Leaf {
            version: Some(name),
            ..leaf
        }),
        ("definition's digest", |leaf, name| Leaf {
            definition: Some(name),
            ..leaf
        }),
        ("configuration's digest", |leaf, name| Leaf {
            configuration: Some(name),
            ..leaf
        }),
    ];
    let event = &misfit.event;
    for (field, set) in fields {
        for name in examiner.names.values().take(NAMES) {
            let leaf = examiner.leaf_of(event, misfit.caller, |leaf| set(leaf, name));
            if leaf.is_some() && leaf == array(&event.leaf) {
                return Some(format!("its {field} was `{name}`"));
            }
        }
    }
    None
}
