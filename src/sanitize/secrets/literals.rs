//! The cues of secrets: the literals of the formats and the words that name
//! secrets, and what each leads to.

use std::sync::LazyLock;

use super::formats::FORMATS;
use super::keys::{self, Named, is_name_byte};
use crate::sanitize::detect::Cue;

/// What a cue leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
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
    /// `discord`: a bot's token may stand near.
    Discord,
    /// `-u` and `-p` of a command line.
    Flag,
    /// `&sig=` of a signed URL.
    Signature,
    /// `Private-Lines:` of a key of `PuTTY`'s.
    Putty,
}

/// Names end in one of these; what stands before decides ([`keys::class`]).
const OTHERS: &[(Cue, Trigger)] = &[
    (Cue::Exact("eyJ"), Trigger::Jwt),
    (Cue::Exact("-----BEGIN"), Trigger::Pem),
    (Cue::Byte(b'@'), Trigger::At),
    (Cue::Exact("keyName"), Trigger::KeyName),
    (Cue::Word("bearer"), Trigger::Scheme),
    (Cue::Word("basic "), Trigger::Scheme),
    (Cue::Word("pass"), Trigger::Name),
    (Cue::Word("pwd"), Trigger::Name),
    (Cue::Word("secret"), Trigger::Name),
    (Cue::Word("token"), Trigger::Name),
    (Cue::Word("authorization"), Trigger::Name),
    (Cue::Word("cookie"), Trigger::Name),
    (Cue::Word("_key"), Trigger::Name),
    (Cue::Word("-key"), Trigger::Name),
    (Cue::Word(" key"), Trigger::Name),
    (Cue::Word(".key"), Trigger::Name),
    (Cue::Exact("Key"), Trigger::Name),
    (Cue::Word("apikey"), Trigger::Name),
    (Cue::Word("accesskey"), Trigger::Name),
    (Cue::Word("secretkey"), Trigger::Name),
    (Cue::Word("privatekey"), Trigger::Name),
    (Cue::Word("accountkey"), Trigger::Name),
    (Cue::Word("authkey"), Trigger::Name),
    (Cue::Word("signingkey"), Trigger::Name),
    (Cue::Word("credential"), Trigger::Name),
    (Cue::Word("kennwort"), Trigger::Name),
    (Cue::Word("wachtwoord"), Trigger::Name),
    (Cue::Word("senha"), Trigger::Name),
    (Cue::Word("discord"), Trigger::Discord),
    (Cue::Exact(" -u "), Trigger::Flag),
    (Cue::Exact(" -p "), Trigger::Flag),
    (Cue::Exact("sig="), Trigger::Signature),
    (Cue::Exact("Private-Lines:"), Trigger::Putty),
];

/// All cues: the formats in the order of their table, then the others.
pub(super) static CUES: LazyLock<Vec<Cue>> = LazyLock::new(|| {
    let formats = FORMATS.iter().map(|format| Cue::Exact(format.literal));
    formats.chain(OTHERS.iter().map(|row| row.0)).collect()
});

/// What a cue leads to.
pub(super) fn trigger(cue: usize) -> Trigger {
    match cue.checked_sub(FORMATS.len()) {
        None => Trigger::Format(cue),
        Some(other) => OTHERS.get(other).map_or(Trigger::KeyName, |row| row.1),
    }
}

/// Longest literal: as much text on both sides of a seam shows any that spans it.
pub(in crate::sanitize) const LONGEST: usize = 32;

/// How far a name reaches at most.
const NAME: usize = 64;

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
        assert_eq!(trigger(FORMATS.len()), Trigger::Jwt);
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
