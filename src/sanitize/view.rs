//! The canonical view of a text: what a reader sees, with offsets back. Controls
//! and invisible characters are out of it before any detector looks, so that they
//! hide nothing (a key split by a zero-width space is a key), and other forms of
//! ASCII characters (full-width, other scripts' digits, odd hyphens) are ASCII.

use std::borrow::Cow;
use std::ops::Range;

use super::findings::{INVISIBLE, Label, TERMINAL};
use super::invisible::{Class, Fate, Surroundings, class, flag_len};
use super::odd;
use super::offsets::Offsets;
use super::terminal;

mod fold;

use fold::folded;

/// A stretch of the original that the view has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) range: Range<usize>,
    /// What it is; `None` stays in the output and only the view lacks it.
    pub(super) label: Option<Label>,
    pub(super) count: u64,
    /// What stands there instead.
    pub(super) instead: &'static str,
}

/// A text without what cannot be seen.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) offsets: Offsets,
    /// In order, never overlapping.
    pub(super) gaps: Vec<Gap>,
    /// Whether the text has characters that needed a look, gone or not.
    odd: bool,
}

impl<'a> View<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let Some(first) = odd::find(text.as_bytes(), 0, true) else {
            return Self {
                text: Cow::Borrowed(text),
                offsets: Offsets::default(),
                gaps: Vec::new(),
                odd: false,
            };
        };
        let mut gaps = unconditional(text, first);
        let (kept, kept_offsets) = cut(text, &gaps);
        gaps.extend(conditional(&kept).into_iter().map(|gap| Gap {
            range: kept_offsets.back(&gap.range),
            ..gap
        }));
        gaps.sort_by_key(|gap| gap.range.start);
        let gaps = join(gaps);
        let (text, offsets) = cut(text, &gaps);
        Self {
            text,
            offsets,
            gaps,
            odd: true,
        }
    }

    /// Whether nothing of the text needed a look.
    pub(super) fn is_verbatim(&self) -> bool {
        !self.odd
    }
}

fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

/// Control sequences and characters that go wherever they stand.
fn unconditional(text: &str, first: usize) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut next = Some(first);
    while let Some(at) = next {
        let c = char_at(text, at).unwrap_or('\0');
        let mut end = at + c.len_utf8();
        if let Some((len, instead)) = terminal::sequence(text, at) {
            end = at + len.max(1);
            gaps.push(Gap {
                range: at..end,
                label: Some(TERMINAL),
                count: 1,
                instead,
            });
        } else if class(c) == Class::Hidden {
            gaps.push(Gap {
                range: at..end,
                label: Some(INVISIBLE),
                count: 1,
                instead: "",
            });
        }
        next = odd::find(text.as_bytes(), end, true);
    }
    gaps
}

/// Characters that go because nothing beside them needs them. `text` has no
/// unconditional ones left.
fn conditional(text: &str) -> Vec<Gap> {
    let mut next = odd::find(text.as_bytes(), 0, true);
    if next.is_none() {
        return Vec::new();
    }
    let surroundings = Surroundings::of(text);
    let mut gaps: Vec<Gap> = Vec::new();
    while let Some(at) = next {
        let c = char_at(text, at).unwrap_or('\0');
        let mut end = at + c.len_utf8();
        let previous = kept_before(text, at, &gaps);
        if let Some(len) = text.get(at..).and_then(|rest| flag_len(previous, rest)) {
            end = at + len;
        } else if let Some(instead) = folded(c) {
            gaps.push(Gap {
                range: at..end,
                label: None,
                count: 1,
                instead,
            });
        } else if class(c) != Class::Plain
            && let Some((label, instead)) =
                verdict(surroundings.fate((at, c), previous, char_at(text, end)))
        {
            gaps.push(Gap {
                range: at..end,
                label,
                count: 1,
                instead,
            });
        }
        next = odd::find(text.as_bytes(), end, true);
    }
    gaps
}

fn verdict(fate: Fate) -> Option<(Option<Label>, &'static str)> {
    match fate {
        Fate::Stays => None,
        Fate::Transparent => Some((None, "")),
        Fate::Goes => Some((Some(INVISIBLE), "")),
        Fate::BecomesLineFeed => Some((Some(TERMINAL), "\n")),
        Fate::Drops => Some((Some(TERMINAL), "")),
    }
}

/// The last character before `at` that stays in the output. The walk back over
/// what goes is short in text; it is bounded so that it is in hostile text too.
fn kept_before(text: &str, at: usize, gaps: &[Gap]) -> Option<char> {
    let mut at = at;
    for gap in gaps.iter().rev().take(64) {
        if gap.range.end != at || gap.label.is_none() {
            break;
        }
        if let Some(instead) = gap.instead.chars().next_back() {
            return Some(instead);
        }
        at = gap.range.start;
    }
    text.get(..at)?.chars().next_back()
}

/// Neighbours of one kind become one stretch.
fn join(gaps: Vec<Gap>) -> Vec<Gap> {
    let mut out: Vec<Gap> = Vec::with_capacity(gaps.len());
    for gap in gaps {
        match out.last_mut() {
            Some(last)
                if last.range.end == gap.range.start
                    && last.label == gap.label
                    && last.instead.is_empty()
                    && gap.instead.is_empty() =>
            {
                last.range.end = gap.range.end;
                last.count += gap.count;
            }
            _ => out.push(gap),
        }
    }
    out
}

fn cut<'a>(text: &'a str, gaps: &[Gap]) -> (Cow<'a, str>, Offsets) {
    let mut offsets = Offsets::default();
    if gaps.is_empty() {
        return (Cow::Borrowed(text), offsets);
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for gap in gaps {
        let plain = text.get(at..gap.range.start).unwrap_or_default();
        out.push_str(plain);
        offsets.push(plain.len(), at, plain.len());
        out.push_str(gap.instead);
        offsets.push(gap.instead.len(), gap.range.start, gap.range.len());
        at = gap.range.end;
    }
    let plain = text.get(at..).unwrap_or_default();
    out.push_str(plain);
    offsets.push(plain.len(), at, plain.len());
    (Cow::Owned(out), offsets)
}

#[cfg(test)]
mod tests;
