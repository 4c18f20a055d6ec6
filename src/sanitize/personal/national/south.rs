//! The west and south of Europe.

use super::super::checks::{luhn, mod_11_10, number, weighted};
use super::{as_number, digits, letters, number_is_varied, two};

/// Steuerliche Identifikationsnummer.
pub(in super::super) fn de_steuer_id(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| d[0] != 0 && number_is_varied(&d) && mod_11_10(&d))
}

/// Number of an identity card; its tenth character checks the others (ICAO 9303).
pub(in super::super) fn de_id_card(body: &[u8]) -> bool {
    let Some((number, check)) = body.split_first_chunk::<9>() else {
        return false;
    };
    let value = |b: u8| match b {
        b'0'..=b'9' => u32::from(b - b'0'),
        _ => u32::from(b.wrapping_sub(b'A')) + 10,
    };
    let sum: u32 = number
        .iter()
        .zip([7, 3, 1].iter().cycle())
        .map(|(b, weight)| value(*b) * weight)
        .sum();
    let has_digits = number.iter().filter(|b| b.is_ascii_digit()).count() >= 3;
    has_digits
        && match check {
            [] => true,
            [check] => check.is_ascii_digit() && u32::from(check - b'0') == sum % 10,
            _ => false,
        }
}

/// Rentenversicherungsnummer: area, birthday, a letter, serial, check.
pub(in super::super) fn de_social_security(body: &[u8]) -> bool {
    let Ok(body) = <&[u8; 12]>::try_from(body) else {
        return false;
    };
    let letter = body[8];
    if !letter.is_ascii_uppercase()
        || as_number(&body[..8]).is_none()
        || as_number(&body[9..]).is_none()
    {
        return false;
    }
    let place = letter - b'A' + 1;
    let mut d: Vec<u8> = body[..8].iter().map(|b| b - b'0').collect();
    d.extend([place / 10, place % 10, body[9] - b'0', body[10] - b'0']);
    let sum: u32 = d
        .iter()
        .zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1])
        .map(|(digit, weight)| {
            let product = u32::from(*digit) * weight;
            product / 10 + product % 10
        })
        .sum();
    u32::from(body[11] - b'0') == sum % 10
}

/// Numéro d'inscription au répertoire: Corsica's letters count as 19 and 18.
pub(in super::super) fn fr_nir(body: &[u8]) -> bool {
    let Ok(mut body) = <[u8; 15]>::try_from(body) else {
        return false;
    };
    match (body[5], body[6]) {
        (b'2', b'A') => (body[5], body[6]) = (b'1', b'9'),
        (b'2', b'B') => (body[5], body[6]) = (b'1', b'8'),
        _ => {}
    }
    digits::<15>(&body).is_some_and(|d| {
        let month = two(d[3], d[4]);
        matches!(d[0], 1..=4 | 7 | 8)
            && matches!(month, 1..=12 | 20 | 30..=42 | 50..=99)
            && 97 - number(&d[..13]) % 97 == number(&d[13..])
    })
}

const DNI_LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";

fn dni_letter(number: u64) -> Option<&'static u8> {
    DNI_LETTERS.get(usize::try_from(number % 23).unwrap_or(0))
}

/// Documento nacional de identidad.
pub(in super::super) fn es_dni(body: &[u8]) -> bool {
    body.split_last()
        .is_some_and(|(letter, number)| as_number(number).and_then(dni_letter) == Some(letter))
}

/// Número de identidad de extranjero: X, Y, Z stand for 0, 1, 2.
pub(in super::super) fn es_nie(body: &[u8]) -> bool {
    let [first @ b'X'..=b'Z', middle @ .., letter] = body else {
        return false;
    };
    as_number(middle).and_then(|number| dni_letter(u64::from(first - b'X') * 10_000_000 + number))
        == Some(letter)
}

/// Código de identificación fiscal: the control is a digit or a letter.
pub(in super::super) fn es_cif(body: &[u8]) -> bool {
    let [kind, middle @ .., control] = body else {
        return false;
    };
    let Some(d) = digits::<7>(middle) else {
        return false;
    };
    let doubled = |digit: u8| u32::from(digit) * 2 / 10 + u32::from(digit) * 2 % 10;
    let odd: u32 = d.iter().step_by(2).map(|digit| doubled(*digit)).sum();
    let even: u32 = d
        .iter()
        .skip(1)
        .step_by(2)
        .map(|digit| u32::from(*digit))
        .sum();
    let check = (10 - (odd + even) % 10) % 10;
    let as_letter = b"JABCDEFGHI".get(check as usize);
    b"ABCDEFGHJNPQRSUVW".contains(kind)
        && (u32::from(control.wrapping_sub(b'0')) == check || Some(control) == as_letter)
}

/// Codice fiscale, with letters in place of digits where two persons would have the
/// same.
pub(in super::super) fn it_cf(body: &[u8]) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let Ok(body) = <&[u8; 16]>::try_from(body) else {
        return false;
    };
    let is_digit = |b: &u8| b.is_ascii_digit() || b"LMNPQRSTUV".contains(b);
    let formed = letters(&body[..6])
        && body[6..8].iter().all(is_digit)
        && b"ABCDEHLMPRST".contains(&body[8])
        && body[9..11].iter().all(is_digit)
        && body[11].is_ascii_uppercase()
        && body[12..15].iter().all(is_digit)
        && body[15].is_ascii_uppercase();
    let index = |b: u8| {
        if b.is_ascii_digit() {
            b - b'0'
        } else {
            b.wrapping_sub(b'A')
        }
    };
    let sum: u32 = body
        .iter()
        .take(15)
        .enumerate()
        .map(|(nth, b)| match nth % 2 {
            0 => ODD.get(usize::from(index(*b))).copied().unwrap_or(0),
            _ => u32::from(index(*b)),
        })
        .sum();
    formed && u32::from(body[15] - b'A') == sum % 26
}

/// Burgerservicenummer: the eleven test; eight digits have lost a zero.
pub(in super::super) fn nl_bsn(body: &[u8]) -> bool {
    let padded;
    let body = if body.len() == 8 {
        padded = [b"0", body].concat();
        padded.as_slice()
    } else {
        body
    };
    digits::<9>(body).is_some_and(|d| {
        let sum = weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2, 10]);
        number_is_varied(&d) && sum.is_multiple_of(11)
    })
}

/// Rijksregisternummer: those born since 2000 count with a 2 before.
pub(in super::super) fn be_nrn(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| {
        let number_9 = number(&d[..9]);
        let check = number(&d[9..]);
        let month = two(d[2], d[3]) % 20;
        (0..=12).contains(&month)
            && number_is_varied(&d)
            && (97 - number_9 % 97 == check || 97 - (2_000_000_000 + number_9) % 97 == check)
    })
}

/// Número de identificação fiscal.
pub(in super::super) fn pt_nif(body: &[u8]) -> bool {
    digits::<9>(body).is_some_and(|d| {
        let check = match 11 - weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11 {
            10 | 11 => 0,
            check => check,
        };
        matches!(d[0], 1..=3 | 5 | 6 | 8 | 9) && number_is_varied(&d) && u32::from(d[8]) == check
    })
}

/// AHV number: 756 and the check digit of an EAN-13.
pub(in super::super) fn ch_ahv(body: &[u8]) -> bool {
    digits::<13>(body).is_some_and(|d| {
        d.starts_with(&[7, 5, 6])
            && weighted(&d, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]).is_multiple_of(10)
    })
}

/// Sozialversicherungsnummer: the check stands fourth.
pub(in super::super) fn at_svnr(body: &[u8]) -> bool {
    digits::<10>(body).is_some_and(|d| {
        let sum = weighted(&d, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]) % 11;
        d[0] != 0 && u32::from(d[3]) == sum
    })
}

/// AMKA: a date and Luhn.
pub(in super::super) fn gr_amka(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| super::is_day_month_year(&d[..6]) && luhn(&d))
}
