//! `tenants.*.sanitize`: what happens to findings.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde::Deserialize;

use super::ByteSize;
use super::check::Check;

mod custom;
mod exceptions;
mod labels;

pub use custom::{CustomPattern, Expression, SanitizeVector};
pub use exceptions::{SanitizeException, SanitizeExceptions};
pub use labels::labels;

/// What is done with a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Replaced by a typed placeholder, `[REDACTED:label]`.
    Redact,
    /// Mostly covered, its form kept.
    Mask,
    /// Left in place and counted.
    Flag,
    /// The whole answer is withheld.
    Block,
}

/// `tenants.*.sanitize`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sanitize {
    /// Keys, tokens, passwords.
    pub secrets: Action,
    /// Personal data: names of mailboxes, numbers of cards, accounts and people.
    pub personal: Action,
    /// Markdown and HTML that makes a reader's program fetch or run something.
    pub markup: Action,
    /// Text that speaks to a model in the tool's name. To redact is to mark it.
    pub injection: Action,
    /// Stack traces and paths of a server's own files.
    pub traces: Action,
    /// Invisible characters that carry hidden text or reorder what is seen.
    pub invisible: Action,
    /// Terminal control sequences and other control characters.
    pub terminal: Action,
    /// For single kinds, by label, in place of their family's.
    pub labels: IndexMap<String, Action>,
    /// Whether everything is only counted, whatever the actions say.
    pub dry_run: bool,
    /// What stays.
    pub allow: SanitizeExceptions,
    /// Kinds of your own.
    pub patterns: Vec<CustomPattern>,
    /// Texts by which `toolgate check` tries these rules.
    pub vectors: Vec<SanitizeVector>,
    /// Largest answer: a larger one is an error.
    pub max_answer: ByteSize,
    /// Characters of one text that are passed on; a longer one is cut. No limit
    /// unless set.
    pub max_text: Option<usize>,
}

impl Default for Sanitize {
    fn default() -> Self {
        Self {
            secrets: Action::Redact,
            personal: Action::Redact,
            markup: Action::Redact,
            injection: Action::Redact,
            traces: Action::Redact,
            invisible: Action::Redact,
            terminal: Action::Redact,
            labels: IndexMap::new(),
            dry_run: false,
            allow: SanitizeExceptions::default(),
            patterns: Vec::new(),
            vectors: Vec::new(),
            max_answer: ByteSize(10 << 20),
            max_text: None,
        }
    }
}

/// A tenant's own patterns: each is run over every text.
const MOST_PATTERNS: usize = 32;

impl Sanitize {
    /// The rules as they hold for one tool.
    pub fn for_tool(&self, tool: &str) -> Cow<'_, Self> {
        let holds =
            |field: &SanitizeException| field.tool.as_ref().is_none_or(|glob| glob.matches(tool));
        if self.allow.fields.iter().all(holds) {
            return Cow::Borrowed(self);
        }
        let mut rules = self.clone();
        rules.allow.fields.retain(holds);
        Cow::Owned(rules)
    }

    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.positive("max_answer", self.max_answer.0 as u64);
        let own: Vec<&str> = self.patterns.iter().map(|pattern| pattern.label).collect();
        check.within("labels", |check| {
            for label in self.labels.keys() {
                check.within(label, |check| labels::validate(label, &own, check));
            }
        });
        check.within("allow", |check| self.allow.validate(&own, check));
        if self.patterns.len() > MOST_PATTERNS {
            check.within("patterns", |check| {
                check.fault(
                    format!("has more than {MOST_PATTERNS}"),
                    "join some by `|`: each costs a pass over every text",
                );
            });
        }
        check.each("patterns", &self.patterns, CustomPattern::validate);
        check.each("vectors", &self.vectors, SanitizeVector::validate);
        if let Some(most) = self.max_text {
            check.positive("max_text", most as u64);
        }
    }
}
