//! Writing JSON from checked parts, without a tree in between.

use std::fmt::Write as _;

use bytestring::ByteString;

use super::Json;

/// Appends `text` as a JSON string. Line separators are escaped too, so that the
/// text may stand in places that split lines at them.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) =
        rest.find(|c: char| c < ' ' || matches!(c, '"' | '\\' | '\u{2028}' | '\u{2029}'))
    {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = tail.chars();
        match chars.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            // Writing to a String does not fail.
            Some(other) => {
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Builds an object member by member.
#[derive(Debug)]
pub struct ObjectBuilder(String);

impl ObjectBuilder {
    /// An empty object.
    pub fn new() -> Self {
        Self::with_capacity(128)
    }

    /// An empty object with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self(text)
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        write_string(&mut self.0, key);
        self.0.push(':');
    }

    /// Adds a member.
    #[must_use]
    pub fn json(mut self, key: &str, value: &Json) -> Self {
        self.key(key);
        self.0.push_str(value.as_str());
        self
    }

    /// Adds a member where there is a value.
    #[must_use]
    pub fn maybe(self, key: &str, value: Option<&Json>) -> Self {
        match value {
            Some(value) => self.json(key, value),
            None => self,
        }
    }

    /// Adds a string.
    #[must_use]
    pub fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        write_string(&mut self.0, value);
        self
    }

    /// Adds an integer.
    #[must_use]
    pub fn integer(mut self, key: &str, value: i64) -> Self {
        self.key(key);
        let _ = write!(self.0, "{value}");
        self
    }

    /// Adds a boolean.
    #[must_use]
    pub fn boolean(mut self, key: &str, value: bool) -> Self {
        self.key(key);
        self.0.push_str(if value { "true" } else { "false" });
        self
    }

    /// Adds every member of an object but one, as it stands, and closes.
    pub fn and_members_of(mut self, object: &Json, but: &str) -> Json {
        let inner = object
            .as_str()
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        if object.get(but).is_some() {
            for (name, value) in object.members() {
                if name != but {
                    self = self.json(&name, &value);
                }
            }
        } else if let Some(inner) = inner.filter(|inner| !inner.trim_ascii().is_empty()) {
            if self.0.len() > 1 {
                self.0.push(',');
            }
            self.0.push_str(inner);
        }
        self.build()
    }

    /// Closes the object.
    pub fn build(mut self) -> Json {
        self.0.push('}');
        Json::from_checked(ByteString::from(self.0))
    }
}

impl Default for ObjectBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Builds an array element by element.
#[derive(Debug)]
pub struct ArrayBuilder(String);

impl ArrayBuilder {
    /// An empty array.
    pub fn new() -> Self {
        Self(String::from("["))
    }

    /// Adds an element.
    pub fn push(&mut self, value: &Json) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(value.as_str());
    }

    /// Closes the array.
    pub fn build(mut self) -> Json {
        self.0.push(']');
        Json::from_checked(ByteString::from(self.0))
    }
}

impl Default for ArrayBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> FromIterator<&'a Json> for ArrayBuilder {
    fn from_iter<I: IntoIterator<Item = &'a Json>>(items: I) -> Self {
        let mut out = Self::new();
        for item in items {
            out.push(item);
        }
        out
    }
}
