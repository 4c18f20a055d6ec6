//! Addresses of mail.

use std::ops::Range;

use super::hit;
use crate::sanitize::detect::{Certainty, Hits};

/// RFC 5321 §4.5.3.1.
const LONGEST_LOCAL: usize = 64;
const LONGEST_DOMAIN: usize = 255;

/// Ends of file names that stand where a domain's last label would.
const FILES: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "bmp", "js", "ts", "jsx", "tsx", "css",
    "scss", "json", "md", "txt", "html", "htm", "pdf", "yaml", "yml", "toml", "lock", "whl", "tgz",
    "jar", "service", "timer", "socket",
];

pub(super) fn find(text: &str, window: &Range<usize>, hits: &mut Hits) {
    let bytes = text.as_bytes();
    let part = bytes.get(window.clone()).unwrap_or_default();
    for at in memchr::memchr_iter(b'@', part) {
        if let Some(range) = address(text, window.start + at) {
            hits.push(hit("email", range, Certainty::Form));
        }
    }
}

fn is_local(c: char) -> bool {
    c.is_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c)
}

/// The address around an `@`.
fn address(text: &str, at: usize) -> Option<Range<usize>> {
    let head = text.get(text.ceil_char_boundary(at.saturating_sub(LONGEST_LOCAL))..at)?;
    let local: usize = head
        .chars()
        .rev()
        .take_while(|c| is_local(*c))
        .map(char::len_utf8)
        .sum();
    let start = trimmed_start(text, at - local, at);
    let local = text.get(start..at).filter(|local| !local.is_empty())?;
    let end = domain(text, at + 1)?;
    let name = text.get(at + 1..end)?;
    let last = name.rsplit('.').next()?;
    let is_address = !FILES.iter().any(|file| file.eq_ignore_ascii_case(last))
        && !local.ends_with('.')
        && local.chars().any(char::is_alphanumeric)
        && !is_remote(text, start, end)
        && !text.get(..start)?.ends_with(['@', '/'])
        || is_sent_to(text, start);
    is_address.then_some(start..end)
}

/// What stands before an address and is no part of it: quotes, `key=`, a path.
fn trimmed_start(text: &str, mut start: usize, at: usize) -> usize {
    let local = text.get(start..at).unwrap_or_default();
    if let Some(cut) = local.rfind(['=', '/', '\'', '`', '|', '{', '}', '?', '&', '*']) {
        let quoted = local.get(cut..).is_some_and(|rest| rest.starts_with('\''))
            && cut > 0
            && local.len() - cut > 1;
        let is_name = quoted
            && local
                .get(..cut)
                .is_some_and(|name| name.chars().all(char::is_alphabetic));
        if !is_name {
            start += cut + 1;
        }
    }
    let local = text.get(start..at).unwrap_or_default();
    // `\n` of a text that was escaped, and signs that no name begins with.
    let escaped = text.get(..start).is_some_and(|head| head.ends_with('\\'))
        && local.starts_with(['n', 'r', 't']);
    let start = if escaped { start + 1 } else { start };
    let local = text.get(start..at).unwrap_or_default();
    at - local
        .trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_')
        .len()
}

/// Where the domain ends: labels, the last of letters.
fn domain(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let len: usize = rest
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '-'))
        .map(char::len_utf8)
        .sum();
    if len > LONGEST_DOMAIN {
        return None;
    }
    let name = rest.get(..len)?.trim_end_matches(['.', '-']);
    let mut labels = name.rsplit('.');
    let last = labels.next()?;
    let letters = last.chars().count() >= 2 && last.chars().all(char::is_alphabetic);
    let has_more = labels.next().is_some_and(|label| !label.is_empty());
    let whole = !name.contains("..") && !name.starts_with(['.', '-']);
    let goes_on = rest.get(name.len()..)?.starts_with(['_', '@']);
    (whole && has_more && (letters || last.starts_with("xn--")) && !goes_on)
        .then_some(from + name.len())
}

/// `git@github.com:acme/api.git`, `ssh://git@host/…`: a host to log in to.
fn is_remote(text: &str, start: usize, end: usize) -> bool {
    let tail = text.get(end..).unwrap_or_default();
    let path = tail.strip_prefix(':').is_some_and(|path| {
        let word = path
            .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '\\'))
            .next()
            .unwrap_or_default();
        word.contains('/') && !word.starts_with('/')
    });
    path || text.get(..start).is_some_and(|head| head.ends_with("://"))
}

/// `mailto:` and the like make anything an address.
fn is_sent_to(text: &str, start: usize) -> bool {
    text.get(..start)
        .is_some_and(|head| head.ends_with("mailto:") || head.ends_with("sip:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        text.match_indices('@')
            .filter_map(|(at, _)| address(text, at))
            .map(|range| &text[range])
            .collect()
    }

    #[test]
    fn addresses_are_found_in_what_surrounds_them() {
        for (text, expected) in [
            ("to a.b+c@example.co.uk.", "a.b+c@example.co.uk"),
            ("<x_y@example.org>", "x_y@example.org"),
            ("user=joe@example.org&x=1", "joe@example.org"),
            ("'joe@example.org'", "joe@example.org"),
            ("mailto:joe@example.org?subject=x", "joe@example.org"),
            ("o'brien@example.org", "o'brien@example.org"),
            ("\\njoe@example.org\\n", "joe@example.org"),
            ("jörg@bücher.example", "jörg@bücher.example"),
        ] {
            assert_eq!(found(text), [expected], "{text}");
        }
    }

    #[test]
    fn what_only_has_the_sign_stays() {
        for text in [
            "git@github.com:acme/api.git",
            "ssh://git@github.com/acme",
            "npm i @types/node@20.0.0 vite@8.3.1",
            "logo@2x.png",
            "image@sha256:af3b",
            "deploy@ci",
            "@user",
            "a @ b.com",
            "actions/checkout@v4.1.0",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
