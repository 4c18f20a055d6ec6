//! One search for everything that a secret can be told by: the literals of the
//! formats and the words that name secrets. The prefilter runs it over raw JSON,
//! the detectors over the view of a text.

use aho_corasick::{AhoCorasick, MatchKind, packed};

use super::formats::FORMATS;
use super::keys::{self, Named, is_name_byte};

/// What a literal leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sanitize) enum Trigger {
    /// A format, by its place in the table.
    Format(usize),
    /// `eyJ`: base64 of `{"`.
    Jwt,
    /// `-----BEGIN`
    Pem,
    /// `@`: an URL may have a password before it.
    At,
    /// A word that may end the name of a secret.
    Name,
    /// `Bearer `, `Basic `.
    Scheme,
    /// `keyName`: a storage key's value may stand beside it.
    KeyName,
    /// `\u`, `\r` and the like: an escape may spell something odd.
    Escape,
}

/// Names end in one of these; what stands before decides ([`keys::class`]).
const NAMES: &[&str] = &[
    "pass",
    "Pass",
    "PASS",
    "pwd",
    "Pwd",
    "PWD",
    "ecret",
    "ECRET",
    "oken",
    "OKEN",
    "uthorization",
    "UTHORIZATION",
    "ookie",
    "OOKIE",
    "_key",
    "_KEY",
    "-key",
    "-Key",
    "-KEY",
    " key",
    " Key",
    " KEY",
    ".key",
    "Key",
    "apikey",
    "APIKEY",
    "Apikey",
    "accesskey",
    "secretkey",
    "privatekey",
];

const SCHEMES: &[&str] = &["earer", "EARER", "asic ", "BASIC "];

const ESCAPES: &[&str] = &["\\u", "\\b", "\\f", "\\r"];

/// Longest literal: as much text on both sides of a seam shows any that spans it.
pub(in crate::sanitize) const LONGEST: usize = 32;

/// How far a name reaches at most.
const NAME: usize = 64;

enum Search {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

struct Group {
    search: Search,
    triggers: Vec<Trigger>,
}

/// All literals, in groups that one vector search each can hold.
pub(in crate::sanitize) struct Literals {
    groups: Vec<Group>,
}

impl Literals {
    pub(in crate::sanitize) fn new() -> Self {
        let mut rows: Vec<(&str, Trigger)> = FORMATS
            .iter()
            .enumerate()
            .map(|(at, format)| (format.literal, Trigger::Format(at)))
            .collect();
        rows.push(("eyJ", Trigger::Jwt));
        rows.push(("-----BEGIN", Trigger::Pem));
        rows.push(("keyName", Trigger::KeyName));
        rows.extend(ESCAPES.iter().map(|escape| (*escape, Trigger::Escape)));
        // A vector search looks at as many bytes as the shortest literal of its
        // group has: short ones stand apart.
        let (short, long): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.0.len() < 4);
        let (two, three): (Vec<_>, Vec<_>) = short.into_iter().partition(|row| row.0.len() < 3);
        let mut groups = vec![Group::new(&two), Group::new(&three)];
        groups.extend(long.chunks(32).map(Group::new));
        let mut names: Vec<_> = NAMES.iter().map(|name| (*name, Trigger::Name)).collect();
        names.extend(SCHEMES.iter().map(|scheme| (*scheme, Trigger::Scheme)));
        groups.push(Group::new(&names));
        Self { groups }
    }

    /// Calls `found` with each literal and its offset, group by group.
    pub(in crate::sanitize) fn each(
        &self,
        haystack: &[u8],
        mut found: impl FnMut(Trigger, usize, usize),
    ) {
        for group in &self.groups {
            group.each(haystack, &mut found);
        }
        for at in memchr::memchr_iter(b'@', haystack) {
            found(Trigger::At, at, at + 1);
        }
    }
}

impl Group {
    fn new(rows: &[(&str, Trigger)]) -> Self {
        let literals = rows.iter().map(|row| row.0);
        let packed = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostFirst)
            .builder()
            .extend(literals.clone())
            .build();
        let search = match packed {
            Some(searcher) => Search::Packed(searcher),
            None => Search::Automaton(automaton(literals)),
        };
        Self {
            search,
            triggers: rows.iter().map(|row| row.1).collect(),
        }
    }

    fn each(&self, haystack: &[u8], found: &mut impl FnMut(Trigger, usize, usize)) {
        let mut hit = |pattern: usize, start: usize, end: usize| {
            if let Some(trigger) = self.triggers.get(pattern) {
                found(*trigger, start, end);
            }
        };
        match &self.search {
            Search::Packed(searcher) => {
                for m in searcher.find_iter(haystack) {
                    hit(m.pattern().as_usize(), m.start(), m.end());
                }
            }
            Search::Automaton(automaton) => {
                for m in automaton.find_iter(haystack) {
                    hit(m.pattern().as_usize(), m.start(), m.end());
                }
            }
        }
    }
}

#[expect(
    clippy::expect_used,
    reason = "the literals are ours; a set that cannot be built fails the first test"
)]
fn automaton<'a>(literals: impl Iterator<Item = &'a str>) -> AhoCorasick {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(literals)
        .expect("the literals are few")
}

/// Whether nothing that could belong to a token stands before `at`. What a letter
/// that ends an escape (`\n`, `%20`) says about it is nothing.
pub(super) fn starts_free(bytes: &[u8], at: usize) -> bool {
    let head = bytes.get(..at).unwrap_or_default();
    match head {
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        [.., b'\\', b'n' | b'r' | b't'] | [] => true,
        [.., last] => !last.is_ascii_alphanumeric(),
    }
}

/// The name around a literal of [`NAMES`] and what it stands for.
pub(super) fn name_around(
    bytes: &[u8],
    start: usize,
    end: usize,
) -> Option<(std::ops::Range<usize>, Named)> {
    let tail = bytes.get(end..).unwrap_or_default();
    let after = tail
        .iter()
        .take(NAME)
        .take_while(|b| is_name_byte(**b))
        .count();
    // A full stop ends a sentence, not a name.
    let name_tail = tail.get(..after).unwrap_or_default();
    let trimmed = name_tail
        .iter()
        .rev()
        .take_while(|b| matches!(b, b'.' | b'-'))
        .count();
    let end = end + after - trimmed;
    let head = bytes.get(..start).unwrap_or_default();
    let mut start = start
        - head
            .iter()
            .rev()
            .take(NAME)
            .take_while(|b| is_name_byte(**b))
            .count();
    if bytes.get(start) == Some(&b' ') {
        // ` key` alone: the word before it belongs to the name (`api key`).
        let head = bytes.get(..start).unwrap_or_default();
        start -= head
            .iter()
            .rev()
            .take(NAME)
            .take_while(|b| is_name_byte(**b))
            .count();
    }
    let name = std::str::from_utf8(bytes.get(start..end)?).ok()?;
    keys::class(name).map(|named| (start..end, named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_literal_is_bounded() {
        assert!(FORMATS.iter().all(|format| format.literal.len() < LONGEST));
        assert!(NAMES.iter().all(|name| name.len() < LONGEST));
    }

    #[test]
    fn every_literal_is_found_in_any_company() {
        let literals = Literals::new();
        for (at, format) in FORMATS.iter().enumerate() {
            let text = format!("some text, {}and more of it after that", format.literal);
            let mut found = Vec::new();
            literals.each(text.as_bytes(), |trigger, start, _| {
                found.push((trigger, start));
            });
            assert!(
                found.contains(&(Trigger::Format(at), 11)),
                "{}",
                format.literal
            );
        }
    }

    #[test]
    fn names_are_read_around_their_last_word() {
        let name = |text: &str| {
            let at = text.find("key").or(text.find("oken")).unwrap();
            let start = if text[..at].ends_with(' ') {
                at - 1
            } else {
                at
            };
            name_around(text.as_bytes(), start, at + 3).map(|(range, _)| text[range].to_owned())
        };
        assert_eq!(name("your api key: x").as_deref(), Some("api key"));
        assert_eq!(name("X_API_key=1").as_deref(), Some("X_API_key"));
        assert_eq!(name("an access_token.").as_deref(), Some("access_token"));
        assert_eq!(name("the key: x"), None);
    }
}
