//! Every string of a JSON text with its place: values and object keys, in their
//! order, as ranges of the text. Relies on the check that [`Json`] passed; on any
//! other text it finds something else, but ends and does not panic.
//!
//! [`Json`]: crate::protocol::Json

use std::ops::Range;

use super::findings::push_segment;

mod walker;

use walker::Walker;

/// What a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An object's key.
    Key,
    /// A string value.
    Text,
    /// A number.
    Number,
    /// Base64 of a text (`blob` with a textual MIME type).
    TextBlob,
    /// Base64 of anything else: never looked into.
    Media,
    /// An identifier that routes: the gateway hands out its own instead of it
    /// (rules §6.1), so it is not rewritten here.
    Exempt,
}

/// One string or number.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Where it stands; of a string, what is between the quotes.
    pub(super) raw: Range<usize>,
    pub(super) kind: Kind,
    pub(super) node: u32,
    /// The leaf that names this value: its key, or the `name` beside a `value`.
    pub(super) key: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Root,
    Key(u32),
    Index(u32),
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    step: Step,
}

/// What the walk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// Whether routing identifiers at the root of an answer are left alone.
    pub(super) spare_identifiers: bool,
}

/// Texts side by side.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) members: Vec<u32>,
    /// Whether they are blocks of content rather than strings of a list.
    pub(super) blocks: bool,
}

/// The leaves of one text.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    pub(super) all: Vec<Leaf>,
    nodes: Vec<Node>,
    /// Whether the root says `isError`.
    pub(super) failed: bool,
}

impl Leaves {
    pub(super) fn of(text: &str, walk: Walk) -> Self {
        Walker::new(text, walk).run()
    }

    pub(super) fn get(&self, leaf: u32) -> Option<&Leaf> {
        self.all.get(leaf as usize)
    }

    fn parent(&self, node: u32) -> Option<(u32, Step)> {
        self.nodes
            .get(node as usize)
            .map(|node| (node.parent, node.step))
    }

    /// The object that a key belongs to.
    pub(super) fn object_of(&self, key: &Leaf) -> u32 {
        self.parent(key.node).map_or(0, |(parent, _)| parent)
    }

    /// The root's key on the way to a leaf.
    pub(super) fn outermost_key(&self, leaf: &Leaf) -> Option<&Leaf> {
        let mut outermost = None;
        let mut node = leaf.node;
        while let Some((parent, step)) = self.parent(node)
            && step != Step::Root
        {
            if let Step::Key(key) = step {
                outermost = Some(key);
            }
            node = parent;
        }
        self.get(outermost?)
    }

    /// The keys on the way from the root to a leaf, outermost first.
    pub(super) fn keys_to(&self, leaf: &Leaf) -> Vec<u32> {
        let mut keys = Vec::new();
        let mut node = leaf.node;
        while let Some((parent, step)) = self.parent(node)
            && step != Step::Root
        {
            if let Step::Key(key) = step {
                keys.push(key);
            }
            node = parent;
        }
        keys.reverse();
        keys
    }

    /// The leaf's place as a JSON pointer; `key` gives a key's presentable text.
    pub(super) fn pointer(&self, leaf: &Leaf, key: impl Fn(u32) -> String) -> String {
        let mut steps = Vec::new();
        let mut node = leaf.node;
        while let Some((parent, step)) = self.parent(node)
            && step != Step::Root
        {
            steps.push(step);
            node = parent;
        }
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Key(leaf) => push_segment(&mut pointer, &key(leaf)),
                Step::Index(index) => push_segment(&mut pointer, &index.to_string()),
                Step::Root => {}
            }
        }
        pointer
    }

    /// Runs of texts that a reader sees one after another: the `text` of an array's
    /// elements, or of the resource in them, and the strings of an array.
    pub(super) fn runs(&self, text: &str) -> Vec<Run> {
        let mut runs: Vec<(u32, Run)> = Vec::new();
        for (index, leaf) in (0_u32..).zip(&self.all) {
            if leaf.kind != Kind::Text {
                continue;
            }
            let (array, blocks) = match (self.block_array(leaf, text), self.parent(leaf.node)) {
                (Some(array), _) => (array, true),
                (None, Some((array, Step::Index(_)))) => (array, false),
                _ => continue,
            };
            match runs.last_mut() {
                Some((of, run)) if *of == array && run.blocks == blocks => run.members.push(index),
                _ => runs.push((
                    array,
                    Run {
                        members: vec![index],
                        blocks,
                    },
                )),
            }
        }
        runs.retain(|(_, run)| run.members.len() > 1);
        runs.into_iter().map(|(_, run)| run).collect()
    }

    fn block_array(&self, leaf: &Leaf, text: &str) -> Option<u32> {
        let named = |step: Step, name: &str| match step {
            Step::Key(key) => self
                .get(key)
                .is_some_and(|key| text.get(key.raw.clone()) == Some(name)),
            _ => false,
        };
        let (block, step) = self.parent(leaf.node)?;
        if !named(step, "text") {
            return None;
        }
        match self.parent(block)? {
            (array, Step::Index(_)) => Some(array),
            (outer, step) if named(step, "resource") => match self.parent(outer)? {
                (array, Step::Index(_)) => Some(array),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALK: Walk = Walk {
        spare_identifiers: true,
    };

    fn listed(text: &str) -> Vec<(Kind, String, String)> {
        let leaves = Leaves::of(text, WALK);
        let key = |leaf| text[leaves.get(leaf).unwrap().raw.clone()].to_owned();
        leaves
            .all
            .iter()
            .map(|leaf| {
                let raw = text[leaf.raw.clone()].to_owned();
                (leaf.kind, leaves.pointer(leaf, key), raw)
            })
            .collect()
    }

    #[test]
    fn keys_and_values_come_with_their_pointers() {
        let found = listed(r#"{"a": ["x", {"b": "y"}], "c": 1, "d/": ""}"#);
        let row = |kind, pointer: &str, raw: &str| (kind, pointer.to_owned(), raw.to_owned());
        assert_eq!(
            found,
            [
                row(Kind::Key, "/a", "a"),
                row(Kind::Text, "/a/0", "x"),
                row(Kind::Key, "/a/1/b", "b"),
                row(Kind::Text, "/a/1/b", "y"),
                row(Kind::Key, "/c", "c"),
                row(Kind::Number, "/c", "1"),
                row(Kind::Key, "/d~1", "d/"),
                row(Kind::Text, "/d~1", ""),
            ]
        );
    }

    #[test]
    fn media_is_told_by_its_siblings_in_any_order() {
        let kinds = |text: &str| -> Vec<Kind> {
            listed(text)
                .into_iter()
                .filter(|(kind, ..)| !matches!(kind, Kind::Key | Kind::Text | Kind::Number))
                .map(|(kind, ..)| kind)
                .collect()
        };
        let image = r#"{"data": "iVBORw0K", "mimeType": "image/png", "type": "image"}"#;
        assert_eq!(kinds(image), [Kind::Media]);
        let words = r#"{"data": "read me: ghp_", "mimeType": "image/png", "type": "image"}"#;
        assert_eq!(kinds(words), []);
        let untyped = r#"{"data": "iVBORw0K", "mimeType": "image/png"}"#;
        assert_eq!(kinds(untyped), []);
        let blob = r#"{"uri": "u", "blob": "AAAA", "mimeType": "text/plain"}"#;
        assert_eq!(kinds(blob), [Kind::TextBlob]);
        assert_eq!(kinds(r#"{"uri": "u", "blob": "AAAA"}"#), [Kind::Media]);
    }

    #[test]
    fn identifiers_that_route_are_spared_at_the_root_only() {
        let text = r#"{"requestState": "s", "inputRequests": {"k": {"requestState": "t"}}}"#;
        let exempt: Vec<_> = listed(text)
            .into_iter()
            .filter(|(kind, ..)| *kind == Kind::Exempt)
            .map(|(_, _, raw)| raw)
            .collect();
        assert_eq!(exempt, ["s", "k"]);
    }

    #[test]
    fn text_blocks_side_by_side_form_a_run() {
        let text = r#"{"content": [{"type": "text", "text": "a"}, {"type": "resource",
            "resource": {"uri": "u", "text": "b"}}], "structuredContent": {"text": "c"}}"#;
        let leaves = Leaves::of(text, WALK);
        let runs = leaves.runs(text);
        let texts: Vec<&str> = runs[0]
            .members
            .iter()
            .map(|leaf| &text[leaves.get(*leaf).unwrap().raw.clone()])
            .collect();
        assert_eq!((runs.len(), texts), (1, vec!["a", "b"]));
    }

    #[test]
    fn broken_text_ends_the_walk_without_a_panic() {
        for text in [
            "", "{", "[", "\"", "{\"a", "{\"a\":", "[1,", "}", "{]", "[}", "\"\\",
        ] {
            let _ = Leaves::of(text, WALK);
        }
    }
}
