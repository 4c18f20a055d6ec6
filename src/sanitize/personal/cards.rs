//! Payment cards: whose they are, old ranges and new, and how they are grouped.

use super::checks::number;
use super::kinds::Candidate;

/// Ranges of first digits by which a card without a word beside it is known:
/// from, to, lengths.
const ISSUERS: &[(u64, u64, &[usize])] = &[
    // Visa
    (4, 4, &[16]),
    // Mastercard, with the range of 2017
    (51, 55, &[16]),
    (2221, 2720, &[16]),
    // American Express
    (34, 34, &[15]),
    (37, 37, &[15]),
    // Diners Club
    (300, 305, &[14, 16]),
    (3095, 3095, &[14, 16]),
    (36, 36, &[14, 16]),
    (38, 39, &[14, 16]),
    // Discover, and China UnionPay within its network
    (6011, 6011, &[16]),
    (644, 649, &[16]),
    (65, 65, &[16]),
    // JCB
    (3528, 3589, &[16]),
    // China UnionPay
    (62, 62, &[16, 17, 18, 19]),
    (8100, 8171, &[16]),
    // Mir
    (2200, 2204, &[16]),
    // RuPay
    (508, 508, &[16]),
    (606_985, 607_984, &[16]),
    (608_001, 608_500, &[16]),
    (652_150, 653_149, &[16]),
    (817_200, 820_199, &[16]),
    // Troy
    (9792, 9792, &[16]),
    // Maestro
    (5018, 5018, &[16]),
    (5020, 5020, &[16]),
    (5038, 5038, &[16]),
    (5893, 5893, &[16]),
    (6304, 6304, &[16]),
    (6759, 6759, &[16]),
    (6761, 6763, &[16]),
];

/// Whether digits begin like a card of their number.
fn has_issuer(body: &[u8]) -> bool {
    let digits: Vec<u8> = body.iter().map(|b| b.wrapping_sub(b'0')).collect();
    ISSUERS.iter().any(|(from, to, lengths)| {
        let width = from.ilog10() as usize + 1;
        lengths.contains(&body.len())
            && digits
                .get(..width)
                .map(number)
                .is_some_and(|head| (*from..=*to).contains(&head))
    })
}

/// How cards are grouped on themselves.
const GROUPS: &[&[usize]] = &[
    &[4, 4, 4, 4],
    &[4, 6, 5],
    &[4, 6, 4],
    &[4, 4, 4, 4, 3],
    &[6, 13],
];

/// Whether check digits and issuer suffice: in one run, or in groups that cards
/// have, between equal separators. A short run in no groups is as likely a time.
pub(super) fn stands_alone(candidate: &Candidate<'_>) -> bool {
    if !has_issuer(candidate.body) {
        return false;
    }
    let mut separators = candidate.text.bytes().filter(|b| !b.is_ascii_digit());
    let Some(separator) = separators.next() else {
        return (15..=16).contains(&candidate.body.len());
    };
    let groups: Vec<usize> = candidate
        .text
        .split(char::from(separator))
        .map(str::len)
        .collect();
    matches!(separator, b' ' | b'-')
        && separators.all(|b| b == separator)
        && GROUPS.contains(&groups.as_slice())
}

/// Whether raw bytes in one run could be a card that stands alone: for the look
/// that keeps clean text from being walked.
pub(super) fn may_be(digits: &[u8]) -> bool {
    has_issuer(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(text: &str) -> bool {
        let body: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
        stands_alone(&Candidate { body: &body, text })
    }

    #[test]
    fn issuers_and_groups_decide() {
        for card in [
            "4111111111111111",
            "2221000000000009",
            "3782 822463 10005",
            "3056-930902-5904",
            "6212 3456 7890 0000 003",
            "5555-5555-5555-4444",
        ] {
            assert!(alone(card), "{card}");
        }
        for other in [
            "1234567890123452",
            "30569309025904",
            "4111.1111.1111.1111",
            "41111111-11111111",
            "20261130101112",
        ] {
            assert!(!alone(other), "{other}");
        }
    }
}
