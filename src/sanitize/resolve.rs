//! What becomes of hits that overlap: one edit for each stretch of text, under the
//! label of whoever is surest, by the action of the tenant's rules.

use super::detect::{Hit, Instead};
use super::edits::{Edit, Policy, replacement};
use crate::config::Action;

/// What is put before injected instructions that stay.
pub(super) fn mark(label: &str) -> String {
    format!("[FLAGGED:{label}] ")
}

/// A stretch of text that one edit replaces.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) hit: Hit,
    /// Labels and counts of others in it.
    others: Vec<(&'static str, u64)>,
    /// Whether its own replacement may still hold what others found.
    pub(super) unsettled: bool,
}

/// Hits by what is done with them.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// In order, none overlapping.
    pub(super) stretches: Vec<Stretch>,
    /// Counted, and left as they are or only marked.
    pub(super) kept: Vec<Hit>,
}

impl Resolved {
    pub(super) fn of(mut hits: Vec<Hit>, policy: Policy<'_>) -> Self {
        let mut resolved = Self::default();
        hits.sort_by(|a, b| {
            (a.range.start, b.range.end, a.label).cmp(&(b.range.start, a.range.end, b.label))
        });
        for hit in hits {
            let stays = hit.instead == Instead::Mark
                || policy.action(hit.family, hit.label) == Action::Flag;
            if stays {
                resolved.keep(hit);
            } else {
                resolved.replace(hit);
            }
        }
        resolved
    }

    fn keep(&mut self, hit: Hit) {
        let again = self
            .kept
            .iter_mut()
            .rev()
            .take(8)
            .find(|other| other.label == hit.label && other.range.end > hit.range.start);
        match again {
            Some(other) => {
                other.range.end = other.range.end.max(hit.range.end);
                other.count = other.count.min(hit.count);
            }
            None => self.kept.push(hit),
        }
    }

    fn replace(&mut self, hit: Hit) {
        match self.stretches.last_mut() {
            Some(last) if last.hit.range.end > hit.range.start => last.absorb(&hit),
            _ => self.stretches.push(Stretch {
                hit,
                others: Vec::new(),
                unsettled: false,
            }),
        }
    }
}

impl Stretch {
    /// `other` begins in this stretch, not before it.
    fn absorb(&mut self, other: &Hit) {
        let rewrites = |hit: &Hit| matches!(hit.instead, Instead::Text(_));
        let inside = other.range.end <= self.hit.range.end;
        let covers = other.range.start == self.hit.range.start;
        match (rewrites(&self.hit), rewrites(other)) {
            // A rewriting keeps some of its text: what lay in it is looked for again.
            (true, false) if inside && !covers => {
                self.unsettled = true;
                self.note(other);
                return;
            }
            (true, true) if inside => {
                self.unsettled = true;
                self.note(other);
                return;
            }
            _ => {}
        }
        let label = self.hit.label;
        let count = self.hit.count;
        if other.certainty > self.hit.certainty || (rewrites(&self.hit) && !rewrites(other)) {
            self.hit.label = other.label;
            self.hit.family = other.family;
            self.hit.certainty = other.certainty;
        }
        if rewrites(&self.hit) || rewrites(other) {
            self.hit.instead = Instead::Placeholder;
            if label != other.label {
                let loser = if self.hit.label == label {
                    (other.label, other.count)
                } else {
                    (label, count)
                };
                self.others.push(loser);
            }
        }
        self.hit.range.end = self.hit.range.end.max(other.range.end);
        self.hit.from = self.hit.from.min(other.from);
        // A part that was counted elsewhere is not counted again.
        self.hit.count = count.min(other.count);
    }

    fn note(&mut self, other: &Hit) {
        if other.label != self.hit.label {
            self.others.push((other.label, other.count));
        }
    }

    /// The edits that this stretch makes of `text`, in `text`'s offsets.
    pub(super) fn edits(&self, text: &str, policy: Policy<'_>) -> Vec<Edit> {
        let hit = &self.hit;
        let value = text.get(hit.range.clone()).unwrap_or_default();
        let action = policy.action(hit.family, hit.label);
        let mut edits = vec![Edit {
            range: hit.range.clone(),
            replacement: replacement(action, hit, value),
            label: hit.label,
            count: hit.count,
            blocks: action == Action::Block,
        }];
        edits.extend(self.others.iter().map(|(label, count)| Edit {
            range: hit.range.start..hit.range.start,
            replacement: None,
            label,
            count: *count,
            blocks: false,
        }));
        edits
    }
}
