//! The engine: finds in a text or in every string of a JSON text, and makes the
//! edits. Texts that hold JSON are read as JSON, so that what mirrors
//! `structuredContent` gets the same edits and still parses.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::detect::{
    Certainty, Context, Detector, Hit, Hits, Instead, Place, Sign, Subject, detectors,
};
use super::edits::{Edit, Policy, apply, change};
use super::encoded::Reading;
use super::findings::Label;
use super::resolve::{Resolved, mark};
use super::scan::{Notice, Scanner};
use super::view::View;
use crate::config::Action;
use crate::protocol::{Json, JsonLimits};

mod document;
mod hidden;
mod joined;

pub(super) use document::{Found, Ground};
use hidden::{hidden, settle};

/// JSON in a string of JSON in a string: deeper is read as text.
const MAX_LEVEL: u8 = 3;

/// Compiled once, shared by all.
pub(super) struct Engine {
    detectors: Vec<Detector>,
    scanner: Scanner,
}

/// A text on its way through the engine.
#[derive(Clone, Copy)]
struct Input<'a> {
    text: &'a str,
    context: Context<'a>,
    /// How many texts it stands in.
    level: u8,
}

impl Engine {
    pub(super) fn new() -> Self {
        let detectors = detectors();
        Self {
            scanner: Scanner::new(&detectors),
            detectors,
        }
    }

    /// Finds in a text of its own.
    pub(super) fn text(&self, text: &str, place: Place, policy: Policy<'_>) -> Vec<Edit> {
        let context = Context {
            place,
            key: None,
            domains: policy.domains(),
            pointer: &String::new,
        };
        let input = Input {
            text,
            context,
            level: 0,
        };
        self.edits(input, policy, Vec::new())
    }

    /// What all detectors find in a text, as it is given.
    fn detect(&self, text: &str, context: Context<'_>, seams: &[usize]) -> Vec<Hit> {
        let mut found: Vec<(usize, Sign)> = Vec::new();
        self.scanner.scan(text.as_bytes(), false, &mut |notice| {
            if let Notice::Cue(detector, sign) = notice {
                found.push((detector, sign));
            }
        });
        found.sort_unstable_by_key(|(detector, sign)| (*detector, sign.start, sign.end, sign.cue));
        let signs: Vec<Sign> = found.iter().map(|(_, sign)| *sign).collect();
        let mut hits = Hits::default();
        let mut from = 0;
        for (number, detector) in self.detectors.iter().enumerate() {
            let to = found.partition_point(|(detector, _)| *detector <= number);
            let signs = signs.get(from..to).unwrap_or_default();
            from = to;
            if signs.is_empty() && !context.key.is_some_and(detector.names) {
                continue;
            }
            let subject = Subject {
                text,
                context,
                signs,
                seams,
            };
            (detector.find)(&subject, &mut hits);
        }
        hits.list
    }

    /// What is found only once encoded parts are decoded, in `text`'s offsets. What
    /// rewrites markup is made for the text as it stands.
    fn detect_encoded(&self, text: &str, context: Context<'_>) -> Vec<Hit> {
        let Some(reading) = Reading::of(text) else {
            return Vec::new();
        };
        let mut hits = self.detect(&reading.text, context, &[]);
        hits.retain(|hit| {
            !matches!(hit.instead, Instead::Text(_)) && reading.was_encoded(&hit.range)
        });
        for hit in &mut hits {
            hit.range = reading.back(&hit.range);
            hit.from = hit.from.min(hit.range.start);
        }
        hits
    }

    /// Edits of one text, in order, none overlapping. `joined` are the hits that it
    /// has only together with its neighbours, by offsets of its view.
    fn edits(&self, input: Input<'_>, policy: Policy<'_>, joined: Vec<Hit>) -> Vec<Edit> {
        if let Some(edits) = self.edits_of_json_text(input, policy) {
            return edits;
        }
        let view = View::of(input.text);
        let mut hits = self.detect(&view.text, input.context, &[]);
        hits.extend(self.detect_encoded(&view.text, input.context));
        hits.extend(joined);
        policy.custom(&view.text, &mut hits);
        hits.retain(|hit| !policy.allows(hit, &view.text, input.context.pointer));
        let mut edits = self.edits_of_hits(hits, &view, input, policy);
        let visible = change(&edits);
        edits.extend(hidden(input.text, &view, policy, &edits));
        edits.sort_by_key(|edit| edit.range.start);
        if visible && !view.is_verbatim() {
            settle(input.text, &mut edits, policy);
        }
        edits
    }

    fn edits_of_hits(
        &self,
        hits: Vec<Hit>,
        view: &View<'_>,
        input: Input<'_>,
        policy: Policy<'_>,
    ) -> Vec<Edit> {
        let resolved = Resolved::of(hits, policy);
        let mut edits = Vec::with_capacity(resolved.stretches.len());
        for stretch in &resolved.stretches {
            for mut edit in stretch.edits(&view.text, policy) {
                edit.range = view.offsets.back(&edit.range);
                if stretch.unsettled
                    && input.level < MAX_LEVEL
                    && let Some(text) = &edit.replacement
                {
                    let inner = Input {
                        text,
                        level: input.level + 1,
                        ..input
                    };
                    edit.replacement = Some(apply(text, &self.edits(inner, policy, Vec::new())));
                }
                edits.push(edit);
            }
        }
        edits.extend(
            resolved
                .kept
                .iter()
                .map(|hit| {
                    let covered = edits
                        .iter()
                        .filter(|edit| edit.replacement.is_some())
                        .map(|edit| &edit.range);
                    kept(hit, view, input, policy, covered)
                })
                .collect::<Vec<_>>(),
        );
        edits
    }

    /// The edit of a number, where a hit takes all of it.
    fn edits_of_number(&self, input: Input<'_>, policy: Policy<'_>) -> Vec<Edit> {
        let whole = 0..input.text.len();
        let mut hits = self.detect(input.text, input.context, &[]);
        policy.custom(input.text, &mut hits);
        hits.retain(|hit| {
            hit.range == whole
                && hit.certainty == Certainty::Form
                && !policy.allows(hit, input.text, input.context.pointer)
        });
        let resolved = Resolved::of(hits, policy);
        let stretches = resolved.stretches.iter();
        let mut edits: Vec<Edit> = stretches
            .flat_map(|stretch| stretch.edits(input.text, policy))
            .collect();
        edits.extend(resolved.kept.into_iter().map(|hit| Edit {
            range: hit.range,
            replacement: None,
            label: hit.label,
            count: hit.count,
            blocks: false,
        }));
        edits
    }

    /// The edits of a text that is JSON itself; `None` where it is not.
    fn edits_of_json_text(&self, input: Input<'_>, policy: Policy<'_>) -> Option<Vec<Edit>> {
        let trimmed = input.text.trim_matches([' ', '\t', '\r', '\n']);
        let nested = matches!(
            (trimmed.as_bytes().first(), trimmed.as_bytes().last()),
            (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
        );
        if !nested || input.level >= MAX_LEVEL {
            return None;
        }
        // What would be repaired is no JSON to its reader.
        let json = Json::parse(
            Bytes::copy_from_slice(trimmed.as_bytes()),
            &JsonLimits::CALLER,
        )
        .ok()?;
        if json.as_str().len() != trimmed.len() {
            return None;
        }
        let shift = trimmed.as_ptr().addr() - input.text.as_ptr().addr();
        let place = match input.context.place {
            Place::Text => Place::Value,
            place => place,
        };
        let mut edits = self.nested(json.as_str(), place, policy, input.level + 1);
        for edit in &mut edits {
            edit.range = edit.range.start + shift..edit.range.end + shift;
        }
        Some(edits)
    }

    /// Edits of a text in base64 (a resource's textual blob), as one that replaces
    /// all of it.
    fn edits_of_base64(&self, input: Input<'_>, policy: Policy<'_>) -> Vec<Edit> {
        let Some(text) = STANDARD
            .decode(input.text)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            return Vec::new();
        };
        let inner = Input {
            text: &text,
            level: input.level + 1,
            ..input
        };
        let mut edits = self.edits(inner, policy, Vec::new());
        let encoded = change(&edits).then(|| STANDARD.encode(apply(&text, &edits)));
        let mut encoded = encoded.into_iter();
        for edit in &mut edits {
            edit.range = 0..input.text.len();
            edit.replacement = encoded.next();
        }
        edits
    }
}

#[cfg(test)]
impl Engine {
    /// What one family finds in a text, resolved.
    pub(super) fn found(
        &self,
        text: &str,
        key: Option<&str>,
        family: super::detect::Family,
    ) -> Vec<(Label, std::ops::Range<usize>)> {
        let context = Context {
            place: Place::Text,
            key,
            domains: &[],
            pointer: &String::new,
        };
        let mut hits = self.detect(text, context, &[]);
        hits.retain(|hit| hit.family == family);
        let resolved = Resolved::of(hits, Policy::REDACT);
        let stretches = resolved.stretches.into_iter();
        let kept = resolved.kept.into_iter();
        stretches
            .map(|stretch| stretch.hit)
            .chain(kept)
            .map(|hit| (hit.label, hit.range))
            .collect()
    }
}

/// What is done about a hit whose text stays: counted, and marked where a reader
/// sees the mark.
fn kept<'a>(
    hit: &Hit,
    view: &View<'_>,
    input: Input<'_>,
    policy: Policy<'_>,
    mut covered: impl Iterator<Item = &'a std::ops::Range<usize>>,
) -> Edit {
    let action = policy.action(hit.family, hit.label);
    let range = view.offsets.back(&hit.range);
    let mark = mark(hit.label);
    let text = &view.text;
    // An earlier pass's mark stands before what is found, or is found as a part of it.
    let from = text.floor_char_boundary(hit.range.start.saturating_sub(mark.len()));
    let until = text.ceil_char_boundary(hit.range.end.min(hit.range.start + mark.len()));
    let near = text.get(from..until).unwrap_or_default();
    let readable = !matches!(input.context.place, Place::Key | Place::Uri | Place::Number);
    let marks = hit.instead == Instead::Mark
        && action != Action::Flag
        && readable
        && !near.contains(mark.trim_end())
        && !covered.any(|other| other.start < range.start && range.start < other.end);
    Edit {
        range: if marks {
            range.start..range.start
        } else {
            range
        },
        replacement: marks.then_some(mark),
        label: hit.label,
        count: hit.count,
        blocks: action == Action::Block,
    }
}

/// The text with the edits made, borrowed where there are none.
pub(super) fn edited<'a>(text: &'a str, edits: &[Edit]) -> Cow<'a, str> {
    if change(edits) {
        Cow::Owned(apply(text, edits))
    } else {
        Cow::Borrowed(text)
    }
}

/// The first label whose action withholds the whole answer.
pub(super) fn blocking(edits: &[Edit]) -> Option<Label> {
    edits
        .iter()
        .filter(|edit| edit.blocks)
        .map(|edit| edit.label)
        .min()
}
