//! Edits of what the view left out: invisible characters and terminal sequences.

use super::View;
use crate::config::Action;
use crate::sanitize::detect::Family;
use crate::sanitize::edits::{Edit, Policy, apply_mapped, hidden_replacement};
use crate::sanitize::findings::{INVISIBLE, Label};

fn family_of_hidden(label: Label) -> Family {
    if label == INVISIBLE {
        Family::Invisible
    } else {
        Family::Terminal
    }
}

/// What the view left out, unless another edit takes it along.
pub(super) fn hidden(
    text: &str,
    view: &View<'_>,
    policy: Policy<'_>,
    others: &[Edit],
) -> Vec<Edit> {
    let mut others: Vec<_> = others
        .iter()
        .filter(|edit| edit.replacement.is_some())
        .map(|edit| edit.range.clone())
        .collect();
    others.sort_by_key(|range| range.start);
    let mut others = others.into_iter().peekable();
    let mut edits = Vec::with_capacity(view.gaps.len());
    for gap in &view.gaps {
        let Some(label) = gap.label else {
            continue;
        };
        while others
            .next_if(|range| range.end <= gap.range.start)
            .is_some()
        {}
        let covered = others
            .peek()
            .is_some_and(|range| range.start < gap.range.end);
        let original = text.get(gap.range.clone()).unwrap_or_default();
        let action = policy.action(family_of_hidden(label), label);
        edits.push(Edit {
            range: gap.range.clone(),
            replacement: if covered {
                None
            } else {
                hidden_replacement(action, label, original, gap.instead)
            },
            label,
            count: gap.count,
            blocks: action == Action::Block,
        });
    }
    edits
}

/// A character that stayed for a neighbour's sake goes when that neighbour went
/// with a secret. Twice is enough for all but contrived texts; the bound keeps
/// those linear.
pub(super) fn settle(text: &str, edits: &mut Vec<Edit>, policy: Policy<'_>) {
    const ROUNDS: usize = 4;
    for _ in 0..ROUNDS {
        let (out, offsets) = apply_mapped(text, edits);
        let late: Vec<Edit> = View::of(&out)
            .gaps
            .into_iter()
            .filter_map(|gap| {
                let label = gap.label?;
                let original = out.get(gap.range.clone())?;
                let action = policy.action(family_of_hidden(label), label);
                let replacement = hidden_replacement(action, label, original, gap.instead)?;
                Some(Edit {
                    range: offsets.back(&gap.range),
                    replacement: Some(replacement),
                    label,
                    count: gap.count,
                    blocks: action == Action::Block,
                })
            })
            .collect();
        if late.is_empty() {
            return;
        }
        edits.extend(late);
        edits.sort_by_key(|edit| edit.range.start);
    }
}
