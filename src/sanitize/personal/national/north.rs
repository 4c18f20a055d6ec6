//! Britain, Ireland and the north of Europe.

use super::super::checks::{is_day, luhn, number, weighted};
use super::{as_number, digits, is_day_month_year, is_year_month_day, number_is_varied, two};

/// National Insurance number: prefixes that are never given out are out (HMRC
/// NIM39110).
pub(in super::super) fn uk_nino(body: &[u8]) -> bool {
    let &[first, second, ref rest @ ..] = body else {
        return false;
    };
    let Some((suffix, middle)) = rest.split_last() else {
        return false;
    };
    first.is_ascii_uppercase()
        && second.is_ascii_uppercase()
        && !b"DFIQUV".contains(&first)
        && !b"DFIQUVO".contains(&second)
        && !["BG", "GB", "NK", "KN", "TN", "NT", "ZZ"]
            .iter()
            .any(|prefix| prefix.as_bytes() == [first, second])
        && middle.len() == 6
        && as_number(middle).is_some()
        && matches!(suffix, b'A'..=b'D')
}

/// NHS number.
pub(in super::super) fn uk_nhs(body: &[u8]) -> bool {
    digits::<10>(body).is_some_and(|d| {
        let check = 11 - weighted(&d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
        number_is_varied(&d) && check != 10 && u32::from(d[9]) == check % 11
    })
}

/// Unique Taxpayer Reference: the check stands first.
pub(in super::super) fn uk_utr(body: &[u8]) -> bool {
    digits::<10>(body).is_some_and(|d| {
        let rest = weighted(&d[1..], &[6, 7, 8, 9, 10, 5, 4, 3, 2]) % 11;
        let check = match rest {
            0 => 2,
            1 => 1,
            rest => 11 - rest,
        };
        number_is_varied(&d) && u32::from(d[0]) == check
    })
}

/// Personal Public Service number.
pub(in super::super) fn ie_pps(body: &[u8]) -> bool {
    let Some((head, tail)) = body.split_first_chunk::<7>() else {
        return false;
    };
    let Some(d) = digits::<7>(head) else {
        return false;
    };
    let (check, second) = match tail {
        [check] => (*check, 0),
        [check, b'W'] => (*check, 0),
        [check, second @ b'A'..=b'I'] => (*check, u32::from(second - b'A') + 1),
        _ => return false,
    };
    let rest = (weighted(&d, &[8, 7, 6, 5, 4, 3, 2]) + second * 9) % 23;
    let expected = match u8::try_from(rest) {
        Ok(0) | Err(_) => b'W',
        Ok(rest) => b'A' + rest - 1,
    };
    check == expected
}

/// Personnummer and samordningsnummer, whose day is greater by sixty.
pub(in super::super) fn se_personnummer(body: &[u8]) -> bool {
    let Some(tail) = body.last_chunk::<10>() else {
        return false;
    };
    let century = body.len() == 10 || body.starts_with(b"19") || body.starts_with(b"20");
    century
        && body.len() != 11
        && digits::<10>(tail).is_some_and(|d| {
            let day = two(d[4], d[5]);
            is_day(two(d[2], d[3]), if day > 60 { day - 60 } else { day }) && luhn(&d)
        })
}

/// Fødselsnummer, and the D number whose first digit is greater by four.
pub(in super::super) fn no_fnr(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| {
        let first = weighted(&d, &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1]);
        let second = weighted(&d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]);
        number_is_varied(&d) && first.is_multiple_of(11) && second.is_multiple_of(11)
    })
}

/// CPR: a date; the check digit is given up since 2007.
pub(in super::super) fn dk_cpr(body: &[u8]) -> bool {
    digits::<10>(body).is_some_and(|d| is_day_month_year(&d[..6]))
}

/// Henkilötunnus: the sign of the century is a letter or went with the separators.
pub(in super::super) fn fi_hetu(body: &[u8]) -> bool {
    let Some((head, tail)) = body.split_first_chunk::<6>() else {
        return false;
    };
    let serial = match tail {
        [serial @ .., check] if serial.len() == 3 => Some((serial, check)),
        [b'A'..=b'F' | b'U'..=b'Y', serial @ .., check] if serial.len() == 3 => {
            Some((serial, check))
        }
        _ => None,
    };
    let (Some((serial, check)), Some(date)) = (serial, digits::<6>(head)) else {
        return false;
    };
    let Some(serial) = as_number(serial) else {
        return false;
    };
    let rest = usize::try_from((number(&date) * 1000 + serial) % 31).unwrap_or(0);
    is_day_month_year(&date) && b"0123456789ABCDEFHJKLMNPRSTUVWXY".get(rest) == Some(check)
}

/// Isikukood and asmens kodas.
pub(in super::super) fn ee_isikukood(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| {
        let first = weighted(&d, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
        let second = weighted(&d, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11;
        let check = match (first, second) {
            (10, 10) => 0,
            (10, second) => second,
            (first, _) => first,
        };
        matches!(d[0], 1..=8) && is_year_month_day(&d[1..7]) && u32::from(d[10]) == check
    })
}
