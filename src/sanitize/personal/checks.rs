//! Check digits: the arithmetic that tells a number of a kind from any number.
//! Works on the values of digits, not on their characters.

/// The Luhn formula (ISO/IEC 7812-1 annex B).
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(nth, digit)| {
            let digit = u32::from(*digit);
            match nth % 2 {
                0 => digit,
                _ if digit > 4 => digit * 2 - 9,
                _ => digit * 2,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// The sum of digits by weights; what has no weight does not count.
pub(super) fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits
        .iter()
        .zip(weights)
        .map(|(digit, weight)| u32::from(*digit) * weight)
        .sum()
}

/// The digits as one number; at most nineteen of them.
pub(super) fn number(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0, |all, digit| all.wrapping_mul(10) + u64::from(*digit))
}

/// Remainder by 97 of letters and digits read as a number (ISO/IEC 7064 MOD 97-10),
/// letters as 10 to 35.
pub(super) fn remainder_97(characters: impl Iterator<Item = u8>) -> u32 {
    characters.fold(0, |rest, c| match c {
        b'0'..=b'9' => (rest * 10 + u32::from(c - b'0')) % 97,
        b'A'..=b'Z' => (rest * 100 + u32::from(c - b'A') + 10) % 97,
        _ => rest,
    })
}

/// ISO/IEC 7064 MOD 11,10: German and Croatian tax numbers.
pub(super) fn mod_11_10(digits: &[u8]) -> bool {
    let Some((check, body)) = digits.split_last() else {
        return false;
    };
    let rest = body.iter().fold(10, |product, digit| {
        let sum = match (product + u32::from(*digit)) % 10 {
            0 => 10,
            sum => sum,
        };
        sum * 2 % 11
    });
    (11 - rest) % 10 == u32::from(*check)
}

/// Verhoeff's scheme over the dihedral group of order ten (Aadhaar).
pub(super) fn verhoeff(digits: &[u8]) -> bool {
    let product = |a: u8, b: u8| -> u8 {
        match (a < 5, b < 5) {
            (true, true) => (a + b) % 5,
            (true, false) => (a + b - 5) % 5 + 5,
            (false, true) => (a + 5 - b) % 5 + 5,
            (false, false) => (a + 5 - b) % 5,
        }
    };
    let permuted = |mut digit: u8, times: usize| {
        for _ in 0..times % 8 {
            digit = match digit {
                0 => 1,
                1 => 5,
                2 => 7,
                3 => 6,
                4 => 2,
                5 => 8,
                6 => 3,
                7 => 0,
                8 => 9,
                _ => 4,
            };
        }
        digit
    };
    digits
        .iter()
        .rev()
        .enumerate()
        .fold(0, |all, (nth, digit)| product(all, permuted(*digit, nth)))
        == 0
}

/// Whether year, month and day are a date that someone alive may be born on.
pub(super) fn is_birthday(year: u64, month: u64, day: u64) -> bool {
    (1900..=2100).contains(&year) && is_day(month, day)
}

/// Whether the month has the day, in any year.
pub(super) fn is_day(month: u64, day: u64) -> bool {
    let last = match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=last).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(text: &str) -> Vec<u8> {
        text.bytes().map(|b| b - b'0').collect()
    }

    #[test]
    fn a_changed_digit_fails_every_check() {
        type Check = fn(&[u8]) -> bool;
        let checks: [(Check, &str); 4] = [
            (luhn, "4111111111111111"),
            (mod_11_10, "86095742719"),
            (mod_11_10, "33392005961"),
            (verhoeff, "234123412346"),
        ];
        for (check, good) in checks {
            let good = digits(good);
            assert!(check(&good));
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] = (bad[at] + 1) % 10;
                assert!(!check(&bad), "{bad:?}");
            }
        }
    }

    #[test]
    fn a_bank_account_leaves_one() {
        let iban = "WEST12345698765432GB82";
        assert_eq!(remainder_97(iban.bytes()), 1);
    }
}
