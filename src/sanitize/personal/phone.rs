//! Telephone numbers: candidates by how they are written, judged by the plans of
//! the world's countries; a word for them makes up for what a number lacks.

use phonenumber::country::Id;

/// ITU-T E.164: no number has more digits.
const MOST: usize = 15;

/// A run that is written like a number.
pub(super) struct Shape {
    plus: bool,
    bracket: bool,
    digits: String,
    /// Ends of groups: in the text, and digits up to there.
    stops: Vec<(usize, usize)>,
    /// What stands between groups, each once.
    separators: Vec<u8>,
}

impl Shape {
    /// Reads from a digit, `+` or `(`.
    pub(super) fn read(text: &str, at: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let plus = bytes.get(at) == Some(&b'+');
        let mut shape = Self {
            plus,
            bracket: false,
            digits: String::new(),
            stops: Vec::new(),
            separators: Vec::new(),
        };
        if !starts(bytes, at) {
            return None;
        }
        let mut next = at + usize::from(plus);
        loop {
            let tail = bytes.get(next..).unwrap_or_default();
            let gap = separators(tail, shape.digits.is_empty());
            let group = tail
                .get(gap..)
                .unwrap_or_default()
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count();
            if group == 0 || shape.digits.len() + group > MOST + 2 || shape.stops.len() > 8 {
                break;
            }
            let between = tail.get(..gap).unwrap_or_default();
            shape.bracket |= between.contains(&b'(');
            shape.separators.extend(between);
            shape
                .digits
                .push_str(text.get(next + gap..next + gap + group)?);
            next += gap + group;
            shape.stops.push((next, shape.digits.len()));
        }
        (shape.digits.len() >= 6).then_some(shape)
    }

    /// Where the run ends.
    pub(super) fn end(&self) -> usize {
        self.stops.last().map_or(0, |(end, _)| *end)
    }

    /// Where the number ends, if there is one. `named` says that a word for
    /// telephones stands beside it, `other` that one for something else does.
    pub(super) fn number(&self, text: &str, at: usize, named: bool, other: bool) -> Option<usize> {
        if self.is_date(text, at) || self.is_decimal() {
            return None;
        }
        for (end, len) in self.stops.iter().rev().copied() {
            let digits = self.digits.get(..len)?;
            if len < 6 {
                break;
            }
            if !ends(text.as_bytes(), end) {
                continue;
            }
            let last = end == self.end();
            if self.judge(text.get(at..end)?, digits, named, other, last) {
                return Some(with_extension(text, end));
            }
        }
        None
    }

    fn judge(&self, written: &str, digits: &str, named: bool, other: bool, last: bool) -> bool {
        if self.plus {
            return is_valid(None, &format!("+{}", without_trunk(written, digits)))
                || (last && (8..=MOST).contains(&digits.len()) && has_country(digits));
        }
        if named {
            return last && (6..=MOST).contains(&digits.len()) && is_varied(digits);
        }
        if other || self.separators.is_empty() {
            return false;
        }
        if let Some(rest) = digits.strip_prefix("00") {
            return digits.len() >= 10 && is_valid(None, &format!("+{rest}"));
        }
        is_american(written, digits) || self.is_national(digits)
    }

    /// A number with the trunk prefix, in three groups or more, that one of the
    /// plans has which people write so.
    fn is_national(&self, digits: &str) -> bool {
        const PLANS: &[Id] = &[Id::GB, Id::FR, Id::DE, Id::AU, Id::JP, Id::NL, Id::IT];
        let even = self
            .separators
            .iter()
            .all(|b| matches!(b, b' ' | b'-' | b'(' | b')'));
        digits.starts_with('0')
            && (10..=11).contains(&digits.len())
            && self.stops.len() >= 3
            && even
            && PLANS.iter().any(|plan| is_valid(Some(*plan), digits))
    }

    /// `2026-11-13 10`: year, month, day.
    fn is_date(&self, text: &str, at: usize) -> bool {
        if self.plus || self.bracket {
            return false;
        }
        let mut from = at;
        let groups: Vec<&str> = self
            .stops
            .iter()
            .take(3)
            .filter_map(|(end, _)| {
                let group = text
                    .get(from..*end)?
                    .trim_start_matches(['-', '/', '.', ' ']);
                from = *end;
                Some(group)
            })
            .collect();
        let number = |group: &str| group.parse::<u64>().unwrap_or(0);
        match groups.as_slice() {
            [year, month, day] if year.len() == 4 && month.len() == 2 && day.len() == 2 => {
                (1900..=2100).contains(&number(year)) && number(month) <= 12 && number(day) <= 31
            }
            [day, month, year] if day.len() == 2 && month.len() == 2 && year.len() == 4 => {
                (1900..=2100).contains(&number(year)) && number(month) <= 31 && number(day) <= 31
            }
            _ => false,
        }
    }

    /// One point and nothing else between digits.
    fn is_decimal(&self) -> bool {
        self.separators == [b'.']
    }
}

/// No letter, digit, point or sign of another number stands before it.
fn starts(bytes: &[u8], at: usize) -> bool {
    match bytes.get(..at).unwrap_or_default() {
        [.., b'\\', b'n' | b'r' | b't'] | [] => true,
        [.., digit, b'-' | b'/' | b'.'] => !digit.is_ascii_alphanumeric(),
        [.., last] => !last.is_ascii_alphanumeric() && !matches!(last, b'_' | b'@' | b'$' | b'%'),
    }
}

/// No letter, digit or sign of a longer name stands behind it; a word after a hyphen
/// may (`-Fax`).
fn ends(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at..).unwrap_or_default() {
        [b'-', next, ..] => !next.is_ascii_digit(),
        [b'.' | b'/' | b':', next, ..] => !next.is_ascii_digit(),
        [b'x' | b'X', next, ..] => next.is_ascii_digit(),
        [next, ..] => !next.is_ascii_alphanumeric() && !matches!(next, b'_' | b'@' | b'%'),
        [] => true,
    }
}

/// How many bytes separate two groups.
fn separators(tail: &[u8], first: bool) -> usize {
    match tail {
        [b'(', ..] if first => 1,
        _ if first => 0,
        [b')', b' ' | b'-' | b'.', next, ..] if next.is_ascii_digit() => 2,
        [b')', next, ..] if next.is_ascii_digit() => 1,
        [b' ', b'(', next, ..] if next.is_ascii_digit() => 2,
        [b'(', next, ..] if next.is_ascii_digit() => 1,
        [b' ', b'-', b' ', next, ..] if next.is_ascii_digit() => 3,
        [b' ' | b'-' | b'.' | b'/', next, ..] if next.is_ascii_digit() => 1,
        _ => 0,
    }
}

/// `x4587`, `ext. 12`, `#9`.
fn with_extension(text: &str, end: usize) -> usize {
    let tail = text.get(end..).unwrap_or_default();
    let trimmed = tail.trim_start_matches([' ', ',']);
    let word = ["extension", "ext.", "ext", "x", "X", "#"]
        .iter()
        .find_map(|word| trimmed.strip_prefix(word));
    let Some(rest) = word else {
        return end;
    };
    let rest = rest.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=7).contains(&digits) && tail.len() - rest.len() <= 14 {
        end + (tail.len() - rest.len()) + digits
    } else {
        end
    }
}

/// The digits without a trunk prefix in brackets: `+41 (0)69`.
fn without_trunk(written: &str, digits: &str) -> String {
    match written.split_once("(0)") {
        Some((head, tail)) => head
            .chars()
            .chain(tail.chars())
            .filter(char::is_ascii_digit)
            .collect(),
        None => digits.to_owned(),
    }
}

fn is_valid(country: Option<Id>, number: &str) -> bool {
    phonenumber::parse(country, number).is_ok_and(|number| phonenumber::is_valid(&number))
}

/// Whether digits begin with a calling code that is given out.
fn has_country(digits: &str) -> bool {
    let code = |len: usize| digits.get(..len).and_then(|code| code.parse::<u16>().ok());
    (1..=3)
        .filter_map(code)
        .any(|code| phonenumber::metadata::DATABASE.by_code(&code).is_some())
        && is_varied(digits)
}

fn is_varied(digits: &str) -> bool {
    digits.bytes().any(|b| Some(b) != digits.bytes().next())
}

/// North America's plan, written as its people write it.
fn is_american(written: &str, digits: &str) -> bool {
    let national = match digits.len() {
        10 => digits,
        11 => match digits.strip_prefix('1') {
            Some(national) => national,
            None => return false,
        },
        _ => return false,
    };
    let shape: String = written
        .chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c })
        .collect();
    let usual = [
        "999-999-9999",
        "(999) 999-9999",
        "(999)999-9999",
        "(999)-999-9999",
        "999.999.9999",
        "9-999-999-9999",
        "9 (999) 999-9999",
        "9 999 999 9999",
        "9.999.999.9999",
        "999 999-9999",
        "(999) 999 9999",
        "(999) 999.9999",
    ];
    let codes = [national.get(..1), national.get(3..4)]
        .iter()
        .all(|first| first.is_some_and(|first| !matches!(first, "0" | "1")));
    usual.contains(&shape.as_str()) && codes && is_varied(national)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str, named: bool) -> Option<&str> {
        let end = Shape::read(text, 0)?.number(text, 0, named, false)?;
        Some(&text[..end])
    }

    #[test]
    fn numbers_are_known_by_how_they_are_written() {
        for text in [
            "+91 60616 75540",
            "+61 491 570 157",
            "+442079460947",
            "+49 30 23125 847",
            "+1 (303) 555-0184",
            "+41 (0)69 979 80 58",
            "(212) 555-0104",
            "212-555-0104",
            "1-984-182-0190",
            "0044 20 7946 0345",
            "020 7946 0345",
            "+1 718 555 0176 ext. 12",
        ] {
            let expected = (text != "1-984-182-0190").then_some(text);
            assert_eq!(number(text, false), expected, "{text}");
        }
    }

    #[test]
    fn a_word_makes_up_for_what_a_number_lacks() {
        for text in [
            "0487 98 11 92",
            "434 14 557",
            "60-56-85-91",
            "450 0840",
            "345-899-3560x4587",
            "5403926876",
        ] {
            assert_eq!(number(text, true), Some(text), "{text}");
            assert_eq!(
                number(text, false).filter(|_| !text.starts_with(['0', '3'])),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn times_dates_and_decimals_stay() {
        for text in [
            "2026-11-13 10",
            "13.11.2026",
            "1767891648",
            "222-8219",
            "000-47-4521",
            "+55.303090",
            "10.0.20921.356",
            "1234567890123456",
        ] {
            assert_eq!(number(text, false), None, "{text}");
        }
        assert_eq!(number("2026-11-13", true), None);
    }
}
