//! The pass itself: one look at every eight bytes.

use super::bytes::{digits_end, digits_start, equal, is_dense};
use super::{FOLD, HIGH, Notice, ONES, Scanner, hash};
use crate::sanitize::detect::Sign;
use crate::sanitize::encoded;

/// One text under the pass.
pub(super) struct Pass<'a, F> {
    scanner: &'a Scanner,
    bytes: &'a [u8],
    raw: bool,
    digits_to: usize,
    run_to: usize,
    notice: &'a mut F,
}

impl<'a, F: FnMut(Notice)> Pass<'a, F> {
    pub(super) fn new(scanner: &'a Scanner, bytes: &'a [u8], raw: bool, notice: &'a mut F) -> Self {
        Self {
            scanner,
            bytes,
            raw,
            digits_to: 0,
            run_to: 0,
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
            self.block(at, last, 0);
            return;
        };
        let mut word = u64::from_le_bytes(*first);
        for block in rest {
            let next = u64::from_le_bytes(*block);
            self.block(at, word, next);
            word = next;
            at += 8;
        }
        self.block(at, word, last);
        if !tail.is_empty() {
            self.block(at + 8, last, 0);
        }
    }

    #[inline]
    fn block(&mut self, at: usize, word: u64, next: u64) {
        let folded = word | FOLD;
        let groups = [
            folded,
            folded >> 16,
            folded >> 32,
            folded >> 48 | (next | 0x20) << 16,
        ];
        let [a, b, c, d] = groups.map(|group| self.scanner.has(group));
        if a | b | c | d != 0 {
            for (offset, group) in (at..).step_by(2).zip(groups) {
                self.literals(offset, group);
            }
        }
        let digit = word ^ 0x3030_3030_3030_3030;
        let digits = !(((digit & !HIGH) + 0x7676_7676_7676_7676) | digit) & HIGH;
        if (digits >> 7).wrapping_mul(ONES) >> 56 >= self.scanner.digits_in_block {
            self.digits(at);
        }
        if self.raw {
            self.peculiar(at, word, next);
        }
    }

    fn literals(&mut self, at: usize, group: u64) {
        let hash = usize::from(hash(group));
        let row = |hash: usize| self.scanner.first.get(hash).map_or(0, |row| *row as usize);
        let rows = self.scanner.rows.get(row(hash)..row(hash + 1));
        for row in rows.unwrap_or_default() {
            let Some(literal) = self.scanner.literals.get(usize::from(row.literal)) else {
                continue;
            };
            let Some(start) = at.checked_add_signed(-isize::from(row.offset)) else {
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

    /// The run of digits around a block that has some.
    #[cold]
    fn digits(&mut self, at: usize) {
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

    #[inline]
    fn peculiar(&mut self, at: usize, word: u64, next: u64) {
        let slashes = equal(word, b'\\');
        if slashes != 0 {
            // Quotes, line ends and tabs are what text in JSON is full of.
            let behind = word >> 8 | next << 56;
            let usual = equal(behind, b'"')
                | equal(behind, b'n')
                | equal(behind, b'\\')
                | equal(behind, b't')
                | equal(behind, b'/');
            if slashes & !usual != 0 {
                self.escapes(at);
            }
        }
        let even = word & 0x00ff_00ff_00ff_00ff;
        let odd = word & 0xff00_ff00_ff00_ff00;
        // Both at once is indentation.
        if (even == 0x0020_0020_0020_0020) != (odd == 0x2000_2000_2000_2000) {
            (self.notice)(Notice::Odd(at));
        }
        // No byte below `+`, none beyond ASCII.
        if (word.wrapping_sub(ONES * 0x2b) | word) & HIGH == 0 && is_dense(word) {
            self.run(at);
        }
    }

    #[cold]
    fn escapes(&mut self, at: usize) {
        let block = self.bytes.get(at..(at + 8).min(self.bytes.len()));
        for (offset, byte) in block.unwrap_or_default().iter().enumerate() {
            if *byte == b'\\' && encoded::is_odd_escape(self.bytes, at + offset) {
                (self.notice)(Notice::Odd(at + offset));
            }
        }
    }

    /// A block in the middle of what could be base64 or hexadecimal.
    #[cold]
    fn run(&mut self, at: usize) {
        if at < self.run_to {
            return;
        }
        let head = self.bytes.get(self.run_to..at).unwrap_or_default();
        let before = head
            .iter()
            .rev()
            .take_while(|b| encoded::is_dense(**b))
            .count();
        let start = at - before;
        let tail = self.bytes.get(at..).unwrap_or_default();
        let end = at + tail.iter().take_while(|b| encoded::is_dense(**b)).count();
        self.run_to = end;
        if encoded::may_be_encoded(self.bytes, start..end) {
            (self.notice)(Notice::Encoded(start, end));
        }
    }
}
