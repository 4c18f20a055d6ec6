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
            if rest.get(offset..).is_some_and(|tail| is_odd(tail, cr)) {
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

/// Whether the UTF-16 code unit of an escape may be odd: controls, what is odd
/// when written plainly, the high surrogates of what is, and ASCII letters and
/// digits, which nobody needs to escape.
pub(super) fn is_odd_unit(unit: u32) -> bool {
    match unit {
        0x00..=0x1f | 0x7f..=0x9f | 0xd82f | 0xd834 | 0xdb40..=0xdb43 => {
            !matches!(unit, 0x09 | 0x0a)
        }
        0x20..=0x7e => !matches!(
            unit,
            0x20 | 0x22 | 0x26 | 0x27 | 0x2b | 0x2f | 0x3c..=0x3e | 0x5c | 0x60
        ),
        _ => char::from_u32(unit).is_some_and(is_odd_char),
    }
}

fn is_odd_char(c: char) -> bool {
    is_odd(c.encode_utf8(&mut [0; 4]).as_bytes(), true)
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
    fn escapes_that_hide_something_are_odd() {
        for unit in [
            0x1b, 0x00, 0x08, 0x0d, 0x9b, 0x67, 0x5f, 0x200b, 0xdb40, 0xfe0f,
        ] {
            assert!(is_odd_unit(unit), "{unit:x}");
        }
        for unit in [0x0a, 0x22, 0x3c, 0x26, 0xe9, 0x2019, 0xd83d, 0x4e2d] {
            assert!(!is_odd_unit(unit), "{unit:x}");
        }
    }
}
