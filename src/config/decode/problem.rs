//! What went wrong while decoding: with its path, in words for the person who
//! wrote the file, and without the value.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::super::fault::{listed, nearest};
use super::super::key_path::{KeyPath, Step};

/// Why a part cannot be read, and where.
#[derive(Debug)]
pub(super) struct Problem {
    /// Innermost first.
    steps: Vec<Step>,
    pub(super) on_key: bool,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    UnknownKey {
        key: String,
        known: &'static [&'static str],
    },
    MissingKey(&'static str),
    Wrong {
        wrong: String,
        instead: String,
    },
}

impl Problem {
    fn new(kind: Kind) -> Self {
        Self {
            steps: Vec::new(),
            on_key: false,
            kind,
        }
    }

    fn wrong(wrong: impl Into<String>, instead: impl Into<String>) -> Self {
        Self::new(Kind::Wrong {
            wrong: wrong.into(),
            instead: instead.into(),
        })
    }

    pub(super) fn path(&self) -> KeyPath {
        KeyPath(self.steps.iter().rev().cloned().collect())
    }
}

pub(super) fn within(step: Step) -> impl FnOnce(Problem) -> Problem {
    |mut problem| {
        problem.steps.push(step);
        problem
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    /// Says of our own types are "what is wrong; what to write". Those of libraries are put into words.
    fn custom<T: fmt::Display>(text: T) -> Self {
        match text.to_string().as_str() {
            "invalid socket address syntax" => Problem::wrong(
                "is no address with a port",
                "write one such as `127.0.0.1:8080` or `[::1]:8080`",
            ),
            "invalid IP address syntax" => {
                Problem::wrong("is no network", "write one such as `10.0.0.0/8`")
            }
            other => match other.split_once("; ") {
                Some((wrong, instead)) => Problem::wrong(wrong, instead),
                None => Problem::wrong(other, ""),
            },
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Bool(_) => "true or false",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a mapping",
            Unexpected::Unit | Unexpected::Option => "null",
            _ => "text",
        };
        not_a(found, &expected.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let expected = in_words(&expected);
        Problem::wrong(format!("is not {expected}"), format!("write {expected}"))
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        let instead = match nearest(word, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write one of {}", listed(known.iter().copied())),
        };
        Problem::wrong("unknown word", instead)
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        let key = key.to_owned();
        Problem::new(Kind::UnknownKey { key, known })
    }

    fn missing_field(key: &'static str) -> Self {
        Problem::new(Kind::MissingKey(key))
    }
}

pub(super) fn not_a(found: &str, expected: &str) -> Problem {
    let expected = in_words(expected);
    Problem::wrong(format!("is {found}"), format!("write {expected}"))
}

/// What serde's visitors call what they want, for people.
fn in_words(expected: &str) -> &str {
    match expected {
        "a boolean" => "true or false",
        "a string" | "path string" | "string" => "text",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative and not too large",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "socket address" => "an address with a port, such as `127.0.0.1:8080`",
        "a sequence" => "a list",
        "a map" => "a mapping",
        other if other.starts_with("struct ") => "a mapping",
        other if other.starts_with("enum ") => "one of its words",
        other => other,
    }
}

pub(super) fn no_value() -> Problem {
    Problem::wrong("has no value", "write one, or remove the key")
}
