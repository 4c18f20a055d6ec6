//! The kinds of numbers that stand for a person or an account: how long they are,
//! what they must fulfil, and how one that no word names must be written.

use std::sync::LazyLock;

use super::cards;
use super::checks::luhn;
use super::cues::{HEALTH, NATIONAL, TAX};
use super::{iban, national as n};

/// A run of letters and digits under judgement.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    /// Its letters and digits, in upper case.
    pub(super) body: &'a [u8],
    /// As it is written.
    pub(super) text: &'a str,
}

/// When a number counts that no word names.
#[derive(Clone, Copy)]
pub(super) enum Alone {
    Never,
    /// When written so: `9` a digit, `A` a capital, `X` either, `*` anything more.
    Written(&'static [&'static str]),
    /// When this holds.
    When(fn(&Candidate<'_>) -> bool),
}

/// A kind.
pub(super) struct Kind {
    pub(super) label: &'static str,
    /// The groups that a word may name it by.
    pub(super) groups: u8,
    /// Fewest and most letters and digits.
    pub(super) lengths: (usize, usize),
    pub(super) check: fn(&[u8]) -> bool,
    pub(super) alone: Alone,
    /// Whether its own form outweighs a word for something else.
    pub(super) firm: bool,
}

impl Kind {
    pub(super) fn has_length(&self, len: usize) -> bool {
        (self.lengths.0..=self.lengths.1).contains(&len)
    }

    /// Whether it counts without a word for it. `other` says that a word speaks of
    /// something else.
    pub(super) fn stands_alone(&self, candidate: &Candidate<'_>, other: bool) -> bool {
        if other && !self.firm {
            return false;
        }
        match self.alone {
            Alone::Never => false,
            Alone::Written(masks) => masks.iter().any(|mask| is_written(candidate.text, mask)),
            Alone::When(holds) => holds(candidate) && !(other && is_solid(candidate.text)),
        }
    }
}

fn is_solid(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn is_written(text: &str, mask: &str) -> bool {
    let mut text = text.bytes();
    for wanted in mask.bytes() {
        let fits = match wanted {
            b'*' => return true,
            b'9' => text.next().is_some_and(|b| b.is_ascii_digit()),
            b'A' => text.next().is_some_and(|b| b.is_ascii_uppercase()),
            b'X' => text
                .next()
                .is_some_and(|b| b.is_ascii_digit() || b.is_ascii_uppercase()),
            other => text.next() == Some(other),
        };
        if !fits {
            return false;
        }
    }
    text.next().is_none()
}

const fn cued(
    label: &'static str,
    groups: u8,
    lengths: (usize, usize),
    check: fn(&[u8]) -> bool,
) -> Kind {
    Kind {
        label,
        groups,
        lengths,
        check,
        alone: Alone::Never,
        firm: false,
    }
}

const fn written(
    label: &'static str,
    groups: u8,
    lengths: (usize, usize),
    check: fn(&[u8]) -> bool,
    masks: &'static [&'static str],
) -> Kind {
    Kind {
        label,
        groups,
        lengths,
        check,
        alone: Alone::Written(masks),
        firm: false,
    }
}

/// In the order in which a number that fits several is given its label.
#[rustfmt::skip]
pub(super) const KINDS: &[Kind] = &[
    Kind { label: "credit_card", groups: 0, lengths: (12, 19), check: is_luhn, alone: Alone::When(cards::stands_alone), firm: true },
    Kind { label: "iban", groups: 0, lengths: (15, 34), check: iban::is_iban, alone: Alone::When(iban::stands_alone), firm: true },
    written("us_ssn", NATIONAL | TAX, (9, 9), n::us_ssn, &["999-99-9999"]),
    written("us_itin", TAX, (9, 9), n::us_itin, &["999-99-9999"]),
    written("us_mbi", HEALTH, (11, 11), n::us_mbi, &["9XXX-XXX-XXXX"]),
    cued("us_ein", TAX, (9, 9), n::all_digits),
    cued("us_routing_number", 0, (9, 9), n::us_routing),
    written("uk_nino", NATIONAL, (9, 9), n::uk_nino, &["AA999999A", "AA 99 99 99 A"]),
    cued("uk_nhs", HEALTH, (10, 10), n::uk_nhs),
    cued("uk_utr", TAX, (10, 10), n::uk_utr),
    cued("uk_sort_code", 0, (6, 6), n::all_digits),
    cued("de_steuer_id", TAX, (11, 11), n::de_steuer_id),
    cued("de_id_card", NATIONAL, (9, 10), n::de_id_card),
    cued("de_social_security", NATIONAL, (12, 12), n::de_social_security),
    written("fr_nir", NATIONAL | HEALTH, (15, 15), n::fr_nir, &["9 99 99 99 999 999 99", "9 99 99 XX 999 999 99"]),
    written("es_dni", NATIONAL | TAX, (9, 9), n::es_dni, &["99999999-A", "99.999.999-A"]),
    written("es_nie", NATIONAL | TAX, (9, 9), n::es_nie, &["A9999999A", "A-9999999-A"]),
    cued("es_cif", TAX, (9, 9), n::es_cif),
    written("it_cf", NATIONAL | TAX, (16, 16), n::it_cf, &["AAAAAAXXAXXAXXXA"]),
    cued("it_piva", TAX, (11, 11), is_luhn),
    cued("nl_bsn", NATIONAL | TAX, (8, 9), n::nl_bsn),
    written("be_nrn", NATIONAL, (11, 11), n::be_nrn, &["99.99.99-999.99"]),
    cued("pl_pesel", NATIONAL, (11, 11), n::pl_pesel),
    cued("pl_nip", TAX, (10, 10), n::pl_nip),
    written("se_personnummer", NATIONAL, (10, 12), n::se_personnummer, &["99999999-9999"]),
    cued("no_fnr", NATIONAL, (11, 11), n::no_fnr),
    cued("dk_cpr", NATIONAL, (10, 10), n::dk_cpr),
    written("fi_hetu", NATIONAL, (10, 11), n::fi_hetu, &["999999-999X", "999999A999X"]),
    cued("pt_nif", TAX, (9, 9), n::pt_nif),
    written("ch_ahv", NATIONAL, (13, 13), n::ch_ahv, &["999.9999.9999.99"]),
    cued("at_svnr", NATIONAL, (10, 10), n::at_svnr),
    cued("ie_pps", NATIONAL | TAX, (8, 9), n::ie_pps),
    written("cz_rc", NATIONAL, (9, 10), n::cz_rc, &["999999/9999"]),
    cued("ro_cnp", NATIONAL, (13, 13), n::ro_cnp),
    cued("bg_egn", NATIONAL, (10, 10), n::bg_egn),
    cued("gr_amka", NATIONAL | HEALTH, (11, 11), n::gr_amka),
    cued("hr_oib", NATIONAL | TAX, (11, 11), n::hr_oib),
    cued("ee_isikukood", NATIONAL, (11, 11), n::ee_isikukood),
    cued("tr_tckn", NATIONAL, (11, 11), n::tr_tckn),
    cued("ru_inn", TAX, (10, 12), n::ru_inn),
    written("ru_snils", NATIONAL, (11, 11), n::ru_snils, &["999-999-999 99", "999-999-999-99"]),
    cued("il_id", NATIONAL, (9, 9), is_luhn),
    written("br_cpf", NATIONAL | TAX, (11, 11), n::br_cpf, &["999.999.999-99"]),
    written("br_cnpj", TAX, (14, 14), n::br_cnpj, &["99.999.999/9999-99"]),
    written("mx_curp", NATIONAL, (18, 18), n::mx_curp, &["AAAA999999AAAAAAX9"]),
    cued("mx_rfc", TAX, (12, 13), n::mx_rfc),
    written("ar_cuit", NATIONAL | TAX, (11, 11), n::ar_cuit, &["99-99999999-9"]),
    written("cl_rut", NATIONAL | TAX, (8, 9), n::cl_rut, &["99.999.999-X", "9.999.999-X"]),
    written("in_aadhaar", NATIONAL, (12, 12), n::in_aadhaar, &["9999 9999 9999", "9999-9999-9999"]),
    written("in_pan", TAX, (10, 10), n::in_pan_of_person, &["AAAAA9999A"]),
    cued("in_pan", TAX, (10, 10), n::in_pan),
    written("cn_id", NATIONAL, (18, 18), n::cn_id, &["99999999999999999X"]),
    written("kr_rrn", NATIONAL, (13, 13), n::kr_rrn_checked, &["999999-9999999"]),
    cued("kr_rrn", NATIONAL, (13, 13), n::kr_rrn),
    cued("jp_my_number", NATIONAL | TAX, (12, 12), n::jp_my_number),
    cued("tw_id", NATIONAL, (10, 10), n::tw_id),
    cued("hk_id", NATIONAL, (8, 9), n::hk_id),
    written("sg_nric", NATIONAL, (9, 9), n::sg_nric, &["A9999999A"]),
    written("th_id", NATIONAL, (13, 13), n::th_id, &["9-9999-99999-99-9"]),
    written("my_nric", NATIONAL, (12, 12), n::my_nric, &["999999-99-9999"]),
    cued("id_nik", NATIONAL, (16, 16), n::id_nik),
    written("pk_cnic", NATIONAL, (13, 13), n::all_digits, &["99999-9999999-9"]),
    cued("ca_sin", NATIONAL | TAX, (9, 9), n::ca_sin),
    cued("au_tfn", TAX, (8, 9), n::au_tfn),
    cued("au_medicare", HEALTH, (10, 11), n::au_medicare),
    cued("au_abn", TAX, (11, 11), n::au_abn),
    cued("nz_ird", TAX, (8, 9), n::nz_ird),
    cued("za_id", NATIONAL, (13, 13), n::za_id),
    cued("passport", 0, (6, 9), n::passport),
    cued("driving_licence", 0, (5, 18), n::many_digits),
    written("medical_record", 0, (8, 15), n::labelled_record, &["MRN-99999*", "MRN99999*", "MRN 99999*"]),
    cued("medical_record", 0, (5, 12), n::many_digits),
    cued("health_insurance", HEALTH, (6, 15), n::many_digits),
    cued("bank_account", 0, (5, 18), n::all_digits),
];

/// The kinds of a length, as bits of their places in the table.
pub(super) fn of_length(len: usize) -> u128 {
    static LENGTHS: LazyLock<Vec<u128>> = LazyLock::new(|| {
        (0..=LONGEST)
            .map(|len| set(|kind| kind.has_length(len)))
            .collect()
    });
    LENGTHS.get(len).copied().unwrap_or(0)
}

/// The longest of any kind.
const LONGEST: usize = 40;

/// The kinds that may stand without a word, as bits.
pub(super) const ALONE: u128 = {
    let mut set = 0;
    let mut rest: &[Kind] = KINDS;
    let mut bit = 1;
    while let [kind, tail @ ..] = rest {
        if !matches!(kind.alone, Alone::Never) {
            set |= bit;
        }
        bit <<= 1;
        rest = tail;
    }
    set
};

/// The kinds for which something holds, as bits.
pub(super) fn set(holds: impl Fn(&Kind) -> bool) -> u128 {
    KINDS
        .iter()
        .rev()
        .fold(0, |set, kind| set << 1 | u128::from(holds(kind)))
}

/// The kinds of a set with their numbers, in the table's order.
pub(super) fn listed(mut set: u128) -> impl Iterator<Item = (u32, &'static Kind)> {
    std::iter::from_fn(move || {
        let number = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some((number, KINDS.get(number as usize)?))
    })
}

fn is_luhn(body: &[u8]) -> bool {
    let digits: Vec<u8> = body.iter().map(|b| b.wrapping_sub(b'0')).collect();
    digits.iter().all(|digit| *digit < 10)
        && digits.iter().any(|digit| Some(digit) != digits.first())
        && luhn(&digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_read_digits_capitals_and_separators() {
        assert!(is_written("123-45-6789", "999-99-9999"));
        assert!(!is_written("123-45-67890", "999-99-9999"));
        assert!(!is_written("123 45 6789", "999-99-9999"));
        assert!(is_written("MRN-1234567", "MRN-99999*"));
        assert!(!is_written("ab123456c", "AA999999A"));
    }
}
