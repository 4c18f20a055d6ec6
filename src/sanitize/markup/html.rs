//! HTML, tag by tag: what is fetched, what runs, what is hidden.

use std::cell::Cell;
use std::ops::Range;

use super::address::Target;
use super::style::{find_caseless, is_hidden, links_fetch};
use super::tag::{Attribute, Tag};
use super::{ACTIVE, HIDDEN, REMOTE, SCRIPT_LINK, hit, removed};
use crate::sanitize::detect::{Hit, Hits};

/// Elements that go with all that is in them.
const RUN: &[&str] = &[
    "script",
    "iframe",
    "object",
    "embed",
    "applet",
    "frame",
    "frameset",
    "portal",
    "fencedframe",
];

/// Elements that have no end tag.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "frame", "image",
];

/// Attributes that are fetched when the element is shown.
const FETCHED: &[&str] = &[
    "src",
    "srcset",
    "poster",
    "background",
    "data",
    "dynsrc",
    "lowsrc",
    "imagesrcset",
    "code",
    "archive",
    "classid",
];

/// Attributes that lead somewhere when they are followed.
const FOLLOWED: &[&str] = &[
    "href",
    "xlink:href",
    "action",
    "formaction",
    "ping",
    "cite",
    "longdesc",
    "values",
    "to",
    "from",
    "manifest",
];

struct Page<'a> {
    text: &'a str,
    domains: &'a [String],
    /// Where searches for these ends found none: later ones find none either.
    no_comment_end: Cell<bool>,
    no_script_end: Cell<bool>,
    no_style_end: Cell<bool>,
}

/// What was decided about a tag.
enum Verdict {
    Stays,
    /// It goes, alone or with what is in it.
    Goes {
        label: &'static str,
        whole: bool,
        words: String,
        host: Option<String>,
    },
}

pub(super) fn find(text: &str, code: &[Range<usize>], domains: &[String], hits: &mut Hits) {
    let page = Page {
        text,
        domains,
        no_comment_end: Cell::new(false),
        no_script_end: Cell::new(false),
        no_style_end: Cell::new(false),
    };
    let mut code = code.iter().peekable();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', text.as_bytes().get(at..).unwrap_or_default()) {
        let start = at + found;
        while code.next_if(|range| range.end <= start).is_some() {}
        if let Some(range) = code.peek()
            && range.contains(&start)
        {
            at = range.end;
            continue;
        }
        at = page.look(start, hits).unwrap_or(start + 1).max(start + 1);
    }
}

impl Page<'_> {
    /// Looks at what begins at a `<`; gives where the search goes on.
    fn look(&self, start: usize, hits: &mut Hits) -> Option<usize> {
        let rest = self.text.get(start..)?;
        if rest.starts_with("<!--") {
            let end = self.comment_end(start)?;
            hits.push(hit(HIDDEN, start..end, String::new()));
            return Some(end);
        }
        let tag = Tag::read(self.text, start)?;
        if tag.closing || self.is_generic(&tag) {
            return Some(tag.range.end);
        }
        match self.judge(&tag) {
            Verdict::Goes {
                label,
                whole,
                words,
                host,
            } => {
                let end = if whole {
                    self.element_end(&tag)
                } else {
                    tag.range.end
                };
                let mut found = hit(label, start..end, words);
                found.host = host;
                hits.push(found);
                Some(end)
            }
            Verdict::Stays => {
                for attribute in &tag.attributes {
                    if let Some(found) = self.attribute(attribute) {
                        hits.push(found);
                    }
                }
                Some(tag.range.end)
            }
        }
    }

    /// An unterminated comment hides all that follows where it begins a line; inside
    /// a line it is text.
    fn comment_end(&self, start: usize) -> Option<usize> {
        let body = self.text.get(start + 4..)?;
        // `<!-->` and `<!--->` are whole.
        let from = body
            .strip_prefix('>')
            .map(|_| start + 5)
            .or_else(|| body.strip_prefix("->").map(|_| start + 6));
        if let Some(end) = from {
            return Some(end);
        }
        let close = if self.no_comment_end.get() {
            None
        } else {
            [
                body.find("-->").map(|at| at + 3),
                body.find("--!>").map(|at| at + 4),
            ]
            .into_iter()
            .flatten()
            .min()
        };
        self.no_comment_end.set(close.is_none());
        let begins_line = self
            .text
            .get(..start)?
            .trim_end_matches([' ', '\t'])
            .ends_with(['\n'])
            || start == 0;
        match close {
            Some(end) => Some(start + 4 + end),
            None => begins_line.then_some(self.text.len()),
        }
    }

    /// `Vec<String>`, `Map<object, form>`: a name before it and no attribute.
    fn is_generic(&self, tag: &Tag) -> bool {
        let after_name = self.text.get(..tag.range.start).is_some_and(|head| {
            head.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':'))
        });
        if !after_name || !tag.attributes.is_empty() {
            return false;
        }
        let rest = self.text.get(tag.range.end..).unwrap_or_default();
        let closed = tag.name == "script"
            && !self.no_script_end.get()
            && find_caseless(rest, "</script").is_some();
        self.no_script_end.set(tag.name == "script" && !closed);
        !closed
    }

    fn judge(&self, tag: &Tag) -> Verdict {
        let goes = |label, whole, words: &str| Verdict::Goes {
            label,
            whole,
            words: words.to_owned(),
            host: None,
        };
        let name = tag.name.as_str();
        if RUN.contains(&name) {
            let host = tag
                .value("src")
                .or(tag.value("data"))
                .map(Target::of)
                .and_then(|target| target.host());
            return Verdict::Goes {
                label: ACTIVE,
                whole: !VOID.contains(&name),
                words: String::new(),
                host,
            };
        }
        if is_hidden(tag) {
            return goes(HIDDEN, !VOID.contains(&name), "");
        }
        let refreshes = tag
            .value("http-equiv")
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("refresh"));
        if name == "meta" && refreshes {
            return goes(ACTIVE, false, "");
        }
        if let Some(host) = self.fetched(tag) {
            let words = match tag.value("alt") {
                Some(alt) => removed("image", alt),
                None if matches!(name, "img" | "image") => removed("image", ""),
                None => String::new(),
            };
            return Verdict::Goes {
                label: REMOTE,
                whole: name == "style",
                words,
                host: Some(host),
            };
        }
        Verdict::Stays
    }

    /// Whether showing the element fetches something from elsewhere, and whence.
    fn fetched(&self, tag: &Tag) -> Option<String> {
        let name = tag.name.as_str();
        let linked: &[&str] = match name {
            "link" if links_fetch(tag) => &["href"],
            "image" | "use" | "feimage" | "base" => &["href", "xlink:href"],
            _ => &[],
        };
        let media = matches!(
            name,
            "img"
                | "image"
                | "source"
                | "video"
                | "audio"
                | "track"
                | "input"
                | "body"
                | "table"
                | "td"
                | "th"
                | "tr"
                | "bgsound"
                | "use"
                | "feimage"
                | "picture"
                | "link"
                | "base"
                | "amp-img"
        );
        let found = tag.attributes.iter().find_map(|attribute| {
            let is_address = (media && FETCHED.contains(&attribute.name.as_str()))
                || linked.contains(&attribute.name.as_str());
            if is_address {
                return self.remote_in(&attribute.value);
            }
            None
        });
        if found.is_some() {
            return found;
        }
        if name != "style" || self.no_style_end.get() {
            return None;
        }
        let end = self.element_end(tag);
        self.no_style_end.set(end == self.text.len());
        let body = self.text.get(tag.range.end..end);
        body.and_then(|css| self.remote_in_css(css))
    }

    /// The host that one of the addresses in a value (`srcset` has several) leads to.
    fn remote_in(&self, value: &str) -> Option<String> {
        std::iter::once(value)
            .chain(value.split([',', ' ']))
            .map(Target::of)
            .find(|target| target.is_fetched(self.domains))
            .and_then(|target| target.host())
    }

    fn remote_in_css(&self, css: &str) -> Option<String> {
        let mut rest = css;
        while let Some(at) = find_caseless(rest, "url(").or_else(|| find_caseless(rest, "@import"))
        {
            rest = rest.get(at + 4..)?;
            let address: String = rest
                .trim_start_matches(|c: char| {
                    c.is_whitespace()
                        || matches!(c, '"' | '\'')
                        || c.is_ascii_alphabetic() && rest.starts_with("ort")
                })
                .chars()
                .take_while(|c| !matches!(c, '"' | '\'' | ')' | ';'))
                .collect();
            let target = Target::of(&address);
            if target.is_fetched(self.domains) {
                return target.host();
            }
        }
        None
    }

    /// What of an element that stays has to go.
    fn attribute(&self, attribute: &Attribute) -> Option<Hit> {
        let name = attribute.name.as_str();
        let handler = name.len() > 2
            && name.starts_with("on")
            && name.bytes().all(|b| b.is_ascii_alphabetic());
        let gone = |label| Some(hit(label, attribute.range.clone(), String::new()));
        if handler || matches!(name, "srcdoc" | "ping") {
            return gone(ACTIVE);
        }
        if name == "style" {
            let host = self.remote_in_css(&attribute.value)?;
            let mut found = gone(REMOTE)?;
            found.host = Some(host);
            return Some(found);
        }
        let target = Target::of(&attribute.value);
        let leads = FOLLOWED.contains(&name) || FETCHED.contains(&name);
        if leads && target.runs() {
            return gone(SCRIPT_LINK);
        }
        let sends = matches!(name, "action" | "formaction") && target.is_fetched(self.domains);
        let shown = matches!(name, "background" | "poster") && target.is_fetched(self.domains);
        if sends || shown {
            let mut found = gone(if sends { ACTIVE } else { REMOTE })?;
            found.host = target.host();
            return Some(found);
        }
        None
    }

    /// Where the element's end tag ends; of one that is not closed, the text.
    fn element_end(&self, tag: &Tag) -> usize {
        if VOID.contains(&tag.name.as_str()) {
            return tag.range.end;
        }
        let raw = matches!(
            tag.name.as_str(),
            "script" | "style" | "iframe" | "template"
        );
        let mut depth = 1_usize;
        let mut at = tag.range.end;
        while let Some(found) =
            memchr::memchr(b'<', self.text.as_bytes().get(at..).unwrap_or_default())
        {
            let start = at + found;
            at = start + 1;
            let rest = self.text.get(start + 1..).unwrap_or_default();
            let (closing, rest) = match rest.strip_prefix('/') {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            let same = rest
                .get(..tag.name.len())
                .is_some_and(|name| name.eq_ignore_ascii_case(&tag.name))
                && !rest
                    .as_bytes()
                    .get(tag.name.len())
                    .is_some_and(u8::is_ascii_alphanumeric);
            if !same || (raw && !closing) {
                continue;
            }
            if !closing {
                depth += 1;
                continue;
            }
            depth -= 1;
            if depth == 0 {
                let close = self.text.get(start..).and_then(|rest| rest.find('>'));
                return close.map_or(self.text.len(), |close| start + close + 1);
            }
        }
        self.text.len()
    }
}
