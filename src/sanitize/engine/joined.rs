//! Secrets that no block has alone: text blocks side by side are read as one text,
//! because their reader does.
//!
//! What a stream holds back (rules §6.3) would enter here: a message's beginning
//! is one more block before the next.

use std::collections::HashMap;
use std::ops::Range;

use super::{Context, Engine, Hit, Instead, Place, View};
use crate::sanitize::detect::{Certainty, Family};
use crate::sanitize::edits::Policy;
use crate::sanitize::escapes::decode;
use crate::sanitize::leaves::{Leaf, Leaves};
use crate::sanitize::prefilter::Candidates;
use crate::sanitize::secrets::{LONGEST, is_telling_value};

/// Bytes on each side of a seam that show whether anything spans it.
const MARGIN: usize = 3 * LONGEST;

/// Hits by leaf, in offsets of the leaf's view.
#[derive(Debug, Default)]
pub(super) struct Joined {
    hits: HashMap<u32, Vec<Hit>>,
}

/// The texts of one run as one text.
struct Run {
    text: String,
    /// Where each leaf's view stands in it.
    parts: Vec<(u32, Range<usize>)>,
    /// Offsets between two parts.
    seams: Vec<usize>,
    blocks: bool,
}

impl Joined {
    pub(super) fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    pub(super) fn of(&self, leaf: u32) -> &[Hit] {
        if self.hits.is_empty() {
            return &[];
        }
        self.hits.get(&leaf).map_or(&[], Vec::as_slice)
    }

    pub(super) fn find(
        engine: &Engine,
        text: &str,
        leaves: &Leaves,
        candidates: &Candidates,
        policy: Policy<'_>,
    ) -> Self {
        let mut joined = Self::default();
        for run in leaves.runs(text) {
            let members: Vec<(u32, &Leaf)> = run
                .members
                .into_iter()
                .filter_map(|index| Some((index, leaves.get(index)?)))
                .collect();
            let hit = members.iter().any(|(_, leaf)| candidates.any_in(&leaf.raw));
            if hit || seams_hit(engine, text, &members) {
                joined.add(engine, &Run::of(text, &members, run.blocks), policy);
            }
        }
        joined
    }

    fn add(&mut self, engine: &Engine, run: &Run, policy: Policy<'_>) {
        let own = run.own_hits(engine, policy);
        for hit in found(engine, &run.text, &run.seams, policy) {
            if !run.accepts(&hit, &own) {
                continue;
            }
            let mut count = 1;
            for (leaf, part) in &run.parts {
                let range = hit.range.start.max(part.start)..hit.range.end.min(part.end);
                if range.is_empty() {
                    continue;
                }
                let local = range.start - part.start..range.end - part.start;
                self.hits
                    .entry(*leaf)
                    .or_default()
                    .push(hit.part(local, count));
                // Every part gets the placeholder, the first alone is counted.
                count = 0;
            }
        }
    }
}

/// What several texts have together, the tenant's own kinds included.
fn found(engine: &Engine, text: &str, seams: &[usize], policy: Policy<'_>) -> Vec<Hit> {
    let context = Context {
        place: Place::Text,
        key: None,
        domains: policy.domains(),
        pointer: &String::new,
    };
    let mut hits = engine.detect(text, context, seams);
    policy.custom(text, &mut hits);
    hits
}

/// Whether a cue spans a seam: looks at both sides of each alone.
fn seams_hit(engine: &Engine, text: &str, members: &[(u32, &Leaf)]) -> bool {
    let mut sample = String::new();
    for (_, leaf) in members {
        let raw = text.get(leaf.raw.clone()).unwrap_or_default();
        if raw.len() <= 2 * MARGIN {
            sample.push_str(raw);
        } else {
            let head = raw.floor_char_boundary(MARGIN);
            let tail = raw.ceil_char_boundary(raw.len() - MARGIN);
            sample.push_str(raw.get(..head).unwrap_or_default());
            sample.push('\n');
            sample.push_str(raw.get(tail..).unwrap_or_default());
        }
    }
    !Candidates::in_json(&engine.scanner, &engine.detectors, &sample).is_empty()
}

impl Run {
    fn of(text: &str, members: &[(u32, &Leaf)], blocks: bool) -> Self {
        let mut run = Self {
            blocks,
            text: String::new(),
            parts: Vec::with_capacity(members.len()),
            seams: Vec::with_capacity(members.len()),
        };
        for (index, leaf) in members {
            let decoded = decode(text.get(leaf.raw.clone()).unwrap_or_default()).0;
            let start = run.text.len();
            run.text.push_str(&View::of(&decoded).text);
            run.parts.push((*index, start..run.text.len()));
            if start > 0 && run.seams.last() != Some(&start) {
                run.seams.push(start);
            }
        }
        run
    }

    /// What the blocks have each alone, in offsets of the joined text.
    fn own_hits(&self, engine: &Engine, policy: Policy<'_>) -> Vec<Hit> {
        let mut own = Vec::new();
        for (_, part) in &self.parts {
            let text = self.text.get(part.clone()).unwrap_or_default();
            for hit in found(engine, text, &[], policy) {
                let range = hit.range.start + part.start..hit.range.end + part.start;
                own.push(hit.part(range, 1));
            }
        }
        own
    }

    /// A hit counts here when it needs more than one block. What only goes on
    /// because the next block begins with a letter does not: the block's own
    /// finding is whole, unless more of a token follows.
    fn accepts(&self, hit: &Hit, own: &[Hit]) -> bool {
        let replaces = hit.instead == Instead::Placeholder;
        // Strings of a list are one text only where a form of its own says so.
        let certain = hit.family == Family::Secrets && hit.certainty == Certainty::Form;
        if !replaces || !(self.blocks || certain) {
            return false;
        }
        let crosses = |from: usize, to: usize| {
            let next = self.seams.partition_point(|seam| *seam <= from);
            self.seams.get(next).filter(|seam| **seam < to).copied()
        };
        let Some(seam) = crosses(hit.range.start, hit.range.end) else {
            let value = self.text.get(hit.range.clone()).unwrap_or_default();
            let digits = value.bytes().filter(u8::is_ascii_digit).count();
            return crosses(hit.from, hit.range.end).is_some()
                && (digits >= 6 || is_telling_value(value));
        };
        let whole = own
            .iter()
            .any(|own| own.label == hit.label && own.range.start == hit.range.start);
        if !whole {
            return true;
        }
        let tail = self.text.get(seam..hit.range.end).unwrap_or_default();
        tail.len() >= 16 || tail.bytes().any(|b| b.is_ascii_digit())
    }
}
