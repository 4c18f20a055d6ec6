//! One tag of HTML: its name and attributes with their places.

use std::ops::Range;

use super::address::decoded;

/// Attributes beyond these are not read; what has more is no text.
const MOST: usize = 64;

/// A tag is no longer than this.
const LONGEST: usize = 16 << 10;

/// A value without quotes is no longer than this: another tag may begin in it.
const LONGEST_BARE: usize = 1024;

#[derive(Debug)]
pub(super) struct Attribute {
    /// In lower case.
    pub(super) name: String,
    /// With character references decoded.
    pub(super) value: String,
    /// With the space before it.
    pub(super) range: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Tag {
    /// In lower case.
    pub(super) name: String,
    pub(super) closing: bool,
    pub(super) attributes: Vec<Attribute>,
    pub(super) range: Range<usize>,
}

impl Tag {
    /// The tag that begins at a `<`; `None` where it is none or does not end.
    pub(super) fn read(text: &str, at: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let limit = bytes.len().min(at + LONGEST);
        let closing = bytes.get(at + 1) == Some(&b'/');
        let start = at + 1 + usize::from(closing);
        let len = bytes
            .get(start..limit)?
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b':'))
            .count();
        let name = text.get(start..start + len)?.to_ascii_lowercase();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || name.ends_with(':') {
            return None;
        }
        let mut tag = Self {
            name,
            closing,
            attributes: Vec::new(),
            range: at..at,
        };
        let mut next = start + len;
        loop {
            let from = next;
            next += count(bytes, next, limit, |b| b.is_ascii_whitespace() || b == b'/');
            match bytes.get(next..limit)?.first()? {
                b'>' => {
                    tag.range.end = next + 1;
                    return Some(tag);
                }
                b'<' => return None,
                _ if from == next && tag.attributes.is_empty() => return None,
                _ if tag.attributes.len() >= MOST => return None,
                _ => next = tag.attribute(text, from, next, limit)?,
            }
        }
    }

    /// Reads an attribute at `at`; gives where it ends.
    fn attribute(&mut self, text: &str, from: usize, at: usize, limit: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let len = count(bytes, at, limit, |b| {
            !b.is_ascii_whitespace() && !matches!(b, b'=' | b'>' | b'/' | b'<')
        });
        // An `=` where a name should be is part of it.
        let len = len.max(1);
        let name = text.get(at..at + len)?.to_ascii_lowercase();
        let mut next = at + len;
        let space = count(bytes, next, limit, |b| b.is_ascii_whitespace());
        let mut value = String::new();
        if bytes.get(next + space) == Some(&b'=') {
            next += space + 1;
            next += count(bytes, next, limit, |b| b.is_ascii_whitespace());
            let quote = bytes
                .get(next)
                .copied()
                .filter(|b| matches!(b, b'"' | b'\''));
            let len = match quote {
                Some(quote) => {
                    next += 1;
                    count(bytes, next, limit, |b| b != quote)
                }
                None => count(bytes, next, limit.min(next + LONGEST_BARE), |b| {
                    !b.is_ascii_whitespace() && b != b'>'
                }),
            };
            value = decoded(text.get(next..next + len)?);
            next += len + usize::from(quote.is_some());
        }
        self.attributes.push(Attribute {
            name,
            value,
            range: from..next,
        });
        Some(next)
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
            .map(|attribute| attribute.value.as_str())
    }
}

fn count(bytes: &[u8], at: usize, limit: usize, holds: impl Fn(u8) -> bool) -> usize {
    bytes
        .get(at..limit)
        .unwrap_or_default()
        .iter()
        .take_while(|b| holds(**b))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_in_every_spelling() {
        let text = "<IMG src=https://e.example/p?d=1 Alt='a > b' hidden onLoad = \"x()\"/>";
        let tag = Tag::read(text, 0).unwrap();
        assert_eq!(
            (tag.name.as_str(), tag.range.clone()),
            ("img", 0..text.len())
        );
        assert_eq!(tag.value("src"), Some("https://e.example/p?d=1"));
        assert_eq!(tag.value("alt"), Some("a > b"));
        assert_eq!(tag.value("hidden"), Some(""));
        assert_eq!(tag.value("onload"), Some("x()"));
        assert_eq!(&text[tag.attributes[3].range.clone()], " onLoad = \"x()\"");
    }

    #[test]
    fn what_is_no_tag_is_none() {
        for text in [
            "<",
            "< b",
            "<3",
            "<n) {}",
            "<https://acme.example/x>",
            "<img src=x",
            "<a <b>",
            "<!--",
        ] {
            assert!(Tag::read(text, 0).is_none(), "{text}");
        }
    }
}
