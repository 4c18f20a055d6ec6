//! The middle and east of Europe, and Turkey.

use super::super::checks::{is_day, mod_11_10, number, weighted};
use super::{as_number, digits, number_is_varied, two};

/// PESEL: centuries are coded in the month.
pub(in super::super) fn pl_pesel(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| {
        let sum = weighted(&d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]);
        is_day(two(d[2], d[3]) % 20, two(d[4], d[5])) && sum.is_multiple_of(10)
    })
}

/// NIP.
pub(in super::super) fn pl_nip(body: &[u8]) -> bool {
    digits::<10>(body).is_some_and(|d| {
        let sum = weighted(&d, &[6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11;
        number_is_varied(&d) && u32::from(d[9]) == sum
    })
}

/// Rodné číslo: months of women are greater by fifty, and by twenty more where
/// numbers ran out.
pub(in super::super) fn cz_rc(body: &[u8]) -> bool {
    let Some(value) = as_number(body) else {
        return false;
    };
    let Some(month) = body.get(2..4).and_then(as_number) else {
        return false;
    };
    let day = body.get(4..6).and_then(as_number).unwrap_or(0);
    is_day(month % 50 % 20, day) && (body.len() == 9 || value.is_multiple_of(11))
}

/// Cod numeric personal.
pub(in super::super) fn ro_cnp(body: &[u8]) -> bool {
    digits::<13>(body).is_some_and(|d| {
        let check = match weighted(&d, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11 {
            10 => 1,
            check => check,
        };
        d[0] != 0 && is_day(two(d[3], d[4]), two(d[5], d[6])) && u32::from(d[12]) == check
    })
}

/// EGN: centuries are coded in the month.
pub(in super::super) fn bg_egn(body: &[u8]) -> bool {
    digits::<10>(body).is_some_and(|d| {
        let check = weighted(&d, &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10;
        is_day(two(d[2], d[3]) % 20, two(d[4], d[5])) && u32::from(d[9]) == check
    })
}

/// OIB.
pub(in super::super) fn hr_oib(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| number_is_varied(&d) && mod_11_10(&d))
}

/// T.C. kimlik numarası: two check digits.
pub(in super::super) fn tr_tckn(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| {
        let odd = weighted(&d, &[7, 0, 7, 0, 7, 0, 7, 0, 7]);
        let even = weighted(&d, &[0, 1, 0, 1, 0, 1, 0, 1]);
        let sum = weighted(&d, &[1; 10]);
        d[0] != 0 && u32::from(d[9]) == (odd + 100 - even) % 10 && u32::from(d[10]) == sum % 10
    })
}

/// INN of a company (ten digits) or a person (twelve).
pub(in super::super) fn ru_inn(body: &[u8]) -> bool {
    let check = |sum: u32| sum % 11 % 10;
    if let Some(d) = digits::<10>(body) {
        let sum = weighted(&d, &[2, 4, 10, 3, 5, 9, 4, 6, 8]);
        return number_is_varied(&d) && u32::from(d[9]) == check(sum);
    }
    digits::<12>(body).is_some_and(|d| {
        let first = weighted(&d, &[7, 2, 4, 10, 3, 5, 9, 4, 6, 8]);
        let second = weighted(&d, &[3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]);
        number_is_varied(&d)
            && u32::from(d[10]) == check(first)
            && u32::from(d[11]) == check(second)
    })
}

/// SNILS.
pub(in super::super) fn ru_snils(body: &[u8]) -> bool {
    digits::<11>(body).is_some_and(|d| {
        let sum = weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2, 1]);
        number_is_varied(&d) && number(&d[9..]) == u64::from(sum % 101 % 100)
    })
}
