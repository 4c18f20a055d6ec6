//! The walk itself: one pass over the bytes, and what the members of one object
//! say about each other. Knows the names that matter and nothing of detectors.

use std::ops::Range;

use memchr::memchr2;

use super::{Kind, Leaf, Leaves, Node, Step, Walk};

pub(super) struct Walker<'a> {
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

impl<'a> Walker<'a> {
    pub(super) fn new(text: &'a str, walk: Walk) -> Self {
        Self {
            text,
            at: 0,
            walk,
            out: Leaves::default(),
        }
    }

    /// Walks the whole text.
    pub(super) fn run(mut self) -> Leaves {
        let root = self.node(0, Step::Root);
        self.space();
        self.value(root, None);
        self.out
    }

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
        let number = matches!(self.text.as_bytes().get(start), Some(b'-' | b'0'..=b'9'));
        if number {
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
            let at = self.at;
            let value = self.value(member, Some(key));
            if node == 0 && self.text.get(raw.clone()) == Some("isError") {
                self.out.failed = self.text.get(at..self.at) == Some("true");
            }
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
