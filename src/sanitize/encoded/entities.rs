//! Character references of HTML, as far as they could hide something: all numeric
//! ones, and the names of ASCII characters.

/// Names of ASCII characters (HTML Living Standard §13.5), in order.
const NAMES: &[(&str, char)] = &[
    ("Hat", '^'),
    ("NewLine", '\n'),
    ("Tab", '\t'),
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dash", '-'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("hyphen", '-'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("nbsp", ' '),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("shy", '\u{ad}'),
    ("sol", '/'),
    ("verbar", '|'),
    ("vert", '|'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// The character reference that the bytes begin with, and its length.
pub(super) fn at(bytes: &[u8]) -> Option<(char, usize)> {
    match bytes {
        [b'&', b'#', b'x' | b'X', rest @ ..] => number(rest, 16, 3),
        [b'&', b'#', rest @ ..] => number(rest, 10, 2),
        [b'&', rest @ ..] => {
            let len = rest
                .iter()
                .take(8)
                .take_while(|b| b.is_ascii_alphabetic())
                .count();
            let name = std::str::from_utf8(rest.get(..len)?).ok()?;
            let at = NAMES.binary_search_by_key(&name, |row| row.0).ok()?;
            let (_, c) = NAMES.get(at)?;
            (rest.get(len) == Some(&b';')).then_some((*c, len + 2))
        }
        _ => None,
    }
}

fn number(bytes: &[u8], radix: u32, before: usize) -> Option<(char, usize)> {
    let len = bytes
        .iter()
        .take(8)
        .take_while(|b| char::from(**b).is_digit(radix))
        .count();
    let digits = std::str::from_utf8(bytes.get(..len)?).ok()?;
    let c = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
    // The semicolon may be missing, as browsers allow.
    let closed = usize::from(bytes.get(len) == Some(&b';'));
    Some((c, before + len + closed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_by_number_and_by_name() {
        assert!(NAMES.is_sorted_by_key(|row| row.0));
        assert_eq!(at(b"&#64;x"), Some(('@', 5)));
        assert_eq!(at(b"&#x40;"), Some(('@', 6)));
        assert_eq!(at(b"&#64x"), Some(('@', 4)));
        assert_eq!(at(b"&commat;"), Some(('@', 8)));
        for text in [
            "&",
            "&#",
            "&#x;",
            "&co;",
            "&unknown;",
            "&amp",
            "x",
            "&#1114112;",
        ] {
            assert_eq!(at(text.as_bytes()), None, "{text}");
        }
    }
}
