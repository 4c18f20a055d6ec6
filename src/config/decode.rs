//! From the tree to the section types. Serde stops at the first fault; here the
//! faulty part is reported, taken out, and the rest is read again, so that one
//! look shows everything.

use serde::Deserialize;

use super::document::Node;
use super::fault::{Origin, listed, nearest};
use super::key_path::KeyPath;

mod deserializer;
mod problem;

use deserializer::Deserializer;
use problem::{Kind, Problem};

/// After this many the rest is not looked for.
const MOST_FAULTS: usize = 100;

/// A part that cannot be read.
#[derive(Debug)]
pub(super) struct Misread {
    pub(super) origin: Origin,
    pub(super) path: KeyPath,
    pub(super) wrong: String,
    pub(super) instead: String,
}

/// What could be read, and what could not.
pub(super) struct Decoded<T> {
    /// Without the faulty parts; `None` where nothing is left.
    pub(super) value: Option<T>,
    pub(super) misread: Vec<Misread>,
    /// Where something is missing because it was faulty: not to be reported again.
    pub(super) withdrawn: Vec<KeyPath>,
}

/// Reads a tree. Faulty parts are withdrawn from it.
pub(super) fn decode<'de, T: Deserialize<'de>>(root: &mut Node) -> Decoded<T> {
    let mut decoded = Decoded {
        value: None,
        misread: Vec::new(),
        withdrawn: Vec::new(),
    };
    while decoded.misread.len() < MOST_FAULTS {
        let problem = match T::deserialize(Deserializer::new(root)) {
            Ok(value) => {
                decoded.value = Some(value);
                return decoded;
            }
            Err(problem) => problem,
        };
        let path = problem.path();
        let origin = root.origin(&path, problem.on_key);
        note(&mut decoded, &problem, &path, &origin);
        decoded.withdrawn.push(path.clone());
        if path.0.is_empty() || !root.withdraw(&path) {
            return decoded;
        }
    }
    decoded
}

fn note<T>(decoded: &mut Decoded<T>, problem: &Problem, path: &KeyPath, origin: &Origin) {
    let misread = |wrong: String, instead: String| Misread {
        origin: origin.clone(),
        path: path.clone(),
        wrong,
        instead,
    };
    match &problem.kind {
        Kind::UnknownKey { key, known } => {
            let meant = nearest(key, known.iter().copied());
            if let (Some(meant), Some(section)) = (meant, path.parent()) {
                decoded.withdrawn.push(section.key(meant));
            }
            let instead = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if known.is_empty() => "remove it".to_owned(),
                None => format!("known here: {}", listed(known.iter().copied())),
            };
            let fault = misread("unknown key".to_owned(), instead);
            decoded.misread.push(fault);
        }
        Kind::MissingKey(key) => {
            let missing = path.key(key);
            if !decoded.withdrawn.iter().any(|gone| gone.touches(&missing)) {
                let fault = misread(format!("`{key}` is missing"), "add it".to_owned());
                decoded.misread.push(fault);
            }
        }
        // It lacks what was taken out of it.
        Kind::Wrong { .. } if decoded.withdrawn.iter().any(|gone| gone.touches(path)) => {}
        Kind::Wrong { wrong, instead } => {
            let fault = misread(wrong.clone(), instead.clone());
            decoded.misread.push(fault);
        }
    }
}

#[cfg(test)]
mod tests;
