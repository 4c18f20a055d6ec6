//! A YAML file as a tree in which every key and value knows its place. It knows
//! nothing of what the keys mean.

use std::sync::Arc;

use super::fault::Origin;
use super::key_path::{KeyPath, Step};

mod parse;

pub(super) use parse::parse;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// Was faulty and has been reported: as if it were not there.
    Withdrawn,
}

/// Text, and how it was written: what it means depends on who asks.
#[derive(Clone, Debug)]
pub(super) struct Scalar {
    pub(super) text: String,
    pub(super) style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Without quotes: may be a number, `true`, `null`.
    Plain,
    /// Quoted or a block: text.
    Quoted,
    /// Nothing stands after the key.
    Empty,
    /// From an environment variable: a number, `true`, or any text; never null.
    Variable,
}

impl Scalar {
    /// Whether it is written as null. An empty value is another matter.
    pub(super) fn is_null(&self) -> bool {
        self.style == Style::Plain && matches!(&*self.text, "~" | "null" | "Null" | "NULL")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Arc<str>,
    pub(super) origin: Origin,
    pub(super) value: Node,
}

impl Node {
    /// A mapping without entries.
    pub(super) fn empty(origin: Origin) -> Self {
        Self {
            value: Value::Map(Vec::new()),
            origin,
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    fn step(&self, step: &Step) -> Option<(&Node, &Origin)> {
        match (step, &self.value) {
            (Step::Key(key), Value::Map(entries)) => {
                let entry = entries.iter().find(|entry| entry.key == *key)?;
                Some((&entry.value, &entry.origin))
            }
            (Step::Index(index), Value::List(nodes)) => {
                nodes.get(*index).map(|node| (node, &node.origin))
            }
            _ => None,
        }
    }

    /// The value at a path.
    pub(super) fn at(&self, path: &KeyPath) -> Option<&Node> {
        path.0
            .iter()
            .try_fold(self, |node, step| Some(node.step(step)?.0))
    }

    fn at_mut(&mut self, path: &KeyPath) -> Option<&mut Node> {
        path.0
            .iter()
            .try_fold(self, |node, step| match (step, &mut node.value) {
                (Step::Key(key), Value::Map(entries)) => entries
                    .iter_mut()
                    .find(|entry| entry.key == *key)
                    .map(|entry| &mut entry.value),
                (Step::Index(index), Value::List(nodes)) => nodes.get_mut(*index),
                _ => None,
            })
    }

    /// Takes a faulty value out. `false` where there is none.
    pub(super) fn withdraw(&mut self, path: &KeyPath) -> bool {
        match self.at_mut(path) {
            Some(node) if !matches!(node.value, Value::Withdrawn) => {
                node.value = Value::Withdrawn;
                true
            }
            _ => false,
        }
    }

    /// Where to point for a path: at a scalar itself, at the key of a mapping or a
    /// list, and for what is not there at the nearest thing around it.
    pub(super) fn origin(&self, path: &KeyPath, on_key: bool) -> Origin {
        let mut node = self;
        let mut origin = &Origin::File;
        for (at, step) in path.0.iter().enumerate() {
            let Some((next, key)) = node.step(step) else {
                return origin.clone();
            };
            let last = at + 1 == path.0.len();
            let scalar =
                matches!(&next.value, Value::Scalar(scalar) if scalar.style != Style::Empty);
            origin = if last && scalar && !on_key {
                &next.origin
            } else {
                key
            };
            node = next;
        }
        origin.clone()
    }
}

#[cfg(test)]
mod tests;
