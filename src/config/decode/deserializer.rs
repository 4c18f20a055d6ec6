//! Serde over the tree.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Expected, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::super::document::{Entry, Node, Scalar, Style, Value};
use super::super::key_path::Step;
use super::problem::{Problem, no_value, not_a, within};

#[derive(Clone, Copy)]
pub(super) struct Deserializer<'a>(&'a Node);

impl<'a> Deserializer<'a> {
    pub(super) fn new(node: &'a Node) -> Self {
        Self(node)
    }

    /// The scalar, or why it is none; `expected` as serde calls it.
    fn scalar(self, visitor: &dyn Expected) -> Result<&'a Scalar, Problem> {
        let expected = visitor.to_string();
        match &self.0.value {
            Value::Scalar(scalar) if scalar.style == Style::Empty => Err(no_value()),
            Value::Scalar(scalar) if scalar.is_null() => Err(not_a("null", &expected)),
            Value::Scalar(scalar) => Ok(scalar),
            Value::List(_) => Err(not_a("a list", &expected)),
            Value::Map(_) => Err(not_a("a mapping", &expected)),
            Value::Withdrawn => Err(no_value()),
        }
    }

    fn number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        let scalar = self.scalar(&visitor)?;
        let text = scalar.text.as_str();
        if scalar.style == Style::Quoted {
            return Err(not_a("text in quotes", &visitor_name(&visitor)));
        }
        if let Ok(number) = text.parse::<u64>() {
            visitor.visit_u64(number)
        } else if let Ok(number) = text.parse::<i64>() {
            visitor.visit_i64(number)
        } else if let Ok(number) = text.parse::<f64>() {
            visitor.visit_f64(number)
        } else {
            Err(not_a("text", &visitor_name(&visitor)))
        }
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        let scalar = self.scalar(&visitor)?;
        visitor.visit_str(&scalar.text)
    }
}

fn visitor_name(visitor: &dyn Expected) -> String {
    visitor.to_string()
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

impl<'de> de::Deserializer<'de> for Deserializer<'_> {
    type Error = Problem;

    /// Only for types that take several shapes. Plain text means what YAML's core schema says.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match &self.0.value {
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_unit(),
            Value::Scalar(scalar) if matches!(scalar.style, Style::Plain | Style::Variable) => {
                let text = scalar.text.as_str();
                let number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
                    && text.parse::<f64>().is_ok();
                match boolean(text) {
                    Some(value) => visitor.visit_bool(value),
                    None if number => self.number(visitor),
                    None => visitor.visit_str(text),
                }
            }
            _ => self.text(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        let scalar = self.scalar(&visitor)?;
        match boolean(&scalar.text) {
            Some(value) if scalar.style != Style::Quoted => visitor.visit_bool(value),
            _ => Err(not_a("text", "a boolean")),
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.number(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.text(visitor)
    }

    /// Explicit null is none. An empty value is a fault: `tenants:` with its list
    /// commented out must not turn into "all tenants".
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match &self.0.value {
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        if let Value::List(nodes) = &self.0.value {
            return visitor.visit_seq(Elements { nodes, at: 0 });
        }
        self.scalar(&"a sequence")?;
        Err(not_a("a single value", "a sequence"))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        if let Value::Map(entries) = &self.0.value {
            return visitor.visit_map(Members {
                entries: entries.iter(),
                current: None,
            });
        }
        self.scalar(&"a map")?;
        Err(not_a("a single value", "a map"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let scalar = self.scalar(&visitor)?;
        let word: StrDeserializer<'_, Problem> = scalar.text.as_str().into_deserializer();
        visitor.visit_enum(word)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct Elements<'a> {
    nodes: &'a [Node],
    at: usize,
}

impl<'de> de::SeqAccess<'de> for Elements<'_> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Problem> {
        while let Some(node) = self.nodes.get(self.at) {
            let step = Step::Index(self.at);
            self.at += 1;
            if !matches!(node.value, Value::Withdrawn) {
                return seed
                    .deserialize(Deserializer(node))
                    .map(Some)
                    .map_err(within(step));
            }
        }
        Ok(None)
    }
}

struct Members<'a> {
    entries: std::slice::Iter<'a, Entry>,
    current: Option<&'a Entry>,
}

impl<'de> de::MapAccess<'de> for Members<'_> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Problem> {
        self.current = self
            .entries
            .find(|entry| !matches!(entry.value.value, Value::Withdrawn));
        let Some(entry) = self.current else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Problem> = entry.key.as_ref().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|mut problem| {
            problem.on_key = true;
            within(Step::Key(entry.key.clone()))(problem)
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let Some(entry) = self.current.take() else {
            return Err(no_value());
        };
        seed.deserialize(Deserializer(&entry.value))
            .map_err(within(Step::Key(entry.key.clone())))
    }
}
