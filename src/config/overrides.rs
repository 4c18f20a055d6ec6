//! Environment variables put into the tree: `TOOLGATE_SERVER__LISTEN` is
//! `server.listen`. They are read like what the file says, so an unknown name
//! is an unknown key.

use std::sync::Arc;

use super::decode::Misread;
use super::document::{Entry, Node, Scalar, Style, Value};
use super::environment::Environment;
use super::fault::Origin;
use super::key_path::{KeyPath, Step};

/// Puts every override into the tree; gives back those that cannot be put there.
pub(super) fn apply(root: &mut Node, environment: &Environment) -> Vec<Misread> {
    let mut refused = Vec::new();
    for (name, value) in environment.overrides() {
        let origin = Origin::Variable(name.into());
        let path = name.strip_prefix("TOOLGATE_").unwrap_or(name);
        let scalar = Node {
            value: Value::Scalar(Scalar {
                text: value.to_owned(),
                style: Style::Variable,
            }),
            origin,
        };
        refused.extend(put(root, path, scalar).err());
    }
    refused
}

fn put(root: &mut Node, path: &str, scalar: Node) -> Result<(), Misread> {
    let mut at = KeyPath::default();
    let mut node = root;
    let origin = scalar.origin.clone();
    for segment in path.split("__") {
        if segment.is_empty() {
            return Err(refuse(
                &origin,
                &at,
                "has an empty part in its name",
                "write one `__` between two keys",
            ));
        }
        node = enter(node, segment, &mut at, &origin)?;
    }
    match node.value {
        Value::Map(ref entries) if !entries.is_empty() => Err(refuse(
            &origin,
            &at,
            "is a mapping in the file",
            "override its scalars one by one",
        )),
        Value::List(_) => Err(refuse(
            &origin,
            &at,
            "is a list in the file",
            "lists are written in the file",
        )),
        _ => {
            *node = scalar;
            Ok(())
        }
    }
}

/// The value under a segment of a name. What the file does not have is made.
fn enter<'a>(
    node: &'a mut Node,
    segment: &str,
    at: &mut KeyPath,
    origin: &Origin,
) -> Result<&'a mut Node, Misread> {
    if matches!(&node.value, Value::Scalar(scalar) if scalar.style == Style::Empty) {
        node.value = Value::Map(Vec::new());
    }
    match &mut node.value {
        Value::Map(entries) => {
            let index = find(entries, segment).unwrap_or_else(|| {
                entries.push(Entry {
                    key: segment.to_lowercase().into(),
                    origin: origin.clone(),
                    value: Node::empty(origin.clone()),
                });
                entries.len() - 1
            });
            let entry = entries.get_mut(index);
            at.0.extend(
                entry
                    .as_ref()
                    .map(|entry| Step::Key(Arc::clone(&entry.key))),
            );
            entry.map(|entry| &mut entry.value)
        }
        Value::List(nodes) => {
            let index = segment.parse().ok().filter(|index| *index < nodes.len());
            at.0.extend(index.map(Step::Index));
            index.and_then(|index| nodes.get_mut(index))
        }
        _ => None,
    }
    .ok_or_else(|| {
        let wrong = format!("has nothing in the file that `{segment}` could name");
        refuse(
            origin,
            at,
            &wrong,
            "name a key of a mapping, or an element of a list by its number from 0",
        )
    })
}

/// The entry that a segment means: the exact key in lower case, else the only one
/// that differs by case or by `-` for `_` (a shell's variable cannot hold a `-`).
fn find(entries: &[Entry], segment: &str) -> Option<usize> {
    let folded = |text: &str| text.to_lowercase().replace('-', "_");
    let exact = segment.to_lowercase();
    let position = |fits: &dyn Fn(&Entry) -> bool| {
        let mut fitting = (0..).zip(entries).filter(|(_, entry)| fits(entry));
        match (fitting.next(), fitting.next()) {
            (Some((index, _)), None) => Some(index),
            _ => None,
        }
    };
    position(&|entry| *entry.key == *exact)
        .or_else(|| position(&|entry| folded(&entry.key) == folded(segment)))
}

fn refuse(origin: &Origin, path: &KeyPath, wrong: &str, instead: &str) -> Misread {
    Misread {
        origin: origin.clone(),
        path: path.clone(),
        wrong: wrong.to_owned(),
        instead: instead.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::parse;
    use super::*;

    fn applied(yaml: &str, name: &str, value: &str) -> (Node, Vec<Misread>) {
        let (mut root, _) = parse(yaml).unwrap();
        let refused = apply(&mut root, &[(name, value)].into_iter().collect());
        (root, refused)
    }

    #[test]
    fn a_name_finds_the_key_that_it_means() {
        for (yaml, name, path) in [
            ("{}", "TOOLGATE_SERVER__LISTEN", "server.listen"),
            ("{}", "TOOLGATE_server__Listen", "server.listen"),
            (
                "tenants: {us-east: {}}",
                "TOOLGATE_TENANTS__US_EAST__X",
                "tenants.us-east.x",
            ),
            ("env: {ROOT: /srv}", "TOOLGATE_ENV__ROOT", "env.ROOT"),
            (
                "tools: [{match: a}]",
                "TOOLGATE_TOOLS__0__MATCH",
                "tools[0].match",
            ),
            ("a: 1", "TOOLGATE_A", "a"),
        ] {
            let (root, refused) = applied(yaml, name, "new");
            assert!(refused.is_empty(), "{name}: {refused:?}");
            let mut path_of = KeyPath::default();
            for key in path.replace("[0]", ".0").split('.') {
                path_of.0.push(match key.parse() {
                    Ok(index) => Step::Index(index),
                    Err(_) => Step::Key(key.into()),
                });
            }
            let node = root.at(&path_of).unwrap();
            assert!(
                matches!(&node.value, Value::Scalar(s) if s.text == "new"),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_no_scalar_cannot_be_overridden() {
        for (yaml, name, wrong) in [
            ("a: {b: 1}", "TOOLGATE_A", "is a mapping in the file"),
            ("a: [1]", "TOOLGATE_A", "is a list in the file"),
            (
                "a: 1",
                "TOOLGATE_A__B",
                "has nothing in the file that `B` could name",
            ),
            (
                "a: [1]",
                "TOOLGATE_A__7",
                "has nothing in the file that `7` could name",
            ),
            ("a: 1", "TOOLGATE_A____B", "has an empty part in its name"),
            ("{}", "TOOLGATE_", "has an empty part in its name"),
        ] {
            let (_, refused) = applied(yaml, name, "new");
            assert_eq!(refused.len(), 1, "{name}");
            assert_eq!(refused[0].wrong, wrong);
        }
    }
}
