//! The seam between the engine and the detectors. A family of detectors is data
//! ([`Detector`]): cues by which a text without anything for it is ruled out, and
//! one function that looks at a text and says what it found. The engine does the
//! rest: views and offsets, overlaps, actions, edits, counts, places.
//!
//! What a detector may rely on:
//! - `text` is a view: invisible characters and controls are gone; full-width and
//!   other-script digits and letters, odd hyphens and odd spaces are ASCII. It is
//!   called again on a reading in which encoded parts (percent, entities, escapes,
//!   base64, hexadecimal, spaced-out letters) are decoded. A detector knows of none
//!   of this: ranges of the text it was given lead back by themselves.
//! - Text blocks side by side are given once more as one text, with `seams`.
//! - `signs` are where its cues stand in this text, in order. It is called only
//!   where there is one, or where the place or the name speaks for itself
//!   ([`Detector::names`]).
//!
//! What it must keep to: linear time (bounded windows around a sign), no finding in
//! a placeholder or in what it itself put there (a second pass over the result must
//! find nothing to change), nothing from outside `text` and `context`.

use std::ops::Range;

use super::findings::Label;

/// Families of findings: what a tenant's rules speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Secrets,
    Personal,
    Markup,
    Injection,
    Traces,
    Invisible,
    Terminal,
}

/// Where a text stands, and so what it is to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Prose or output that a model reads: content blocks, resource texts, messages
    /// of prompts and elicitations.
    Text,
    /// A string of structured data, or of JSON that stands in a text.
    Value,
    /// An object's key.
    Key,
    /// A number as written. Only a hit on all of it counts.
    Number,
    /// Words about a failure: texts of `isError` results, JSON-RPC messages and data.
    Error,
    /// What a tool, prompt or resource says of itself: names, titles, descriptions,
    /// words of schemas.
    Description,
    /// `uri`, `url`, `href`, `src`, …
    Uri,
    /// Progress and log messages.
    Log,
}

/// What is known of a text besides itself.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) place: Place,
    /// The nearest name, unescaped: the key that the value stands under, or the
    /// `name` beside a `value`. Elements of an array have the array's name.
    pub(super) key: Option<&'a str>,
    /// Hosts that markup may fetch from, with all below them.
    pub(super) domains: &'a [String],
    /// The JSON pointer, made only when asked for.
    pub(super) pointer: &'a dyn Fn() -> String,
}

/// A text to be searched.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) text: &'a str,
    pub(super) context: Context<'a>,
    /// Where this family's cues stand, in order of their start.
    pub(super) signs: &'a [Sign],
    /// Offsets where blocks meet, in order; empty in a text of one block.
    pub(super) seams: &'a [usize],
}

/// By what a text is known that could hold something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    /// A literal, ASCII letters in any case. At least three bytes: any number of
    /// these costs the same.
    Word(&'static str),
    /// A literal as it is written. At least three bytes, or a pass of its own.
    Exact(&'static str),
    /// A byte; better a rare one.
    Byte(u8),
    /// A run of at least so many digits, single separators between them not
    /// counted (space, `-`, `.`, `/`, no-break space). The sign is the whole run.
    Digits(usize),
}

/// A cue that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sign {
    /// Its place in the family's list.
    pub(super) cue: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A family, as data.
#[derive(Clone, Copy)]
pub(super) struct Detector {
    pub(super) cues: &'static [Cue],
    /// Whether raw bytes of a JSON text at a sign can lead to anything: a cheap look
    /// that keeps clean text from being walked. May err towards yes. An escape or a
    /// quote may stand anywhere in these bytes.
    pub(super) plausible: fn(&[u8], Sign) -> bool,
    /// Whether a key makes its whole value worth a look without any cue. Called for
    /// keys that have a cue of this family.
    pub(super) names: fn(&str) -> bool,
    pub(super) find: fn(&Subject<'_>, &mut Hits),
}

/// How sure a detector is; of two hits that overlap, the surer gives the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// Looks like it, and a word nearby says so.
    Context,
    /// A name or a label says so.
    Name,
    /// The structure around it says so.
    Structure,
    /// Its own form or check digits say so.
    Form,
}

/// What is to stand in a hit's place where the action is to redact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    /// `[REDACTED:label]`
    Placeholder,
    /// This text; empty to remove it. The engine cleans it again where other hits
    /// lay in it.
    Text(String),
    /// It stays, and a mark is put before it: `[FLAGGED:label] `.
    Mark,
}

/// Something found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// In the text that the detector was given.
    pub(super) range: Range<usize>,
    pub(super) label: Label,
    pub(super) family: Family,
    pub(super) certainty: Certainty,
    pub(super) instead: Instead,
    /// Where the evidence begins: the name before the value, or the range's start.
    pub(super) from: usize,
    /// How often it counts: parts of one finding count once together.
    pub(super) count: u64,
    /// The host that it leads to.
    pub(super) host: Option<String>,
}

impl Hit {
    /// A hit to be replaced by a placeholder.
    pub(super) fn new(
        family: Family,
        label: Label,
        range: Range<usize>,
        certainty: Certainty,
    ) -> Self {
        Self {
            from: range.start,
            range,
            label,
            family,
            certainty,
            instead: Instead::Placeholder,
            count: 1,
            host: None,
        }
    }

    /// The same, with something else in its place.
    pub(super) fn instead(mut self, instead: Instead) -> Self {
        self.instead = instead;
        self
    }

    /// A part of this, at another place.
    pub(super) fn part(&self, range: Range<usize>, count: u64) -> Self {
        Self {
            from: range.start,
            range,
            count,
            ..self.clone()
        }
    }

    /// The same, with evidence that begins earlier.
    pub(super) fn from(mut self, from: usize) -> Self {
        self.from = from;
        self
    }
}

/// What the detectors found in one text, in any order.
#[derive(Debug, Default)]
pub(super) struct Hits {
    pub(super) list: Vec<Hit>,
}

impl Hits {
    pub(super) fn push(&mut self, hit: Hit) {
        if !hit.range.is_empty() {
            self.list.push(hit);
        }
    }
}

/// All families. A new one is a line here.
pub(super) fn detectors() -> Vec<Detector> {
    vec![
        super::secrets::detector(),
        super::personal::DETECTOR,
        super::markup::DETECTOR,
        super::injection::DETECTOR,
        super::traces::DETECTOR,
    ]
}
