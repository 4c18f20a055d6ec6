//! International bank account numbers (ISO 13616): the length of the country's, and
//! check digits.

use super::checks::remainder_97;
use super::kinds::Candidate;

/// Countries of the register and those that use the form beside it, with lengths.
const LENGTHS: &str = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28\
    EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20\
    LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29\
    RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30\
    AO25BF28BJ28CF27CG27CI28CM27CV25DZ26GA27GQ27GW25IR26KM27MA28MG27ML28MZ25NE28SN28TD27TG28";

fn length_of(country: &[u8]) -> Option<usize> {
    LENGTHS
        .as_bytes()
        .chunks_exact(4)
        .find_map(|entry| match entry {
            [a, b, tens, ones] if [*a, *b] == country => {
                Some(usize::from(tens - b'0') * 10 + usize::from(ones - b'0'))
            }
            _ => None,
        })
}

/// Whether upper-case letters and digits are one.
pub(super) fn is_iban(body: &[u8]) -> bool {
    let Some((head, rest)) = body.split_first_chunk::<4>() else {
        return false;
    };
    let [a, b, tens, ones] = *head;
    let check = (tens, ones);
    length_of(&[a, b]) == Some(body.len())
        && tens.is_ascii_digit()
        && ones.is_ascii_digit()
        // Two check digits are between 02 and 98.
        && !matches!(check, (b'0', b'0' | b'1') | (b'9', b'9'))
        && remainder_97(rest.iter().chain(head).copied()) == 1
}

/// Written in capitals, in one run or in groups.
pub(super) fn stands_alone(candidate: &Candidate<'_>) -> bool {
    candidate.text.bytes().all(|b| !b.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn country_length_and_check_digits_decide() {
        for good in [
            "GB82WEST12345698765432",
            "DE89370400440532013000",
            "NO9386011117947",
            "MT84MALT011000012345MTLCAST001S",
        ] {
            assert!(is_iban(good.as_bytes()), "{good}");
        }
        for bad in [
            "GB82WEST1234569876543",
            "GB83WEST12345698765432",
            "XX82WEST12345698765432",
            "ES000820973759921816",
            "",
        ] {
            assert!(!is_iban(bad.as_bytes()), "{bad}");
        }
    }
}
