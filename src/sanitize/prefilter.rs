//! Whether anything could be in a JSON text: one pass over its bytes, nothing
//! parsed. What it does not hit is clean; what it hits need not be dirty.

use std::ops::Range;

use memchr::memmem;

use super::detect::Detector;
use super::encoded;
use super::leaves::Leaf;
use super::odd;
use super::scan::{Notice, Scanner};

/// More than this are not told apart: every leaf is looked at.
const MAX: usize = 1 << 16;

/// Places of a text where something could be.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    offsets: Vec<usize>,
    everywhere: bool,
    /// Whether a resource's blob may hold text.
    blob: bool,
}

impl Candidates {
    pub(super) fn in_json(scanner: &Scanner, detectors: &[Detector], text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut found = Self::default();
        scanner.scan(bytes, true, &mut |notice| match notice {
            Notice::Odd(at) => found.push(at),
            Notice::Encoded(start, end) => {
                let run = text.get(start..end).unwrap_or_default();
                // Behind an escape it may go on.
                let goes_on = bytes.get(end) == Some(&b'\\');
                if says_something(scanner, detectors, run).unwrap_or(goes_on) {
                    found.push(start);
                }
            }
            Notice::Cue(detector, sign) => {
                let plausible = detectors
                    .get(detector)
                    .is_some_and(|detector| (detector.plausible)(bytes, sign));
                if plausible {
                    found.push(sign.start);
                }
            }
        });
        let mut next = odd::find(bytes, 0, false);
        while let Some(at) = next
            && !found.everywhere
        {
            found.push(at);
            next = odd::find(bytes, at + 1, false);
        }
        found.blob = memmem::find(bytes, b"\"blob\"").is_some();
        found.offsets.sort_unstable();
        found
    }

    fn push(&mut self, offset: usize) {
        if self.offsets.len() < MAX {
            self.offsets.push(offset);
        } else {
            self.everywhere = true;
        }
    }

    /// Says that every leaf is to be looked at.
    pub(super) fn look_everywhere(&mut self) {
        self.everywhere = true;
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

/// Whether what a run encodes has a plausible cue itself, or is encoded again. What
/// only its surroundings give away is a candidate by them. `None` where it encodes
/// no text.
fn says_something(scanner: &Scanner, detectors: &[Detector], run: &str) -> Option<bool> {
    let text = encoded::decoded(run)?;
    let bytes = text.as_bytes();
    let mut found = odd::find(bytes, 0, false).is_some();
    scanner.scan(bytes, true, &mut |notice| {
        found |= match notice {
            Notice::Cue(detector, sign) => detectors
                .get(detector)
                .is_some_and(|detector| (detector.plausible)(bytes, sign)),
            Notice::Odd(_) | Notice::Encoded(..) => true,
        };
    });
    Some(found)
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
