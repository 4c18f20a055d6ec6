//! Looks at eight bytes at once, and at runs of digits.

use super::{FOLD, HIGH, ONES};

/// The high bit of each byte that is `byte`, exactly.
pub(super) fn equal(word: u64, byte: u8) -> u64 {
    let other = word ^ (ONES * u64::from(byte));
    !(((other & !HIGH) + !HIGH) | other) & HIGH
}

/// Whether all eight bytes are letters, digits, `+` or `/`.
pub(super) fn is_dense(word: u64) -> bool {
    let lower = word | FOLD;
    let letter = (lower + ONES * 0x1f) & !(lower + ONES * 0x05);
    let digit = (word + ONES * 0x51) & !(word + ONES * 0x46);
    let plus = word ^ (ONES * 0x2b);
    let plus = plus.wrapping_sub(ONES) & !plus;
    (letter | digit | plus) & HIGH == HIGH
}

/// Whether a byte may stand between two digits of one number.
fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'-' | b'.' | b'/')
}

/// Where the run of digits begins that the digit at `at` is in. Runs do not reach
/// before `from`.
pub(super) fn digits_start(bytes: &[u8], at: usize, from: usize) -> usize {
    let mut start = at;
    while start > from {
        match bytes.get(..start).unwrap_or_default() {
            [.., digit] if digit.is_ascii_digit() => start -= 1,
            [.., digit, separator]
                if digit.is_ascii_digit() && is_separator(*separator) && start > from + 1 =>
            {
                start -= 2;
            }
            [.., digit, 0xc2, 0xa0] if digit.is_ascii_digit() && start > from + 2 => start -= 3,
            _ => break,
        }
    }
    start
}

/// Where the run that begins at `start` ends, and how many digits it has.
pub(super) fn digits_end(bytes: &[u8], start: usize) -> (usize, usize) {
    let (mut end, mut count) = (start, 0);
    loop {
        match bytes.get(end..).unwrap_or_default() {
            [digit, ..] if digit.is_ascii_digit() => end += 1,
            [separator, digit, ..] if is_separator(*separator) && digit.is_ascii_digit() => {
                end += 2;
            }
            [0xc2, 0xa0, digit, ..] if digit.is_ascii_digit() => end += 3,
            _ => return (end, count),
        }
        count += 1;
    }
}
