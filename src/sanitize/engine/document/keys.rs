//! Edited keys stay apart: an object with the same key twice is no object that two
//! readers agree on (RFC 8259 §4).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Change, Document, Edit, apply};
use crate::sanitize::escapes::decode;
use crate::sanitize::leaves::{Kind, Leaf};

/// Names that the keys of objects have.
#[derive(Default)]
struct Names {
    taken: HashSet<(u32, String)>,
    numbers: HashMap<(u32, String), u32>,
}

impl Names {
    /// What makes a name one of its own; nothing where it is already.
    fn suffix(&mut self, object: u32, name: &str) -> Option<String> {
        if self.taken.insert((object, name.to_owned())) {
            return None;
        }
        let number = self.numbers.entry((object, name.to_owned())).or_insert(1);
        loop {
            *number += 1;
            let suffix = format!("#{number}");
            if self.taken.insert((object, format!("{name}{suffix}"))) {
                return Some(suffix);
            }
        }
    }
}

impl Document<'_> {
    /// Two keys of one object must not become one: the later gets a number.
    pub(super) fn keep_keys_apart(&self, changes: &mut Vec<Change>) {
        let mut edited_keys: BTreeMap<u32, Vec<&Edit>> = BTreeMap::new();
        for change in changes.iter() {
            let is_key = self
                .leaves
                .get(change.leaf)
                .is_some_and(|leaf| leaf.kind == Kind::Key);
            if is_key && change.edit.replacement.is_some() {
                edited_keys
                    .entry(change.leaf)
                    .or_default()
                    .push(&change.edit);
            }
        }
        if edited_keys.is_empty() {
            return;
        }
        let mut names = self.other_keys(&edited_keys);
        let mut added = Vec::new();
        for (index, edits) in edited_keys {
            let Some(leaf) = self.leaves.get(index) else {
                continue;
            };
            let name = self.edited_key(leaf, &edits);
            if let Some(suffix) = names.suffix(self.leaves.object_of(leaf), &name) {
                added.push(Change {
                    leaf: index,
                    edit: Edit {
                        range: leaf.raw.end..leaf.raw.end,
                        replacement: Some(suffix),
                        label: edits.first().map_or("", |edit| edit.label),
                        count: 0,
                        blocks: false,
                    },
                });
            }
        }
        changes.extend(added);
    }

    /// The keys that stay, of the objects whose other keys are edited.
    fn other_keys(&self, edited: &BTreeMap<u32, Vec<&Edit>>) -> Names {
        let objects: HashSet<u32> = edited
            .keys()
            .filter_map(|index| self.leaves.get(*index))
            .map(|leaf| self.leaves.object_of(leaf))
            .collect();
        let mut names = Names::default();
        for (index, leaf) in (0_u32..).zip(&self.leaves.all) {
            let object = self.leaves.object_of(leaf);
            let is_key = matches!(leaf.kind, Kind::Key | Kind::Exempt);
            if is_key && objects.contains(&object) && !edited.contains_key(&index) {
                names
                    .taken
                    .insert((object, decode(self.raw(leaf)).0.into_owned()));
            }
        }
        names
    }

    fn edited_key(&self, leaf: &Leaf, edits: &[&Edit]) -> String {
        let mut local: Vec<Edit> = edits
            .iter()
            .map(|edit| Edit {
                range: edit.range.start - leaf.raw.start..edit.range.end - leaf.raw.start,
                ..(*edit).clone()
            })
            .collect();
        local.sort_by_key(|edit| edit.range.start);
        decode(&apply(self.raw(leaf), &local)).0.into_owned()
    }
}
