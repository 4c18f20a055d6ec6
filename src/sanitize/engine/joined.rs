//! Secrets that no block has alone: text blocks side by side are read as one text,
//! because their reader does.
//!
//! What a stream holds back (rules §6.3) would enter here: a message's beginning
//! is one more block before the next.

use std::collections::HashMap;
use std::ops::Range;

use super::{Engine, Span, View};
use crate::sanitize::escapes::decode;
use crate::sanitize::leaves::{Leaf, Leaves};
use crate::sanitize::prefilter::Hits;
use crate::sanitize::secrets::{LONGEST, is_plausible, is_telling_value};

/// Bytes on each side of a seam that show whether anything spans it.
const MARGIN: usize = 3 * LONGEST;

/// Spans by leaf, in offsets of the leaf's view.
#[derive(Debug, Default)]
pub(super) struct Joined {
    spans: HashMap<u32, Vec<Span>>,
}

/// The blocks of one run as one text.
struct Run {
    text: String,
    /// Where each leaf's view stands in it.
    parts: Vec<(u32, Range<usize>)>,
    /// Offsets between two parts.
    seams: Vec<usize>,
}

impl Joined {
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(super) fn of(&self, leaf: u32) -> &[Span] {
        if self.spans.is_empty() {
            return &[];
        }
        self.spans.get(&leaf).map_or(&[], Vec::as_slice)
    }

    pub(super) fn find(engine: &Engine, text: &str, leaves: &Leaves, hits: &Hits) -> Self {
        let mut joined = Self::default();
        for run in leaves.block_runs(text) {
            let members: Vec<(u32, &Leaf)> = run
                .into_iter()
                .filter_map(|index| Some((index, leaves.get(index)?)))
                .collect();
            let hit = members.iter().any(|(_, leaf)| hits.any_in(&leaf.raw));
            if hit || seams_hit(engine, text, &members) {
                joined.add(engine, &Run::of(text, &members));
            }
        }
        joined
    }

    fn add(&mut self, engine: &Engine, run: &Run) {
        let own = run.own_spans(engine);
        for span in engine.secrets.find(&run.text, None, &run.seams) {
            if !run.accepts(&span, &own) {
                continue;
            }
            let mut count = 1;
            for (leaf, part) in &run.parts {
                let range = span.range.start.max(part.start)..span.range.end.min(part.end);
                if range.is_empty() {
                    continue;
                }
                let local = range.start - part.start..range.end - part.start;
                self.spans
                    .entry(*leaf)
                    .or_default()
                    .push(span.part(local, count));
                // Every part gets the placeholder, the first alone is counted.
                count = 0;
            }
        }
    }
}

/// Whether a literal spans a seam: looks at both sides of each alone.
fn seams_hit(engine: &Engine, text: &str, members: &[(u32, &Leaf)]) -> bool {
    let mut sample: Vec<u8> = Vec::new();
    for (_, leaf) in members {
        let raw = text.get(leaf.raw.clone()).unwrap_or_default().as_bytes();
        if raw.len() <= 2 * MARGIN {
            sample.extend_from_slice(raw);
        } else {
            sample.extend_from_slice(raw.get(..MARGIN).unwrap_or_default());
            sample.push(b'\n');
            sample.extend_from_slice(raw.get(raw.len() - MARGIN..).unwrap_or_default());
        }
    }
    let mut hit = false;
    engine.literals().each(&sample, |trigger, start, end| {
        hit = hit || is_plausible(&sample, trigger, start, end);
    });
    hit
}

impl Run {
    fn of(text: &str, members: &[(u32, &Leaf)]) -> Self {
        let mut run = Self {
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
    fn own_spans(&self, engine: &Engine) -> Vec<Span> {
        let mut own = Vec::new();
        for (_, part) in &self.parts {
            let text = self.text.get(part.clone()).unwrap_or_default();
            for span in engine.secrets.find(text, None, &[]) {
                let range = span.range.start + part.start..span.range.end + part.start;
                own.push(span.part(range, 1));
            }
        }
        own
    }

    /// A span counts here when it needs more than one block. What only goes on
    /// because the next block begins with a letter does not: the block's own
    /// finding is whole, unless more of a token follows.
    fn accepts(&self, span: &Span, own: &[Span]) -> bool {
        let crosses = |from: usize, to: usize| {
            let next = self.seams.partition_point(|seam| *seam <= from);
            self.seams.get(next).filter(|seam| **seam < to).copied()
        };
        let Some(seam) = crosses(span.range.start, span.range.end) else {
            let value = self.text.get(span.range.clone()).unwrap_or_default();
            return crosses(span.from, span.range.end).is_some() && is_telling_value(value);
        };
        let whole = own
            .iter()
            .any(|own| own.label == span.label && own.range.start == span.range.start);
        if !whole {
            return true;
        }
        let tail = self.text.get(seam..span.range.end).unwrap_or_default();
        tail.len() >= 16 || tail.bytes().any(|b| b.is_ascii_digit())
    }
}
