//! How a row of the table is matched: forwards from its literal, over bounded runs.

use std::ops::Range;

use super::{Check, Format, GITHUB, Of, Part};
use crate::sanitize::secrets::judge;
use crate::sanitize::secrets::literals::starts_free;

impl Of {
    fn has(self, b: u8) -> bool {
        match self {
            Self::Digit => b.is_ascii_digit(),
            Self::Hex => b.is_ascii_hexdigit(),
            Self::Base32 => b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b),
            Self::UpperDigit => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Url => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
            Self::UrlDot => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'='),
            Self::Base64 => b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='),
            Self::Azure => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~'),
            Self::Slack => b.is_ascii_alphanumeric() || b == b'-',
        }
    }
}

impl Format {
    /// Whether what follows the literal in raw bytes can be the secret's first
    /// part: a cheap look for the prefilter, which may err towards yes.
    pub(in crate::sanitize::secrets) fn may_start(&self, bytes: &[u8], at: usize) -> bool {
        let Some(Part::Run(of, min, _)) = self.parts.first() else {
            return true;
        };
        if self.free && self.before.is_none() && !starts_free(bytes, at) {
            return false;
        }
        let from = at + self.literal.len();
        let look = bytes.get(from..).unwrap_or_default();
        // An escape, an invisible character or the next block may go on with it.
        look.iter()
            .take((*min).min(16))
            .find(|b| !of.has(**b))
            .is_none_or(|b| !b.is_ascii() || matches!(b, b'\\' | b'"'))
    }

    /// The secret whose literal stands at `at`. `seams` are offsets where blocks
    /// meet: what follows one need not belong to what stands before.
    pub(in crate::sanitize::secrets) fn matches(
        &self,
        text: &str,
        at: usize,
        seams: &[usize],
        runs: &mut Runs,
    ) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        let start = self.start(bytes, at)?;
        if self.free && !starts_free(bytes, start) && seams.binary_search(&start).is_err() {
            return None;
        }
        let body = at + self.literal.len();
        let mut end = body;
        let mut last = None;
        for part in self.parts {
            end = match part {
                Part::Text(literal) => bytes
                    .get(end..)?
                    .starts_with(literal.as_bytes())
                    .then_some(end + literal.len())?,
                Part::Run(of, min, max) => {
                    let len = runs.len(bytes, end, *of, *max);
                    last = Some(*of);
                    (len >= *min).then_some(end + len)?
                }
            };
        }
        // The full stop of a sentence is no part of a token.
        while bytes.get(..end).is_some_and(|head| head.ends_with(b".")) && end > body {
            end -= 1;
        }
        if let Some(seam) = word_behind_seam(text, body..end, seams)
            && seam - body >= self.least()
        {
            end = seam;
        }
        if self.check == Check::Github
            && let Some(exact) = text.get(body..body + GITHUB)
            && has_github_checksum(exact)
        {
            return Some(start..body + GITHUB);
        }
        let goes_on = bytes.get(end).is_some_and(|b| {
            (*b != b'.' && last.is_some_and(|of| of.has(*b))) || b.is_ascii_alphanumeric()
        });
        if goes_on && seams.binary_search(&end).is_err() {
            return None;
        }
        self.holds(text.get(body..end)?)
            .then_some(if self.keep_literal { body } else { start }..end)
    }

    /// Bytes behind the literal that the shortest of these secrets has.
    fn least(&self) -> usize {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Run(_, min, _) => *min,
                Part::Text(literal) => literal.len(),
            })
            .sum()
    }

    fn start(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let Some((of, min, max)) = self.before else {
            return Some(at);
        };
        let head = bytes.get(..at)?;
        let len = head
            .iter()
            .rev()
            .take(max)
            .take_while(|b| of.has(**b))
            .count();
        let head = head.get(..at - len)?;
        (len >= min && head.ends_with(self.lead.as_bytes())).then(|| head.len() - self.lead.len())
    }

    fn holds(&self, body: &str) -> bool {
        match self.check {
            Check::Varied => judge::is_varied(body),
            Check::Github => has_github_checksum(body) || judge::is_varied(body),
            Check::Slack => {
                let first = body
                    .split('-')
                    .find(|part| part.len() > 1)
                    .unwrap_or_default();
                let last = body.rsplit('-').next().unwrap_or_default();
                first.len() >= 8
                    && first
                        .bytes()
                        .take(8)
                        .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
                    && last.len() >= 16
                    && last.bytes().any(|b| b.is_ascii_digit())
                    && judge::is_varied(last)
            }
        }
    }
}

/// The last seam in the range, where only a word follows it: the next block begins
/// with a word more often than with the end of a token.
fn word_behind_seam(text: &str, range: Range<usize>, seams: &[usize]) -> Option<usize> {
    let next = seams.partition_point(|seam| *seam < range.end);
    let seam = *next.checked_sub(1).and_then(|at| seams.get(at))?;
    let tail = text.get(seam..range.end)?;
    (seam > range.start && tail.len() < 16 && tail.bytes().all(|b| b.is_ascii_alphabetic()))
        .then_some(seam)
}

/// Where runs end that were read: literals in one another's runs read them once.
#[derive(Debug, Default)]
pub(in crate::sanitize::secrets) struct Runs {
    known: Vec<(Of, Range<usize>)>,
}

impl Runs {
    /// How long the run is that begins at `from`, at most `max`.
    fn len(&mut self, bytes: &[u8], from: usize, of: Of, max: usize) -> usize {
        if let Some((_, range)) = self.known.iter().find(|(known, _)| *known == of)
            && range.contains(&from)
        {
            return (range.end - from).min(max);
        }
        let rest = bytes.get(from..).unwrap_or_default();
        let len = rest.iter().take_while(|b| of.has(**b)).count();
        match self.known.iter_mut().find(|(known, _)| *known == of) {
            Some((_, range)) if range.end > from + len => {}
            Some((_, range)) => *range = from..from + len,
            None => self.known.push((of, from..from + len)),
        }
        len.min(max)
    }
}

/// The checksum of GitHub's tokens: CRC-32 of the first 30 characters in base 62.
fn has_github_checksum(body: &str) -> bool {
    if body.len() != GITHUB {
        return false;
    }
    let (random, checksum) = body.split_at(30);
    let mut rest = crc32(random.as_bytes());
    checksum.bytes().rev().all(|byte| {
        let digit = rest % 62;
        rest /= 62;
        base62(byte) == Some(digit)
    })
}

fn base62(byte: u8) -> Option<u32> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'A'..=b'Z' => byte - b'A' + 10,
        b'a'..=b'z' => byte - b'a' + 36,
        _ => return None,
    };
    Some(u32::from(digit))
}

/// CRC-32 as in IEEE 802.3; a bit at a time is enough for thirty bytes.
fn crc32(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    });
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn githubs_checksum_is_known() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert!(has_github_checksum("dGlMoiyrlfxX1rTnyFf3vA7NUtFOY64WuYlz"));
        assert!(!has_github_checksum("dGlMoiyrlfxX1rTnyFf3vA7NUtFOY64WuYly"));
    }
}
