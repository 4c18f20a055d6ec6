//! Whether anything could be in a JSON text: a few vector passes over its bytes,
//! nothing parsed. What it does not hit is clean; what it hits need not be dirty.

use std::ops::Range;

use memchr::memmem;

use super::leaves::Leaf;
use super::odd;
use super::secrets::{Literals, is_plausible};

/// More hits than this are not told apart: every leaf is looked at.
const MAX_HITS: usize = 1 << 16;

/// Places of a text where something could be.
#[derive(Debug, Default)]
pub(super) struct Hits {
    offsets: Vec<usize>,
    everywhere: bool,
    /// Whether a resource's blob may hold text.
    pub(super) blob: bool,
}

impl Hits {
    pub(super) fn in_json(literals: &Literals, text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut hits = Self::default();
        literals.each(bytes, |trigger, start, end| {
            if is_plausible(bytes, trigger, start, end) {
                hits.push(start);
            }
        });
        let mut next = odd::find(bytes, 0, false);
        while let Some(at) = next
            && !hits.everywhere
        {
            hits.push(at);
            next = odd::find(bytes, at + 1, false);
        }
        hits.blob = memmem::find(bytes, b"\"blob\"").is_some();
        hits.offsets.sort_unstable();
        hits
    }

    fn push(&mut self, offset: usize) {
        if self.offsets.len() < MAX_HITS {
            self.offsets.push(offset);
        } else {
            self.everywhere = true;
        }
    }

    /// Whether the text is clean.
    pub(super) fn is_empty(&self) -> bool {
        self.offsets.is_empty() && !self.everywhere && !self.blob
    }

    /// Which of the leaves could hold something. They stand in the text's order.
    pub(super) fn touched(&self, leaves: &[Leaf]) -> Vec<bool> {
        if self.everywhere {
            return vec![true; leaves.len()];
        }
        let mut offsets = self.offsets.iter().peekable();
        leaves
            .iter()
            .map(|leaf| {
                while offsets
                    .next_if(|offset| **offset < leaf.raw.start)
                    .is_some()
                {}
                offsets.peek().is_some_and(|offset| **offset < leaf.raw.end)
            })
            .collect()
    }

    /// Whether something could be in this part.
    pub(super) fn any_in(&self, range: &Range<usize>) -> bool {
        let from = self.offsets.partition_point(|offset| *offset < range.start);
        self.everywhere
            || self
                .offsets
                .get(from)
                .is_some_and(|offset| *offset < range.end)
    }
}

/// Whether the text may have two blocks side by side.
pub(super) fn has_blocks(text: &str) -> bool {
    memmem::find_iter(text.as_bytes(), b"\"text\":")
        .nth(1)
        .is_some()
        || memmem::find_iter(text.as_bytes(), b"\"text\" :")
            .next()
            .is_some()
}
