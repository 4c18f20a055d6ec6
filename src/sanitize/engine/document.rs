//! A JSON text: prefilter, walk, edits of each leaf in place. Bytes outside the
//! edits stay as they came.

use std::borrow::Cow;

use super::joined::Joined;
use super::{Context, Edit, Engine, Input, Place, Policy, apply, blocking, change, edited};
use crate::protocol::Json;
use crate::sanitize::edits::{edits_total, placeholder};
use crate::sanitize::escapes::{decode, encode};
use crate::sanitize::findings::{Findings, Label};
use crate::sanitize::leaves::{Kind, Leaf, Leaves, Walk};
use crate::sanitize::prefilter::{Candidates, has_blocks};
use crate::sanitize::secrets;

mod keys;
mod places;

pub(in crate::sanitize) use places::Ground;

/// One finding and the keys on the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sanitize) struct Found {
    pub(in crate::sanitize) label: Label,
    /// Unescaped keys from the root, indexes left out.
    pub(in crate::sanitize) keys: Vec<String>,
    /// Whether the key itself had it.
    pub(in crate::sanitize) in_key: bool,
}

/// What came of a JSON text.
#[derive(Debug)]
pub(in crate::sanitize) struct Cleaned {
    /// The same text where nothing changed.
    pub(in crate::sanitize) json: Json,
    pub(in crate::sanitize) findings: Findings,
    pub(in crate::sanitize) found: Vec<Found>,
    /// The first label whose action withholds the whole.
    pub(in crate::sanitize) blocked: Option<Label>,
}

/// One text being edited.
struct Document<'a> {
    engine: &'a Engine,
    policy: Policy<'a>,
    text: &'a str,
    ground: Ground,
    level: u8,
    /// Which leaves could hold something.
    touched: Vec<bool>,
    leaves: Leaves,
    joined: Joined,
}

/// An edit in the text's own offsets, and the leaf it belongs to.
struct Change {
    leaf: u32,
    edit: Edit,
}

impl Engine {
    /// Cleans a whole JSON text. Clean text comes back as the same bytes.
    pub(in crate::sanitize) fn json(
        &self,
        json: &Json,
        ground: Ground,
        policy: Policy<'_>,
        list: bool,
    ) -> Cleaned {
        let unchanged = || Cleaned {
            json: json.clone(),
            findings: Findings::none(),
            found: Vec::new(),
            blocked: None,
        };
        let Some(document) = Document::open(self, json.as_str(), ground, policy, 0) else {
            return unchanged();
        };
        let changes = document.changes();
        if changes.is_empty() {
            return unchanged();
        }
        let findings = document.findings(&changes);
        let found = if list {
            document.found(&changes)
        } else {
            Vec::new()
        };
        let edits = in_order(changes);
        let json = if change(&edits) {
            Json::from_checked(apply(json.as_str(), &edits))
        } else {
            json.clone()
        };
        Cleaned {
            json,
            findings,
            found,
            blocked: blocking(&edits),
        }
    }

    /// Edits of a JSON text that stands in a string.
    pub(super) fn nested(
        &self,
        text: &str,
        place: Place,
        policy: Policy<'_>,
        level: u8,
    ) -> Vec<Edit> {
        Document::open(self, text, Ground::Inside(place), policy, level)
            .map(|document| in_order(document.changes()))
            .unwrap_or_default()
    }
}

fn in_order(changes: Vec<Change>) -> Vec<Edit> {
    let mut edits: Vec<Edit> = changes.into_iter().map(|change| change.edit).collect();
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    edits
}

impl<'a> Document<'a> {
    /// `None` where the text is clean without a walk.
    fn open(
        engine: &'a Engine,
        text: &'a str,
        ground: Ground,
        policy: Policy<'a>,
        level: u8,
    ) -> Option<Self> {
        let mut candidates = Candidates::in_json(&engine.scanner, &engine.detectors, text);
        if policy.has_patterns() {
            candidates.look_everywhere();
        }
        let blocks = level == 0 && (ground == Ground::Messages || has_blocks(text));
        if candidates.is_empty() && !blocks {
            return None;
        }
        let walk = Walk {
            spare_identifiers: ground == Ground::Answer,
        };
        let leaves = Leaves::of(text, walk);
        let joined = Joined::find(engine, text, &leaves, &candidates, policy);
        if candidates.is_empty() && joined.is_empty() {
            return None;
        }
        Some(Self {
            engine,
            policy,
            text,
            ground,
            level,
            touched: candidates.touched(&leaves.all),
            leaves,
            joined,
        })
    }

    fn raw(&self, leaf: &Leaf) -> &'a str {
        self.text.get(leaf.raw.clone()).unwrap_or_default()
    }

    /// The unescaped name that a leaf stands under.
    fn key(&self, leaf: &Leaf) -> Option<Cow<'a, str>> {
        let key = self.leaves.get(leaf.key?)?;
        Some(decode(self.raw(key)).0)
    }

    /// Whether the name alone makes its value worth a look.
    fn is_named(&self, leaf: &Leaf) -> bool {
        leaf.key.is_some_and(|index| self.is_touched(index))
            && self.key(leaf).is_some_and(|key| {
                let detectors = &self.engine.detectors;
                detectors.iter().any(|detector| (detector.names)(&key))
            })
    }

    fn is_touched(&self, leaf: u32) -> bool {
        self.touched.get(leaf as usize).copied().unwrap_or(true)
    }

    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (index, leaf) in (0_u32..).zip(&self.leaves.all) {
            let edits = match leaf.kind {
                Kind::Media | Kind::Exempt => continue,
                Kind::Number => self.number(index, leaf),
                Kind::TextBlob => self.blob(leaf),
                Kind::Key | Kind::Text => self.string(index, leaf),
            };
            changes.extend(edits.into_iter().map(|edit| Change { leaf: index, edit }));
        }
        self.keep_keys_apart(&mut changes);
        changes
    }

    fn string(&self, index: u32, leaf: &Leaf) -> Vec<Edit> {
        let joined = self.joined.of(index);
        if !self.is_touched(index) && joined.is_empty() && !self.is_named(leaf) {
            return Vec::new();
        }
        let (text, offsets) = decode(self.raw(leaf));
        let edits = self.with_input(leaf, &text, |input| match self.by_name_alone(&input) {
            Some(edit) => vec![edit],
            None => self.engine.edits(input, self.policy, joined.to_vec()),
        });
        edits
            .into_iter()
            .map(|edit| in_place(leaf, &offsets.back(&edit.range), edit))
            .collect()
    }

    /// Calls with `text` as what stands at `leaf`.
    fn with_input<T>(&self, leaf: &Leaf, text: &str, f: impl FnOnce(Input<'_>) -> T) -> T {
        let key = self.key(leaf);
        let pointer = || self.leaves.pointer(leaf, |key| self.presentable_key(key));
        let context = Context {
            place: self.place(leaf),
            key: key.as_deref(),
            domains: self.policy.domains(),
            pointer: &pointer,
        };
        f(Input {
            text,
            context,
            level: self.level,
        })
    }

    /// In the audit's copy a name decides alone.
    fn by_name_alone(&self, input: &Input<'_>) -> Option<Edit> {
        let key = input.context.key;
        let named = self.policy.strict && key.is_some_and(secrets::names_secret);
        let redacted = input.text.starts_with("[REDACTED:") && input.text.ends_with(']');
        (named && !input.text.is_empty() && !redacted).then(|| named_secret(input.text.len()))
    }

    /// A number goes whole, or stays.
    fn number(&self, index: u32, leaf: &Leaf) -> Vec<Edit> {
        let named = self.policy.strict && self.is_named(leaf);
        if !named && !self.is_touched(index) {
            return Vec::new();
        }
        let text = self.raw(leaf);
        let edits = self.with_input(leaf, text, |input| {
            if named && input.context.key.is_some_and(secrets::names_secret) {
                return vec![named_secret(text.len())];
            }
            self.engine.edits_of_number(input, self.policy)
        });
        edits
            .into_iter()
            .map(|edit| Edit {
                range: leaf.raw.clone(),
                replacement: edit
                    .replacement
                    .map(|text| format!("\"{}\"", encode(&text))),
                ..edit
            })
            .collect()
    }

    fn blob(&self, leaf: &Leaf) -> Vec<Edit> {
        let (text, offsets) = decode(self.raw(leaf));
        let edits = self.with_input(leaf, &text, |input| {
            let mut input = input;
            input.context.key = None;
            self.engine.edits_of_base64(input, self.policy)
        });
        edits
            .into_iter()
            .map(|edit| in_place(leaf, &offsets.back(&edit.range), edit))
            .collect()
    }

    fn findings(&self, changes: &[Change]) -> Findings {
        let mut findings = Findings::none();
        let mut changes = changes.iter().peekable();
        while let Some(first) = changes.next() {
            let mut edits = vec![first.edit.clone()];
            while let Some(more) = changes.next_if(|more| more.leaf == first.leaf) {
                edits.push(more.edit.clone());
            }
            let Some(leaf) = self.leaves.get(first.leaf) else {
                continue;
            };
            for (label, count) in edits_total(&edits) {
                findings.add(label, count, || {
                    self.leaves.pointer(leaf, |key| self.presentable_key(key))
                });
            }
        }
        findings
    }

    /// A key for a record: cleaned by the strictest rules, whatever the tenant's.
    fn presentable_key(&self, key: u32) -> String {
        let Some(leaf) = self.leaves.get(key) else {
            return String::new();
        };
        let text = decode(self.raw(leaf)).0;
        if !self.is_touched(key) {
            return text.into_owned();
        }
        let edits = self.engine.text(&text, Place::Key, Policy::REDACT);
        edited(&text, &edits).into_owned()
    }

    fn found(&self, changes: &[Change]) -> Vec<Found> {
        let mut found: Vec<Found> = changes
            .iter()
            .filter_map(|change| {
                let leaf = self.leaves.get(change.leaf)?;
                let keys = self.leaves.keys_to(leaf);
                Some(Found {
                    label: change.edit.label,
                    keys: keys
                        .into_iter()
                        .filter_map(|key| self.leaves.get(key))
                        .map(|key| decode(self.raw(key)).0.into_owned())
                        .collect(),
                    in_key: leaf.kind == Kind::Key,
                })
            })
            .collect();
        found.dedup();
        found
    }
}

/// An edit of a leaf's text as an edit of the document.
fn in_place(leaf: &Leaf, range: &std::ops::Range<usize>, edit: Edit) -> Edit {
    Edit {
        range: leaf.raw.start + range.start..leaf.raw.start + range.end,
        replacement: edit.replacement.map(|text| encode(&text)),
        ..edit
    }
}

/// The edit of a whole value whose name says that it is secret.
fn named_secret(len: usize) -> Edit {
    Edit {
        range: 0..len,
        replacement: Some(placeholder("named_secret")),
        label: "named_secret",
        count: 1,
        blocks: false,
    }
}
