//! Markup that carries data out or hides text: images and frames that a renderer
//! fetches, scripts and handlers, links that run code, elements and comments that
//! nobody sees.
//!
//! Markdown is read by a parser (`CommonMark`), so that what is code stays: fences and
//! spans are left alone, as are generics, relative images and plain links. HTML is
//! read tag by tag ([`html`]), inside Markdown as outside.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use super::detect::{Certainty, Cue, Detector, Family, Hit, Hits, Instead, Sign, Subject};

mod address;
mod html;
mod style;
mod tag;

use address::Target;

/// An image or other resource that is fetched from elsewhere when it is shown.
pub(super) const REMOTE: &str = "remote_resource";
/// Scripts, frames, handlers, redirects.
pub(super) const ACTIVE: &str = "active_markup";
/// Elements and comments that are not shown.
pub(super) const HIDDEN: &str = "hidden_markup";
/// Links that run code or carry a page.
pub(super) const SCRIPT_LINK: &str = "script_link";
/// Links whose address carries much data.
pub(super) const DATA_LINK: &str = "data_link";

const CUES: &[Cue] = &[
    Cue::Byte(b'<'),
    Cue::Exact("!["),
    Cue::Word("javascript"),
    Cue::Word("vbscript"),
    Cue::Word("data:"),
    Cue::Exact("]("),
    Cue::Exact("]: "),
];

/// The family.
pub(super) const DETECTOR: Detector = Detector {
    cues: CUES,
    plausible: is_plausible,
    names: |_| false,
    find,
};

fn is_plausible(bytes: &[u8], sign: Sign) -> bool {
    let tail = bytes.get(sign.end..).unwrap_or_default();
    match CUES.get(sign.cue) {
        Some(Cue::Byte(_)) => tail
            .first()
            .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'!' | b'/')),
        // Plain links with long queries alone.
        Some(Cue::Exact("](")) => tail.iter().take(512).take_while(|b| **b != b')').count() > 48,
        Some(Cue::Exact("]: ")) => {
            matches!(tail, [b'j' | b'J' | b'd' | b'D' | b'v' | b'V' | b'<', ..])
        }
        // A colon follows, or what may be decoded to one.
        Some(Cue::Word("javascript" | "vbscript")) => {
            let tail = tail.trim_ascii_start();
            let slashes = tail.iter().take_while(|b| **b == b'\\').count();
            matches!(tail, [b':' | b'&' | b'%', ..])
                || slashes > 0 && tail.get(slashes).is_some_and(|b| *b != b'"')
        }
        Some(Cue::Word("data:")) => !matches!(tail.first(), Some(b' ' | b'"' | b'\\') | None),
        _ => true,
    }
}

fn hit(label: &'static str, range: Range<usize>, instead: String) -> Hit {
    Hit::new(Family::Markup, label, range, Certainty::Structure).instead(Instead::Text(instead))
}

fn find(subject: &Subject<'_>, hits: &mut Hits) {
    let text = subject.text;
    let mut document = Document {
        text,
        code: Vec::new(),
        open: Vec::new(),
        images: Vec::new(),
        links: Vec::new(),
        domains: subject.context.domains,
    };
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    let definitions: Vec<(String, Range<usize>, String)> = parser
        .reference_definitions()
        .iter()
        .map(|(name, def)| (name.to_lowercase(), def.span.clone(), def.dest.to_string()))
        .collect();
    for (event, range) in parser.into_offset_iter() {
        document.read(&event, range, hits);
    }
    document.definitions(&definitions, hits);
    html::find(text, &document.code, subject.context.domains, hits);
}

/// A link or an image that is open.
struct Open {
    target: Target,
    label: &'static str,
    range: Range<usize>,
    image: bool,
    /// What stands in its place: an image's words, or the source of a link's text.
    words: String,
    inner: Option<Range<usize>>,
}

struct Document<'a> {
    text: &'a str,
    /// Fences and spans of code, in order.
    code: Vec<Range<usize>>,
    open: Vec<Option<Open>>,
    /// Names of definitions that images and links use.
    images: Vec<String>,
    links: Vec<String>,
    domains: &'a [String],
}

impl Document<'_> {
    fn read(&mut self, event: &Event<'_>, range: Range<usize>, hits: &mut Hits) {
        match event {
            Event::Start(Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Fenced(_)))
            | Event::Code(_) => {
                self.code.push(range.clone());
            }
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                id,
                ..
            }) => {
                self.uses(*link_type, id, true);
                self.start(dest_url, range, true);
                return;
            }
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                id,
                ..
            }) => {
                self.uses(*link_type, id, false);
                self.start(dest_url, range, false);
                return;
            }
            Event::End(TagEnd::Image | TagEnd::Link) => {
                if let Some(Some(open)) = self.open.pop() {
                    self.close(open, hits);
                }
                return;
            }
            _ => {}
        }
        let words = match event {
            Event::Text(words) | Event::Code(words) => words.as_ref(),
            Event::SoftBreak | Event::HardBreak => " ",
            _ => "",
        };
        for open in self.open.iter_mut().flatten() {
            open.words.push_str(words);
            open.inner = Some(match &open.inner {
                Some(inner) => inner.start..range.end.max(inner.end),
                None => range.clone(),
            });
        }
    }

    fn uses(&mut self, link_type: LinkType, id: &str, image: bool) {
        let by_name = matches!(
            link_type,
            LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut
        );
        if by_name {
            let list = if image {
                &mut self.images
            } else {
                &mut self.links
            };
            list.push(id.to_lowercase());
        }
    }

    fn start(&mut self, destination: &str, range: Range<usize>, image: bool) {
        let target = Target::of(destination);
        let label = if image {
            (target.is_fetched(self.domains)).then_some(REMOTE)
        } else if target.runs() {
            Some(SCRIPT_LINK)
        } else if target.carries_data(self.domains) {
            Some(DATA_LINK)
        } else {
            None
        };
        // An image that runs code runs none, but its address is not kept.
        let label = label.or_else(|| (image && target.runs()).then_some(SCRIPT_LINK));
        self.open.push(label.map(|label| Open {
            target,
            label,
            range,
            image,
            words: String::new(),
            inner: None,
        }));
        if self.open.len() > 64 {
            self.open.remove(0);
        }
    }

    fn close(&self, open: Open, hits: &mut Hits) {
        let instead = if open.image {
            removed("image", &open.words)
        } else {
            let source = open
                .inner
                .and_then(|inner| self.text.get(inner))
                .unwrap_or_default();
            let safe = !Target::of(source).runs() && !source.contains("](");
            if safe {
                source.to_owned()
            } else {
                removed("link", &open.words)
            }
        };
        let mut found = hit(open.label, open.range, instead);
        found.host = open.target.host();
        hits.push(found);
    }

    /// Definitions that only images use which are gone, or that run code.
    fn definitions(&self, definitions: &[(String, Range<usize>, String)], hits: &mut Hits) {
        for (name, span, destination) in definitions {
            let target = Target::of(destination);
            let of_images = self.images.contains(name) && !self.links.contains(name);
            let label = match () {
                () if target.runs() => SCRIPT_LINK,
                () if of_images && target.is_fetched(self.domains) => REMOTE,
                () => continue,
            };
            let mut found = hit(label, span.clone(), String::new());
            found.host = target.host();
            // Counted with what uses it.
            found.count = u64::from(!of_images);
            hits.push(found);
        }
    }
}

/// What stands in place of an image or a link, with the words that it had, of which
/// nothing is markup.
fn removed(what: &str, words: &str) -> String {
    let words: String = words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .filter(|c| !"<>[]()!`\\|*_{}#&".contains(*c))
        .take(200)
        .collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() || Target::of(&words).runs() {
        format!("({what} removed)")
    } else {
        format!("({what} removed: {words})")
    }
}

#[cfg(test)]
mod tests;
