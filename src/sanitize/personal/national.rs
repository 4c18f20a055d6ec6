//! Check digits and forms of national numbers. Each function judges letters and
//! digits in upper case, of the length that its kind has.

mod americas;
mod asia;
mod east;
mod north;
mod south;

pub(super) use americas::*;
pub(super) use asia::*;
pub(super) use east::*;
pub(super) use north::*;
pub(super) use south::*;

use super::checks::{is_day, number};

/// The digits, where all characters are.
fn digits<const N: usize>(body: &[u8]) -> Option<[u8; N]> {
    let body: [u8; N] = body.try_into().ok()?;
    body.iter()
        .all(u8::is_ascii_digit)
        .then(|| body.map(|b| b - b'0'))
}

/// Two digits as a number.
fn two(tens: u8, ones: u8) -> u64 {
    u64::from(tens) * 10 + u64::from(ones)
}

/// Whether six digits are a day, a month and a year of two digits.
fn is_day_month_year(date: &[u8]) -> bool {
    matches!(date, [d1, d2, m1, m2, _, _] if is_day(two(*m1, *m2), two(*d1, *d2)))
}

/// Whether six digits are a year of two digits, a month and a day.
fn is_year_month_day(date: &[u8]) -> bool {
    matches!(date, [_, _, m1, m2, d1, d2] if is_day(two(*m1, *m2), two(*d1, *d2)))
}

pub(super) fn all_digits(body: &[u8]) -> bool {
    body.iter().all(u8::is_ascii_digit) && number_is_varied(body)
}

/// Not one digit over and over.
fn number_is_varied(body: &[u8]) -> bool {
    body.iter().any(|b| Some(b) != body.first())
}

/// Numbers without a form: what counts is that they are numbers.
pub(super) fn many_digits(body: &[u8]) -> bool {
    body.iter().filter(|b| b.is_ascii_digit()).count() >= 4 && number_is_varied(body)
}

/// Passports: up to three letters before digits, or letters among them as Germany
/// has it.
pub(super) fn passport(body: &[u8]) -> bool {
    let count = body.iter().filter(|b| b.is_ascii_digit()).count();
    let letters_first = body
        .iter()
        .skip_while(|b| b.is_ascii_alphabetic())
        .all(u8::is_ascii_digit);
    count + 3 >= body.len() && letters_first && count >= 5 || (body.len() == 9 && count >= 4)
}

/// `MRN` and the number.
pub(super) fn labelled_record(body: &[u8]) -> bool {
    body.strip_prefix(b"MRN")
        .is_some_and(|rest| rest.len() >= 5 && rest.iter().all(u8::is_ascii_digit))
}

fn letters(body: &[u8]) -> bool {
    body.iter().all(u8::is_ascii_uppercase)
}

fn as_number(body: &[u8]) -> Option<u64> {
    body.iter()
        .all(u8::is_ascii_digit)
        .then(|| number(&body.iter().map(|b| b - b'0').collect::<Vec<u8>>()))
}

#[cfg(test)]
mod tests;
