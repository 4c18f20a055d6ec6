//! From YAML text to the tree. Bounded in size and depth, so that aliases cannot
//! blow up; a key given twice is a fault.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Seen;
use std::sync::Arc;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};

use super::super::fault::Origin;
use super::super::key_path::{KeyPath, Step};
use super::{Entry, Node, Scalar, Style, Value};

/// Values after all aliases are followed. A configuration of ten thousand tenants has fewer.
const MOST_NODES: usize = 500_000;
/// Mappings and lists within each other.
const DEEPEST: usize = 64;

/// Something wrong with the text itself.
#[derive(Debug)]
pub(in crate::config) struct Flaw {
    pub(in crate::config) origin: Origin,
    pub(in crate::config) path: KeyPath,
    pub(in crate::config) wrong: String,
    pub(in crate::config) instead: String,
}

impl Flaw {
    fn new(origin: Origin, wrong: impl Into<String>, instead: impl Into<String>) -> Self {
        Self {
            origin,
            path: KeyPath::default(),
            wrong: wrong.into(),
            instead: instead.into(),
        }
    }
}

/// The tree, and the keys that were given twice (the first one counts).
///
/// # Errors
/// The first thing that makes the rest unreadable.
pub(in crate::config) fn parse(text: &str) -> Result<(Node, Vec<Flaw>), Flaw> {
    let options = granit_parser::options! {
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
        disallow_directives: true,
        emit_comments: false,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event
            .map_err(|fault| Flaw::new(place(*fault.marker()), fault.kind().to_string(), ""))?;
        builder.event(event, span)?;
    }
    let root = builder.root.unwrap_or_else(|| Node::empty(Origin::File));
    Ok((root, builder.twice))
}

fn place(marker: Marker) -> Origin {
    Origin::Line {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// A finished value, how many values it holds, and how deep.
#[derive(Clone)]
struct Built {
    node: Node,
    size: usize,
    depth: usize,
}

/// A mapping or list that is not finished yet.
struct Open {
    shape: Shape,
    origin: Origin,
    anchor: usize,
    size: usize,
    depth: usize,
}

enum Shape {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// The keys of `entries`, so that a long mapping is not searched for each of them.
        seen: HashMap<Arc<str>, Origin>,
        key: Option<Key>,
        merged: Vec<Entry>,
    },
}

struct Key {
    text: Arc<str>,
    origin: Origin,
    /// `<<`: the value's entries are taken over where the mapping has none of its own.
    merge: bool,
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Built>,
    nodes: usize,
    twice: Vec<Flaw>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Flaw> {
        let origin = place(span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let style = written(style, tag.as_deref(), span)?;
                self.scalar(text.into_owned(), style, anchor, origin)
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_tag(tag.as_deref(), &origin)?;
                self.start(Shape::List(Vec::new()), anchor, origin)
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_tag(tag.as_deref(), &origin)?;
                let shape = Shape::Map {
                    entries: Vec::new(),
                    seen: HashMap::new(),
                    key: None,
                    merged: Vec::new(),
                };
                self.start(shape, anchor, origin)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, origin),
            Event::DocumentStart(..) if self.root.is_some() => Err(Flaw::new(
                origin,
                "a second document begins here",
                "write everything in one document, without `---` in between",
            )),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: String,
        style: Style,
        anchor: usize,
        origin: Origin,
    ) -> Result<(), Flaw> {
        if let Some(Open {
            shape: Shape::Map {
                key: key @ None, ..
            },
            ..
        }) = self.open.last_mut()
        {
            if style == Style::Empty {
                return Err(Flaw::new(origin, "a key is missing before `:`", ""));
            }
            *key = Some(Key {
                merge: style == Style::Plain && text == "<<",
                text: text.into(),
                origin,
            });
            return Ok(());
        }
        let node = Node {
            value: Value::Scalar(Scalar { text, style }),
            origin,
        };
        self.finish(
            Built {
                node,
                size: 1,
                depth: 0,
            },
            anchor,
        )
    }

    fn start(&mut self, shape: Shape, anchor: usize, origin: Origin) -> Result<(), Flaw> {
        self.refuse_as_key(&origin)?;
        self.open.push(Open {
            shape,
            origin,
            anchor,
            size: 1,
            depth: 1,
        });
        Ok(())
    }

    fn refuse_as_key(&self, origin: &Origin) -> Result<(), Flaw> {
        match self.open.last() {
            Some(Open {
                shape: Shape::Map { key: None, .. },
                ..
            }) => Err(Flaw::new(
                origin.clone(),
                "a key must be plain text",
                "write the name of the key, or quote a value that begins with `*`, `{` or `[`",
            )),
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), Flaw> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.shape {
            Shape::List(nodes) => Value::List(nodes),
            Shape::Map {
                mut entries,
                mut seen,
                merged,
                ..
            } => {
                for entry in merged {
                    if let Seen::Vacant(new) = seen.entry(Arc::clone(&entry.key)) {
                        new.insert(entry.origin.clone());
                        entries.push(entry);
                    }
                }
                Value::Map(entries)
            }
        };
        let built = Built {
            node: Node {
                value,
                origin: open.origin,
            },
            size: open.size,
            depth: open.depth,
        };
        self.finish(built, open.anchor)
    }

    fn alias(&mut self, anchor: usize, origin: Origin) -> Result<(), Flaw> {
        self.refuse_as_key(&origin)?;
        let Some(built) = self.anchors.get(&anchor) else {
            return Err(Flaw::new(
                origin,
                "an alias refers to what it stands in",
                "",
            ));
        };
        // Counted before it is copied.
        self.nodes += built.size;
        let too_large = self.nodes > MOST_NODES;
        let too_deep = self.open.len() + built.depth > DEEPEST;
        if too_large || too_deep {
            return Err(Flaw::new(
                origin,
                "the aliases make the file too large or too deep",
                "write less by alias",
            ));
        }
        let built = built.clone();
        self.finish(built, 0)
    }

    fn finish(&mut self, built: Built, anchor: usize) -> Result<(), Flaw> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            let wrong = format!("the file holds more than {MOST_NODES} values");
            return Err(Flaw::new(built.node.origin, wrong, ""));
        }
        if anchor > 0 {
            self.nodes += built.size;
            self.anchors.insert(anchor, built.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(built.node);
            return Ok(());
        };
        open.size += built.size;
        open.depth = open.depth.max(built.depth + 1);
        match &mut open.shape {
            Shape::List(nodes) => nodes.push(built.node),
            Shape::Map {
                entries,
                seen,
                key,
                merged,
            } => match key.take() {
                Some(key) if key.merge => merge(merged, built.node)?,
                Some(key) => match seen.entry(Arc::clone(&key.text)) {
                    Seen::Occupied(first) => {
                        let flaw = twice(key, first.get());
                        self.note(flaw);
                    }
                    Seen::Vacant(new) => {
                        new.insert(key.origin.clone());
                        entries.push(Entry {
                            key: key.text,
                            origin: key.origin,
                            value: built.node,
                        });
                    }
                },
                None => {}
            },
        }
        Ok(())
    }

    /// Keeps a flaw of a key of the mapping that is being filled.
    fn note(&mut self, mut flaw: Flaw) {
        let mut path = self.path();
        path.0.append(&mut flaw.path.0);
        flaw.path = path;
        self.twice.push(flaw);
    }

    /// The path of the mapping or list that is being filled.
    fn path(&self) -> KeyPath {
        let around = self.open.len().saturating_sub(1);
        let steps = self.open.iter().take(around).map(|open| match &open.shape {
            Shape::List(nodes) => Step::Index(nodes.len()),
            Shape::Map { key, .. } => Step::Key(
                key.as_ref()
                    .map_or_else(|| "".into(), |key| Arc::clone(&key.text)),
            ),
        });
        KeyPath(steps.collect())
    }
}

fn twice(key: Key, first: &Origin) -> Flaw {
    let wrong = match first {
        Origin::Line { line, .. } => format!("given twice, first on line {line}"),
        _ => "given twice".to_owned(),
    };
    let mut flaw = Flaw::new(key.origin, wrong, "keep one of them");
    flaw.path = KeyPath::default().key(&key.text);
    flaw
}

/// Takes over the entries of a merged mapping, or of each of a list of them; the earlier wins.
fn merge(merged: &mut Vec<Entry>, node: Node) -> Result<(), Flaw> {
    let maps = match node.value {
        Value::List(nodes) => nodes,
        _ => vec![node],
    };
    for map in maps {
        let Value::Map(entries) = map.value else {
            return Err(Flaw::new(
                map.origin,
                "`<<` takes mappings",
                "write `<<: *name`",
            ));
        };
        merged.extend(entries);
    }
    Ok(())
}

/// How a scalar was written. `!!str` makes text of it.
fn written(style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Style, Flaw> {
    if tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str")) {
        return Ok(Style::Quoted);
    }
    refuse_tag(tag, &place(span.start))?;
    Ok(match style {
        ScalarStyle::Plain if span.start.index() == span.end.index() => Style::Empty,
        ScalarStyle::Plain => Style::Plain,
        _ => Style::Quoted,
    })
}

fn refuse_tag(tag: Option<&Tag>, origin: &Origin) -> Result<(), Flaw> {
    match tag {
        None => Ok(()),
        Some(_) => Err(Flaw::new(
            origin.clone(),
            "a YAML tag (`!…`) has no meaning here",
            "remove it, or quote a value that begins with `!`",
        )),
    }
}
