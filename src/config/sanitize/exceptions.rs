//! `tenants.*.sanitize.allow`: what stays though it is found.

use serde::Deserialize;

use super::super::Pattern;
use super::super::check::Check;
use super::labels;

/// `tenants.*.sanitize.allow`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SanitizeExceptions {
    /// Hosts that images and other parts of markup may come from, with all below
    /// them.
    pub domains: Vec<String>,
    /// Values, as globs: `*@acme.example`.
    pub values: Vec<Pattern>,
    /// Fields.
    pub fields: Vec<SanitizeException>,
}

/// One of `tenants.*.sanitize.allow.fields`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SanitizeException {
    /// A JSON pointer into the answer; `*` stands for any one step.
    pub pointer: String,
    /// Tools by their exposed names; all where it is left out.
    #[serde(default)]
    pub tool: Option<Pattern>,
    /// The kinds that stay there; all where it is left out.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// Of each kind of exception at most so many.
const MOST: usize = 256;

impl SanitizeExceptions {
    pub(super) fn validate(&self, own: &[&str], check: &mut Check<'_>) {
        check.each("domains", &self.domains, |domain, check| {
            let formed = !domain.is_empty()
                && !domain.starts_with('.')
                && domain.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'))
                && domain.to_lowercase() == *domain;
            if !formed {
                check.fault(
                    "is no host",
                    "write one in lower case, such as `images.example.com`; what is below it is included",
                );
            }
        });
        check.each("values", &self.values, |value, check| {
            if value.as_str().trim_matches(['*', '?']).is_empty() {
                check.fault("allows everything", "write more than `*` and `?`");
            }
        });
        check.each("fields", &self.fields, |field, check| {
            if !field.pointer.starts_with('/') {
                check.within("pointer", |check| {
                    check.fault(
                        "is no JSON pointer",
                        "write one such as `/structuredContent/records/*/email`",
                    );
                });
            }
            check.each("labels", &field.labels, |label, check| {
                labels::validate(label, own, check);
            });
        });
        for (key, count) in [
            ("domains", self.domains.len()),
            ("values", self.values.len()),
            ("fields", self.fields.len()),
        ] {
            if count > MOST {
                check.within(key, |check| {
                    check.fault(format!("has more than {MOST}"), "use globs");
                });
            }
        }
    }
}

impl SanitizeException {
    /// Whether a kind stays at a place. A text that mirrors `structuredContent` has
    /// pointers of its own, without that first step.
    pub fn covers(&self, pointer: &str, label: &str) -> bool {
        let named = self.labels.is_empty() || self.labels.iter().any(|own| own == label);
        let mirrored = self.pointer.strip_prefix("/structuredContent");
        named && (fits(&self.pointer, pointer) || mirrored.is_some_and(|rest| fits(rest, pointer)))
    }
}

fn fits(rule: &str, pointer: &str) -> bool {
    let mut rule = rule.split('/');
    let mut steps = pointer.split('/');
    loop {
        match (rule.next(), steps.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(own), Some(step)) if own == step => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(pointer: &str, labels: &[&str]) -> SanitizeException {
        SanitizeException {
            pointer: pointer.to_owned(),
            tool: None,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        }
    }

    #[test]
    fn a_field_covers_its_pointer_and_its_mirror() {
        let records = field("/structuredContent/records/*/email", &["email"]);
        assert!(records.covers("/structuredContent/records/3/email", "email"));
        assert!(records.covers("/records/3/email", "email"));
        assert!(!records.covers("/structuredContent/records/3/email", "phone"));
        assert!(!records.covers("/structuredContent/records/email", "email"));
        assert!(!records.covers("/structuredContent/records/3/email/x", "email"));
        assert!(field("/content/0/text", &[]).covers("/content/0/text", "phone"));
    }
}
