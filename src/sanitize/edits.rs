//! Changes to a text: what is replaced by what, and how an action writes it.

use std::fmt::Write as _;
use std::ops::Range;

use super::detect::{Certainty, Family, Hit, Instead};
use super::findings::{Label, TERMINAL};
use super::markup::DATA_LINK;
use super::offsets::Offsets;
use crate::config::{Action, Sanitize};

/// What is done with findings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy<'a> {
    /// The tenant's; without them everything found goes.
    rules: Option<&'a Sanitize>,
    /// Whether this is for the audit's copy of what a caller sent: a name alone
    /// makes its value a secret, numbers too, whatever they look like.
    pub(super) strict: bool,
}

impl<'a> Policy<'a> {
    /// For texts that no tenant's rules reach: everything found goes.
    pub(super) const REDACT: Self = Self {
        rules: None,
        strict: false,
    };

    pub(super) fn of(rules: &'a Sanitize) -> Self {
        Self {
            rules: Some(rules),
            strict: false,
        }
    }

    /// For the audit: nothing found is only counted, what was hidden is made
    /// visible rather than dropped, and nothing stops a record.
    pub(super) fn for_record(rules: &'a Sanitize) -> Self {
        Self {
            rules: Some(rules),
            strict: true,
        }
    }

    /// Hosts that markup may fetch from.
    pub(super) fn domains(self) -> &'a [String] {
        self.rules.map_or(&[], |rules| &rules.allow.domains)
    }

    /// Whether every text is to be searched: patterns have no cues.
    pub(super) fn has_patterns(self) -> bool {
        self.rules.is_some_and(|rules| !rules.patterns.is_empty())
    }

    /// What the tenant's own patterns find.
    pub(super) fn custom(self, text: &str, hits: &mut Vec<Hit>) {
        for pattern in self.rules.iter().flat_map(|rules| &rules.patterns) {
            for found in pattern.pattern.regex().captures_iter(text) {
                let Some(value) = found.name("value").or_else(|| found.get(0)) else {
                    continue;
                };
                let head = text.get(..value.start()).unwrap_or_default();
                // Placeholders stay.
                if !value.is_empty() && !head.ends_with("[REDACTED:") {
                    hits.push(Hit::new(
                        Family::Personal,
                        pattern.label,
                        value.range(),
                        Certainty::Form,
                    ));
                }
            }
        }
    }

    /// Whether the tenant lets this stay.
    pub(super) fn allows(self, hit: &Hit, text: &str, pointer: &dyn Fn() -> String) -> bool {
        let Some(allow) = self.rules.map(|rules| &rules.allow) else {
            return false;
        };
        if allow.values.is_empty() && allow.fields.is_empty() {
            return false;
        }
        let value = text.get(hit.range.clone()).unwrap_or_default();
        if value.len() <= 256 && allow.values.iter().any(|glob| glob.matches(value)) {
            return true;
        }
        !allow.fields.is_empty() && {
            let pointer = pointer();
            allow
                .fields
                .iter()
                .any(|field| field.covers(&pointer, hit.label))
        }
    }

    pub(super) fn action(self, family: Family, label: Label) -> Action {
        let hidden = matches!(family, Family::Invisible | Family::Terminal);
        if self.strict && hidden {
            return Action::Mask;
        }
        let Some(rules) = self.rules else {
            return Action::Redact;
        };
        let own = rules.labels.get(label).copied().or_else(|| {
            let mut patterns = rules.patterns.iter();
            patterns
                .find(|pattern| pattern.label == label)
                .map(|pattern| pattern.action)
        });
        let of_family = match family {
            Family::Secrets => rules.secrets,
            Family::Personal => rules.personal,
            Family::Markup => rules.markup,
            Family::Injection => rules.injection,
            Family::Traces => rules.traces,
            Family::Invisible => rules.invisible,
            Family::Terminal => rules.terminal,
        };
        let action = match own {
            _ if rules.dry_run => Action::Flag,
            Some(own) => own,
            // Links stay links unless their label says otherwise.
            None if label == DATA_LINK => Action::Flag,
            None => of_family,
        };
        match action {
            Action::Flag | Action::Block if self.strict => Action::Redact,
            action => action,
        }
    }
}

/// One finding in a text. Without a replacement it is only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) replacement: Option<String>,
    pub(super) label: Label,
    pub(super) count: u64,
    /// Whether it withholds the whole answer.
    pub(super) blocks: bool,
}

/// What stands in the place of a hit.
pub(super) fn replacement(action: Action, hit: &Hit, value: &str) -> Option<String> {
    match (action, &hit.instead) {
        (Action::Flag, _) | (_, Instead::Mark) => None,
        (_, Instead::Text(text)) => Some(text.clone()),
        (Action::Mask, Instead::Placeholder) => Some(masked(hit.family, hit.label, value)),
        (Action::Redact | Action::Block, Instead::Placeholder) => Some(placeholder(hit.label)),
    }
}

/// `[REDACTED:github_token]`
pub(super) fn placeholder(label: Label) -> String {
    format!("[REDACTED:{label}]")
}

fn masked(family: Family, label: Label, value: &str) -> String {
    if family == Family::Personal {
        return masked_person(label, value);
    }
    format!("{}****", visible_prefix(label, value))
}

/// What a person may recognise their own by and others can do nothing with: the
/// first letter of a mailbox, the last digits of a number.
fn masked_person(label: Label, value: &str) -> String {
    match label {
        "email" => {
            let first = value.chars().next().filter(char::is_ascii_alphanumeric);
            let mut out: String = first.into_iter().collect();
            out.push_str("****");
            out
        }
        "credit_card" | "iban" | "phone" | "bank_account" => {
            let digits: Vec<char> = value.chars().filter(char::is_ascii_alphanumeric).collect();
            let shown = match digits.len() {
                12.. => 4,
                7.. => 2,
                _ => 0,
            };
            let mut out = String::from("****");
            out.extend(digits.iter().skip(digits.len() - shown));
            out
        }
        _ => String::from("****"),
    }
}

/// What a mask may show: the prefix that every token of a kind has, `ghp_`.
fn visible_prefix(label: Label, value: &str) -> &str {
    let all_secret = [
        "password",
        "basic_auth",
        "bearer_token",
        "generic_secret",
        "session_cookie",
    ];
    if label.starts_with("url_") || all_secret.contains(&label) {
        return "";
    }
    let head = value.get(..value.len().min(12)).unwrap_or_default();
    let end = head.find(['_', '-', '.']).map_or(0, |at| at + 1);
    let prefix = head.get(..end).unwrap_or_default();
    if prefix.len() <= 6 && prefix.len() > 1 {
        prefix
    } else {
        ""
    }
}

/// What stands in place of invisible characters or control sequences; a mask makes
/// them visible: `[U+200B]`, `␛[31m`.
pub(super) fn hidden_replacement(
    action: Action,
    label: Label,
    original: &str,
    instead: &str,
) -> Option<String> {
    match action {
        Action::Flag => None,
        Action::Redact | Action::Block => Some(instead.to_owned()),
        Action::Mask if label == TERMINAL => {
            let mut shown = pictures(original);
            shown.push_str(instead);
            Some(shown)
        }
        Action::Mask => Some(code_points(original)),
    }
}

/// Controls as the pictures that Unicode has for them (U+2400…).
fn pictures(original: &str) -> String {
    let picture = |c: u32| char::from_u32(0x2400 + c).unwrap_or('\u{2426}');
    let mut out = String::with_capacity(original.len());
    for c in original.chars() {
        match u32::from(c) {
            code @ 0..=0x1f => out.push(picture(code)),
            0x7f => out.push('\u{2421}'),
            // C1 as the escape sequence that means the same (ECMA-35 §13.2.1).
            code @ 0x80..=0x9f => {
                out.push(picture(0x1b));
                out.extend(char::from_u32(code - 0x40));
            }
            _ => out.push(c),
        }
    }
    out
}

fn code_points(original: &str) -> String {
    let mut chars = original.chars();
    let mut out = String::new();
    if let Some(first) = chars.next() {
        // Writing to a String does not fail.
        let _ = write!(out, "[U+{:04X}", u32::from(first));
        match chars.count() {
            0 => out.push(']'),
            more => {
                let _ = write!(out, " and {more} more]");
            }
        }
    }
    out
}

/// The text with the edits made. They are in order and do not overlap.
pub(super) fn apply(text: &str, edits: &[Edit]) -> String {
    apply_mapped(text, edits).0
}

/// The same, with offsets back.
pub(super) fn apply_mapped(text: &str, edits: &[Edit]) -> (String, Offsets) {
    let mut out = String::with_capacity(text.len() + 32);
    let mut offsets = Offsets::default();
    let mut at = 0;
    for edit in edits {
        let Some(replacement) = &edit.replacement else {
            continue;
        };
        if edit.range.start < at {
            continue;
        }
        let plain = text.get(at..edit.range.start).unwrap_or_default();
        out.push_str(plain);
        offsets.push(plain.len(), at, plain.len());
        out.push_str(replacement);
        offsets.push(replacement.len(), edit.range.start, edit.range.len());
        at = edit.range.end;
    }
    let plain = text.get(at..).unwrap_or_default();
    out.push_str(plain);
    offsets.push(plain.len(), at, plain.len());
    (out, offsets)
}

/// Counts by label.
pub(super) fn edits_total(edits: &[Edit]) -> Vec<(Label, u64)> {
    let mut totals: Vec<(Label, u64)> = Vec::new();
    for edit in edits.iter().filter(|edit| edit.count > 0) {
        match totals.iter_mut().find(|(label, _)| *label == edit.label) {
            Some((_, count)) => *count += edit.count,
            None => totals.push((edit.label, edit.count)),
        }
    }
    totals
}

/// Whether any of the edits changes the text.
pub(super) fn change(edits: &[Edit]) -> bool {
    edits.iter().any(|edit| edit.replacement.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitize::findings::INVISIBLE;

    #[test]
    fn a_mask_keeps_the_form_and_hides_the_rest() {
        let secret = |label, value: &str| masked(Family::Secrets, label, value);
        assert_eq!(secret("github_token", "ghp_abcdef"), "ghp_****");
        assert_eq!(secret("jwt", "eyJhbGciOi"), "****");
        assert_eq!(secret("password", "a_hunter2"), "****");
        let person = |label, value: &str| masked(Family::Personal, label, value);
        assert_eq!(person("email", "ada@example.com"), "a****");
        assert_eq!(person("credit_card", "4111 1111 1111 1234"), "****1234");
        assert_eq!(person("phone", "555-0123"), "****23");
        assert_eq!(person("us_ssn", "123-45-6789"), "****");
    }

    #[test]
    fn a_mask_shows_what_was_hidden() {
        let shown = |label, text: &str| hidden_replacement(Action::Mask, label, text, "").unwrap();
        assert_eq!(shown(TERMINAL, "\u{1b}[31m"), "␛[31m");
        assert_eq!(shown(TERMINAL, "\u{9b}1m"), "␛[1m");
        assert_eq!(shown(INVISIBLE, "\u{200b}"), "[U+200B]");
        assert_eq!(
            shown(INVISIBLE, "\u{e0069}\u{e0067}"),
            "[U+E0069 and 1 more]"
        );
    }

    #[test]
    fn edits_replace_and_keep_the_rest() {
        let edit = |range, replacement: Option<&str>| Edit {
            range,
            replacement: replacement.map(str::to_owned),
            label: "x",
            count: 1,
            blocks: false,
        };
        let edits = [
            edit(1..2, Some("--")),
            edit(2..3, None),
            edit(4..5, Some("")),
        ];
        assert_eq!(apply("abcde", &edits), "a--cd");
    }
}
