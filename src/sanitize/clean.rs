//! What comes out: proofs that a text was cleaned. What goes to a caller has
//! private fields and is made only here, so nothing else can pass for clean; a
//! definition is open, because the catalogue goes on working on it.

use std::fmt;

use thiserror::Error;

use super::excess::Remainder;
use super::findings::{Findings, Label};
use crate::protocol::{Json, UpstreamEvent};

/// Why an answer is withheld.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unclean {
    /// Larger than the tenant allows.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It holds what the tenant blocks.
    #[error("the answer is withheld: it holds {label}")]
    Blocked {
        /// The kind of what was found.
        label: Label,
        /// All that was found.
        findings: Findings,
    },
}

impl Unclean {
    /// What was found in it, as far as it was looked at.
    pub fn findings(&self) -> Findings {
        match self {
            Self::TooLarge { .. } => Findings::none(),
            Self::Blocked { findings, .. } => findings.clone(),
        }
    }
}

/// A cleaned result.
#[derive(Clone, Debug)]
pub struct CleanResult {
    json: Json,
    findings: Findings,
    remainders: Vec<Remainder>,
    outgrown: bool,
}

impl CleanResult {
    pub(super) fn new(json: Json, findings: Findings) -> Self {
        Self::ours(json, findings)
    }

    pub(super) fn with_remainders(mut self, remainders: Vec<Remainder>) -> Self {
        self.remainders = remainders;
        self
    }

    /// A result that the gateway made itself, of its own words or of parts that
    /// were cleaned. `findings` are those of the parts.
    pub fn ours(json: Json, findings: Findings) -> Self {
        Self {
            json,
            findings,
            remainders: Vec::new(),
            outgrown: false,
        }
    }

    /// The same, whose form suits its schema no more: cleaning took what the schema
    /// asks for.
    pub(super) fn outgrown(mut self, outgrown: bool) -> Self {
        self.outgrown = outgrown;
        self
    }

    /// Whether it suited its schema before it was cleaned, and does so no more.
    pub fn is_outgrown(&self) -> bool {
        self.outgrown
    }

    /// Texts of which only the beginning is in the result.
    pub fn remainders(&self) -> &[Remainder] {
        &self.remainders
    }

    /// The result.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// What was found in it.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The same result in another form, made of its own cleaned parts.
    #[must_use]
    pub fn with_json(self, json: Json) -> Self {
        Self { json, ..self }
    }

    /// The result, taken out.
    pub fn into_json(self) -> Json {
        self.json
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.json
            .get("isError")
            .and_then(|flag| flag.boolean())
            .unwrap_or(false)
    }
}

/// A cleaned JSON-RPC error.
#[derive(Clone, Debug)]
pub struct CleanError {
    /// The upstream's words.
    pub message: CleanText,
    /// The upstream's data.
    pub data: Option<Json>,
    /// What was found in both.
    pub findings: Findings,
}

/// A cleaned event.
#[derive(Debug)]
pub struct CleanEvent {
    event: UpstreamEvent,
    findings: Findings,
}

impl CleanEvent {
    pub(super) fn new(event: UpstreamEvent, findings: Findings) -> Self {
        Self { event, findings }
    }

    /// Counts what was found in it together with its neighbours.
    pub(super) fn found(&mut self, findings: Findings) {
        self.findings.merge(findings);
    }

    /// The notification.
    pub fn event(&self) -> &UpstreamEvent {
        &self.event
    }

    /// What was found in it.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The notification, taken out.
    pub fn into_event(self) -> UpstreamEvent {
        self.event
    }
}

/// A cleaned tool definition, and what its first form says about the tool.
#[derive(Clone, Debug)]
pub struct CleanDefinition {
    /// The definition.
    pub json: Json,
    /// What was found in it.
    pub findings: Findings,
    /// Whether text was hidden in what a model or a person reads, or anything was
    /// found in names and values that carry arguments (rules §6.1): the tool is to
    /// be quarantined.
    pub suspicious: bool,
    /// Whether the tool's name had control characters: such a tool is refused.
    pub unfit_name: bool,
}

/// A cleaned text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanText {
    text: String,
    findings: Findings,
}

impl CleanText {
    pub(super) fn new(text: String, findings: Findings) -> Self {
        Self { text, findings }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What was found in it.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The text, taken out.
    pub fn into_string(self) -> String {
        self.text
    }
}

impl fmt::Display for CleanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
