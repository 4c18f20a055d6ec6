//! JSON kept as it came. A text is checked once ([`Json::parse`]) and then only
//! looked into: sub-values share the original bytes, numbers and key order stay.
//!
//! What two parsers could read differently is refused: duplicate keys, invalid
//! UTF-8, lone surrogates, values after the value (RFC 8259 §4, §8).

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

mod build;
mod check;
mod walk;

pub use build::{ArrayBuilder, ObjectBuilder, write_string};
pub use check::{JsonFault, JsonLimits};
pub use walk::{Elements, Members};

/// A checked JSON text: one value, shared bytes, cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(ByteString);

/// What kind of value a [`Json`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// Any number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The kind as JSON Schema names types.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

impl Json {
    /// Checks a text from outside. White space around the value, and a byte order
    /// mark before it, are dropped.
    ///
    /// # Errors
    /// [`JsonFault`] says what is wrong and at which byte.
    pub fn parse(bytes: Bytes, limits: &JsonLimits) -> Result<Self, JsonFault> {
        check::check(bytes, *limits).map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text's bytes, shared.
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    /// The kind of the value, told by its first byte.
    pub fn kind(&self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.kind() == Kind::Object
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// The members of an object in their order; nothing for any other value.
    pub fn members(&self) -> Members<'_> {
        Members::new(self)
    }

    /// The elements of an array in their order; nothing for any other value.
    pub fn elements(&self) -> Elements<'_> {
        Elements::new(self)
    }

    /// A member of an object.
    pub fn get(&self, key: &str) -> Option<Self> {
        self.members()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// The text of a string value, unescaped.
    pub fn string(&self) -> Option<Cow<'_, str>> {
        (self.kind() == Kind::String).then(|| walk::unescape(&self.0))
    }

    /// A boolean value.
    pub fn boolean(&self) -> Option<bool> {
        match self.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// An integer value, written without fraction or exponent.
    pub fn integer(&self) -> Option<i64> {
        self.as_str().parse().ok()
    }

    /// The value as a tree, for a library that needs one.
    ///
    /// # Errors
    /// When a number does not fit any machine number (`1e400`).
    pub fn to_value(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// A value of ours as JSON.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(ByteString::from(value.to_string()))
    }

    /// A string value.
    pub fn from_text(text: &str) -> Self {
        let mut out = String::with_capacity(text.len() + 2);
        write_string(&mut out, text);
        Self(ByteString::from(out))
    }

    /// A number value.
    pub fn from_integer(number: i64) -> Self {
        Self(ByteString::from(number.to_string()))
    }

    /// `null`.
    pub fn null() -> Self {
        Self(ByteString::from_static("null"))
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self(ByteString::from_static("{}"))
    }

    /// Text that is known to be JSON because it was made from checked parts.
    pub(crate) fn from_checked(text: impl Into<ByteString>) -> Self {
        Self(text.into())
    }

    /// A part of this text that is a value of its own.
    fn part(&self, slice: &str) -> Self {
        Self(self.0.slice_ref(slice))
    }

    /// This object with one member set: replaced where it stands, else put first.
    #[must_use]
    pub fn with_member(&self, key: &str, value: &Self) -> Self {
        let replaces = self.get(key).is_some();
        let mut out = ObjectBuilder::with_capacity(
            self.as_str().len() + key.len() + value.as_str().len() + 8,
        );
        if !replaces {
            out = out.json(key, value);
        }
        for (name, old) in self.members() {
            out = out.json(&name, if name == key { value } else { &old });
        }
        out.build()
    }

    /// This object without some members.
    #[must_use]
    pub fn without_members(&self, drop: impl Fn(&str) -> bool) -> Self {
        let mut out = ObjectBuilder::with_capacity(self.as_str().len());
        for (name, value) in self.members() {
            if !drop(&name) {
                out = out.json(&name, &value);
            }
        }
        out.build()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Contents may be secret: a debug print shows the kind and the size.
        write!(f, "Json({}, {} bytes)", self.kind().name(), self.0.len())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
