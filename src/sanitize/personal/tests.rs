//! Personal data in texts and fields.

use super::super::detect::{Context, Sign};
use super::*;

fn found_in(text: &str, key: Option<&str>, place: Place) -> Vec<(&'static str, String)> {
    let mut hits = Hits::default();
    let signs = [Sign {
        cue: 0,
        start: 0,
        end: text.len(),
    }];
    let subject = Subject {
        text,
        context: Context {
            place,
            key,
            domains: &[],
            pointer: &String::new,
        },
        signs: &signs,
        seams: &[],
    };
    find(&subject, &mut hits);
    let mut list = hits.list;
    list.sort_by_key(|hit| hit.range.start);
    list.into_iter()
        .map(|hit| (hit.label, text[hit.range].to_owned()))
        .collect()
}

fn labels(text: &str) -> Vec<&'static str> {
    found_in(text, None, Place::Text)
        .into_iter()
        .map(|(label, _)| label)
        .collect()
}

#[test]
fn words_and_forms_tell_what_a_number_is() {
    for (text, expected) in [
        ("Their ssn is 669-60-8505, please", "us_ssn"),
        ("social security no. 669608505", "us_ssn"),
        ("Passport: C01X00T47", "passport"),
        ("Reisepassnummer C01X00T47", "passport"),
        ("NINO AB 12 34 56 C", "uk_nino"),
        ("Steuer-ID: 86 095 742 719", "de_steuer_id"),
        ("BSN 111222333", "nl_bsn"),
        ("PESEL: 44051401359", "pl_pesel"),
        ("numéro de sécurité sociale 2 55 08 14 168 025 38", "fr_nir"),
        ("codice fiscale RSSMRA85T10A562S", "it_cf"),
        ("身份证号: 11010519491231002X", "cn_id"),
        ("주민등록번호 940725-1812147", "kr_rrn"),
        ("SIN 046 454 286", "ca_sin"),
        ("Medicare 2123 45670 1", "au_medicare"),
        ("NHS number 943 476 5919", "uk_nhs"),
        ("CPF 529.982.247-25", "br_cpf"),
        ("Kontonummer 0123456789", "bank_account"),
        ("mrn=MRN-77497526 ok", "medical_record"),
        ("driver's license number D1234567", "driving_licence"),
        ("born on 12 March 1985 in", "date_of_birth"),
        ("geboren am 1.2.1985", "date_of_birth"),
        ("DOB: March 12, 1985", "date_of_birth"),
        ("call me on 450 0840 please", "phone"),
        ("+41 (0)69 979 80 58-Fax", "phone"),
        ("client=62.148.68.155 slow", "ip_address"),
        ("from 2a01:4f8:aec3:70c6:20dd::2887 in", "ip_address"),
        ("card 4111 1111 1111 1111 12/29", "credit_card"),
        ("cc 503802053770 on", "credit_card"),
        ("IBAN DE75 6844 2575 9919 3520 64 and", "iban"),
        ("to a.b@example.co.uk.", "email"),
        ("tax id 165-58-4032", "us_ssn"),
        ("ether 00:1b:44:11:3a:b7 txqueuelen", "mac_address"),
        ("wallet 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "crypto_wallet"),
    ] {
        assert_eq!(labels(text), [expected], "{text}");
    }
}

#[test]
fn look_alikes_stay() {
    let mut changed = Vec::new();
    for text in [
        "Order 6616973652491398 shipped; tracking 1ZJZF218VHA2EZK3R1.",
        "USPS 9400 1689 1141 3105 8309 90 out for delivery",
        "score 123-45 vs 110-42; part no. 222-8219; build 000-47-4521",
        "snowflake 617040849850626744 epoch_ms 1712534467121",
        "request 80fc46d6-1aa4-4654-94ab-23b59aadeaa1 finished at 2026-07-05T11:21:29.123Z",
        "commit ecd34ac26384ba13d09cf0ae32a5ee89e04e65f7",
        "Python 3.12.2, numpy 2.3.2, Windows 10.0.20921.356",
        "ISBN 978-7-475-66386-6, pp. 12-48, DOI 10.6703/abc.867.81",
        "lat,lon\n-66.194982,-171.310506",
        "SELECT count(*) FROM t WHERE ts BETWEEN 1767891648 AND 1795924517;",
        "bind 127.0.0.1:53654 netmask 255.255.255.0 ::1 0.0.0.0/0",
        "version 4.8.15.16 of 2026-11-13 10:01:27",
        "arn:aws:iam::866996678133:role/deploy",
        "Error: account with IBAN-like code ES000820973759921816 is not valid",
        "x = [400962, 987175, 743064, 576204]",
        "ticket 123456789 at 12:30, room 4-12",
        "sku 12345678 costs 1,234,567.89 in 2026",
        "card expired on 12/29, limit 5000",
        "Chrome/120.0.6099.130 Safari/537.36",
        "std::map<std::string, int> m; a::b::c",
        "passport control opens at 0800",
        "phone support since 2019, open 24/7",
    ] {
        let found = found_in(text, None, Place::Text);
        if !found.is_empty() {
            changed.push((text, found));
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn a_fields_name_tells_its_value() {
    let label = |key: &str, text: &str| -> Vec<&'static str> {
        found_in(text, Some(key), Place::Value)
            .into_iter()
            .map(|(label, _)| label)
            .collect()
    };
    for (key, text, expected) in [
        ("CardOnFile__c", "3687 088888 8579", "credit_card"),
        ("passport_number", "441497346", "passport"),
        ("dateOfBirth", "1990-08-01", "date_of_birth"),
        ("tfn", "123 456 782", "au_tfn"),
        ("account_number", "405758710585", "bank_account"),
        ("mobile", "0487 98 11 92", "phone"),
        ("full_name", "Jane Doe", "person"),
        ("street_address", "12 Rue de Rivoli, Paris", "address"),
        ("Tax_ID__c", "165-58-4032", "us_ssn"),
    ] {
        assert_eq!(label(key, text), [expected], "{key}");
    }
    assert_eq!(label("order_no", "4111111111111111"), [""; 0]);
    assert_eq!(label("name", "Build pull_request"), [""; 0]);
}

#[test]
fn numbers_go_whole_where_their_name_or_form_says_so() {
    let number = |key: &str, text: &str| found_in(text, Some(key), Place::Number).len();
    assert_eq!(number("LegacyCard", "4146015750363371"), 1);
    assert_eq!(number("phone", "14155550123"), 1);
    assert_eq!(number("value", "4111111111111111"), 1);
    assert_eq!(number("id", "4111111111111111"), 0);
    assert_eq!(number("created_at", "1557933591"), 0);
    assert_eq!(number("big", "303330955989553"), 0);
    assert_eq!(number("price", "154.71"), 0);
}

#[test]
fn columns_tell_what_is_below_them() {
    assert_eq!(
        labels("name,passport_number,plan\nA Horvath,672126631,pro\n"),
        ["passport"]
    );
    assert_eq!(
        labels(" id | ssn | tier\n----+----\n 1 | 208-59-5108 | gold\n"),
        ["us_ssn"]
    );
}

#[test]
fn every_label_of_a_kind_can_be_configured() {
    for kind in kinds::KINDS {
        let known = crate::config::labels().any(|label| label == kind.label);
        assert!(known, "{}", kind.label);
    }
}

#[test]
fn a_long_row_of_short_groups_is_walked_once() {
    let row = "4 1 ".repeat(1 << 14);
    let start = std::time::Instant::now();
    assert!(found_in(&row, None, Place::Text).is_empty());
    assert!(start.elapsed() < std::time::Duration::from_secs(5));
}
