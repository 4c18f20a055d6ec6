//! The inside of a JSON string: unescaped with offsets back, and escaped again.

use std::borrow::Cow;

use memchr::memchr;

use super::offsets::Offsets;
use crate::protocol::json::write_string;

/// The text of a JSON string given without its quotes, and where it came from.
pub(super) fn decode(raw: &str) -> (Cow<'_, str>, Offsets) {
    if memchr(b'\\', raw.as_bytes()).is_none() {
        return (Cow::Borrowed(raw), Offsets::default());
    }
    let mut out = String::with_capacity(raw.len());
    let mut map = Offsets::default();
    let mut at = 0;
    while let Some(rest) = raw.get(at..)
        && !rest.is_empty()
    {
        let plain = memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        out.push_str(rest.get(..plain).unwrap_or_default());
        map.push(plain, at, plain);
        at += plain;
        if plain == rest.len() {
            break;
        }
        let (c, len) = escape(raw, at);
        out.push(c);
        map.push(c.len_utf8(), at, len);
        at += len;
    }
    (Cow::Owned(out), map)
}

/// The character that the escape at `at` spells, and the escape's length.
fn escape(raw: &str, at: usize) -> (char, usize) {
    let c = match raw.as_bytes().get(at + 1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unicode(raw, at),
        Some(byte) if byte.is_ascii() => char::from(*byte),
        _ => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (c, 2)
}

/// The character that `\uXXXX` at `at` spells, or a pair of them, and the length.
pub(super) fn unicode_escape(raw: &str, at: usize) -> Option<(char, usize)> {
    unit(raw, at)?;
    Some(unicode(raw, at)).filter(|(c, _)| *c != char::REPLACEMENT_CHARACTER)
}

fn unicode(raw: &str, at: usize) -> (char, usize) {
    let lost = (char::REPLACEMENT_CHARACTER, 6.min(raw.len() - at));
    let Some(high) = unit(raw, at) else {
        return (char::REPLACEMENT_CHARACTER, 2);
    };
    if !(0xd800..0xdc00).contains(&high) {
        return char::from_u32(high).map_or(lost, |c| (c, 6));
    }
    match unit(raw, at + 6) {
        Some(low) if (0xdc00..0xe000).contains(&low) => {
            let scalar = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            char::from_u32(scalar).map_or(lost, |c| (c, 12))
        }
        _ => lost,
    }
}

/// The code unit of `\uXXXX` at `at`.
pub(super) fn unit(raw: &str, at: usize) -> Option<u32> {
    let hex = raw.get(at..at + 6)?.strip_prefix("\\u")?;
    hex.bytes()
        .all(|b| b.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(hex, 16).ok())
        .flatten()
}

/// `text` as it stands inside a JSON string.
pub(super) fn encode(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    write_string(&mut quoted, text);
    quoted.pop();
    if !quoted.is_empty() {
        quoted.remove(0);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_escape_is_read_and_mapped() {
        let raw = r#"a\n\u0041\udb40\udc69\"\/z"#;
        let (text, map) = decode(raw);
        assert_eq!(text, "a\nA\u{e0069}\"/z");
        assert_eq!(map.back(&(3..7)), 9..21);
        assert_eq!(map.back(&(9..10)), 25..26);
    }

    #[test]
    fn half_a_surrogate_pair_does_not_panic() {
        assert_eq!(decode(r"\ud83dx").0, "\u{fffd}x");
        assert_eq!(decode(r"\u12").0, "\u{fffd}12");
        assert_eq!(decode("\\").0, "\u{fffd}");
    }

    #[test]
    fn encoding_is_what_the_builder_writes() {
        assert_eq!(encode("a\"\n"), "a\\\"\\n");
    }
}
