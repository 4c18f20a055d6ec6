//! One pass over bytes that finds where any cue of any family stands, and where
//! text may be other than it looks (escapes, encodings). The cost does not grow
//! with the number of cues.
//!
//! Eight bytes at a time. Of every literal one group of three bytes, that which
//! stands in the least else ([`usual`]), is in a hashed set, letters folded to one
//! case, and every offset is looked at. What the set has is then compared. In the same
//! registers runs of digits, backslashes, runs without separators and letters set
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

/// A literal's group of three bytes.
#[derive(Clone, Copy)]
struct Row {
    group: u32,
    literal: u16,
    /// How far from the literal's beginning it stands.
    offset: u8,
}

/// Bits of a hash, and entries of the set.
const BITS: u32 = 15;
const ENTRIES: usize = 1 << BITS;

/// Lists that the rows are spread over.
const LISTS: usize = 1 << 10;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
const FOLD: u64 = 0x2020_2020_2020_2020;
const GROUP: u32 = 0x00ff_ffff;

/// Finds cues. Built once.
pub(super) struct Scanner {
    /// One for the hash of each group, a byte each: shifting costs more than reading.
    set: Box<[u8; ENTRIES]>,
    /// The first row of each list, and one behind the last.
    first: Vec<u16>,
    rows: Vec<Row>,
    literals: Vec<Literal>,
    /// Literals too short for the set.
    short: Vec<(memmem::Finder<'static>, usize, usize)>,
    /// Detector and cue of single bytes.
    bytes: Vec<(u8, usize, usize)>,
    /// Detector, cue and least length of runs of digits.
    digits: Vec<(usize, usize, usize)>,
    least_digits: usize,
}

/// The place in the set of the group that the three lowest bytes are. Multiplied so,
/// the fourth one is lost.
#[inline]
fn hash(folded: u32) -> usize {
    (folded.wrapping_mul(0x9e37_79b1 << 8) >> (u32::BITS - BITS)) as usize
}

/// The four bytes that begin a word of eight.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "four bytes are wanted")]
fn first_bytes(folded: u64) -> u32 {
    folded as u32
}

fn group_of(bytes: [u8; 3]) -> u32 {
    let [a, b, c] = bytes.map(u32::from);
    a | b << 8 | c << 16 | 0x0020_2020
}

impl Scanner {
    #[expect(
        clippy::large_stack_arrays,
        reason = "made once, and goes to the heap at once"
    )]
    pub(super) fn new(detectors: &[Detector]) -> Self {
        let mut scanner = Self {
            set: Box::new([0; ENTRIES]),
            first: Vec::new(),
            rows: Vec::new(),
            literals: Vec::new(),
            short: Vec::new(),
            bytes: Vec::new(),
            digits: Vec::new(),
            least_digits: usize::MAX,
        };
        let usual = Usual::new();
        for (number, detector) in detectors.iter().enumerate() {
            for (cue, what) in detector.cues.iter().enumerate() {
                scanner.add(number, cue, *what, &usual);
            }
        }
        let least = scanner.digits.iter().map(|(_, _, least)| *least).min();
        scanner.least_digits = least.unwrap_or(usize::MAX);
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
        if let Some((offset, group)) = usual.rarest(text) {
            self.rows.push(Row {
                group: group_of(group),
                literal,
                offset,
            });
        }
    }

    fn index(&mut self) {
        let list = |row: &Row| hash(row.group) % LISTS;
        self.rows.sort_by_key(list);
        self.first = vec![0; LISTS + 1];
        for row in &self.rows {
            if let Some(entry) = self.set.get_mut(hash(row.group)) {
                *entry = 1;
            }
            if let Some(count) = self.first.get_mut(list(row) + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in &mut self.first {
            sum += *count;
            *count = sum;
        }
    }

    /// One where the set has the group that begins this word.
    #[inline]
    fn has(&self, folded: u64) -> u8 {
        // The mask keeps the index in bounds for the compiler, too.
        let entry = hash(first_bytes(folded)) & (ENTRIES - 1);
        self.set.get(entry).copied().unwrap_or(0)
    }

    /// The literals that may stand around the group that begins this word.
    fn rows(&self, folded: u64) -> impl Iterator<Item = (&Literal, usize)> {
        let group = first_bytes(folded) & GROUP;
        let list = hash(group) % LISTS;
        let at = |list: usize| self.first.get(list).map_or(0, |row| usize::from(*row));
        let rows = self.rows.get(at(list)..at(list + 1));
        let rows = rows.unwrap_or_default().iter();
        rows.filter(move |row| row.group == group)
            .filter_map(|row| {
                let literal = self.literals.get(usize::from(row.literal))?;
                Some((literal, usize::from(row.offset)))
            })
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
