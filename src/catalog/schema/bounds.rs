//! How much work a schema can make, told before it makes any
//! (MCP 2026-07-28 basic, Composition-Keyword Resource Use).
//!
//! A schema is a graph: nodes are the schemas that can be reached, edges lead to
//! those applied to the same value and to those applied to parts of it. Refused
//! are cycles on the spot, and too many nodes, too long or too many ways on the
//! spot. A cycle that goes deeper is fine: values end.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaFault;
use super::positions::{Position, inner};
use super::reference::Places;

/// Most schemas that can be reached.
const MOST_NODES: usize = 10_000;
/// Most patterns.
const MOST_PATTERNS: usize = 128;
/// Longest way of schemas applied to one value: each is a few stack frames, for
/// each level of the value.
const LONGEST_WAY: u32 = 24;
/// Most ways from a schema to another applied to the same value.
const MOST_WAYS: u64 = 5_000;
/// Deepest tree of schemas in schemas, references aside.
const DEEPEST: u32 = 64;

/// What listing every fault of a value may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// At most so many checks for each part of a value.
    Even(u64),
    /// The schema is recursive: at most this factor for each level of a value.
    PerLevel(u64),
}

impl Effort {
    /// The work for a value, in checks.
    pub(super) fn of(self, value: &Value) -> u64 {
        let (parts, levels) = measure(value);
        match self {
            Self::Even(checks) => checks.saturating_mul(parts),
            Self::PerLevel(factor) => factor.saturating_pow(levels).saturating_mul(parts),
        }
    }
}

/// How many values are in a value, and how deep.
fn measure(value: &Value) -> (u64, u32) {
    let mut parts = 0;
    let mut deepest = 0;
    let mut left = vec![(value, 1_u32)];
    while let Some((value, level)) = left.pop() {
        parts += 1;
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(members) => left.extend(members.values().map(|item| (item, level + 1))),
            _ => {}
        }
    }
    (parts, deepest)
}

/// Judges a schema's size and references.
pub(super) fn judge(schema: &Value) -> Result<Effort, SchemaFault> {
    if depth(schema) > DEEPEST {
        return Err(SchemaFault::TooLarge("levels"));
    }
    let places = Places::new(schema)?;
    let graph = Graph::new(schema, &places)?;
    let on_the_spot = graph.ways(false).ok_or(SchemaFault::Endless)?;
    let longest = on_the_spot.iter().map(|ways| ways.longest).max();
    if longest > Some(LONGEST_WAY) {
        return Err(SchemaFault::TooLarge("schemas one behind the other"));
    }
    let most = on_the_spot.iter().map(|ways| ways.count).max().unwrap_or(1);
    if most > MOST_WAYS {
        return Err(SchemaFault::TooLarge("schemas for one value"));
    }
    let deeper = on_the_spot.iter().map(|ways| ways.deeper).max();
    let all = graph.ways(true);
    let from_root = all.and_then(|ways| ways.first().map(|ways| ways.count));
    Ok(from_root.map_or(Effort::PerLevel(deeper.unwrap_or(1)), Effort::Even))
}

fn depth(value: &Value) -> u32 {
    measure(value).1
}

#[derive(Default)]
struct Node {
    same: Vec<usize>,
    parts: Vec<usize>,
}

struct Graph {
    nodes: Vec<Node>,
}

/// The ways that start at a node.
#[derive(Clone, Copy)]
struct Ways {
    count: u64,
    longest: u32,
    /// How many of them end at a schema that goes into parts.
    deeper: u64,
}

impl Ways {
    fn and(self, next: Self) -> Self {
        Self {
            count: self.count.saturating_add(next.count),
            longest: self.longest.max(next.longest.saturating_add(1)),
            deeper: self.deeper.saturating_add(next.deeper),
        }
    }
}

impl Graph {
    fn new<'a>(root: &'a Value, places: &Places<'a>) -> Result<Self, SchemaFault> {
        let mut found: Vec<&'a Value> = vec![root];
        let mut index = HashMap::from([(std::ptr::from_ref(root), 0)]);
        let mut nodes = Vec::new();
        let mut patterns = 0;
        while let Some(schema) = found.get(nodes.len()).copied() {
            let mut node = Node::default();
            let mut number = |schema: &'a Value| {
                *index.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
                    found.push(schema);
                    found.len() - 1
                })
            };
            if let Value::Object(members) = schema {
                patterns += patterns_in(members);
                for part in inner(members) {
                    match part.position {
                        Position::Same => node.same.push(number(part.schema)),
                        Position::Property | Position::Part => node.parts.push(number(part.schema)),
                        Position::Shelf => {}
                    }
                }
                let targets = places.targets(members)?;
                node.same.extend(targets.into_iter().map(number));
            }
            nodes.push(node);
            if found.len() > MOST_NODES {
                return Err(SchemaFault::TooLarge("schemas"));
            }
            if patterns > MOST_PATTERNS {
                return Err(SchemaFault::TooLarge("patterns"));
            }
        }
        Ok(Self { nodes })
    }

    fn next(&self, at: usize, parts_too: bool) -> impl Iterator<Item = usize> + '_ {
        let node = self.nodes.get(at);
        let same = node.into_iter().flat_map(|node| &node.same);
        let parts = node.into_iter().flat_map(|node| &node.parts);
        same.chain(parts.filter(move |_| parts_too)).copied()
    }

    /// The way that ends where it starts.
    fn way(&self, at: usize) -> Ways {
        let goes_deeper = self
            .nodes
            .get(at)
            .is_some_and(|node| !node.parts.is_empty());
        Ways {
            count: 1,
            longest: 1,
            deeper: u64::from(goes_deeper),
        }
    }

    /// The ways from every node, on the spot or also into parts; `None` where they
    /// go round in a circle. Walks with a stack of its own: a chain of references
    /// can be longer than the thread's stack is deep.
    fn ways(&self, parts_too: bool) -> Option<Vec<Ways>> {
        let mut done: Vec<Option<Ways>> = vec![None; self.nodes.len()];
        let mut open = vec![false; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut stack = vec![start];
            while let Some(&at) = stack.last() {
                if done.get(at).copied().flatten().is_some() {
                    stack.pop();
                    continue;
                }
                let known = |next: usize| done.get(next).copied().flatten();
                let missing: Vec<usize> = self
                    .next(at, parts_too)
                    .filter(|next| known(*next).is_none())
                    .collect();
                if missing.is_empty() {
                    let next = self.next(at, parts_too).filter_map(known);
                    *done.get_mut(at)? = Some(next.fold(self.way(at), Ways::and));
                    *open.get_mut(at)? = false;
                    stack.pop();
                } else {
                    *open.get_mut(at)? = true;
                    if missing.iter().any(|next| open.get(*next) == Some(&true)) {
                        return None;
                    }
                    stack.extend(missing);
                }
            }
        }
        done.into_iter().collect()
    }
}

fn patterns_in(schema: &serde_json::Map<String, Value>) -> usize {
    let named = schema.get("patternProperties").and_then(Value::as_object);
    usize::from(schema.contains_key("pattern")) + named.map_or(0, serde_json::Map::len)
}
