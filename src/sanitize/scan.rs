//! One pass over bytes that finds where any cue of any family stands, and where
//! text may be other than it looks (escapes, encodings). The cost does not grow
//! with the number of cues.
//!
//! Eight bytes at a time. Of every literal two neighbouring groups of three bytes
//! are in a hashed set, those that stand in little else ([`usual`]), letters folded
//! to one case; looking at every second offset meets one of the two. What the set has
//! is then compared. In the same registers
//! digits are counted, and backslashes, runs without separators and letters set
//! apart by spaces are noticed.

use memchr::memmem;

use super::detect::{Cue, Detector, Sign};
use super::encoded;

mod bytes;
mod pass;
mod usual;

use pass::Pass;
use usual::Usual;

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
    /// How far from the literal's beginning it stands; the byte before counts, too.
    offset: i8,
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
        let usual = Usual::new();
        for (number, detector) in detectors.iter().enumerate() {
            for (cue, what) in detector.cues.iter().enumerate() {
                scanner.add(number, cue, *what, &usual);
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

    fn add(&mut self, detector: usize, cue: usize, what: Cue, usual: &Usual) {
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
                // What stands before or follows may be anything.
                let before = || (0..=u8::MAX).map(|first| [first, a, b]);
                let behind = || (0..=u8::MAX).map(|last| [b, c, last]);
                if usual.cost(before()) < usual.cost(behind()) {
                    before().for_each(|group| row(group, -1));
                } else {
                    behind().for_each(|group| row(group, 1));
                }
            }
            _ => {
                if let Some((at, [first, second])) = usual.rarest(text) {
                    let at = i8::try_from(at).unwrap_or(0);
                    row(first, at);
                    row(second, at + 1);
                }
            }
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
        Pass::new(self, bytes, raw, notice).blocks();
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
