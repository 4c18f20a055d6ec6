//! Known good numbers of every kind, and what is wrong with others.

use super::super::kinds::KINDS;

const GOOD: &[(&str, &str)] = &[
    ("us_ssn", "078051120"),
    ("us_itin", "912701234"),
    ("us_mbi", "1EG4TE5MK73"),
    ("us_routing_number", "111000025"),
    ("uk_nino", "AB123456C"),
    ("uk_nhs", "9434765919"),
    ("uk_utr", "1955839661"),
    ("de_steuer_id", "86095742719"),
    ("de_social_security", "15070649C103"),
    ("fr_nir", "255081416802538"),
    ("es_dni", "12345678Z"),
    ("es_nie", "X1234567L"),
    ("es_cif", "A58818501"),
    ("it_cf", "RSSMRA85T10A562S"),
    ("it_piva", "00743110157"),
    ("nl_bsn", "111222333"),
    ("be_nrn", "85073003328"),
    ("pl_pesel", "44051401359"),
    ("pl_nip", "1234563218"),
    ("se_personnummer", "8112189876"),
    ("no_fnr", "13097248022"),
    ("dk_cpr", "0707614285"),
    ("fi_hetu", "131052308T"),
    ("pt_nif", "123456789"),
    ("ch_ahv", "7569217076985"),
    ("at_svnr", "1237010180"),
    ("ie_pps", "1234567T"),
    ("cz_rc", "7103192745"),
    ("ro_cnp", "1630615123457"),
    ("bg_egn", "7523169263"),
    ("gr_amka", "01013099997"),
    ("hr_oib", "33392005961"),
    ("ee_isikukood", "37605030299"),
    ("tr_tckn", "10000000146"),
    ("ru_inn", "7707083893"),
    ("ru_inn", "500100732259"),
    ("ru_snils", "11223344595"),
    ("br_cpf", "52998224725"),
    ("br_cnpj", "11222333000181"),
    ("mx_curp", "BOXW310820HNERXN09"),
    ("ar_cuit", "20055361682"),
    ("cl_rut", "125319092"),
    ("in_aadhaar", "234123412346"),
    ("in_pan", "ACUPA7085R"),
    ("cn_id", "11010519491231002X"),
    ("jp_my_number", "123456789018"),
    ("tw_id", "A123456789"),
    ("hk_id", "A1234563"),
    ("sg_nric", "S1234567D"),
    ("th_id", "3100600445635"),
    ("my_nric", "770305021234"),
    ("za_id", "7503305044089"),
    ("ca_sin", "046454286"),
    ("au_tfn", "123456782"),
    ("au_abn", "83914571673"),
    ("au_medicare", "2123456701"),
    ("nz_ird", "49091850"),
];

fn fits(label: &str, body: &str) -> bool {
    KINDS.iter().any(|kind| {
        kind.label == label && kind.has_length(body.len()) && (kind.check)(body.as_bytes())
    })
}

#[test]
fn good_numbers_of_every_kind_are_known() {
    let missed: Vec<_> = GOOD
        .iter()
        .filter(|(label, body)| !fits(label, body))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_changed_last_character_fails_where_there_is_a_check() {
    let unchecked = [
        "us_ssn",
        "us_itin",
        "us_mbi",
        "uk_nino",
        "dk_cpr",
        "in_pan",
        "my_nric",
        "uk_utr",
        "au_medicare",
        "at_svnr",
    ];
    let mut passed = Vec::new();
    for (label, body) in GOOD.iter().filter(|(label, _)| !unchecked.contains(label)) {
        let mut other = body.as_bytes().to_vec();
        let last = other.last_mut().unwrap();
        *last = match *last {
            b'9' => b'0',
            b'Z' => b'A',
            b => b + 1,
        };
        let other = String::from_utf8(other).unwrap();
        if fits(label, &other) {
            passed.push((label, other));
        }
    }
    assert!(passed.is_empty(), "{passed:?}");
}
