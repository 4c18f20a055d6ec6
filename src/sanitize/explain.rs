//! Why something was found and what is done about it: for operators who try rules.
//! Never the value.

use super::detect::Family;
use super::edits::Policy;
use super::findings::{Findings, Label};
use crate::config::{Action, Sanitize};

/// One kind of finding, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The label.
    pub label: Label,
    /// How often.
    pub count: u64,
    /// The first places, as JSON pointers.
    pub places: Vec<String>,
    /// The key under `sanitize` that decides.
    pub decided_by: String,
    /// What is done.
    pub action: Action,
    /// By what it is known.
    pub why: &'static str,
}

/// Labels that are told by more than their family.
const KINDS: &[(&str, Family, &str)] = &[
    (
        "email",
        Family::Personal,
        "the form of an address and a domain that can exist",
    ),
    (
        "phone",
        Family::Personal,
        "the numbering plan of its country, or a word for telephones beside it",
    ),
    (
        "credit_card",
        Family::Personal,
        "Luhn's check digit, with the issuer's range or a word for cards",
    ),
    (
        "iban",
        Family::Personal,
        "its country's length and check digits",
    ),
    ("ip_address", Family::Personal, "a public address"),
    (
        "date_of_birth",
        Family::Personal,
        "a date with a word for birthdays",
    ),
    ("crypto_wallet", Family::Personal, "the address's own check"),
    (
        "person",
        Family::Personal,
        "a field for names with a name in it",
    ),
    (
        "address",
        Family::Personal,
        "a field for postal addresses with one in it",
    ),
    (
        "bank_account",
        Family::Personal,
        "digits with a word for accounts",
    ),
    (
        "passport",
        Family::Personal,
        "the form of a number with a word for passports",
    ),
    (
        "driving_licence",
        Family::Personal,
        "a number with a word for licences",
    ),
    (
        "medical_record",
        Family::Personal,
        "a number with a word for medical records",
    ),
    (
        "health_insurance",
        Family::Personal,
        "a number with a word for insurances",
    ),
    (
        "mac_address",
        Family::Personal,
        "six pairs with a word for hardware addresses",
    ),
    (
        "uk_sort_code",
        Family::Personal,
        "six digits with a word for sort codes",
    ),
    (
        "remote_resource",
        Family::Markup,
        "it is fetched from a host outside `allow.domains` when it is shown",
    ),
    (
        "active_markup",
        Family::Markup,
        "it runs or loads something",
    ),
    ("hidden_markup", Family::Markup, "nobody sees it"),
    (
        "script_link",
        Family::Markup,
        "the link runs code or is a page of its own",
    ),
    (
        "data_link",
        Family::Markup,
        "the link's address carries much data",
    ),
    (
        "prompt_injection",
        Family::Injection,
        "words that together give orders to a model",
    ),
    (
        "stack_trace",
        Family::Traces,
        "lines that are frames of a stack",
    ),
    (
        "internal_path",
        Family::Traces,
        "the path of a file of source",
    ),
    (
        "internal_host",
        Family::Traces,
        "a name that no public resolver knows",
    ),
    (
        "invisible",
        Family::Invisible,
        "characters that are not seen",
    ),
    (
        "terminal",
        Family::Terminal,
        "control characters and sequences",
    ),
];

/// Countries whose numbers have labels of their own.
const COUNTRIES: &[&str] = &[
    "us", "uk", "de", "fr", "es", "it", "nl", "be", "pl", "se", "no", "dk", "fi", "pt", "ch", "at",
    "ie", "cz", "ro", "bg", "gr", "hr", "ee", "tr", "ru", "il", "br", "mx", "ar", "cl", "in", "cn",
    "kr", "jp", "tw", "hk", "sg", "th", "my", "id", "pk", "ca", "au", "nz", "za",
];

fn kind(label: &str) -> (Family, &'static str) {
    if let Some((_, family, why)) = KINDS.iter().find(|(own, ..)| *own == label) {
        return (*family, why);
    }
    let national = label
        .split_once('_')
        .is_some_and(|(country, _)| COUNTRIES.contains(&country));
    if national {
        return (
            Family::Personal,
            "the form and check digits of a state's number, mostly with a word for it",
        );
    }
    (
        Family::Secrets,
        "a provider's format, or the name of a secret with a value like one",
    )
}

fn key_of(family: Family) -> &'static str {
    match family {
        Family::Secrets => "secrets",
        Family::Personal => "personal",
        Family::Markup => "markup",
        Family::Injection => "injection",
        Family::Traces => "traces",
        Family::Invisible => "invisible",
        Family::Terminal => "terminal",
    }
}

/// Explains findings by a tenant's rules.
pub fn explain(findings: &Findings, rules: &Sanitize) -> Vec<Explanation> {
    findings
        .iter()
        .map(|(label, finding)| {
            let own = rules.patterns.iter().find(|pattern| pattern.label == label);
            let (family, why) = match own {
                Some(_) => (Family::Personal, "a pattern of the configuration"),
                None => kind(label),
            };
            let decided_by = match () {
                () if rules.dry_run => "dry_run".to_owned(),
                () if rules.labels.contains_key(label) => format!("labels.{label}"),
                () if own.is_some() => format!("patterns ({label})"),
                () => key_of(family).to_owned(),
            };
            Explanation {
                label,
                count: finding.count,
                places: finding.places.clone(),
                decided_by,
                action: Policy::of(rules).action(family, label),
                why,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_says_which_key_decides_and_why() {
        let mut findings = Findings::none();
        findings.add("email", 2, || "/content/0/text".to_owned());
        findings.add("github_token", 1, String::new);
        findings.add("fr_nir", 1, String::new);
        let mut rules = Sanitize::default();
        rules.labels.insert("email".to_owned(), Action::Mask);
        let rows: Vec<_> = explain(&findings, &rules)
            .into_iter()
            .map(|row| (row.label, row.decided_by, row.action))
            .collect();
        assert_eq!(
            rows,
            [
                ("email", "labels.email".to_owned(), Action::Mask),
                ("fr_nir", "personal".to_owned(), Action::Redact),
                ("github_token", "secrets".to_owned(), Action::Redact),
            ]
        );
    }
}
