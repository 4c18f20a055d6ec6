//! The engine: finds in a text or in every string of a JSON text, and makes the
//! edits. Texts that hold JSON are read as JSON, so that what mirrors
//! `structuredContent` gets the same edits and still parses.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::edits::{
    Edit, Policy, apply, apply_mapped, change, hidden_replacement, secret_replacement,
};
use super::secrets::{Literals, Secrets, Span};
use super::view::View;
use crate::protocol::{Json, JsonLimits};

mod document;
mod joined;

pub(super) use document::{Found, blocked};

/// JSON in a string of JSON in a string: deeper is read as text.
const MAX_LEVEL: u8 = 3;

/// Compiled once, shared by all.
pub(super) struct Engine {
    secrets: Secrets,
}

/// A text on its way through the engine.
#[derive(Clone, Copy)]
struct Input<'a> {
    text: &'a str,
    /// The name that the text stands under.
    key: Option<&'a str>,
    /// How many texts it stands in.
    level: u8,
}

impl Engine {
    pub(super) fn new() -> Self {
        Self {
            secrets: Secrets::new(),
        }
    }

    fn literals(&self) -> &Literals {
        self.secrets.literals()
    }

    /// Finds in a text of its own.
    pub(super) fn text(&self, text: &str, policy: Policy) -> Vec<Edit> {
        let input = Input {
            text,
            key: None,
            level: 0,
        };
        self.edits(input, policy, Vec::new())
    }

    /// Edits of one text, in order, none overlapping. `joined` are the secrets
    /// that it has only together with its neighbours, by offsets of its view.
    fn edits(&self, input: Input<'_>, policy: Policy, joined: Vec<Span>) -> Vec<Edit> {
        if let Some(edits) = self.edits_of_json_text(input, policy) {
            return edits;
        }
        let view = View::of(input.text);
        let mut spans = self.secrets.find(&view.text, input.key, &[]);
        if !joined.is_empty() {
            spans.extend(joined);
            spans = super::secrets::resolve(spans);
        }
        let mut edits: Vec<Edit> = spans
            .into_iter()
            .map(|span| {
                let value = view.text.get(span.range.clone()).unwrap_or_default();
                Edit {
                    range: view.offsets.back(&span.range),
                    replacement: secret_replacement(policy.secrets, span.label, value),
                    label: span.label,
                    count: span.count,
                }
            })
            .collect();
        let secrets = change(&edits);
        edits.extend(hidden(input.text, &view, policy, &edits));
        edits.sort_by_key(|edit| edit.range.start);
        if secrets && !view.is_verbatim() {
            settle(input.text, &mut edits, policy);
        }
        edits
    }

    /// The edits of a text that is JSON itself; `None` where it is not.
    fn edits_of_json_text(&self, input: Input<'_>, policy: Policy) -> Option<Vec<Edit>> {
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
        let mut edits = self.nested(json.as_str(), policy, input.level + 1);
        for edit in &mut edits {
            edit.range = edit.range.start + shift..edit.range.end + shift;
        }
        Some(edits)
    }

    /// Edits of a text in base64 (a resource's textual blob), as one that replaces
    /// all of it.
    fn edits_of_base64(&self, input: Input<'_>, policy: Policy) -> Vec<Edit> {
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

/// What the view left out, unless a secret's edit takes it along.
fn hidden(text: &str, view: &View<'_>, policy: Policy, secrets: &[Edit]) -> Vec<Edit> {
    let mut secrets = secrets
        .iter()
        .filter(|edit| edit.replacement.is_some())
        .peekable();
    let mut edits = Vec::with_capacity(view.gaps.len());
    for gap in &view.gaps {
        let Some(label) = gap.label else {
            continue;
        };
        while secrets
            .next_if(|edit| edit.range.end <= gap.range.start)
            .is_some()
        {}
        let covered = secrets
            .peek()
            .is_some_and(|edit| edit.range.start < gap.range.end);
        let original = text.get(gap.range.clone()).unwrap_or_default();
        edits.push(Edit {
            range: gap.range.clone(),
            replacement: if covered {
                None
            } else {
                hidden_replacement(policy.action(label), label, original, gap.instead)
            },
            label,
            count: gap.count,
        });
    }
    edits
}

/// A character that stayed for a neighbour's sake goes when that neighbour went
/// with a secret. Twice is enough for all but contrived texts; the bound keeps
/// those linear.
fn settle(text: &str, edits: &mut Vec<Edit>, policy: Policy) {
    const ROUNDS: usize = 4;
    for _ in 0..ROUNDS {
        let (out, offsets) = apply_mapped(text, edits);
        let late: Vec<Edit> = View::of(&out)
            .gaps
            .into_iter()
            .filter_map(|gap| {
                let label = gap.label?;
                let original = out.get(gap.range.clone())?;
                let replacement =
                    hidden_replacement(policy.action(label), label, original, gap.instead)?;
                Some(Edit {
                    range: offsets.back(&gap.range),
                    replacement: Some(replacement),
                    label,
                    count: gap.count,
                })
            })
            .collect();
        if late.is_empty() {
            return;
        }
        edits.extend(late);
        edits.sort_by_key(|edit| edit.range.start);
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
