//! What a string is to its reader, by where it stands in an answer.

use super::{Document, Place};
use crate::sanitize::leaves::{Kind, Leaf};

/// What a JSON text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sanitize) enum Ground {
    /// The result of a request. Identifiers that route stay.
    Answer,
    /// The data of a JSON-RPC error.
    Failure,
    /// The definition of a tool, prompt or resource.
    Definition,
    /// A progress or log message.
    Event,
    /// The words of several messages, as a list.
    Messages,
    /// A caller's arguments.
    Arguments,
    /// JSON that stands in a string of this place.
    Inside(Place),
}

/// Names of members that hold an address.
const ADDRESSES: &[&str] = &[
    "uri",
    "url",
    "href",
    "src",
    "link",
    "websiteUrl",
    "uriTemplate",
    "html_url",
];

impl Document<'_> {
    pub(super) fn place(&self, leaf: &Leaf) -> Place {
        match leaf.kind {
            Kind::Key => return Place::Key,
            Kind::Number => return Place::Number,
            _ => {}
        }
        let named = leaf.key.and_then(|key| self.leaves.get(key));
        if named.is_some_and(|key| ADDRESSES.contains(&self.raw(key))) {
            return Place::Uri;
        }
        match self.ground {
            Ground::Definition => Place::Description,
            Ground::Event | Ground::Messages => Place::Log,
            Ground::Failure => Place::Error,
            Ground::Arguments => Place::Value,
            Ground::Inside(place) => place,
            Ground::Answer => self.place_in_answer(leaf),
        }
    }

    fn place_in_answer(&self, leaf: &Leaf) -> Place {
        let outermost = self
            .leaves
            .outermost_key(leaf)
            .map_or("", |key| self.raw(key));
        match outermost {
            "error" => Place::Error,
            "content" | "structuredContent" if self.leaves.failed => Place::Error,
            "content" | "contents" | "messages" | "inputRequests" => Place::Text,
            "tools" | "prompts" | "resources" | "resourceTemplates" | "description" => {
                Place::Description
            }
            _ => Place::Value,
        }
    }
}
