//! Every string of a JSON text with its place: values and object keys, in their
//! order, as ranges of the text. Relies on the check that [`Json`] passed; on any
//! other text it finds something else, but ends and does not panic.
//!
//! [`Json`]: crate::protocol::Json

use std::ops::Range;

use memchr::memchr2;

use super::findings::push_segment;

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
    /// Whether numbers are listed too.
    pub(super) numbers: bool,
}

/// The leaves of one text.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    pub(super) all: Vec<Leaf>,
    nodes: Vec<Node>,
}

impl Leaves {
    pub(super) fn of(text: &str, walk: Walk) -> Self {
        let mut walker = Walker {
            text,
            at: 0,
            walk,
            out: Self::default(),
        };
        let root = walker.node(0, Step::Root);
        walker.space();
        walker.value(root, None);
        walker.out
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

    /// Runs of text blocks that a reader sees one after another: the `text` of an
    /// array's elements, or of the resource in them.
    pub(super) fn block_runs(&self, text: &str) -> Vec<Vec<u32>> {
        let mut runs: Vec<(u32, Vec<u32>)> = Vec::new();
        for (index, leaf) in (0_u32..).zip(&self.all) {
            if leaf.kind != Kind::Text {
                continue;
            }
            let Some(array) = self.block_array(leaf, text) else {
                continue;
            };
            match runs.last_mut() {
                Some((of, run)) if *of == array => run.push(index),
                _ => runs.push((array, vec![index])),
            }
        }
        runs.retain(|(_, run)| run.len() > 1);
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

struct Walker<'a> {
    text: &'a str,
    at: usize,
    walk: Walk,
    out: Leaves,
}

/// The members of one object that say something about each other.
#[derive(Default)]
struct Siblings {
    is_media: bool,
    mime: Option<u32>,
    data: Option<u32>,
    blob: Option<u32>,
    name: Option<u32>,
    value: Option<u32>,
}

impl Walker<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') = self.byte() {
            self.at += 1;
        }
    }

    fn node(&mut self, parent: u32, step: Step) -> u32 {
        let index = u32::try_from(self.out.nodes.len()).unwrap_or(u32::MAX);
        self.out.nodes.push(Node { parent, step });
        index
    }

    fn leaf(&mut self, leaf: Leaf) -> u32 {
        let index = u32::try_from(self.out.all.len()).unwrap_or(u32::MAX);
        self.out.all.push(leaf);
        index
    }

    /// Stands on a quote; returns what is between it and the closing one.
    fn string(&mut self) -> Range<usize> {
        let start = self.at + 1;
        let mut at = start;
        loop {
            let rest = self.text.as_bytes().get(at..).unwrap_or_default();
            match memchr2(b'"', b'\\', rest) {
                None => {
                    self.at = self.text.len();
                    return start.min(self.at)..self.at;
                }
                Some(to) if rest.get(to) == Some(&b'"') => {
                    self.at = at + to + 1;
                    return start..at + to;
                }
                Some(to) => at += to + 2,
            }
        }
    }

    /// The leaf that the value is, where it is one.
    fn value(&mut self, node: u32, key: Option<u32>) -> Option<u32> {
        match self.byte() {
            Some(b'{') => self.object(node),
            Some(b'[') => self.array(node, key),
            Some(b'"') => {
                let raw = self.string();
                return Some(self.leaf(Leaf {
                    raw,
                    kind: Kind::Text,
                    node,
                    key,
                }));
            }
            _ => self.scalar(node, key),
        }
        None
    }

    fn scalar(&mut self, node: u32, key: Option<u32>) {
        let start = self.at;
        while let Some(byte) = self.byte()
            && !matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
        {
            self.at += 1;
        }
        self.at = self.at.max(start + 1).min(self.text.len());
        let number = matches!(
            self.text.as_bytes().get(start),
            Some(b'-' | b'0'..=b'9')
        );
        if number && self.walk.numbers {
            let kind = Kind::Number;
            let raw = start..self.at;
            self.leaf(Leaf {
                raw,
                kind,
                node,
                key,
            });
        }
    }

    /// The elements of an array share its name: `"passwords": ["a", "b"]`.
    fn array(&mut self, node: u32, key: Option<u32>) {
        self.at += 1;
        for index in 0.. {
            self.space();
            match self.byte() {
                None => return,
                Some(b']' | b'}') => break,
                Some(_) => {}
            }
            let element = self.node(node, Step::Index(index));
            self.value(element, key);
        }
        self.at += 1;
    }

    fn object(&mut self, node: u32) {
        self.at += 1;
        let mut siblings = Siblings::default();
        loop {
            self.space();
            if self.byte() != Some(b'"') {
                break;
            }
            let raw = self.string();
            let next = u32::try_from(self.out.all.len()).unwrap_or(u32::MAX);
            let member = self.node(node, Step::Key(next));
            let kind = if self.is_request_key(node) {
                Kind::Exempt
            } else {
                Kind::Key
            };
            let key = self.leaf(Leaf {
                raw: raw.clone(),
                kind,
                node: member,
                key: None,
            });
            self.space();
            let value = self.value(member, Some(key));
            if let Some(leaf) = value {
                self.note(&mut siblings, node, &raw, leaf);
            }
        }
        self.at += 1;
        self.settle(&siblings);
    }

    fn key_text(&self, node: u32) -> Option<&str> {
        match self.out.parent(node)? {
            (0, Step::Key(key)) => self.text.get(self.out.get(key)?.raw.clone()),
            _ => None,
        }
    }

    /// Keys of `inputRequests` route the answers to them.
    fn is_request_key(&self, object: u32) -> bool {
        self.walk.spare_identifiers && self.key_text(object) == Some("inputRequests")
    }

    fn set_kind(&mut self, leaf: u32, kind: Kind) {
        if let Some(leaf) = self.out.all.get_mut(leaf as usize) {
            leaf.kind = kind;
        }
    }

    fn note(&mut self, siblings: &mut Siblings, object: u32, key: &Range<usize>, leaf: u32) {
        let at_root = object == 0;
        match self.text.get(key.clone()).unwrap_or_default() {
            "requestState" | "nextCursor" | "taskId"
                if self.walk.spare_identifiers
                    && (at_root || self.key_text(object) == Some("task")) =>
            {
                self.set_kind(leaf, Kind::Exempt);
            }
            "type" => {
                siblings.is_media = matches!(self.raw(leaf), "image" | "audio");
            }
            "mimeType" => siblings.mime = Some(leaf),
            "data" => siblings.data = Some(leaf),
            "blob" => siblings.blob = Some(leaf),
            // The key itself says it, whatever its value.
            "keyName" => siblings.name = self.out.get(leaf).and_then(|leaf| leaf.key),
            "name" | "key" | "field" | "variable" | "header" => siblings.name = Some(leaf),
            "value" => siblings.value = Some(leaf),
            _ => {}
        }
    }

    fn raw(&self, leaf: u32) -> &str {
        self.out
            .get(leaf)
            .and_then(|leaf| self.text.get(leaf.raw.clone()))
            .unwrap_or_default()
    }

    fn settle(&mut self, siblings: &Siblings) {
        if let (Some(value), Some(name)) = (siblings.value, siblings.name)
            && let Some(leaf) = self.out.all.get_mut(value as usize)
        {
            leaf.key = Some(name);
        }
        let mime = siblings.mime.map(|leaf| self.raw(leaf).to_owned());
        if let Some(data) = siblings.data
            && siblings.is_media
            && mime.is_some()
            && is_base64(self.raw(data))
        {
            self.set_kind(data, Kind::Media);
        }
        if let Some(blob) = siblings.blob
            && is_base64(self.raw(blob))
        {
            let textual = mime.as_deref().is_some_and(is_textual);
            self.set_kind(blob, if textual { Kind::TextBlob } else { Kind::Media });
        }
    }
}

/// Whether a string can be base64. What is not gets cleaned, whatever its type
/// claims: nothing readable passes as media.
fn is_base64(raw: &str) -> bool {
    let mut bytes = raw.bytes();
    bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'\\'))
        && !raw.contains("\\u")
}

fn is_textual(mime: &str) -> bool {
    let mime = mime.to_ascii_lowercase();
    mime.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "toml", "x-sh", "sql"]
            .iter()
            .any(|word| mime.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALK: Walk = Walk {
        spare_identifiers: true,
        numbers: false,
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
                .filter(|(kind, ..)| !matches!(kind, Kind::Key | Kind::Text))
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
        let runs = leaves.block_runs(text);
        let texts: Vec<&str> = runs[0]
            .iter()
            .map(|leaf| &text[leaves.get(*leaf).unwrap().raw.clone()])
            .collect();
        assert_eq!((runs.len(), texts), (1, vec!["a", "b"]));
    }

    #[test]
    fn broken_text_ends_the_walk_without_a_panic() {
        for text in ["", "{", "[", "\"", "{\"a", "{\"a\":", "[1,", "}", "{]", "[}", "\"\\"] {
            let _ = Leaves::of(text, WALK);
        }
    }
}
