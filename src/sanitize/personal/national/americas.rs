//! The Americas.

use super::super::checks::{luhn, weighted};
use super::{as_number, digits, is_year_month_day, letters, number_is_varied, two};

/// Social Security number: no check digit; areas, groups and serials that are never
/// given out are out (SSA, 42 CFR 401).
pub(in super::super) fn us_ssn(body: &[u8]) -> bool {
    let area = body.get(..3).and_then(as_number);
    let group = body.get(3..5).and_then(as_number);
    let serial = body.get(5..).and_then(as_number);
    matches!((area, group, serial), (Some(area), Some(group), Some(serial))
        if (1..900).contains(&area) && area != 666 && group > 0 && serial > 0)
}

/// Individual taxpayer identification number: 9, and groups that are given out.
pub(in super::super) fn us_itin(body: &[u8]) -> bool {
    let group = body.get(3..5).and_then(as_number).unwrap_or(0);
    body.first() == Some(&b'9')
        && as_number(body).is_some()
        && matches!(group, 50..=65 | 70..=88 | 90..=92 | 94..=99)
}

/// Medicare beneficiary identifier: letters without S, L, O, I, B and Z.
pub(in super::super) fn us_mbi(body: &[u8]) -> bool {
    let letter = |b: u8| b.is_ascii_uppercase() && !b"SLOIBZ".contains(&b);
    let digit = |b: u8| b.is_ascii_digit();
    body.len() == 11
        && body
            .iter()
            .zip("9LE9LE9LL99".bytes())
            .all(|(b, form)| match form {
                b'9' => digit(*b),
                b'L' => letter(*b),
                _ => digit(*b) || letter(*b),
            })
        && body.first() != Some(&b'0')
}

/// ABA routing number.
pub(in super::super) fn us_routing(body: &[u8]) -> bool {
    digits::<9>(body).is_some_and(|d| {
        number_is_varied(&d) && weighted(&d, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10)
    })
}

/// Social insurance number.
pub(in super::super) fn ca_sin(body: &[u8]) -> bool {
    digits::<9>(body).is_some_and(|d| number_is_varied(&d) && luhn(&d))
}

/// Cadastro de Pessoas Físicas.
pub(in super::super) fn br_cpf(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| {
        let check = |sum: u32| u8::try_from(sum * 10 % 11 % 10).ok();
        number_is_varied(&d)
            && check(weighted(&d, &[10, 9, 8, 7, 6, 5, 4, 3, 2])) == Some(d[9])
            && check(weighted(&d, &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2])) == Some(d[10])
    })
}

/// Cadastro Nacional da Pessoa Jurídica.
pub(in super::super) fn br_cnpj(body: &[u8]) -> bool {
    digits::<14>(body).is_some_and(|d| {
        let check = |sum: u32| match sum % 11 {
            0 | 1 => Some(0),
            rest => u8::try_from(11 - rest).ok(),
        };
        number_is_varied(&d)
            && check(weighted(&d, &[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2])) == Some(d[12])
            && check(weighted(&d, &[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2])) == Some(d[13])
    })
}

/// Clave Única de Registro de Población.
pub(in super::super) fn mx_curp(body: &[u8]) -> bool {
    let Ok(body) = <&[u8; 18]>::try_from(body) else {
        return false;
    };
    let value = |b: u8| match b {
        b'0'..=b'9' => u32::from(b - b'0'),
        // Ñ stands between N and O.
        b'A'..=b'N' => u32::from(b - b'A') + 10,
        _ => u32::from(b.wrapping_sub(b'A')) + 11,
    };
    let sum: u32 = body
        .iter()
        .take(17)
        .zip((2..=18).rev())
        .map(|(b, weight)| value(*b) * weight)
        .sum();
    letters(&body[..4])
        && body[4..10].iter().all(u8::is_ascii_digit)
        && matches!(body[10], b'H' | b'M' | b'X')
        && letters(&body[11..16])
        && u32::from(body[17].wrapping_sub(b'0')) == (10 - sum % 10) % 10
}

/// Registro Federal de Contribuyentes: letters, a date, three more.
pub(in super::super) fn mx_rfc(body: &[u8]) -> bool {
    let head = body.len().saturating_sub(9);
    let date: Vec<u8> = body
        .iter()
        .skip(head)
        .take(6)
        .map(|b| b.wrapping_sub(b'0'))
        .collect();
    body.get(..head).is_some_and(letters)
        && date.iter().all(|digit| *digit < 10)
        && is_year_month_day(&date)
}

/// CUIT and CUIL.
pub(in super::super) fn ar_cuit(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| {
        let check = match 11 - weighted(&d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11 {
            11 => 0,
            10 => 9,
            check => check,
        };
        matches!(two(d[0], d[1]), 20 | 23..=27 | 30 | 33 | 34) && u32::from(d[10]) == check
    })
}

/// Rol Único Tributario: the check is a digit or K.
pub(in super::super) fn cl_rut(body: &[u8]) -> bool {
    let Some((check, number)) = body.split_last() else {
        return false;
    };
    if !number.iter().all(u8::is_ascii_digit) || !number_is_varied(number) {
        return false;
    }
    let sum: u32 = number
        .iter()
        .rev()
        .zip([2, 3, 4, 5, 6, 7].iter().cycle())
        .map(|(b, weight)| u32::from(b - b'0') * weight)
        .sum();
    let expected = match 11 - sum % 11 {
        11 => b'0',
        10 => b'K',
        digit => b'0' + u8::try_from(digit).unwrap_or(0),
    };
    *check == expected
}
