//! The rules that types cannot hold. Each section has its own `validate`; this is
//! what it reports to, and the rules that several share.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::Interval;
use super::document::{Node, Value};
use super::fault::{Fault, Severity, listed, nearest};
use super::key_path::{KeyPath, Step};
use super::web_url::{UrlFault, WebUrl};

/// Collects what sections report, with where it stands in the file.
pub(super) struct Check<'a> {
    root: &'a Node,
    file: Arc<Path>,
    withdrawn: &'a [KeyPath],
    path: KeyPath,
    /// Names of the entries of sections that others refer to.
    names: HashMap<&'static str, HashSet<&'a str>>,
    pub(super) faults: Vec<Fault>,
}

impl<'a> Check<'a> {
    /// `withdrawn` are the parts that have been reported and taken out of `root`.
    pub(super) fn new(root: &'a Node, file: Arc<Path>, withdrawn: &'a [KeyPath]) -> Self {
        Self {
            root,
            file,
            withdrawn,
            path: KeyPath::default(),
            names: HashMap::new(),
            faults: Vec::new(),
        }
    }

    /// Looks into a key.
    pub(super) fn within(&mut self, key: &str, look: impl FnOnce(&mut Self)) {
        self.path.0.push(Step::Key(key.into()));
        look(self);
        self.path.0.pop();
    }

    /// Looks into each element of a list. Faulty elements have been taken out of
    /// `elements`; the others keep the numbers that they have in the file.
    pub(super) fn each<T>(
        &mut self,
        key: &str,
        elements: &[T],
        mut look: impl FnMut(&T, &mut Self),
    ) {
        self.within(key, |check| {
            let numbers = check.numbers(elements.len());
            for (number, element) in numbers.into_iter().zip(elements) {
                check.path.0.push(Step::Index(number));
                look(element, check);
                check.path.0.pop();
            }
        });
    }

    /// The numbers in the file of the elements of the list here.
    fn numbers(&self, elements: usize) -> Vec<usize> {
        // Nothing was taken out: no need to search the tree, which takes its time in a large one.
        if self.withdrawn.is_empty() {
            return (0..elements).collect();
        }
        match self.root.at(&self.path).map(|node| &node.value) {
            Some(Value::List(nodes)) => (0..)
                .zip(nodes)
                .filter(|(_, node)| !matches!(node.value, Value::Withdrawn))
                .map(|(number, _)| number)
                .collect(),
            _ => (0..elements).collect(),
        }
    }

    /// Whether the mapping here has a key.
    pub(super) fn holds(&self, key: &str) -> bool {
        self.root.at(&self.path.key(key)).is_some()
    }

    /// The value here is wrong.
    pub(super) fn fault(&mut self, wrong: impl Into<String>, instead: impl Into<String>) {
        self.add(Severity::Error, false, wrong.into(), instead.into());
    }

    /// The key here is wrong.
    pub(super) fn key_fault(&mut self, wrong: impl Into<String>, instead: impl Into<String>) {
        self.add(Severity::Error, true, wrong.into(), instead.into());
    }

    /// The value here can be used, but probably does not do what was meant.
    pub(super) fn warning(&mut self, wrong: impl Into<String>, instead: impl Into<String>) {
        self.add(Severity::Warning, false, wrong.into(), instead.into());
    }

    fn add(&mut self, severity: Severity, on_key: bool, wrong: String, instead: String) {
        // What follows from a fault that has been reported is not reported again.
        if self.withdrawn.iter().any(|gone| gone.touches(&self.path)) {
            return;
        }
        self.faults.push(Fault {
            severity,
            file: Arc::clone(&self.file),
            origin: self.root.origin(&self.path, on_key),
            path: self.path.to_string(),
            wrong,
            instead,
        });
    }

    /// The number of the line where something stands, to point to it from elsewhere.
    pub(super) fn line_of(&self, path: &[&str]) -> Option<usize> {
        let path = KeyPath(path.iter().map(|key| Step::Key((*key).into())).collect());
        match self.root.origin(&path, true) {
            super::fault::Origin::Line { line, .. } => Some(line),
            _ => None,
        }
    }

    /// An id: it stands in URLs, metric labels and log fields.
    pub(super) fn id(&mut self, id: &str) {
        let mut characters = id.chars();
        let first = characters.next();
        let well_formed = first.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            && characters
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
            && id.len() <= 63;
        if !well_formed {
            self.key_fault(
                "is no id",
                "use 1 to 63 of a-z, 0-9, `_` and `-`, beginning with a letter or a digit",
            );
        }
    }

    /// That the entry of this name exists in a section. Entries that are faulty themselves count.
    pub(super) fn refers(&mut self, section: &'static str, name: &str) {
        let root = self.root;
        let names = self.names.entry(section).or_insert_with(|| {
            let section = root.at(&KeyPath::default().key(section));
            let entries = section.map_or(&[][..], Node::entries);
            entries.iter().map(|entry| &*entry.key).collect()
        });
        if names.contains(name) {
            return;
        }
        let mut known: Vec<&str> = names.iter().copied().collect();
        known.sort_unstable();
        let instead = match nearest(name, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => format!("`{section}` has none"),
            None => format!("`{section}` has {}", listed(known)),
        };
        self.fault(format!("is not in `{section}`"), instead);
    }

    /// A number that must not be 0.
    pub(super) fn positive(&mut self, key: &str, number: impl Into<Option<u64>>) {
        if number.into() == Some(0) {
            self.within(key, |check| check.fault("is 0", "write at least 1"));
        }
    }

    /// A length of time that must not be 0.
    pub(super) fn lasting(&mut self, key: &str, interval: Interval) {
        if interval.0.is_zero() {
            self.within(key, |check| {
                check.fault("is no time at all", "write at least `1ms`");
            });
        }
    }

    /// A URL. Reports what is wrong with it.
    pub(super) fn url(&mut self, text: &str, example: &str) -> Option<WebUrl> {
        match WebUrl::parse(text) {
            Ok(url) => Some(url),
            Err(fault) => {
                let instead = match fault {
                    UrlFault::UserInfo => "remove it: secrets go into files".to_owned(),
                    UrlFault::Fragment => "remove what follows `#`".to_owned(),
                    _ => format!("write one such as `{example}`"),
                };
                self.fault(fault.to_string(), instead);
                None
            }
        }
    }

    /// A URL that others than this machine would be spoken to by.
    pub(super) fn secure(&mut self, url: WebUrl) {
        if !url.https && !url.loopback {
            self.fault(
                "is http, where everybody on the way can read and change what is sent",
                "write https; http is for loopback addresses",
            );
        }
    }
}

#[cfg(test)]
mod tests;
