//! The pass itself: one look at every eight bytes.

use super::bytes::{digits, digits_end, digits_start, equal, is_dense, numeric};
use super::{FOLD, HIGH, Notice, ONES, Scanner};
use crate::sanitize::detect::Sign;
use crate::sanitize::encoded;

/// Digits that the two blocks around the beginning of a run have at least.
const SEEN: u64 = 5;

/// One text under the pass.
pub(super) struct Pass<'a, F> {
    scanner: &'a Scanner,
    bytes: &'a [u8],
    raw: bool,
    digits_to: usize,
    /// Up to where a run without separators was seen.
    run_to: Option<usize>,
    notice: &'a mut F,
}

impl<'a, F: FnMut(Notice)> Pass<'a, F> {
    pub(super) fn new(scanner: &'a Scanner, bytes: &'a [u8], raw: bool, notice: &'a mut F) -> Self {
        Self {
            scanner,
            bytes,
            raw,
            digits_to: 0,
            run_to: None,
            notice,
        }
    }

    pub(super) fn blocks(&mut self) {
        let (blocks, tail) = self.bytes.as_chunks::<8>();
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(tail) {
            *to = *from;
        }
        let last = u64::from_le_bytes(last);
        let mut at = 0;
        let Some((first, rest)) = blocks.split_first() else {
            self.block(at, last, 0, numeric(last));
            return;
        };
        let mut word = u64::from_le_bytes(*first);
        let mut bits = numeric(word);
        for block in rest {
            let next = u64::from_le_bytes(*block);
            bits = self.block(at, word, next, bits);
            word = next;
            at += 8;
        }
        bits = self.block(at, word, last, bits);
        if !tail.is_empty() {
            self.block(at + 8, last, 0, bits);
        }
    }

    /// Looks at the eight bytes of `word`, with those behind them at hand.
    /// `numeric_word` are its bytes that numbers are made of; returns those of `next`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call costs as much as half of it")]
    fn block(&mut self, at: usize, word: u64, next: u64, numeric_word: u32) -> u32 {
        let folded = word | FOLD;
        let behind = next | 0x2020;
        let offsets = [
            folded,
            folded >> 8,
            folded >> 16,
            folded >> 24,
            folded >> 32,
            folded >> 40,
            folded >> 48 | behind << 16,
            folded >> 56 | behind << 8,
        ];
        let has = offsets.map(|offset| self.scanner.has(offset));
        if has.iter().fold(0, |any, has| any | has) != 0 {
            self.literals(at, &offsets);
        }
        let numeric_next = numeric(next);
        // Seven in a row that begin here: fewer are no run of digits that counts.
        let row = numeric_word | numeric_next << 8;
        let row = row & row >> 1;
        let row = row & row >> 2;
        if row & row >> 3 & 0xff != 0 && at + 8 > self.digits_to {
            self.digits(at, word, next);
        }
        if self.raw {
            self.peculiar(at, word, next);
        }
        numeric_next
    }

    #[cold]
    #[inline(never)]
    fn literals(&mut self, at: usize, offsets: &[u64; 8]) {
        for (at, offset) in (at..).zip(offsets) {
            if self.scanner.has(*offset) == 0 {
                continue;
            }
            for (literal, before) in self.scanner.rows(*offset) {
                let Some(start) = at.checked_sub(before) else {
                    continue;
                };
                let end = start + literal.text.len();
                let Some(found) = self.bytes.get(start..end) else {
                    continue;
                };
                let same = if literal.exact {
                    found == literal.text
                } else {
                    found.eq_ignore_ascii_case(literal.text)
                };
                if same {
                    let sign = Sign {
                        cue: literal.cue,
                        start,
                        end,
                    };
                    (self.notice)(Notice::Cue(literal.detector, sign));
                }
            }
        }
    }

    /// The run of digits around a block that has some.
    #[cold]
    #[inline(never)]
    fn digits(&mut self, at: usize, word: u64, next: u64) {
        // Thirteen bytes hold seven digits with a separator between any two; of these
        // so many stand in the two blocks.
        if digits(word) + digits(next) < SEEN {
            return;
        }
        let block_end = (at + 8).min(self.bytes.len());
        let mut from = at.max(self.digits_to);
        while from < block_end {
            let Some(first) = self
                .bytes
                .get(from..block_end)
                .and_then(|block| block.iter().position(u8::is_ascii_digit))
            else {
                return;
            };
            let start = digits_start(self.bytes, from + first, self.digits_to);
            let (end, count) = digits_end(self.bytes, start);
            self.digits_to = end;
            from = end;
            if count < self.scanner.least_digits {
                continue;
            }
            for (detector, cue, least) in &self.scanner.digits {
                if count >= *least {
                    let cue = *cue;
                    let sign = Sign { cue, start, end };
                    (self.notice)(Notice::Cue(*detector, sign));
                }
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of the loop over the blocks")]
    fn peculiar(&mut self, at: usize, word: u64, next: u64) {
        let slashes = equal(word, b'\\');
        if slashes != 0 {
            // Quotes, line ends and tabs are what text in JSON is full of.
            let behind = word >> 8 | next << 56;
            let slashes = slashes & !equal(behind, b'"');
            if slashes != 0 {
                let usual = equal(behind, b'n')
                    | equal(behind, b'\\')
                    | equal(behind, b't')
                    | equal(behind, b'/');
                if slashes & !usual != 0 {
                    self.escapes(at);
                }
            }
        }
        let even = word & 0x00ff_00ff_00ff_00ff;
        let odd = word & 0xff00_ff00_ff00_ff00;
        // Both at once is indentation.
        if (even == 0x0020_0020_0020_0020) != (odd == 0x2000_2000_2000_2000) {
            (self.notice)(Notice::Odd(at));
        }
        // No byte below `+`, none beyond ASCII.
        let dense = (word.wrapping_sub(ONES * 0x2b) | word) & HIGH == 0 && is_dense(word);
        if dense && Some(at) > self.run_to {
            self.run(at);
        } else if Some(at) == self.run_to {
            self.run_goes_on(at, dense);
        }
    }

    #[cold]
    #[inline(never)]
    fn escapes(&mut self, at: usize) {
        let block = self.bytes.get(at..(at + 8).min(self.bytes.len()));
        for (offset, byte) in block.unwrap_or_default().iter().enumerate() {
            if *byte == b'\\' && encoded::is_odd_escape(self.bytes, at + offset) {
                (self.notice)(Notice::Odd(at + offset));
            }
        }
    }

    /// The first block inside of what could be base64 or hexadecimal.
    #[cold]
    #[inline(never)]
    fn run(&mut self, at: usize) {
        let head = self.bytes.get(at.saturating_sub(8)..at).unwrap_or_default();
        let before = head.iter().rev().take_while(|b| encoded::is_dense(**b));
        let start = at - before.count();
        if !encoded::may_be_encoded(self.bytes, start) {
            self.run_to = Some(at + 8);
            return;
        }
        let tail = self.bytes.get(at..).unwrap_or_default();
        let end = at + tail.iter().take_while(|b| encoded::is_dense(**b)).count();
        self.run_to = Some(end);
        (self.notice)(Notice::Encoded(start, end));
    }

    /// The block behind one of a run that is not encoded, as far as it was seen.
    fn run_goes_on(&mut self, at: usize, dense: bool) {
        if dense {
            self.run_to = Some(at + 8);
            return;
        }
        let tail = self.bytes.get(at..).unwrap_or_default();
        let rest = tail.iter().take(8).take_while(|b| encoded::is_dense(**b));
        let end = at + rest.count();
        // It may go on behind an escape.
        if let Some([b'\\', b'/' | b'u', ..]) = self.bytes.get(end..) {
            (self.notice)(Notice::Odd(end));
        }
    }
}
