//! Other forms of ASCII characters: what a detector reads in their place. The text
//! itself keeps them.

use unicode_normalization::char::decompose_compatible;

/// ASCII from the exclamation mark on, to borrow one character of.
const ASCII: &str = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

/// First digits of other scripts' decimal digits (general category Nd).
const ZEROS: &[char] = &[
    '\u{660}', '\u{6f0}', '\u{7c0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{b66}',
    '\u{be6}', '\u{c66}', '\u{ce6}', '\u{d66}', '\u{de6}', '\u{e50}', '\u{ed0}', '\u{f20}',
    '\u{1040}', '\u{17e0}', '\u{1810}',
];

/// The ASCII character that `c` is another form of.
pub(super) fn folded(c: char) -> Option<&'static str> {
    match c {
        '\0'..='\u{9f}' => None,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(" "),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' => Some("-"),
        '\u{2024}' => Some("."),
        '\u{660}'..='\u{1819}' => digit(c).and_then(ascii),
        '\u{2460}'..='\u{24ff}'
        | '\u{fe50}'..='\u{fe6b}'
        | '\u{ff01}'..='\u{ff5e}'
        | '\u{1d400}'..='\u{1d7ff}' => compatible(c).and_then(ascii),
        _ => None,
    }
}

fn digit(c: char) -> Option<char> {
    let zero = ZEROS.iter().rev().find(|zero| **zero <= c)?;
    char::from_digit(u32::from(c) - u32::from(*zero), 10)
}

/// The single character that compatibility decomposition makes of `c` (UAX #15).
fn compatible(c: char) -> Option<char> {
    let mut only = None;
    let mut count = 0;
    decompose_compatible(c, |part| {
        only = Some(part);
        count += 1;
    });
    only.filter(|_| count == 1)
}

fn ascii(c: char) -> Option<&'static str> {
    let at = usize::try_from(u32::from(c).checked_sub(0x21)?).ok()?;
    ASCII.get(at..=at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_forms_are_read_as_ascii() {
        let rows = [
            ('４', "4"),
            ('Ａ', "A"),
            ('＠', "@"),
            ('٣', "3"),
            ('۹', "9"),
            ('५', "5"),
            ('๗', "7"),
            ('‑', "-"),
            ('−', "-"),
            ('\u{a0}', " "),
            ('𝗴', "g"),
            ('𝟘', "0"),
            ('①', "1"),
            ('ⓐ', "a"),
        ];
        for (c, right) in rows {
            assert_eq!(folded(c), Some(right), "{c}");
        }
        for c in ['a', 'é', '中', 'ا', 'क', '…', '⑩', '“'] {
            assert_eq!(folded(c), None, "{c}");
        }
    }
}
