//! Which bytes may begin a character that needs a look: controls and characters
//! without a shape of their own. One pass, vectorised where text is plain.

/// The offset of the first odd character at or behind `from`: a control character
/// other than tab and line feed, or one that may be invisible. White space of JSON
/// is not odd when `cr` is false.
pub(super) fn find(bytes: &[u8], from: usize, cr: bool) -> Option<usize> {
    let mut at = from;
    while let Some(rest) = bytes.get(at..)
        && !rest.is_empty()
    {
        let (chunk, _) = rest.split_at(rest.len().min(64));
        if is_plain(chunk, cr) {
            at += chunk.len();
            continue;
        }
        // A character that begins here may end in the next chunk.
        for offset in 0..chunk.len() {
            let Some(tail) = rest.get(offset..) else {
                break;
            };
            if is_odd(tail, cr) || is_folded(bytes, at + offset) {
                return Some(at + offset);
            }
        }
        at += chunk.len();
    }
    None
}

/// No control and no byte beyond ASCII. Written without branches, so that the
/// compiler makes vector code of it.
fn is_plain(chunk: &[u8], cr: bool) -> bool {
    let carriage = u8::from(cr);
    chunk.iter().fold(0_u8, |odd, byte| {
        let control = u8::from(*byte < 0x20) | u8::from(*byte >= 0x7f);
        let space = u8::from(*byte == b'\n')
            | u8::from(*byte == b'\t')
            | (u8::from(*byte == b'\r') & (carriage ^ 1));
        odd | (control & (space ^ 1))
    }) == 0
}

fn is_odd(tail: &[u8], cr: bool) -> bool {
    match tail {
        [byte @ (b'\t' | b'\n' | b'\r'), ..] => cr && *byte == b'\r',
        [0..=0x1f | 0x7f, ..]
        | [0xc2, 0x80..=0x9f | 0xad, ..]
        | [0xcd, 0x8f, ..]
        | [0xd8, 0x9c, ..]
        | [0xe1, 0x85, 0x9f | 0xa0, ..]
        | [0xe1, 0x9e, 0xb4 | 0xb5, ..]
        | [0xe1, 0xa0, 0x8b..=0x8f, ..]
        | [0xe2, 0x80, 0x8b..=0x8f | 0xaa..=0xae, ..]
        | [0xe2, 0x81, 0xa0..=0xaf, ..]
        | [0xe3, 0x85, 0xa4, ..]
        | [0xef, 0xb8, 0x80..=0x8f, ..]
        | [0xef, 0xbb, 0xbf, ..]
        | [0xef, 0xbe, 0xa0, ..]
        | [0xef, 0xbf, 0xb0..=0xbb, ..]
        | [0xf0, 0x9b, 0xb2, 0xa0..=0xa3, ..]
        | [0xf0, 0x9d, 0x85, 0xb3..=0xba, ..]
        | [0xf3, 0xa0, ..] => true,
        _ => false,
    }
}

/// Whether a character begins here that detectors read as another one, where that
/// can matter: digits and letters of other forms anywhere; hyphens and spaces only
/// inside a word or a number.
fn is_folded(bytes: &[u8], at: usize) -> bool {
    let tail = bytes.get(at..).unwrap_or_default();
    let len = match tail {
        [0xd9, 0xa0..=0xa9, ..]
        | [0xdb, 0xb0..=0xb9, ..]
        | [0xdf, 0x80..=0x89, ..]
        | [
            0xe0,
            0xa5 | 0xa7 | 0xa9 | 0xab | 0xad | 0xaf | 0xb1 | 0xb3 | 0xb5 | 0xb7,
            0xa6..=0xaf,
            ..,
        ]
        | [0xe0, 0xb9 | 0xbb, 0x90..=0x99, ..]
        | [0xe0, 0xbc, 0xa0..=0xa9, ..]
        | [0xe1, 0x81, 0x80..=0x89, ..]
        | [0xe1, 0x9f, 0xa0..=0xa9, ..]
        | [0xe1, 0xa0, 0x90..=0x99, ..]
        | [0xe2, 0x91, 0xa0..=0xbf, ..]
        | [0xe2, 0x92 | 0x93, ..]
        | [0xef, 0xb9, 0x90..=0xab, ..]
        | [0xef, 0xbc, 0x81..=0xbf, ..]
        | [0xef, 0xbd, 0x80..=0x9e, ..]
        | [0xf0, 0x9d, 0x90..=0x9f, ..] => return true,
        [0xc2, 0xa0, ..] => 2,
        [0xe2, 0x80, 0x80..=0x8a | 0x90..=0x95 | 0xa4 | 0xaf, ..]
        | [0xe2, 0x81, 0x9f, ..]
        | [0xe2, 0x88, 0x92, ..]
        | [0xe3, 0x80, 0x80, ..] => 3,
        _ => return false,
    };
    let joins = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'=' | b'\\');
    let head = bytes.get(..at).unwrap_or_default();
    let before = match head {
        [.., 0xef, 0xbc | 0xbd, _] | [.., 0xd9 | 0xdb, _] => true,
        [.., last] => joins(*last),
        [] => false,
    };
    let after = match tail.get(len..).unwrap_or_default() {
        [0xef, 0xbc | 0xbd, ..] | [0xd9 | 0xdb, ..] => true,
        [first, ..] => joins(*first),
        [] => false,
    };
    before && after
}

/// Whether the UTF-16 code unit of an escape may be odd: controls, what is odd
/// when written plainly, the high surrogates of what is, and ASCII letters and
/// digits, which nobody needs to escape.
pub(super) fn is_odd_unit(unit: u32) -> bool {
    match unit {
        0x00..=0x1f | 0x7f..=0x9f | 0xd82f | 0xd834 | 0xd835 | 0xdb40..=0xdb43 => {
            !matches!(unit, 0x09 | 0x0a)
        }
        0x20..=0x7e => !matches!(
            unit,
            0x20 | 0x22 | 0x26 | 0x27 | 0x2b | 0x2f | 0x3c..=0x3e | 0x5c | 0x60
        ),
        0xa0 | 0x2000..=0x2015 | 0x2024 | 0x202f | 0x205f | 0x2212 | 0x3000 => true,
        // Scripts of their own: a word of them may be a cue.
        0x370..=0x1fff | 0x3040..=0xd7ff | 0xf900..=0xfffd => true,
        _ => char::from_u32(unit).is_some_and(is_odd_char),
    }
}

fn is_odd_char(c: char) -> bool {
    let mut buffer = [0; 4];
    let bytes = c.encode_utf8(&mut buffer).as_bytes();
    is_odd(bytes, true) || is_folded(bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_odd_character_is_found_wherever_it_stands() {
        for pad in [0, 1, 61, 62, 63, 64, 65, 127, 200] {
            let text = format!("{}\u{200b}x", "é".repeat(pad));
            assert_eq!(find(text.as_bytes(), 0, false), Some(pad * 2), "{pad}");
            let text = format!("{}\u{e0041}", "a".repeat(pad));
            assert_eq!(find(text.as_bytes(), 0, false), Some(pad), "{pad}");
        }
    }

    #[test]
    fn text_in_any_script_is_plain() {
        for text in ["naïve Łódź", "日本語", "שלום", "नमस्ते", "🚀 ok", "a\tb\nc"]
        {
            assert_eq!(find(text.as_bytes(), 0, true), None, "{text}");
        }
        assert_eq!(find(b"a\r\n", 0, false), None);
        assert_eq!(find(b"a\r\n", 0, true), Some(1));
    }

    #[test]
    fn other_forms_of_letters_and_digits_are_odd_and_dashes_between_words_are_not() {
        for text in ["４１１", "٤١", "737‑14", "sk‑ant", "𝗀𝗁𝗉", "1\u{a0}2", "①②"]
        {
            assert!(find(text.as_bytes(), 0, true).is_some(), "{text}");
        }
        for text in ["one – two", "a\u{a0}– b", "“so”", "naïve—"] {
            assert_eq!(find(text.as_bytes(), 0, true), None, "{text}");
        }
    }

    #[test]
    fn escapes_that_hide_something_are_odd() {
        for unit in [
            0x1b, 0x00, 0x08, 0x0d, 0x9b, 0x67, 0x5f, 0x200b, 0xdb40, 0xfe0f,
        ] {
            assert!(is_odd_unit(unit), "{unit:x}");
        }
        for unit in [0x0a, 0x22, 0x3c, 0x26, 0xe9, 0x2019, 0xd83d, 0x201c] {
            assert!(!is_odd_unit(unit), "{unit:x}");
        }
    }
}
