//! What the words beside a value say it is: the name of a field in any spelling
//! (`bankAccount`, `bank-account`), the words before a value in a text, the heading
//! of its column. The nearest word decides, and of two that end together the
//! longer: `tax id` is a number for taxes, `order id` is none.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::kinds;

/// What a word stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cue {
    /// The labels of the kinds that it names.
    labels: Vec<&'static str>,
    /// Any kind of these groups.
    groups: u8,
    /// All of both, as bits ([`kinds::set`]).
    kinds: u128,
}

/// Numbers by which a state knows a person.
pub(super) const NATIONAL: u8 = 1;
/// Numbers for taxes.
pub(super) const TAX: u8 = 2;
/// Numbers of health services and insurances.
pub(super) const HEALTH: u8 = 4;

impl Cue {
    /// The kinds that it names, as bits of their places in the table.
    pub(super) fn kinds(&self) -> u128 {
        self.kinds
    }

    pub(super) fn is(&self, label: &str) -> bool {
        self.labels.contains(&label)
    }

    /// The word speaks of something that is no personal datum: an order, a build.
    pub(super) fn is_other(&self) -> bool {
        self.is("other") || self.is("version")
    }
}

/// How far before a value its word may end, and begin.
const WINDOW: usize = 64;

const WORDS: &str = include_str!("words.txt");

struct Automaton {
    search: AhoCorasick,
    cues: Vec<Cue>,
}

#[expect(
    clippy::expect_used,
    reason = "the words are ours; a set that cannot be built fails the first test"
)]
static AUTOMATON: LazyLock<Automaton> = LazyLock::new(|| {
    let mut rows: BTreeMap<&'static str, Cue> = BTreeMap::new();
    for (label, groups, words) in WORDS.lines().filter_map(row) {
        for word in words.split(", ") {
            let cue = rows.entry(word).or_insert(Cue {
                labels: Vec::new(),
                groups: 0,
                kinds: 0,
            });
            cue.groups |= groups;
            if !label.is_empty() {
                cue.labels.push(label);
            }
        }
    }
    for cue in rows.values_mut() {
        cue.kinds =
            kinds::set(|kind| cue.groups & kind.groups != 0 || cue.labels.contains(&kind.label));
    }
    Automaton {
        search: AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(rows.keys())
            .expect("the words are few"),
        cues: rows.into_values().collect(),
    }
});

/// The words and phrases for numbers of persons and accounts.
pub(super) fn phrases() -> impl Iterator<Item = &'static str> {
    const NOT: &[&str] = &[
        "other",
        "version",
        "email",
        "ip_address",
        "mac_address",
        "person",
        "address",
        "date_of_birth",
        "crypto_wallet",
    ];
    WORDS
        .lines()
        .filter_map(row)
        .filter(|(label, ..)| !NOT.contains(label))
        .flat_map(|(.., words)| words.split(", "))
}

/// Label, groups and words of a line.
fn row(line: &'static str) -> Option<(&'static str, u8, &'static str)> {
    let (head, words) = line.split_once(": ").filter(|_| !line.starts_with('#'))?;
    let mut head = head.split(' ');
    let label = head.next()?;
    let groups = head
        .map(|group| match group {
            "national" => NATIONAL,
            "tax" => TAX,
            _ => HEALTH,
        })
        .sum();
    // The groups of a kind are what it belongs to; its words name it alone.
    Some(if label == "any" {
        ("", groups, words)
    } else {
        (label, 0, words)
    })
}

/// What the last telling word of a text stands for.
fn last_cue(text: &str) -> Option<&'static Cue> {
    let spelled = spelled_out(text);
    let bytes = spelled.as_bytes();
    let is_letter = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphabetic);
    let mut best: Option<(usize, usize, &'static Cue)> = None;
    for found in AUTOMATON.search.find_overlapping_iter(&spelled) {
        let (start, end) = (found.start(), found.end());
        let before = start.checked_sub(1).and_then(|at| bytes.get(at));
        let inside = is_letter(before) && is_letter(bytes.get(start));
        let goes_on = is_letter(bytes.get(end)) && is_letter(bytes.get(end.saturating_sub(1)));
        if inside || goes_on {
            continue;
        }
        let better = best.is_none_or(|(last_end, len, _)| {
            end > last_end || (end == last_end && end - start > len)
        });
        if better && let Some(cue) = AUTOMATON.cues.get(found.pattern().as_usize()) {
            best = Some((end, end - start, cue));
        }
    }
    best.map(|(.., cue)| cue)
}

/// Lower case, words apart: `DateOfBirth`, `date_of_birth` become `date of birth`.
fn spelled_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut last = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let begins_word = c.is_uppercase()
            && (last.is_lowercase()
                || last.is_ascii_digit()
                || (last.is_uppercase() && chars.peek().is_some_and(|next| next.is_lowercase())));
        if begins_word {
            out.push(' ');
        }
        last = c;
        match c {
            '_' | '-' | '.' | '/' | '<' | '>' | '"' | '\'' | '|' | '\t' | '\n' | '\r' | '*' => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            ' ' if out.ends_with(' ') => {}
            '’' => out.push(' '),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// What a field's name stands for. A name's first words say less than its last,
/// and a number or a Salesforce suffix says nothing.
pub(super) fn of_name(name: &str) -> Option<&'static Cue> {
    if name.len() > 96 {
        return None;
    }
    let name = name
        .strip_suffix("__c")
        .unwrap_or(name)
        .trim_end_matches(|c: char| c.is_ascii_digit());
    last_cue(name)
}

/// What the words before an offset stand for: those of its line, or of the line
/// before where its own has none and that is a heading.
pub(super) fn before(text: &str, at: usize) -> Option<&'static Cue> {
    let start = text.floor_char_boundary(at.saturating_sub(WINDOW));
    let window = text.get(start..at)?;
    // A word that the window cuts in two says nothing.
    let cut = start > 0
        && text
            .get(..start)?
            .ends_with(|c: char| c.is_ascii_alphanumeric());
    let window = if cut {
        window.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
    } else {
        window
    };
    let Some(line) = window.rfind(['\n', '\r']) else {
        return last_cue(window);
    };
    let own = window.get(line + 1..)?;
    last_cue(own).or_else(|| {
        let blank = own
            .trim_matches([' ', '\t', '>', '-', '*', '"', '\''])
            .is_empty();
        let heading = window.get(..line)?.trim_end();
        let heading = heading.rsplit('\n').next()?;
        (blank && (heading.ends_with([':', '：']) || heading.len() < 32))
            .then(|| last_cue(heading))?
    })
}

/// What the words right behind an offset stand for: `(office)`, `fax`.
pub(super) fn behind(text: &str, at: usize) -> Option<&'static Cue> {
    let end = text.ceil_char_boundary((at + 12).min(text.len()));
    let tail = text.get(at..end)?;
    let tail = tail.split(['\n', '\r', ',', ';', ':']).next()?;
    let word = tail
        .trim_start_matches([' ', '-', '(', '[', '\t'])
        .split([' ', ')', ']', '.', '\\', '/'])
        .next()?;
    last_cue(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(cue: Option<&'static Cue>) -> &'static str {
        cue.and_then(|cue| cue.labels.first())
            .copied()
            .unwrap_or("")
    }

    #[test]
    fn names_are_read_in_every_spelling() {
        for (name, expected) in [
            ("date_of_birth", "date_of_birth"),
            ("dateOfBirth", "date_of_birth"),
            ("DOB", "date_of_birth"),
            ("customer-birth-date", "date_of_birth"),
            ("CardOnFile__c", "credit_card"),
            ("LegacyCard", "credit_card"),
            ("account_number", "bank_account"),
            ("passportNumber2", "passport"),
            ("order_no", "other"),
            ("card_id", "other"),
            ("email_count", "other"),
            ("companion", ""),
            ("discard", ""),
        ] {
            assert_eq!(label(of_name(name)), expected, "{name}");
        }
        assert_eq!(of_name("Tax_ID__c").map(|cue| cue.groups), Some(TAX));
    }

    #[test]
    fn the_nearest_word_of_the_line_decides() {
        let cue = |text: &str| label(before(text, text.len()));
        assert_eq!(cue("Their ssn is "), "us_ssn");
        assert_eq!(cue("ssn paid, order no. "), "other");
        assert_eq!(cue("my order on the card "), "credit_card");
        assert_eq!(cue("ssn\nsee below in the text of the ticket\n\n "), "");
        assert_eq!(cue("Phone:\n"), "phone");
        assert_eq!(cue("<td>Passport number</td><td>"), "passport");
        assert_eq!(cue("Their 身份证 is "), "cn_id");
        assert_eq!(label(behind("12 office\\,", 2)), "phone");
        assert_eq!(label(behind("12 and a fax", 2)), "");
    }
}
