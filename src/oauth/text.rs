//! Texts that strangers chose and people will read.

/// Longest name that is shown.
const MAX_LABEL: usize = 100;

/// A stranger's name for itself, fit to be shown: one line, without control and
/// invisible characters and without what turns the direction of text.
pub(super) fn label(text: &str) -> String {
    let kept = text.chars().filter_map(|c| {
        if c.is_whitespace() {
            return Some(' ');
        }
        let hidden = c.is_control()
            || matches!(c,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}'
                | '\u{e0000}'..='\u{e0fff}');
        (!hidden).then_some(c)
    });
    let mut out = String::new();
    for c in kept {
        if c == ' ' && (out.is_empty() || out.ends_with(' ')) {
            continue;
        }
        out.push(c);
    }
    out.chars()
        .take(MAX_LABEL)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_label_is_one_line_of_visible_text() {
        for (text, shown) in [
            ("Claude Code (tools)", "Claude Code (tools)"),
            ("  a \r\n\t b  ", "a b"),
            ("pay\u{202e}lap", "paylap"),
            ("a\u{200b}b\u{0}c\u{1b}[31m", "abc[31m"),
            ("\u{e0041}\u{3164}", ""),
            ("Müller & Söhne 日本", "Müller & Söhne 日本"),
        ] {
            assert_eq!(label(text), shown);
        }
        assert_eq!(label(&"ä".repeat(500)).chars().count(), 100);
    }
}
