//! What was found: kinds, counts and places, never a value.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Places kept per label; the count goes on.
const MAX_PLACES: usize = 8;

/// Bytes of a place that are kept: an upstream chooses the keys in it.
const MAX_PLACE: usize = 160;

/// The kind of a finding, as it stands in a placeholder: `github_token`.
pub type Label = &'static str;

/// Invisible characters.
pub const INVISIBLE: Label = "invisible";
/// Terminal sequences and control characters.
pub const TERMINAL: Label = "terminal";

/// How often a kind was found, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Occurrences.
    pub count: u64,
    /// JSON pointers of the first places, at most eight.
    pub places: Vec<String>,
}

/// Findings of one answer by label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(BTreeMap<Label, Finding>);

impl Findings {
    /// Nothing found.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All occurrences of all kinds.
    pub fn total(&self) -> u64 {
        self.0.values().map(|finding| finding.count).sum()
    }

    /// Occurrences of one kind.
    pub fn count(&self, label: &str) -> u64 {
        self.0.get(label).map_or(0, |finding| finding.count)
    }

    /// Kinds in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (Label, &Finding)> {
        self.0.iter().map(|(label, finding)| (*label, finding))
    }

    /// Adds what another part of the same answer had.
    pub fn merge(&mut self, other: Self) {
        for (label, found) in other.0 {
            let mine = self.0.entry(label).or_default();
            mine.count += found.count;
            for place in found.places {
                mine.keep(place);
            }
        }
    }

    /// One line for the audit: `github_token=2@/content/0/text;invisible=5@/_meta/a`.
    /// Several places of a kind are separated by commas.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        for (label, finding) in &self.0 {
            if !out.is_empty() {
                out.push(';');
            }
            // Writing to a String does not fail.
            let _ = write!(out, "{label}={}", finding.count);
            for (nth, place) in finding.places.iter().enumerate() {
                out.push(if nth == 0 { '@' } else { ',' });
                out.push_str(place);
            }
        }
        out
    }

    /// Counts occurrences; the place is made only where there is room for it.
    pub(super) fn add(&mut self, label: Label, count: u64, place: impl FnOnce() -> String) {
        let finding = self.0.entry(label).or_default();
        finding.count += count;
        if finding.places.len() < MAX_PLACES {
            finding.keep(place());
        }
    }
}

impl Finding {
    fn keep(&mut self, place: String) {
        if self.places.len() < MAX_PLACES && !self.places.contains(&place) {
            self.places.push(place);
        }
    }
}

/// A pointer's segment made safe for one line of a record: RFC 6901 escapes, and
/// per cent codes for what separates places or breaks lines.
pub(super) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for c in segment.chars() {
        if pointer.len() >= MAX_PLACE {
            pointer.push('…');
            return;
        }
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            ';' | ',' | '@' | '%' => {
                let _ = write!(pointer, "%{:02X}", u32::from(c));
            }
            c if c.is_control() || c.is_whitespace() => pointer.push('_'),
            c => pointer.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_label_count_and_places() {
        let mut findings = Findings::none();
        findings.add("github_token", 1, || String::from("/content/0/text"));
        findings.add("github_token", 1, || String::from("/content/0/text"));
        findings.add(INVISIBLE, 5, || String::from("/content/1/text"));
        assert_eq!(
            findings.summary(),
            "github_token=2@/content/0/text;invisible=5@/content/1/text"
        );
        assert_eq!(findings.total(), 7);
    }

    #[test]
    fn places_are_few_and_counts_exact() {
        let mut findings = Findings::none();
        for n in 0..100 {
            findings.add("jwt", 1, || format!("/content/{n}"));
        }
        let mut more = Findings::none();
        more.add("jwt", 2, || String::from("/x"));
        findings.merge(more);
        assert_eq!(findings.count("jwt"), 102);
        assert_eq!(findings.0["jwt"].places.len(), 8);
    }

    #[test]
    fn a_segment_cannot_forge_a_record() {
        let mut pointer = String::new();
        push_segment(&mut pointer, "a/b;jwt=1\n,~");
        assert_eq!(pointer, "/a~1b%3Bjwt=1_%2C~0");
        let mut long = String::new();
        push_segment(&mut long, &"k".repeat(10_000));
        assert!(long.len() < 200);
    }
}
