//! The one pass that judges a text: grammar, depth, duplicate keys, surrogates.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use bytestring::ByteString;
use memchr::memchr2;
use thiserror::Error;

use super::walk::unescape;

/// Objects with more members than this are checked for doubles with a hash set.
const FEW_MEMBERS: usize = 16;

/// What a text may be at most, and how forgiving the check is.
#[derive(Clone, Copy, Debug)]
pub struct JsonLimits {
    /// Deepest nesting of arrays and objects.
    pub depth: u16,
    /// Whether bytes that are no UTF-8 and lone surrogates become U+FFFD instead
    /// of a fault. For what upstreams say: their slip must not cost the answer.
    pub repair: bool,
}

impl JsonLimits {
    /// For what callers send: nothing is repaired.
    pub const CALLER: Self = Self {
        depth: 64,
        repair: false,
    };
    /// For what upstreams send.
    pub const UPSTREAM: Self = Self {
        depth: 120,
        repair: true,
    };
}

/// Why a text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JsonFault {
    /// Not UTF-8 (RFC 8259 §8.1).
    #[error("the body is not valid UTF-8: byte {at} is wrong")]
    NotUtf8 {
        /// Offset of the first wrong byte.
        at: usize,
    },
    /// Not JSON.
    #[error("the body is not valid JSON: unexpected {found} at byte {at}")]
    Syntax {
        /// Offset of the unexpected byte.
        at: usize,
        /// What stands there.
        found: &'static str,
    },
    /// Two members of one object have the same name (RFC 8259 §4).
    #[error("the body has an object with the same key twice, at byte {at}; send each key once")]
    DuplicateKey {
        /// Offset behind the second key.
        at: usize,
    },
    /// An escape that is half a character (RFC 8259 §8.2).
    #[error(
        "the body has a lone surrogate escape in the string that ends at byte {at}; send whole characters"
    )]
    LoneSurrogate {
        /// Offset of the end of the string.
        at: usize,
    },
    /// Nested too deep.
    #[error("the body is nested deeper than {limit} levels at byte {at}")]
    TooDeep {
        /// Offset of the value that is too deep.
        at: usize,
        /// The limit.
        limit: u16,
    },
}

/// Checks `bytes` and returns the value's text without surrounding white space.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the text keeps the bytes; only the faulty path copies them"
)]
pub(super) fn check(bytes: Bytes, limits: JsonLimits) -> Result<ByteString, JsonFault> {
    let text = match ByteString::try_from(bytes.clone()) {
        Ok(text) => text,
        Err(fault) if !limits.repair => {
            return Err(JsonFault::NotUtf8 {
                at: fault.valid_up_to(),
            });
        }
        Err(_) => ByteString::from(String::from_utf8_lossy(&bytes).into_owned()),
    };
    let stripped = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let value = stripped.trim_matches([' ', '\t', '\r', '\n']);
    let mut checker = Checker {
        text: value,
        at: 0,
        limits,
        lone: Vec::new(),
    };
    checker.value(0)?;
    if checker.at < value.len() {
        return Err(checker.unexpected());
    }
    if checker.lone.is_empty() {
        return Ok(text.slice_ref(value));
    }
    Ok(ByteString::from(without(value, &checker.lone)))
}

/// The text with each six-byte escape at `places` replaced by U+FFFD's.
fn without(text: &str, places: &[usize]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for &at in places {
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push_str("\\ufffd");
        from = at + 6;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

struct Checker<'a> {
    text: &'a str,
    at: usize,
    limits: JsonLimits,
    /// Offsets of lone surrogate escapes that are to be repaired.
    lone: Vec<usize>,
}

impl<'a> Checker<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn unexpected(&self) -> JsonFault {
        let found = match self.peek() {
            None => "end",
            Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => "punctuation",
            Some(b'"') => "string",
            Some(b'0'..=b'9' | b'-') => "number",
            Some(0..=0x1f) => "control character",
            Some(_) => "character",
        };
        JsonFault::Syntax { at: self.at, found }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonFault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn value(&mut self, depth: u16) -> Result<(), JsonFault> {
        match self.peek() {
            Some(b'{' | b'[') if depth >= self.limits.depth => Err(JsonFault::TooDeep {
                at: self.at,
                limit: self.limits.depth,
            }),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(|_| ()),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), JsonFault> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from {
            Err(self.unexpected())
        } else {
            Ok(())
        }
    }

    fn number(&mut self) -> Result<(), JsonFault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Reads a string and returns it with its quotes.
    fn string(&mut self) -> Result<&'a str, JsonFault> {
        let from = self.at;
        self.expect(b'"')?;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let Some(to) = memchr2(b'"', b'\\', rest) else {
                self.at = self.text.len();
                return Err(self.unexpected());
            };
            if let Some(control) = rest.iter().take(to).position(|byte| *byte < 0x20) {
                self.at += control;
                return Err(self.unexpected());
            }
            self.at += to;
            if self.peek() == Some(b'"') {
                self.at += 1;
                return Ok(self.text.get(from..self.at).unwrap_or_default());
            }
            self.escape()?;
        }
    }

    fn escape(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let unit = self.unit()?;
                let paired = (0xd800..0xdc00).contains(&unit) && self.low_surrogate_follows();
                if paired {
                    self.at += 6;
                } else if (0xd800..0xe000).contains(&unit) {
                    if !self.limits.repair {
                        return Err(JsonFault::LoneSurrogate { at: self.at });
                    }
                    self.lone.push(start);
                }
            }
            _ => return Err(self.unexpected()),
        }
        Ok(())
    }

    /// Reads `uXXXX`, standing on the `u`.
    fn unit(&mut self) -> Result<u32, JsonFault> {
        self.at += 1;
        let hex = self.text.as_bytes().get(self.at..self.at + 4);
        let unit = hex
            .filter(|hex| hex.iter().all(u8::is_ascii_hexdigit))
            .and_then(|hex| std::str::from_utf8(hex).ok());
        let unit = unit
            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
            .ok_or_else(|| self.unexpected())?;
        self.at += 4;
        Ok(unit)
    }

    fn low_surrogate_follows(&self) -> bool {
        self.text.get(self.at..self.at + 6).is_some_and(|next| {
            next.starts_with("\\u")
                && next
                    .get(2..)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                    .is_some_and(|low| (0xdc00..0xe000).contains(&low))
        })
    }

    fn array(&mut self, depth: u16) -> Result<(), JsonFault> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            self.value(depth + 1)?;
            self.space();
            if self.peek() != Some(b',') {
                return self.expect(b']');
            }
            self.at += 1;
        }
    }

    fn object(&mut self, depth: u16) -> Result<(), JsonFault> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let mut keys = Keys::default();
        loop {
            self.space();
            let repaired = self.lone.len();
            let key = self.string()?;
            let key = if self.lone.len() == repaired {
                unescape(key)
            } else {
                Cow::Borrowed(key)
            };
            if !keys.insert(key) {
                return Err(JsonFault::DuplicateKey { at: self.at });
            }
            self.space();
            self.expect(b':')?;
            self.space();
            self.value(depth + 1)?;
            self.space();
            if self.peek() != Some(b',') {
                return self.expect(b'}');
            }
            self.at += 1;
        }
    }
}

/// The keys seen in one object: a list while there are few, then a set.
#[derive(Default)]
struct Keys<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Keys<'a> {
    fn insert(&mut self, key: Cow<'a, str>) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(key);
        }
        if self.few.contains(&key) {
            return false;
        }
        self.few.push(key);
        if self.few.len() > FEW_MEMBERS {
            self.many.extend(self.few.drain(..));
        }
        true
    }
}
