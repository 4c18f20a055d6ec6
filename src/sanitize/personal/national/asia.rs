//! Asia, Africa and Oceania.

use super::super::checks::{is_birthday, luhn, number, verhoeff, weighted};
use super::{
    as_number, digits, is_day_month_year, is_year_month_day, letters, number_is_varied, two,
};

/// Aadhaar.
pub(in super::super) fn in_aadhaar(body: &[u8]) -> bool {
    digits::<12>(body).is_some_and(|d| d[0] > 1 && number_is_varied(&d) && verhoeff(&d))
}

/// Permanent account number: the fourth letter says what the holder is.
pub(in super::super) fn in_pan(body: &[u8]) -> bool {
    let Ok(body) = <&[u8; 10]>::try_from(body) else {
        return false;
    };
    letters(&body[..5])
        && b"ABCEFGHJKLPT".contains(&body[3])
        && as_number(&body[5..9]).is_some_and(|serial| serial > 0)
        && body[9].is_ascii_uppercase()
}

/// One of a person.
pub(in super::super) fn in_pan_of_person(body: &[u8]) -> bool {
    in_pan(body) && body.get(3) == Some(&b'P')
}

/// Resident identity number (GB 11643): region, birthday, serial, check.
pub(in super::super) fn cn_id(body: &[u8]) -> bool {
    let Some((head, [check])) = body.split_first_chunk::<17>() else {
        return false;
    };
    digits::<17>(head).is_some_and(|d| {
        let sum = weighted(&d, &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
        matches!(two(d[0], d[1]), 11..=83)
            && is_birthday(number(&d[6..10]), two(d[10], d[11]), two(d[12], d[13]))
            && b"10X98765432".get(sum as usize) == Some(check)
    })
}

/// Resident registration number: those given since October 2020 have no check digit.
pub(in super::super) fn kr_rrn(body: &[u8]) -> bool {
    digits::<13>(body).is_some_and(|d| is_year_month_day(&d[..6]) && matches!(d[6], 1..=8))
}

/// One with a check digit.
pub(in super::super) fn kr_rrn_checked(body: &[u8]) -> bool {
    kr_rrn(body)
        && digits::<13>(body).is_some_and(|d| {
            let sum = weighted(&d, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]);

            // Foreigners' numbers are checked with another remainder.
            u32::from(d[12]) == (11 - sum % 11) % 10 || u32::from(d[12]) == (13 - sum % 11) % 10
        })
}

/// Individual number ("My Number").
pub(in super::super) fn jp_my_number(body: &[u8]) -> bool {
    digits::<12>(body).is_some_and(|d| {
        let rest = weighted(&d, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
        let check = if rest <= 1 { 0 } else { 11 - rest };
        number_is_varied(&d) && u32::from(d[11]) == check
    })
}

/// Identity number of Taiwan: a letter that stands for two digits.
pub(in super::super) fn tw_id(body: &[u8]) -> bool {
    let [letter, rest @ ..] = body else {
        return false;
    };
    let place = b"ABCDEFGHJKLMNPQRSTUVXYWZIO"
        .iter()
        .position(|b| b == letter)
        .map(|at| u32::try_from(at).unwrap_or(0) + 10);
    let (Some(place), Some(d)) = (place, digits::<9>(rest)) else {
        return false;
    };
    let sum = place / 10 + place % 10 * 9 + weighted(&d, &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
    matches!(d[0], 1 | 2 | 8 | 9) && sum.is_multiple_of(10)
}

/// Identity card of Hong Kong.
pub(in super::super) fn hk_id(body: &[u8]) -> bool {
    let head = body.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let (prefix, rest) = body.split_at_checked(head).unwrap_or_default();
    let Some((number, [check])) = rest.split_first_chunk::<6>() else {
        return false;
    };
    let place = |b: u8| u32::from(b - b'A') + 10;
    let letters = match prefix {
        [one] => 36 * 9 + place(*one) * 8,
        [first, second] => place(*first) * 9 + place(*second) * 8,
        _ => return false,
    };
    let check = match check {
        b'A' => 10,
        digit => u32::from(digit.wrapping_sub(b'0')),
    };
    digits::<6>(number)
        .is_some_and(|d| (letters + weighted(&d, &[7, 6, 5, 4, 3, 2]) + check).is_multiple_of(11))
}

/// NRIC and FIN of Singapore.
pub(in super::super) fn sg_nric(body: &[u8]) -> bool {
    let [kind, middle @ .., check] = body else {
        return false;
    };
    let Some(d) = digits::<7>(middle) else {
        return false;
    };
    let offset = if matches!(kind, b'T' | b'G') { 4 } else { 0 };
    let rest = (weighted(&d, &[2, 7, 6, 5, 4, 3, 2]) + offset) % 11;
    let table: &[u8; 11] = match kind {
        b'S' | b'T' => b"JZIHGFEDCBA",
        b'F' | b'G' => b"XWUTRQPNMLK",
        _ => return false,
    };
    table.get(rest as usize) == Some(check)
}

/// Identity number of Thailand.
pub(in super::super) fn th_id(body: &[u8]) -> bool {
    digits::<13>(body).is_some_and(|d| {
        let sum = weighted(&d, &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
        d[0] != 0 && u32::from(d[12]) == (11 - sum % 11) % 10
    })
}

/// `MyKad`: birthday, place, serial.
pub(in super::super) fn my_nric(body: &[u8]) -> bool {
    digits::<12>(body)
        .is_some_and(|d| is_year_month_day(&d[..6]) && matches!(two(d[6], d[7]), 1..=16 | 21..=93))
}

/// Nomor induk kependudukan: the day of women is greater by forty.
pub(in super::super) fn id_nik(body: &[u8]) -> bool {
    digits::<16>(body).is_some_and(|mut d| {
        if d[6] >= 4 {
            d[6] -= 4;
        }
        matches!(two(d[0], d[1]), 11..=94) && is_day_month_year(&d[6..12])
    })
}

/// Tax file number.
pub(in super::super) fn au_tfn(body: &[u8]) -> bool {
    if let Some(d) = digits::<8>(body) {
        return weighted(&d, &[10, 7, 8, 4, 6, 3, 5, 1]).is_multiple_of(11);
    }
    digits::<9>(body).is_some_and(|d| {
        number_is_varied(&d) && weighted(&d, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11)
    })
}

/// Medicare card number; an eleventh digit is the person's on the card.
pub(in super::super) fn au_medicare(body: &[u8]) -> bool {
    body.first_chunk::<10>()
        .and_then(|head| digits::<10>(head))
        .is_some_and(|d| {
            let sum = weighted(&d, &[1, 3, 7, 9, 1, 3, 7, 9]);
            matches!(d[0], 2..=6) && u32::from(d[8]) == sum % 10
        })
        && body.iter().all(u8::is_ascii_digit)
}

/// Business number.
pub(in super::super) fn au_abn(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|mut d| {
        d[0] = d[0].wrapping_sub(1);
        d[0] < 9 && weighted(&d, &[10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]).is_multiple_of(89)
    })
}

/// Inland Revenue number: a second set of weights where the first leaves ten.
pub(in super::super) fn nz_ird(body: &[u8]) -> bool {
    let padded = if body.len() == 8 {
        [b"0", body].concat()
    } else {
        body.to_vec()
    };
    digits::<9>(&padded).is_some_and(|d| {
        let check = |sum: u32| (11 - sum % 11) % 11;
        let first = check(weighted(&d, &[3, 2, 7, 6, 5, 4, 3, 2]));
        let second = check(weighted(&d, &[7, 4, 3, 2, 5, 2, 7, 6]));
        let expected = if first == 10 { second } else { first };
        number_is_varied(&d) && u32::from(d[8]) == expected
    })
}

/// Identity number of South Africa: birthday, serial, citizenship, Luhn.
pub(in super::super) fn za_id(body: &[u8]) -> bool {
    digits::<13>(body).is_some_and(|d| is_year_month_day(&d[..6]) && d[10] < 3 && luhn(&d))
}
