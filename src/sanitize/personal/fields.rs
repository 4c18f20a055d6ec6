//! Names and postal addresses: free text that only its field tells.

use super::cues::{self, Cue};
use super::hit;
use crate::sanitize::detect::{Certainty, Hit};

/// Whether a field's name makes its whole value worth a look.
pub(super) fn is_telling(key: &str) -> bool {
    cues::of_name(key).is_some_and(|cue| !cue.is_other())
}

/// The whole text, where its field's name says that it names a person or a place
/// and it looks like that.
pub(super) fn whole(text: &str, named: Option<&Cue>) -> Option<Hit> {
    let named = named?;
    let trimmed = text.trim();
    let start = text.len() - text.trim_start().len();
    let range = start..start + trimmed.len();
    if named.is("person") && is_name(trimmed) {
        return Some(hit("person", range, Certainty::Name));
    }
    (named.is("address") && is_place(trimmed)).then(|| hit("address", range, Certainty::Name))
}

/// Whether a value may be what its field's name says: of names and places what looks
/// like one, of anything else what has a digit. What has a form of its own is found
/// by that.
pub(super) fn may_be_named(name: &str, value: &str) -> bool {
    let Some(cue) = cues::of_name(name).filter(|cue| !cue.is_other()) else {
        return false;
    };
    let is_words = cue.is("person") || cue.is("address");
    value.bytes().any(|b| b.is_ascii_digit()) || is_words && whole(value, Some(cue)).is_some()
}

/// One to five words of letters, each with a capital or of a script without.
fn is_name(text: &str) -> bool {
    let words = text.split_whitespace().count();
    let letters = text
        .chars()
        .all(|c| c.is_alphabetic() || c.is_whitespace() || ".,'’-\u{300}\u{301}".contains(c));
    let particle = |word: &str| {
        [
            "de", "da", "dos", "van", "von", "der", "den", "del", "la", "le", "bin", "al", "el",
            "y", "e", "di", "du", "ter", "ibn",
        ]
        .contains(&word)
    };
    let capital = text
        .split_whitespace()
        .all(|word| particle(word) || word.chars().next().is_some_and(|c| !c.is_lowercase()));
    (1..=5).contains(&words)
        && text.chars().count() >= 2
        && text.len() <= 80
        && letters
        && capital
        && !["N/A", "None", "Null", "Unknown", "True", "False"]
            .iter()
            .any(|word| word.eq_ignore_ascii_case(text))
}

/// Words and a number, and nothing that machines use as an address.
fn is_place(text: &str) -> bool {
    let words = text.split_whitespace().count();
    let wide = text.chars().any(|c| u32::from(c) >= 0x2e80);
    let digits = text.chars().any(|c| c.is_ascii_digit());
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let machine = text.contains("://")
        || text.contains('@')
        || text.contains('{')
        || text.contains("[REDACTED")
        || text.starts_with('/');
    (5..=300).contains(&text.len())
        && !machine
        && letters >= 3
        && ((words >= 2 && digits) || (wide && letters >= 5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(key: &str, text: &str) -> &'static str {
        whole(text, cues::of_name(key)).map_or("", |hit| hit.label)
    }

    #[test]
    fn fields_of_persons_and_places_are_taken_whole() {
        for (key, text, expected) in [
            ("full_name", "Aoife O'Brien", "person"),
            ("lastName", "van der Berg", "person"),
            ("姓名", "王小明", "person"),
            ("full_name", "Octocoders/Hello-World", ""),
            ("full_name", "acme-api", ""),
            ("name", "Jane Doe", ""),
            ("street_address", "12 Rue de Rivoli, 75001 Paris", "address"),
            ("address", "10.0.0.1:8080", ""),
            ("address", "https://example.org/1 2", ""),
            ("home address", "東京都千代田区丸の内1-1", "address"),
            ("last_name_count", "Jane", ""),
        ] {
            assert_eq!(label(key, text), expected, "{key}: {text}");
        }
    }
}
