//! `tenants.*.sanitize.patterns` and `.vectors`: kinds of an operator's own, and
//! texts to try the rules by.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use regex::{Regex, RegexBuilder};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::super::check::Check;
use super::Action;

/// Longest pattern, in bytes.
const LONGEST: usize = 512;

/// Largest compiled pattern, in bytes: the time for a text is linear whatever the
/// pattern, and this bounds its factor.
const LARGEST: usize = 256 << 10;

/// A label that lives as long as the process.
type Interned = &'static str;

/// One of `tenants.*.sanitize.patterns`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomPattern {
    /// Its label, as it stands in placeholders.
    #[serde(deserialize_with = "interned")]
    pub label: Interned,
    /// A regular expression of linear time (no look-around, no references back). A
    /// group named `value` is what is replaced; otherwise all of it.
    pub pattern: Expression,
    /// What is done with it.
    #[serde(default = "redact")]
    pub action: Action,
}

fn redact() -> Action {
    Action::Redact
}

/// Labels live as long as the process: there are few, and a reload has the same.
fn interned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Interned, D::Error> {
    static LABELS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let label = String::deserialize(deserializer)?;
    let mut labels = LABELS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = labels.get(label.as_str()) {
        return Ok(known);
    }
    let label: &'static str = Box::leak(label.into_boxed_str());
    labels.insert(label);
    Ok(label)
}

/// A regular expression, compiled.
#[derive(Clone, Debug)]
pub struct Expression(Regex);

impl Expression {
    /// The expression.
    pub fn regex(&self) -> &Regex {
        &self.0
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Expression {}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() > LONGEST {
            return Err(D::Error::custom(format!(
                "longer than {LONGEST} bytes; write several patterns"
            )));
        }
        RegexBuilder::new(&text)
            .size_limit(LARGEST)
            .dfa_size_limit(LARGEST)
            .build()
            .map(Self)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    D::Error::custom("too large when compiled; use smaller repetitions")
                }
                _ => D::Error::custom(
                    "no regular expression; look-around and references back are not supported",
                ),
            })
    }
}

impl CustomPattern {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        if !is_label(self.label) {
            check.within("label", validate_label);
        }
        if self.pattern.regex().is_match("") {
            check.within("pattern", |check| {
                check.fault("fits an empty text", "require at least one character");
            });
        }
    }
}

/// Letters, digits and underscores, as labels have them.
pub(super) fn is_label(label: &str) -> bool {
    (1..=48).contains(&label.len())
        && label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

pub(super) fn validate_label(check: &mut Check<'_>) {
    check.fault(
        "is no label",
        "use 1 to 48 of a-z, 0-9 and `_`, such as `employee_id`",
    );
}

/// One of `tenants.*.sanitize.vectors`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SanitizeVector {
    /// What a tool returns.
    pub text: String,
    /// The name of the field that it stands in.
    pub key: Option<String>,
    /// Whether it is the text of a failure.
    pub is_error: bool,
    /// Labels of all that must be found; none: nothing may be.
    pub finds: Vec<String>,
    /// What must be handed on.
    pub becomes: Option<String>,
}

impl SanitizeVector {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        if self.text.is_empty() {
            check.fault("has no text", "write `text`, and `finds` or `becomes`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Result<CustomPattern, serde_json::Error> {
        serde_json::from_value(serde_json::json!({"label": "employee_id", "pattern": text}))
    }

    #[test]
    fn patterns_are_linear_small_and_short() {
        assert!(pattern(r"EMP-\d{6}").is_ok());
        for bad in ["(?=x)", r"(a)\1", "[", &"a".repeat(513), r"(\w{200}){200}"] {
            assert!(pattern(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_label_is_the_same_each_time() {
        let (first, second) = (pattern("a").unwrap(), pattern("a").unwrap());
        assert!(std::ptr::eq(first.label, second.label));
        assert_eq!(first, second);
    }

    #[test]
    fn labels_have_the_form_of_labels() {
        assert!(is_label("employee_id"));
        for bad in ["", "Employee", "a b", "a]b"] {
            assert!(!is_label(bad), "{bad}");
        }
    }
}
