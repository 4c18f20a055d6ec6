//! Where a search for personal data begins, and how raw bytes of clean JSON are told
//! from what is worth a walk.

use super::cards;
use super::checks::luhn;
use super::fields;
use super::named;
use crate::sanitize::detect::{Cue, Sign};

/// Fewest digits of a run that is looked at without a word beside it.
const DIGITS: usize = 7;

/// The signs: digits, `@`, prefixes of addresses, words for what has few digits, and
/// words in names of fields.
#[rustfmt::skip]
pub(super) const SIGNS: &[Cue] = &[
    Cue::Digits(DIGITS),
    Cue::Byte(b'@'),
    // Regional blocks of version 6 addresses.
    Cue::Word("2001:"), Cue::Word("2003:"), Cue::Word("240"), Cue::Word("260"), Cue::Word("2610:"), Cue::Word("2620:"),
    Cue::Word("280"), Cue::Word("2a0"), Cue::Word("2a1"), Cue::Word("2c0f:"),
    // What is known by letters more than by digits.
    Cue::Exact("bc1"), Cue::Exact("0x"), Cue::Exact("MRN"),
    Cue::Word("wallet"), Cue::Word("bitcoin"), Cue::Word("passport"), Cue::Word("nino"), Cue::Word("insurance"), Cue::Word("fiscal"),
    Cue::Word("pan "), Cue::Word("\"pan\""), Cue::Word("_pan"), Cue::Word("pan_"), Cue::Word("permanent"), Cue::Word("birth"), Cue::Word("dob"), Cue::Word("born"),
    Cue::Word("geb"), Cue::Word("naiss"), Cue::Word("nasci"), Cue::Word("nacim"), Cue::Word("licen"), Cue::Word("hetu"), Cue::Word("nric"), Cue::Word("hkid"), Cue::Word("curp"), Cue::Word("cuenta"),
    Cue::Word("phone"), Cue::Word("mobile"), Cue::Word("telef"), Cue::Word("fax"), Cue::Word("sort code"), Cue::Word("sort_code"), Cue::Word("sortcode"), Cue::Word("mac "), Cue::Word("mac:"), Cue::Word("mac_"), Cue::Word("mac\""), Cue::Word("macaddr"), Cue::Word("hwaddr"), Cue::Word("bssid"), Cue::Word("ether"), Cue::Word("dni"), Cue::Word("nif"), Cue::Word("nie"),
    Cue::Word("patient"), Cue::Word("record"), Cue::Word("steuer"), Cue::Word("tax"), Cue::Word("account"), Cue::Word("konto"), Cue::Word("card"), Cue::Word("carte"), Cue::Word("tarjeta"), Cue::Word("kart"),
    // Names and places, by their fields.
    Cue::Word("first"), Cue::Word("last"), Cue::Word("surname"), Cue::Word("full"), Cue::Word("given"), Cue::Word("family"), Cue::Word("middle"), Cue::Word("maiden"), Cue::Word("holder"), Cue::Word("vorname"), Cue::Word("nachname"),
    Cue::Word("nombre"), Cue::Word("apellido"), Cue::Word("cognome"), Cue::Word("prenom"), Cue::Word("address"), Cue::Word("street"), Cue::Word("anschrift"), Cue::Word("direcc"), Cue::Word("adres"), Cue::Word("indirizzo"),
    Cue::Exact("姓名"), Cue::Exact("地址"), Cue::Exact("住所"), Cue::Exact("氏名"), Cue::Exact("出生"), Cue::Exact("生年"), Cue::Exact("护照"), Cue::Exact("パスポート"),
];

/// Whether a sign in raw JSON can lead to anything. Words count as parts of names
/// only: what they lead to has its own digits.
pub(super) fn is_plausible(bytes: &[u8], sign: Sign) -> bool {
    let head = bytes.get(..sign.start).unwrap_or_default();
    let tail = bytes.get(sign.end..).unwrap_or_default();
    match SIGNS.get(sign.cue) {
        Some(Cue::Digits(_)) => digits(
            head,
            bytes.get(sign.start..sign.end).unwrap_or_default(),
            tail,
        ),
        Some(Cue::Byte(_)) => at_sign(head, tail),
        Some(Cue::Word(word)) if word.starts_with('2') => version_6(head, tail),
        Some(Cue::Exact("0x")) => tail.iter().take_while(|b| b.is_ascii_hexdigit()).count() == 40,
        Some(Cue::Exact("bc1")) => {
            tail.iter()
                .take_while(|b| b.is_ascii_alphanumeric())
                .count()
                >= 10
        }
        _ => word_leads(bytes, sign),
    }
}

/// Letters or digits before `@` and a point in what follows it.
fn at_sign(head: &[u8], tail: &[u8]) -> bool {
    let len = tail
        .iter()
        .take(64)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-') || !b.is_ascii())
        .count();
    // A full stop may end the sentence.
    let (name, behind) = tail.split_at(len);
    // `git@host:owner/name`
    let word = behind
        .strip_prefix(b":")
        .unwrap_or_default()
        .iter()
        .take(64);
    let mut word = word.take_while(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'));
    let is_remote = word.next().is_some_and(|b| *b != b'/') && word.any(|b| *b == b'/');
    let letter_behind_point = name
        .windows(2)
        .any(|pair| matches!(pair, [b'.', b] if b.is_ascii_alphabetic() || !b.is_ascii()));
    head.last()
        .is_some_and(|b| !b.is_ascii_whitespace() && *b != b'"')
        && letter_behind_point
        && !is_remote
}

fn version_6(head: &[u8], tail: &[u8]) -> bool {
    let run = tail
        .iter()
        .take(42)
        .take_while(|b| b.is_ascii_hexdigit() || **b == b':');
    let colons = run.filter(|b| **b == b':').count();
    !head.last().is_some_and(u8::is_ascii_alphanumeric) && colons >= 2
}

/// Digits: in one run only what could stand alone, between separators what is no
/// date and no version.
fn digits(head: &[u8], run: &[u8], tail: &[u8]) -> bool {
    let escaped = matches!(head, [.., b'\\', b'n' | b'r' | b't']);
    let before = if escaped { None } else { head.last().copied() };
    let solid = run.iter().all(u8::is_ascii_digit);
    let hexadecimal = before.is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let goes_on = tail.first().is_some_and(u8::is_ascii_lowercase);
    if hexadecimal || goes_on && !matches!(tail, [b'x', ..]) {
        return false;
    }
    if before.is_some_and(|b| b.is_ascii_uppercase() || b == b'+')
        || tail.first().is_some_and(u8::is_ascii_uppercase)
    {
        // `2019-05-15T15:20:33Z`
        return !is_date(run);
    }
    // `T15:20:33.000-08:00`
    if matches!(head, [.., b'T', _, _, b':', _, _, b':']) {
        return false;
    }
    if solid {
        return stands_alone(run) || named::by_word(head) && (8..=19).contains(&run.len());
    }
    let points = run.iter().filter(|b| **b == b'.').count();
    let others = run.iter().any(|b| !b.is_ascii_digit() && *b != b'.');
    // `CVE-2026-31415`
    let inside = matches!(head, [.., b, b'-'] if b.is_ascii_alphanumeric());
    !is_date(run)
        && (others || points == 3 || points == 2 && run.len() >= 12)
        && (!inside || named::by_word(head))
}

/// Cards and Chinese identity numbers alone stand without separators and words.
fn stands_alone(run: &[u8]) -> bool {
    let values: Vec<u8> = run.iter().map(|b| b.wrapping_sub(b'0')).collect();
    match run.len() {
        14..=16 => cards::may_be(run) && luhn(&values),
        17 | 18 => true,
        _ => false,
    }
}

/// `2019-05-15` and what may follow it.
fn is_date(run: &[u8]) -> bool {
    matches!(
        run,
        [
            b'1' | b'2',
            b'9' | b'0',
            _,
            _,
            b'-' | b'/' | b'.',
            b'0' | b'1',
            _,
            b'-' | b'/' | b'.',
            b'0'..=b'3',
            _,
            ..
        ]
    )
}

/// A word before digits, or as part of a field's name whose value may be what it
/// names.
fn word_leads(bytes: &[u8], sign: Sign) -> bool {
    let tail = bytes.get(sign.end..).unwrap_or_default();
    let ends = |pair: &[u8]| matches!(pair, [b'"', b',' | b':' | b'}' | b']']);
    let near = tail.get(..tail.len().min(48)).unwrap_or_default();
    let len = near.windows(2).position(ends).unwrap_or(near.len());
    let near = near.get(..len).unwrap_or_default();
    names_value(bytes, sign) || near.iter().filter(|b| b.is_ascii_digit()).count() >= 2
}

/// Whether the sign is part of a field's name that names its value. `null` and what
/// holds fields of its own is none; what is escaped may be anything.
fn names_value(bytes: &[u8], sign: Sign) -> bool {
    let tail = bytes.get(sign.end..).unwrap_or_default();
    let Some(end) = tail.iter().take(24).position(|b| *b == b'"') else {
        return false;
    };
    let (rest, value) = tail.split_at(end);
    let slashes = rest.iter().rev().take_while(|b| **b == b'\\').count();
    let Some(value) = value.strip_prefix(b"\":").or(value.strip_prefix(b"\" :")) else {
        return false;
    };
    let value = value.trim_ascii_start();
    if matches!(value, [b'n' | b't' | b'f' | b'{', ..]) {
        return false;
    }
    let value = value.get(slashes..).unwrap_or_default();
    let Some(value) = value.strip_prefix(b"\"") else {
        return true;
    };
    let Some(len) = value
        .iter()
        .take(300)
        .position(|b| matches!(b, b'"' | b'\\'))
    else {
        return true;
    };
    let escaped = value.get(len..).unwrap_or_default();
    let escaped = escaped.iter().take_while(|b| **b == b'\\').count();
    let name_start = bytes
        .get(..sign.start)
        .unwrap_or_default()
        .iter()
        .rev()
        .take(96)
        .position(|b| *b == b'"');
    let (Some(back), true) = (name_start, escaped == slashes) else {
        return true;
    };
    let name = bytes.get(sign.start - back..sign.end + end - slashes);
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let (Some(name), Some(value)) = (name.and_then(text), value.get(..len).and_then(text)) else {
        return true;
    };
    fields::may_be_named(name, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plausible(text: &str) -> bool {
        let bytes = text.as_bytes();
        let start = text.find(|c: char| c.is_ascii_digit()).unwrap();
        let end = start
            + text[start..]
                .find(|c: char| !c.is_ascii_digit() && !" -./".contains(c))
                .unwrap_or(text.len() - start);
        is_plausible(bytes, Sign { cue: 0, start, end })
    }

    #[test]
    fn ids_times_and_hashes_are_ruled_out() {
        for text in [
            "\"id\": 186853002,",
            "\"2019-05-15T15:20:33Z\"",
            "f95f852bd8fca8fcc58a9a2d6c842781e32a215e",
            "\"node\": 4683454167}",
            "1712534467121",
            "6616973652491398",
        ] {
            assert!(!plausible(text), "{text}");
        }
        for text in [
            "4111111111111111",
            "123-45-6789",
            "\"+442079460947\"",
            "GB82 1234 5678",
            "62.126.67.69",
            "\\n0487 98 11 92",
        ] {
            assert!(plausible(text), "{text}");
        }
    }
}
