//! A name or host of somebody else's choosing, made fit to stand in a sentence on
//! a page: one line, nothing invisible, nothing that turns the text around, short.
//!
//! Escaping is the template's part. What is shown here stands for nothing: it is
//! never compared and never sent on.

use unicode_normalization::UnicodeNormalization as _;
use unicode_segmentation::UnicodeSegmentation as _;

/// Most characters that one drawn character may be made of: an accent or two.
/// Piles of marks are drawn over the neighbouring lines.
const MAX_MARKS: usize = 4;

/// At most `max` drawn characters of the text, with an ellipsis where something is
/// missing. Empty where nothing of it can be seen.
pub fn shown(text: &str, max: usize) -> String {
    let seen: String = text.nfc().map(visible).collect();
    let mut out = String::with_capacity(seen.len().min(max * 4));
    let mut drawn = 0;
    for word in seen.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
            drawn += 1;
        }
        for character in word.graphemes(true) {
            if drawn >= max {
                return ended(&out);
            }
            out.extend(character.chars().take(MAX_MARKS));
            drawn += 1;
        }
    }
    out
}

fn ended(out: &str) -> String {
    let mut out = out.trim_end().to_owned();
    out.pop();
    out.push('…');
    out
}

/// The character, or a space where it would not be seen or would change how others are.
fn visible(c: char) -> char {
    let gone = c.is_control()
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F
            // Zero width, directions, separators, invisible operators.
            | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F
            | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB
            | 0x110BD | 0x110CD | 0x13430..=0x1343F | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A
            // Private use draws what the reader's fonts please; tags draw nothing.
            | 0xE000..=0xF8FF | 0xE0000..=0xE0FFF | 0xF0000..=0x0010_FFFF);
    if gone { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line_of_what_can_be_seen() {
        let table = [
            ("Codex", "Codex"),
            ("  Claude\r\n  Code\t", "Claude Code"),
            ("Codex\u{202e}gpj.exe", "Codex gpj.exe"),
            ("Co\u{200b}dex\u{2066}", "Co dex"),
            ("\u{e0041}\u{200d}\u{feff}", ""),
            ("Ünïcode 名前 שלום", "Ünïcode 名前 שלום"),
            ("<b>bold</b>", "<b>bold</b>"),
            ("a\u{0}b", "a b"),
            ("12345678901234567890123", "1234567890123456789…"),
        ];
        for (given, right) in table {
            assert_eq!(shown(given, 20), right, "{given:?}");
        }
    }

    #[test]
    fn marks_are_not_piled_up() {
        let pile = format!("Z{}", "\u{335}".repeat(200));
        assert!(shown(&pile, 20).chars().count() <= MAX_MARKS);
    }

    #[test]
    fn a_cut_keeps_drawn_characters_whole() {
        assert_eq!(shown("e\u{301}e\u{301}e\u{301}", 2), "é…");
        assert_eq!(shown(&"x".repeat(1_000_000), 3), "xx…");
    }
}
