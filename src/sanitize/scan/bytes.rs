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

/// Bytes that numbers are written with, one bit each: digits, `-`, `.`, `/`, spaces.
/// Bytes beyond ASCII count, since a space that does not break is two of them.
pub(super) fn numeric(word: u64) -> u32 {
    let low = word & !HIGH;
    let from = low + ONES * (0x80 - 0x2d);
    let beyond = low + ONES * (0x7f - 0x39);
    let numeric = (from & !beyond | word | equal(word, b' ')) & HIGH;
    // Gathers the high bits: the first byte's becomes the lowest.
    let bits = (numeric >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    u32::try_from(bits).unwrap_or(0)
}

/// How many of the eight bytes are digits.
pub(super) fn digits(word: u64) -> u64 {
    let digit = word ^ 0x3030_3030_3030_3030;
    let digits = !(((digit & !HIGH) + 0x7676_7676_7676_7676) | digit) & HIGH;
    (digits >> 7).wrapping_mul(ONES) >> 56
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
