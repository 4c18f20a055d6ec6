//! Dates as people write them, for birthdays.

use super::checks::is_birthday;

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "mär", "apr", "may", "mai", "jun", "jul", "aug", "sep", "oct", "okt",
    "nov", "dec", "dez", "ene", "fév", "fev", "avr", "abr", "mag", "mei", "giu", "lug", "aoû",
    "ago", "set", "out", "ott", "déc", "dic", "gen", "juin", "juil",
];

/// A part of a date and where it ends.
#[derive(Clone, Copy)]
enum Part {
    Number { value: u64, len: usize },
    Month,
}

fn month_of(word: &str) -> bool {
    let head: String = word.chars().take(4).flat_map(char::to_lowercase).collect();
    MONTHS.iter().any(|month| head.starts_with(month)) && word.chars().count() <= 10
}

/// Whether a word could be a month; a cheap look.
pub(super) fn begins_with_month(word: &[u8]) -> bool {
    word.len() >= 3 && word.len() <= 10 && std::str::from_utf8(word).is_ok_and(month_of)
}

fn part(text: &str, at: usize) -> Option<(Part, usize)> {
    let rest = text.get(at..)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        let value = rest.get(..digits).filter(|_| digits <= 4)?.parse().ok()?;
        let ordinal = ["st", "nd", "rd", "th"].iter().any(|end| {
            rest.get(digits..digits + 2)
                .is_some_and(|tail| tail.eq_ignore_ascii_case(end))
        });
        let end = at + digits + if ordinal { 2 } else { 0 };
        return Some((Part::Number { value, len: digits }, end));
    }
    let len: usize = rest
        .chars()
        .take_while(|c| c.is_alphabetic())
        .map(char::len_utf8)
        .sum();
    let word = rest.get(..len)?;
    (word.chars().count() >= 3 && month_of(word)).then_some((Part::Month, at + len))
}

/// What may stand between the parts: `/`, `-`, `.`, a space, `, `, ` of `, ` de `,
/// the signs for year and month.
fn separator(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    for longer in [
        ", ", ". ", " of ", " de ", " / ", " - ", "-", "/", ".", " ", "年", "月", "년 ", "월 ",
    ] {
        if rest.starts_with(longer) {
            return Some(at + longer.len());
        }
    }
    None
}

/// Where the date at `at` ends.
pub(super) fn date(text: &str, at: usize) -> Option<usize> {
    if let Some(packed) = text.get(at..at + 8)
        && is_packed(packed)
        && !text
            .as_bytes()
            .get(at + 8)
            .is_some_and(u8::is_ascii_alphanumeric)
    {
        return Some(at + 8);
    }
    let (first, end) = part(text, at)?;
    let (second, end) = part(text, separator(text, end)?)?;
    let (third, end) = part(text, separator(text, end)?)?;
    let ends = text
        .get(end..)
        .is_none_or(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    let end = match text.get(end..) {
        Some(rest) if rest.starts_with(['日', '일']) => end + '日'.len_utf8(),
        _ => end,
    };
    (ends && is_date(first, second, third)).then_some(end)
}

fn is_date(first: Part, second: Part, third: Part) -> bool {
    let full = |value: u64, len: usize| match len {
        2 => Some(1900 + value),
        4 => Some(value),
        _ => None,
    };
    match (first, second, third) {
        (
            Part::Number {
                value: year,
                len: 4,
            },
            Part::Number { value: month, .. },
            Part::Number { value: day, .. },
        ) => is_birthday(year, month, day),
        (
            Part::Number { value: day, .. },
            Part::Number { value: month, .. },
            Part::Number { value, len },
        ) => full(value, len)
            .is_some_and(|year| is_birthday(year, month, day) || is_birthday(year, day, month)),
        (
            Part::Number {
                value: year,
                len: 4,
            },
            Part::Month,
            Part::Number { value: day, .. },
        )
        | (
            Part::Number { value: day, .. },
            Part::Month,
            Part::Number {
                value: year,
                len: 4,
            },
        )
        | (
            Part::Month,
            Part::Number { value: day, .. },
            Part::Number {
                value: year,
                len: 4,
            },
        ) => is_birthday(year, 1, day),
        (Part::Number { value: day, .. }, Part::Month, Part::Number { value, len: 2 }) => {
            is_birthday(1900 + value, 1, day)
        }
        _ => false,
    }
}

/// Whether eight digits are year, month and day.
pub(super) fn is_packed(text: &str) -> bool {
    let number = |from: usize, to: usize| -> Option<u64> { text.get(from..to)?.parse().ok() };
    text.len() == 8
        && text.bytes().all(|b| b.is_ascii_digit())
        && matches!((number(0, 4), number(4, 6), number(6, 8)), (Some(year), Some(month), Some(day))
            if is_birthday(year, month, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_people_write_them() {
        for text in [
            "1990-08-01",
            "05/12/2002",
            "12/16/1992",
            "1.2.1985",
            "12 March 1985",
            "12th of March, 1985",
            "March 12, 1985",
            "12-Mar-85",
            "19850312",
            "1985年3月12日",
            "3 mai 1970",
            "15 de enero de 1990",
        ] {
            assert_eq!(date(text, 0), Some(text.len()), "{text}");
        }
        for text in [
            "10.0.20921",
            "1-2",
            "13/13/1999",
            "99/99/9999",
            "3 cats 1970",
            "12345678",
        ] {
            assert_eq!(date(text, 0), None, "{text}");
        }
    }
}
