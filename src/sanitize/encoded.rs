//! Readings of a text: what it says once its encoded parts are decoded. Percent
//! triplets, entities, escapes, base64, hexadecimal and letters set apart by spaces
//! are decoded where they stand, with offsets back, so that a detector sees them in
//! their company.

use std::ops::Range;

use base64::Engine as _;

use super::escapes::{unicode_escape, unit};
use super::odd;
use super::offsets::Offsets;

mod entities;
#[cfg(test)]
mod tests;

/// Shortest run that is tried as base64 or hexadecimal.
const SHORTEST: usize = 16;

/// Longest run that is tried: what is longer is a file.
const LONGEST: usize = 64 << 10;

/// Letters set apart by spaces, at least.
const SPACED: usize = 10;

/// How deep an encoding in an encoding is followed.
const DEPTH: usize = 2;

const LENIENT: base64::engine::GeneralPurpose = base64::engine::GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    base64::engine::GeneralPurposeConfig::new()
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A text with its encoded parts decoded.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) text: String,
    /// The last decoding first.
    layers: Vec<Offsets>,
    /// Parts that were decoded, in this text, in order.
    parts: Vec<Range<usize>>,
}

impl Reading {
    /// `None` where nothing is encoded.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut reading = Decoder::new(text).run()?;
        for _ in 1..DEPTH {
            let Some(deeper) = Decoder::new(&reading.text).run() else {
                break;
            };
            let mut parts = deeper.parts;
            let forth = |part| deeper.layers.first().map(|offsets| offsets.forth(part));
            parts.extend(reading.parts.iter().filter_map(forth));
            parts.sort_by_key(|part| part.start);
            let mut layers = deeper.layers;
            layers.extend(reading.layers);
            reading = Self {
                text: deeper.text,
                layers,
                parts,
            };
        }
        Some(reading)
    }

    /// The range of the original.
    pub(super) fn back(&self, range: &Range<usize>) -> Range<usize> {
        let step = |range: Range<usize>, offsets: &Offsets| offsets.back(&range);
        self.layers.iter().fold(range.clone(), step)
    }

    /// Whether any of this range was encoded.
    pub(super) fn was_encoded(&self, range: &Range<usize>) -> bool {
        // Parts of different depth may nest; neighbours are looked at from a little
        // before.
        let next = self
            .parts
            .partition_point(|part| part.start < range.end)
            .saturating_sub(64);
        self.parts
            .iter()
            .skip(next)
            .take_while(|part| part.start < range.end)
            .any(|part| part.end > range.start)
    }
}

struct Decoder<'a> {
    text: &'a str,
    at: usize,
    /// Up to where the text was copied.
    copied: usize,
    out: String,
    offsets: Offsets,
    parts: Vec<Range<usize>>,
}

impl<'a> Decoder<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            copied: 0,
            out: String::new(),
            offsets: Offsets::default(),
            parts: Vec::new(),
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn run(mut self) -> Option<Reading> {
        while let Some(byte) = self.rest().first().copied() {
            match byte {
                b'%' => self.percent(),
                b'&' => self.entity(),
                b'\\' => self.escape(),
                _ if is_dense(byte) => self.dense(),
                _ => self.at += 1,
            }
        }
        if self.parts.is_empty() {
            return None;
        }
        self.copy(self.text.len());
        Some(Reading {
            text: self.out,
            layers: vec![self.offsets],
            parts: self.parts,
        })
    }

    fn copy(&mut self, to: usize) {
        let plain = self.text.get(self.copied..to).unwrap_or_default();
        self.out.push_str(plain);
        self.offsets.push(plain.len(), self.copied, plain.len());
        self.copied = to;
    }

    /// The next `len` bytes say `what`.
    fn decoded(&mut self, what: &str, len: usize) {
        self.copy(self.at);
        let start = self.out.len();
        self.out.push_str(what);
        self.offsets.push(what.len(), self.at, len);
        self.at += len;
        self.copied = self.at;
        self.parts.push(start..self.out.len());
    }

    fn character(&mut self, c: char, len: usize) {
        if c.is_control() && !matches!(c, '\n' | '\t') {
            self.at += len;
            return;
        }
        self.decoded(c.encode_utf8(&mut [0; 4]), len);
    }

    fn percent(&mut self) {
        let mut bytes = Vec::new();
        while bytes.len() < 4
            && let Some(byte) = percent_byte(self.rest().get(3 * bytes.len()..).unwrap_or_default())
        {
            bytes.push(byte);
            if let Ok(text) = std::str::from_utf8(&bytes)
                && let Some(c) = text.chars().next()
            {
                self.character(c, 3 * bytes.len());
                return;
            }
        }
        self.at += 1;
    }

    fn entity(&mut self) {
        match entities::at(self.rest()) {
            Some((c, len)) => self.character(c, len),
            None => self.at += 1,
        }
    }

    /// `\u0040`, `\x40`, behind any number of backslashes.
    fn escape(&mut self) {
        let slashes = self.rest().iter().take_while(|b| **b == b'\\').count();
        let last = self.at + slashes - 1;
        let rest = self.text.as_bytes().get(last..).unwrap_or_default();
        let found = match rest {
            [_, b'u', ..] => unicode_escape(self.text, last),
            [_, b'x', high, low, ..] => hex_byte(*high, *low)
                .filter(u8::is_ascii)
                .map(|byte| (char::from(byte), 4)),
            _ => None,
        };
        match found {
            // An escape of a line's end or a quote is no evasion.
            Some((c, len)) if !c.is_whitespace() => self.character(c, slashes - 1 + len),
            _ => self.at += slashes,
        }
    }

    /// A run of letters and digits: encoded, set apart by spaces, or plain.
    fn dense(&mut self) {
        let rest = self.rest();
        let len = rest.iter().take_while(|b| is_dense(**b)).count();
        let padding = rest
            .get(len..)
            .unwrap_or_default()
            .iter()
            .take(2)
            .take_while(|b| **b == b'=')
            .count();
        if len == 1 && rest.get(1) == Some(&b' ') {
            self.spaced();
            return;
        }
        let run = self.text.get(self.at..self.at + len).unwrap_or_default();
        match decoded(run) {
            Some(text) => self.decoded(&text, len + padding),
            None => self.at += len,
        }
    }

    fn spaced(&mut self) {
        let rest = self.rest();
        let (pairs, _) = rest.as_chunks::<2>();
        let is_pair = |pair: &&[u8; 2]| pair[0].is_ascii_graphic() && pair[1] == b' ';
        let count = pairs.iter().take_while(is_pair).count();
        let ends = rest
            .get(2 * count)
            .is_some_and(|b| b.is_ascii_graphic() && rest.get(2 * count + 1) != Some(&b' '));
        let ends = ends
            && rest
                .get(2 * count + 1)
                .is_none_or(|b| !is_dense(*b) && !matches!(b, b'_' | b'-'));
        let singles = count + usize::from(ends);
        if singles < SPACED {
            self.at += 2 * count.max(1);
            return;
        }
        self.copy(self.at);
        let start = self.out.len();
        for _ in 0..singles {
            self.copy(self.at + 1);
            self.at += 2;
            self.copied = self.at.min(self.text.len());
        }
        self.at -= 1;
        self.copied = self.at;
        self.parts.push(start..self.out.len());
    }
}

/// Bytes of base64 and hexadecimal.
pub(super) fn is_dense(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn percent_byte(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [b'%', high, low, ..] => hex_byte(*high, *low),
        _ => None,
    }
}

fn is_readable(byte: u8) -> bool {
    !matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127)
}

/// The text that a run encodes, where it encodes one.
pub(super) fn decoded(run: &str) -> Option<String> {
    if !(SHORTEST..=LONGEST).contains(&run.len()) {
        return None;
    }
    let in_hexadecimal = begins_hexadecimal(run.as_bytes())
        .then(|| hexadecimal(run.as_bytes()))
        .flatten();
    let bytes = in_hexadecimal.or_else(|| {
        begins_readable(run.as_bytes())
            .then(|| LENIENT.decode(run).ok())
            .flatten()
    })?;
    let text = String::from_utf8(bytes).ok()?;
    text.bytes().all(is_readable).then_some(text)
}

fn hexadecimal(run: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = run.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| hex_byte(*high, *low).filter(|byte| is_readable(*byte)))
        .collect()
}

/// The value of a digit of base64.
fn six_bits(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// The three bytes that four digits of base64 stand for.
fn three_bytes([a, b, c, d]: [u8; 4]) -> Option<[u8; 3]> {
    let (a, b, c, d) = (six_bits(a)?, six_bits(b)?, six_bits(c)?, six_bits(d)?);
    Some([a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d])
}

/// Whether the first bytes of base64 can be text: most that is not is told by its
/// first four characters.
fn begins_readable(run: &[u8]) -> bool {
    let mut head = [0; SHORTEST / 4 * 3];
    let (groups, _) = run.as_chunks::<4>();
    for (to, digits) in head.as_chunks_mut::<3>().0.iter_mut().zip(groups) {
        match three_bytes(*digits) {
            Some(bytes) if bytes.iter().all(|byte| is_readable(*byte)) => *to = bytes,
            _ => return false,
        }
    }
    match std::str::from_utf8(&head) {
        Ok(_) => true,
        // A character may go on behind the head.
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    }
}

/// Whether the run of dense bytes that begins at `start` in raw JSON may be encoded
/// text.
pub(super) fn may_be_encoded(bytes: &[u8], start: usize) -> bool {
    let head = bytes.get(start..start + SHORTEST).unwrap_or_default();
    head.len() == SHORTEST && (begins_readable(head) || begins_hexadecimal(head))
}

fn begins_hexadecimal(run: &[u8]) -> bool {
    let (pairs, _) = run.get(..SHORTEST).unwrap_or(run).as_chunks::<2>();
    pairs
        .iter()
        .all(|[high, low]| hex_byte(*high, *low).is_some_and(is_readable))
}

/// Whether what begins at `%` or `&` in raw JSON may be decoded.
pub(super) fn may_begin(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest {
        [b'%', ..] => percent_byte(rest).is_some_and(|byte| may_hide(char::from(byte))),
        [b'&', ..] => entities::at(rest).is_some_and(|(c, _)| may_hide(c)),
        _ => false,
    }
}

/// Whether a character is part of what detectors look for, rather than what stands
/// between such things and is encoded in every URL and page.
fn may_hide(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '@' | '-' | '_' | '.' | '~' | '+' | '%')
}

/// Whether the escape at `at` in raw JSON may spell something odd.
pub(super) fn is_odd_escape(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest {
        [_, b'u', ..] => rest
            .get(..6)
            .and_then(|escape| std::str::from_utf8(escape).ok())
            .and_then(|escape| unit(escape, 0))
            .is_some_and(odd::is_odd_unit),
        // CR LF, also when it is escaped once more.
        [_, b'r', tail @ ..] => {
            let slashes = tail.iter().take_while(|b| **b == b'\\').count();
            slashes == 0 || tail.get(slashes) != Some(&b'n')
        }
        [_, b'b' | b'f', ..] => true,
        // No escape of JSON: the backslash before it escapes this one.
        [_, b'x', high, low, ..] => hex_byte(*high, *low).is_some(),
        _ => false,
    }
}
