//! `tenants.*.sanitize`: what happens to findings.

use serde::Deserialize;

use super::ByteSize;
use super::check::Check;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
            max_answer: ByteSize(10 << 20),
            max_text: None,
        }
    }
}

impl Sanitize {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.positive("max_answer", self.max_answer.0 as u64);
        if let Some(most) = self.max_text {
            check.positive("max_text", most as u64);
        }
    }
}
