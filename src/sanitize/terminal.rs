//! Terminal control: which bytes a control sequence has (ECMA-48 §5.4, §5.6,
//! §8.3; the string forms as xterm reads them). Nothing here decides what happens
//! to them.

/// A control string longer than this is taken for text after a stray introducer.
const MAX_STRING: usize = 64 << 10;

/// Parameters longer than this make no control sequence.
const MAX_PARAMETERS: usize = 256;

/// Bytes of the control sequence or character at `at`, and what stands in for it:
/// a line feed where lines would run together. `None` where no control stands.
///
/// An unterminated string loses its introducer alone: it must not eat the text
/// behind it.
pub(super) fn sequence(text: &str, at: usize) -> Option<(usize, &'static str)> {
    let rest = text.get(at..)?;
    let len = match rest.chars().next()? {
        '\t' | '\n' | '\r' => return None,
        '\u{b}' | '\u{c}' => return Some((1, "\n")),
        '\u{85}' => return Some((2, "\n")),
        '\u{1b}' => escape(rest.as_bytes()),
        '\u{9b}' => control_sequence(rest.as_bytes(), 2),
        '\u{9d}' => string(rest.as_bytes(), 2, true),
        '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => string(rest.as_bytes(), 2, false),
        c if c.is_control() => c.len_utf8(),
        _ => return None,
    };
    Some((len, ""))
}

fn escape(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(b'[') => control_sequence(bytes, 2),
        Some(b']') => string(bytes, 2, true),
        Some(b'P' | b'X' | b'^' | b'_') => string(bytes, 2, false),
        Some(0x20..=0x2f) => {
            let intermediate = run(bytes, 1, |b| (0x20..=0x2f).contains(&b));
            match bytes.get(1 + intermediate) {
                Some(0x30..=0x7e) => 2 + intermediate,
                _ => 1,
            }
        }
        Some(0x30..=0x7e) => 2,
        _ => 1,
    }
}

fn run(bytes: &[u8], from: usize, of: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let rest = rest.get(..MAX_PARAMETERS).unwrap_or(rest);
    rest.iter().take_while(|b| of(**b)).count()
}

/// Parameters, intermediates, final byte. A sequence without its final byte ends
/// where it stops being one.
fn control_sequence(bytes: &[u8], introducer: usize) -> usize {
    let parameters = run(bytes, introducer, |b| (0x30..=0x3f).contains(&b));
    if parameters == MAX_PARAMETERS {
        return introducer;
    }
    let at = introducer + parameters;
    let at = at + run(bytes, at, |b| (0x20..=0x2f).contains(&b));
    match bytes.get(at) {
        Some(0x40..=0x7e) => at + 1,
        _ => introducer + parameters,
    }
}

/// A control string up to its terminator: ST in either form, or BEL.
fn string(bytes: &[u8], introducer: usize, command: bool) -> usize {
    let body = bytes.get(introducer..).unwrap_or_default();
    let body = body.get(..MAX_STRING).unwrap_or(body);
    for (offset, byte) in body.iter().enumerate() {
        let next = body.get(offset + 1).copied();
        match (byte, next) {
            (0x07, _) => return introducer + offset + 1,
            (0x1b, Some(b'\\')) | (0xc2, Some(0x9c)) => return introducer + offset + 2,
            // Anything else that a terminal would stop at.
            (0x18 | 0x1a | 0x1b, _) | (0xc2, Some(0x80..=0x9f)) => break,
            (b'\n', _) if command => break,
            _ => {}
        }
    }
    if !command {
        return introducer;
    }
    // `0;` of an unterminated title is no word that anybody wrote.
    let digits = run(body, 0, |b| b.is_ascii_digit());
    let has_separator = digits > 0 && body.get(digits) == Some(&b';');
    introducer + if has_separator { digits + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_measured_whole() {
        let rows: &[(&str, usize)] = &[
            ("\u{1b}[2Jx", 4),
            ("\u{1b}[31mred", 5),
            ("\u{1b}[?25h", 6),
            ("\u{1b}[38;2;1;2;3m", 13),
            ("\u{1b}]0;title\u{7}x", 10),
            ("\u{1b}]8;;https://e.example\u{1b}\\link", 24),
            ("\u{9b}31mx", 5),
            ("\u{9d}0;t\u{9c}x", 7),
            ("\u{1b}Pq#0\u{1b}\\x", 7),
            ("\u{1b}_apc\u{1b}\\x", 7),
            ("\u{1b}^pm\u{1b}\\x", 6),
            ("\u{1b}Xsos\u{1b}\\x", 7),
            ("\u{1b}(Bx", 3),
            ("\u{1b}cx", 2),
            ("\u{1b}", 1),
            ("\u{1b}\u{1b}[m", 1),
            ("\0x", 1),
            ("\u{7f}x", 1),
            ("\u{8}x", 1),
            ("\u{80}x", 2),
        ];
        for (text, len) in rows {
            assert_eq!(sequence(text, 0).map(|s| s.0), Some(*len), "{text:?}");
        }
    }

    #[test]
    fn an_unterminated_string_eats_nothing_behind_it() {
        assert_eq!(sequence("\u{1b}]0;title and text", 0), Some((4, "")));
        assert_eq!(sequence("\u{1b}]words", 0), Some((2, "")));
        assert_eq!(sequence("\u{1b}Pwords", 0), Some((2, "")));
        assert_eq!(sequence("\u{1b}]0;a\nb\u{7}", 0), Some((4, "")));
        assert_eq!(sequence("\u{1b}]0;a\u{1b}[31mb\u{7}", 0), Some((4, "")));
    }

    #[test]
    fn tab_and_line_ends_are_no_control() {
        for text in ["\t", "\n", "\r\n", "x", "[31m"] {
            assert_eq!(sequence(text, 0), None);
        }
        assert_eq!(sequence("\u{c}", 0), Some((1, "\n")));
    }
}
