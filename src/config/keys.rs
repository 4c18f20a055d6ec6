//! Every key that a configuration can have, read off the section types by a
//! deserializer that gives nothing and writes down what it is asked for. For the
//! tests that keep the example and the reference complete.

use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

use super::Config;

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its path; `*` stands for any id, `[]` for any element of a list.
    pub path: String,
    /// The section type that it belongs to (or its keys, where the type is written in
    /// several shapes): the same type may stand at several paths.
    pub section: String,
    /// The key itself.
    pub name: String,
    /// What it takes: `section`, or what serde calls it.
    pub takes: String,
}

/// Every key, by path.
pub fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let found = look(&path);
        let below: Vec<Step> = match &found {
            Found::Section { name, fields } => {
                for field in *fields {
                    let field_path: Vec<Step> = with(&path, Step::Field(field));
                    keys.push(Key {
                        path: shown(&field_path),
                        section: if name.is_empty() {
                            fields.join(", ")
                        } else {
                            (*name).to_owned()
                        },
                        name: (*field).to_owned(),
                        takes: look(&field_path).to_string(),
                    });
                }
                fields.iter().map(|field| Step::Field(field)).collect()
            }
            Found::Map => vec![Step::AnyKey],
            Found::List => vec![Step::AnyElement],
            Found::Leaf(_) => Vec::new(),
        };
        open.extend(below.into_iter().map(|step| with(&path, step)));
    }
    keys.sort();
    keys
}

fn with(path: &[Step], step: Step) -> Vec<Step> {
    let mut longer = path.to_vec();
    longer.push(step);
    longer
}

fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        let (dot, name) = match step {
            Step::Field(name) => (".", *name),
            Step::AnyKey => (".", "*"),
            Step::AnyElement => ("", "[]"),
        };
        if !text.is_empty() {
            text.push_str(dot);
        }
        text.push_str(name);
    }
    text
}

#[derive(Clone, Copy)]
enum Step {
    Field(&'static str),
    AnyKey,
    AnyElement,
}

enum Found {
    Section {
        name: &'static str,
        fields: &'static [&'static str],
    },
    Map,
    List,
    Leaf(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Section { .. } => "section",
            Self::Map => "map",
            Self::List => "list",
            Self::Leaf(takes) => takes,
        })
    }
}

fn look(path: &[Step]) -> Found {
    let found = RefCell::new(Found::Leaf("nothing".to_owned()));
    let probe = Probe {
        path,
        found: &found,
    };
    // Always an error: the probe stops as soon as it knows.
    let _ = Config::deserialize(probe);
    found.into_inner()
}

#[derive(Debug)]
struct Stop {
    fields: Option<&'static [&'static str]>,
}

const STOP: Stop = Stop { fields: None };

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("enough seen")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        STOP
    }

    fn unknown_field(_: &str, fields: &'static [&'static str]) -> Self {
        Self {
            fields: Some(fields),
        }
    }
}

#[derive(Clone, Copy)]
struct Probe<'p> {
    path: &'p [Step],
    found: &'p RefCell<Found>,
}

impl Probe<'_> {
    fn note<T>(&self, found: Found) -> Result<T, Stop> {
        self.found.replace(found);
        Err(STOP)
    }

    fn leaf<'de, V: Visitor<'de>>(self, visitor: &V) -> Result<V::Value, Stop> {
        let expected: &dyn de::Expected = visitor;
        self.note(Found::Leaf(expected.to_string()))
    }

    fn descend<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.path.split_first() {
            Some((Step::AnyElement, path)) => visitor.visit_seq(One {
                key: None,
                value: Probe { path, ..self },
            }),
            Some((Step::AnyKey, path)) => visitor.visit_map(One {
                key: Some("any"),
                value: Probe { path, ..self },
            }),
            Some((Step::Field(field), path)) => visitor.visit_map(One {
                key: Some(field),
                value: Probe { path, ..self },
            }),
            None => Err(STOP),
        }
    }
}

impl<'de> de::Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    /// A type of several shapes: one of them may be a mapping, whose keys an unknown one brings out.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if !self.path.is_empty() {
            return self.descend(visitor);
        }
        let expected: &dyn de::Expected = &visitor;
        self.found.replace(Found::Leaf(expected.to_string()));
        let unknown = One {
            key: Some("\0"),
            value: self,
        };
        match visitor.visit_map(unknown) {
            Err(Stop {
                fields: Some(fields),
            }) => self.note(Found::Section { name: "", fields }),
            other => other,
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        if self.path.is_empty() {
            return self.note(Found::Section { name, fields });
        }
        self.descend(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if self.path.is_empty() {
            return self.note(Found::Map);
        }
        self.descend(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if self.path.is_empty() {
            return self.note(Found::List);
        }
        self.descend(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        self.note(Found::Leaf(words.join(" | ")))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.leaf(&visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.leaf(&visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.leaf(&visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.leaf(&visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.leaf(&visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.leaf(&visitor)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf unit unit_struct
        tuple tuple_struct identifier ignored_any
    }
}

/// A mapping with one entry, or a list with one element.
struct One<'p> {
    key: Option<&'static str>,
    value: Probe<'p>,
}

impl<'de> de::MapAccess<'de> for One<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        let Some(key) = self.key.take() else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Stop> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Stop> {
        seed.deserialize(self.value)
    }
}

impl<'de> de::SeqAccess<'de> for One<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Stop> {
        seed.deserialize(self.value).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_at_every_depth() {
        let keys = keys();
        for (path, takes) in [
            ("server.listen", "socket address"),
            ("tenants.*.limits.per_user.rate", "a string"),
            ("tenants.*.roles.*.tools.deny[].read_only", "a boolean"),
            ("tools[].match", "a string"),
            ("upstreams.*.mcp.url", "a string"),
            ("upstreams.*.credentials.header.value_file", "path string"),
            ("tenants.*.audit.durability", "strict | overlapped"),
            ("outgoing.resolve", "map"),
        ] {
            let key = keys.iter().find(|key| key.path == path);
            assert_eq!(key.map(|key| key.takes.as_str()), Some(takes), "{path}");
        }
    }
}
