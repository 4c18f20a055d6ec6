//! Personal data: numbers with check digits, addresses of mail and machines,
//! telephone numbers, birthdays, wallets; names and postal addresses where their
//! field says so.
//!
//! A candidate is a run of letters and digits that a boundary begins. Its form and
//! check digits decide together with a word for it: the heading of its column, the
//! nearest word before it, the name of its field ([`cues`]). What has neither its
//! own form nor a word stays. Every candidate looks at bounded windows, so the cost
//! is linear in the text.

use super::detect::{Certainty, Detector, Family, Hit, Hits, Place, Subject};

mod cards;
mod checks;
mod columns;
mod cues;
mod dates;
mod fields;
mod iban;
mod kinds;
mod mail;
mod named;
mod national;
mod network;
mod phone;
mod signs;
mod token;
mod wallets;

use columns::Columns;
use cues::Cue;
use kinds::{Candidate, Kind};
use token::{Token, begins, ends};

/// The family.
pub(super) const DETECTOR: Detector = Detector {
    cues: signs::SIGNS,
    plausible: signs::is_plausible,
    names: fields::is_telling,
    find,
};

/// Before and behind a sign so much is searched.
const BEFORE: usize = 48;
const BEHIND: usize = 96;

/// One text under search.
struct Search<'a> {
    text: &'a str,
    bytes: &'a [u8],
    named: Option<&'static Cue>,
    columns: Columns<'a>,
    /// Short groups of digits that single separators join: so many, and where the
    /// last ends.
    series: (usize, usize),
}

fn find(subject: &Subject<'_>, hits: &mut Hits) {
    let named = subject.context.key.and_then(cues::of_name);
    let mut search = Search {
        text: subject.text,
        bytes: subject.text.as_bytes(),
        named,
        columns: Columns::default(),
        series: (0, 0),
    };
    if subject.context.place == Place::Number {
        if let Some(hit) = search.number() {
            hits.push(hit);
        }
        return;
    }
    if let Some(hit) = fields::whole(subject.text, named) {
        hits.push(hit);
        return;
    }
    let mut to = 0;
    for window in windows(subject) {
        mail::find(search.text, &window, hits);
        to = search.walk(window.start.max(to), window.end, hits);
    }
}

/// What is around the signs, in order, none overlapping; all of a short text whose
/// name speaks for itself.
fn windows(subject: &Subject<'_>) -> Vec<std::ops::Range<usize>> {
    let text = subject.text;
    let whole = 0..text.len();
    if text.len() <= BEFORE + BEHIND {
        return vec![whole];
    }
    let mut out: Vec<std::ops::Range<usize>> = Vec::new();
    for sign in subject.signs {
        let start = text.floor_char_boundary(sign.start.saturating_sub(BEFORE));
        let end = text.ceil_char_boundary((sign.end + BEHIND).min(text.len()));
        match out.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => out.push(start..end),
        }
    }
    out
}

fn hit(label: &'static str, range: std::ops::Range<usize>, certainty: Certainty) -> Hit {
    Hit::new(Family::Personal, label, range, certainty)
}

impl Search<'_> {
    /// A number as written, by its name; without one, a card that stands alone.
    fn number(&mut self) -> Option<Hit> {
        let text = self.text;
        let whole = 0..text.len();
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        if !plain || self.named.is_some_and(Cue::is_other) {
            return None;
        }
        if self.named.is_some_and(|cue| cue.is("phone")) && (9..=15).contains(&text.len()) {
            return Some(hit("phone", whole, Certainty::Form));
        }
        if self.named.is_some_and(|cue| cue.is("date_of_birth")) && dates::is_packed(text) {
            return Some(hit("date_of_birth", whole, Certainty::Form));
        }
        let token = Token::read(text, 0)?;
        let (end, kind, named) = self.best(&token, 0, self.named)?;
        let sure = named || text.len() == 16;
        (end == text.len() && sure).then(|| hit(kind.label, whole, Certainty::Form))
    }

    /// Walks over the words of a window; gives where it came to.
    fn walk(&mut self, from: usize, to: usize, hits: &mut Hits) -> usize {
        let mut at = self.word_start(from);
        while at < to {
            let Some(byte) = self.bytes.get(at).copied() else {
                break;
            };
            if byte.is_ascii_alphanumeric() {
                let end = token::word_end(self.bytes, at);
                at = self.word(at, end, hits).unwrap_or(end);
            } else if matches!(byte, b'+' | b'(') {
                at = self.phone(at, None, hits).unwrap_or(at + 1);
            } else {
                at += 1;
            }
        }
        at
    }

    /// A window that begins inside a word begins before it.
    fn word_start(&self, at: usize) -> usize {
        let head = self.bytes.get(..at).unwrap_or_default();
        let inside = head
            .iter()
            .rev()
            .take(BEFORE)
            .take_while(|b| b.is_ascii_alphanumeric())
            .count();
        at - inside
    }

    /// Whether a group of digits is far inside a row of such groups: no number has so
    /// many, and no word for it stands near enough.
    fn is_deep_in_a_row(&mut self, at: usize, end: usize) -> bool {
        const DEEP: usize = 40;
        let is_group = |range: std::ops::Range<usize>| {
            let group = self.bytes.get(range).unwrap_or_default();
            !group.is_empty() && group.iter().all(u8::is_ascii_digit)
        };
        let (count, last) = self.series;
        let joined = last > 0 && at == last + 1 && is_group(at..end) && is_group(last - 1..last);
        let count = if joined { count + 1 } else { 0 };
        self.series = (count, end);
        count > DEEP && end - at <= 5
    }

    /// Looks at the word; gives where the search goes on where something was found.
    fn word(&mut self, at: usize, end: usize, hits: &mut Hits) -> Option<usize> {
        if !begins(self.bytes, at) {
            return None;
        }
        if self.is_deep_in_a_row(at, end) {
            return None;
        }
        let word = self.bytes.get(at..end)?;
        let has_digit = word.iter().any(u8::is_ascii_digit);
        if !has_digit && !token::may_begin(self.bytes, at, end) {
            return self.written_month(at, word, hits);
        }
        if let Some(found) = network::address(self.text, at) {
            let cue = cues::before(self.text, at);
            let is_version = cue.is_some_and(|cue| cue.is("version"));
            if found.counts(cue) && !is_version {
                hits.push(hit(found.label, at..found.end, Certainty::Form));
            }
            return Some(found.end);
        }
        if let Some(end) = wallets::wallet(self.text, at, end) {
            hits.push(hit("crypto_wallet", at..end, Certainty::Form));
            return Some(end);
        }
        self.judged(at, hits)
    }

    /// The word for what stands at an offset.
    fn cue(&mut self, at: usize) -> Option<&'static Cue> {
        self.columns
            .heading(self.text, at)
            .or_else(|| cues::before(self.text, at))
            .or(self.named)
    }

    fn judged(&mut self, at: usize, hits: &mut Hits) -> Option<usize> {
        let token = Token::read(self.text, at)?;
        let cue = self.cue(at);
        let is = |label: &str| cue.is_some_and(|cue| cue.is(label));
        if is("date_of_birth")
            && let Some(end) = dates::date(self.text, at)
        {
            hits.push(hit("date_of_birth", at..end, Certainty::Name));
            return Some(end);
        }
        if is("phone")
            && let Some(end) = self.phone(at, cue, hits)
        {
            return Some(end);
        }
        if let Some((end, kind, named)) = self.best(&token, at, cue) {
            let certainty = if named {
                Certainty::Name
            } else {
                Certainty::Form
            };
            hits.push(hit(kind.label, at..end, certainty));
            return Some(end);
        }
        self.phone(at, cue, hits)
    }

    /// The kind that fits best and where it ends: one that a word names before one
    /// that stands alone, and of these the longer.
    fn best(
        &self,
        token: &Token,
        at: usize,
        cue: Option<&Cue>,
    ) -> Option<(usize, &'static Kind, bool)> {
        let other = cue.is_some_and(Cue::is_other);
        let free = token::stands_free(self.bytes, at);
        // The middle of a UUID is named by nothing.
        let inside = at.checked_sub(2).is_some_and(|before| {
            matches!(self.bytes.get(before..at), Some([b, b'-']) if b.is_ascii_alphanumeric())
        });
        let mut best: Option<(bool, usize, &'static Kind)> = None;
        for stop in token.stops() {
            if !ends(self.bytes, stop.end) {
                continue;
            }
            let Some(body) = token.body(stop.len) else {
                continue;
            };
            let text = self.text.get(at..stop.end).unwrap_or_default();
            let candidate = Candidate { body, text };
            let named_kinds = cue.filter(|_| !inside).map_or(0, Cue::kinds);
            let alone_kinds = if free && Token::is_whole(self.bytes, at, stop) {
                kinds::ALONE
            } else {
                0
            };
            let set = kinds::of_length(stop.len) & (named_kinds | alone_kinds);
            for (number, kind) in kinds::listed(set) {
                let named = named_kinds >> number & 1 == 1;
                let better = best.is_none_or(|(by_name, end, _)| {
                    (named && !by_name) || (named == by_name && stop.end > end)
                });
                let counts = better && (named || kind.stands_alone(&candidate, other));
                if counts && (kind.check)(body) {
                    best = Some((named, stop.end, kind));
                }
            }
        }
        best.map(|(named, end, kind)| (end, kind, named))
    }

    fn phone(&mut self, at: usize, cue: Option<&'static Cue>, hits: &mut Hits) -> Option<usize> {
        let shape = phone::Shape::read(self.text, at)?;
        let cue = cue.or_else(|| self.cue(at));
        let before = cue.is_some_and(|cue| cue.is("phone"));
        let named =
            before || cues::behind(self.text, shape.end()).is_some_and(|cue| cue.is("phone"));
        let other = cue.is_some_and(Cue::is_other);
        let end = shape.number(self.text, at, named, other)?;
        let certainty = if named {
            Certainty::Name
        } else {
            Certainty::Form
        };
        hits.push(hit("phone", at..end, certainty));
        Some(end)
    }

    /// `March 12, 1985` behind a word for birthdays.
    fn written_month(&mut self, at: usize, word: &[u8], hits: &mut Hits) -> Option<usize> {
        let end = dates::begins_with_month(word).then(|| dates::date(self.text, at))??;
        self.cue(at).filter(|cue| cue.is("date_of_birth"))?;
        hits.push(hit("date_of_birth", at..end, Certainty::Name));
        Some(end)
    }
}

#[cfg(test)]
mod tests;
