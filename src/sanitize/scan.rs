//! One pass over bytes that finds where any cue of any family stands, and where
//! text may be other than it looks (escapes, encodings). The cost does not grow
//! with the number of cues.
//!
//! Eight bytes at a time. Of every literal two neighbouring groups of three bytes
//! are in a hashed set, letters folded to one case; looking at every second offset
//! meets one of the two. What the set has is then compared. In the same registers
//! digits are counted, and backslashes, runs without separators and letters set
//! apart by spaces are noticed.

use memchr::memmem;

use super::detect::{Cue, Detector, Sign};
use super::encoded;

/// What was noticed at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// A cue of the detector with this number.
    Cue(usize, Sign),
    /// Text that may be escaped.
    Odd(usize),
    /// A run that may be base64 or hexadecimal of text.
    Encoded(usize, usize),
}

/// A literal and whose it is.
struct Literal {
    text: &'static [u8],
    exact: bool,
    detector: usize,
    cue: usize,
}

/// One group of three bytes of a literal.
#[derive(Clone, Copy)]
struct Row {
    hash: u16,
    literal: u16,
    /// How far from the literal's beginning it stands.
    offset: u8,
}

/// Bits of the hashed set.
const BITS: usize = 1 << 16;

/// Two words of 64 bits apart on each row of the set.
const WORDS: usize = BITS / 64;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
const FOLD: u64 = 0x2020_2020_2020_2020;
const GROUP: u64 = 0x00ff_ffff;

/// Finds cues. Built once.
pub(super) struct Scanner {
    set: Box<[u64; WORDS]>,
    /// The first row of each hash, and one behind the last.
    first: Vec<u32>,
    rows: Vec<Row>,
    literals: Vec<Literal>,
    /// Literals too short for the set.
    short: Vec<(memmem::Finder<'static>, usize, usize)>,
    /// Detector and cue of single bytes.
    bytes: Vec<(u8, usize, usize)>,
    /// Detector, cue and least length of runs of digits.
    digits: Vec<(usize, usize, usize)>,
    /// Digits among eight bytes that make a look at the run worthwhile.
    digits_in_block: u64,
    least_digits: usize,
}

fn hash(group: u64) -> u16 {
    let group = u32::try_from(group & GROUP).unwrap_or(0);
    let mixed = group.wrapping_mul(0x9e37_79b1);
    u16::try_from(mixed >> 16).unwrap_or(0)
}

fn group_of(bytes: [u8; 3]) -> u64 {
    let [a, b, c] = bytes.map(u64::from);
    (a | b << 8 | c << 16) | (FOLD & GROUP)
}

impl Scanner {
    pub(super) fn new(detectors: &[Detector]) -> Self {
        let mut scanner = Self {
            set: Box::new([0; WORDS]),
            first: Vec::new(),
            rows: Vec::new(),
            literals: Vec::new(),
            short: Vec::new(),
            bytes: Vec::new(),
            digits: Vec::new(),
            digits_in_block: 9,
            least_digits: usize::MAX,
        };
        for (number, detector) in detectors.iter().enumerate() {
            for (cue, what) in detector.cues.iter().enumerate() {
                scanner.add(number, cue, *what);
            }
        }
        // A run of this many digits has so many in one of the three blocks that it
        // can touch; longer runs have more.
        if let Some(least) = scanner.digits.iter().map(|(_, _, least)| *least).min() {
            scanner.least_digits = least;
            scanner.digits_in_block = u64::try_from((least / 3).clamp(1, 4)).unwrap_or(1);
        }
        scanner.index();
        scanner
    }

    fn add(&mut self, detector: usize, cue: usize, what: Cue) {
        let (text, exact) = match what {
            Cue::Word(text) => (text.as_bytes(), false),
            Cue::Exact(text) => (text.as_bytes(), true),
            Cue::Byte(byte) => return self.bytes.push((byte, detector, cue)),
            Cue::Digits(least) => return self.digits.push((detector, cue, least)),
        };
        if text.len() < 3 {
            self.short.push((memmem::Finder::new(text), detector, cue));
            return;
        }
        let literal = u16::try_from(self.literals.len()).unwrap_or(u16::MAX);
        self.literals.push(Literal {
            text,
            exact,
            detector,
            cue,
        });
        let mut row = |group: [u8; 3], offset| {
            let hash = hash(group_of(group));
            self.rows.push(Row {
                hash,
                literal,
                offset,
            });
        };
        match *text {
            [a, b, c] => {
                row([a, b, c], 0);
                // What follows may be anything.
                for last in 0..=u8::MAX {
                    row([b, c, last], 1);
                }
            }
            [a, b, c, d, ..] => {
                row([a, b, c], 0);
                row([b, c, d], 1);
            }
            _ => {}
        }
    }

    fn index(&mut self) {
        self.rows
            .sort_unstable_by_key(|row| (row.hash, row.literal, row.offset));
        self.rows
            .dedup_by_key(|row| (row.hash, row.literal, row.offset));
        self.first = vec![0; BITS + 1];
        for row in &self.rows {
            let hash = usize::from(row.hash);
            if let Some(word) = self.set.get_mut(hash / 64) {
                *word |= 1 << (hash % 64);
            }
            if let Some(count) = self.first.get_mut(hash + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in &mut self.first {
            sum += *count;
            *count = sum;
        }
    }

    fn has(&self, group: u64) -> u64 {
        let hash = usize::from(hash(group));
        // The mask keeps the index in bounds for the compiler, too.
        self.set
            .get((hash / 64) & (WORDS - 1))
            .map_or(0, |word| word >> (hash % 64) & 1)
    }

    /// All notices in `bytes`. `raw` is the text of JSON, where escapes and
    /// encodings are noticed besides; a decoded text has its own look for them.
    pub(super) fn scan(&self, bytes: &[u8], raw: bool, notice: &mut impl FnMut(Notice)) {
        let mut pass = Pass {
            scanner: self,
            bytes,
            raw,
            digits_to: 0,
            run_to: 0,
            notice,
        };
        pass.blocks();
        for (finder, detector, cue) in &self.short {
            let len = finder.needle().len();
            for start in finder.find_iter(bytes) {
                let sign = Sign {
                    cue: *cue,
                    start,
                    end: start + len,
                };
                notice(Notice::Cue(*detector, sign));
            }
        }
        for (byte, detector, cue) in &self.bytes {
            for start in memchr::memchr_iter(*byte, bytes) {
                let sign = Sign {
                    cue: *cue,
                    start,
                    end: start + 1,
                };
                notice(Notice::Cue(*detector, sign));
            }
        }
        if raw {
            for at in memchr::memchr2_iter(b'%', b'&', bytes) {
                if encoded::may_begin(bytes, at) {
                    notice(Notice::Odd(at));
                }
            }
        }
    }
}

struct Pass<'a, F> {
    scanner: &'a Scanner,
    bytes: &'a [u8],
    raw: bool,
    digits_to: usize,
    run_to: usize,
    notice: &'a mut F,
}

impl<F: FnMut(Notice)> Pass<'_, F> {
    fn blocks(&mut self) {
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
            let Some(start) = at.checked_sub(usize::from(row.offset)) else {
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

/// The high bit of each byte that is `byte`, exactly.
fn equal(word: u64, byte: u8) -> u64 {
    let other = word ^ (ONES * u64::from(byte));
    !(((other & !HIGH) + !HIGH) | other) & HIGH
}

/// Whether all eight bytes are letters, digits, `+` or `/`.
fn is_dense(word: u64) -> bool {
    let lower = word | FOLD;
    let letter = (lower + ONES * 0x1f) & !(lower + ONES * 0x05);
    let digit = (word + ONES * 0x51) & !(word + ONES * 0x46);
    let plus = word ^ (ONES * 0x2b);
    let plus = plus.wrapping_sub(ONES) & !plus;
    (letter | digit | plus) & HIGH == HIGH
}

/// Whether a byte may stand between two digits of one number.
fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'-' | b'.' | b'/')
}

/// Where the run of digits begins that the digit at `at` is in. Runs do not reach
/// before `from`.
fn digits_start(bytes: &[u8], at: usize, from: usize) -> usize {
    let mut start = at;
    while start > from {
        match bytes.get(..start).unwrap_or_default() {
            [.., digit] if digit.is_ascii_digit() => start -= 1,
            [.., digit, separator]
                if digit.is_ascii_digit() && is_separator(*separator) && start > from + 1 =>
            {
                start -= 2;
            }
            [.., digit, 0xc2, 0xa0] if digit.is_ascii_digit() && start > from + 2 => start -= 3,
            _ => break,
        }
    }
    start
}

/// Where the run that begins at `start` ends, and how many digits it has.
fn digits_end(bytes: &[u8], start: usize) -> (usize, usize) {
    let (mut end, mut count) = (start, 0);
    loop {
        match bytes.get(end..).unwrap_or_default() {
            [digit, ..] if digit.is_ascii_digit() => end += 1,
            [separator, digit, ..] if is_separator(*separator) && digit.is_ascii_digit() => {
                end += 2;
            }
            [0xc2, 0xa0, digit, ..] if digit.is_ascii_digit() => end += 3,
            _ => return (end, count),
        }
        count += 1;
    }
}
