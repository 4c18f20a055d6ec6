//! Instructions to a model in what a tool returns. They are marked, not removed: the
//! model and the auditor see that what follows is no order.
//!
//! No list of sentences: words are read as features ([`words`]) in many languages,
//! and what stands together in a sentence or two adds up. To set earlier
//! instructions aside, to speak to a model, to ask for silence towards its user, to
//! ask for what is private, to claim authority, to imitate the signs of a chat: any
//! one alone is ordinary text, two or three are an attempt. What a text about such
//! attempts quotes does not count.

use std::ops::Range;

use super::detect::{Certainty, Cue, Detector, Family, Hit, Hits, Instead, Place, Sign, Subject};

mod score;
mod signs;
mod words;

/// The only kind.
pub(super) const PROMPT_INJECTION: &str = "prompt_injection";

/// The family.
pub(super) const DETECTOR: Detector = Detector {
    cues: signs::SIGNS,
    plausible,
    names: |_| false,
    find,
};

fn plausible(bytes: &[u8], sign: Sign) -> bool {
    match signs::SIGNS.get(sign.cue) {
        // A tag alone: a name in capitals or a chat's sign follows.
        Some(Cue::Exact("<|")) => bytes.get(sign.end).is_some_and(u8::is_ascii_lowercase),
        _ => true,
    }
}

/// Around a sign so much is read.
const AROUND: usize = 400;

fn find(subject: &Subject<'_>, hits: &mut Hits) {
    if matches!(subject.context.place, Place::Uri | Place::Number) {
        return;
    }
    let text = subject.text;
    let mut windows: Vec<Range<usize>> = Vec::new();
    for sign in subject.signs {
        let start = text.floor_char_boundary(sign.start.saturating_sub(AROUND));
        let end = text.ceil_char_boundary((sign.end + AROUND).min(text.len()));
        match windows.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => windows.push(start..end),
        }
    }
    for window in windows {
        for range in score::attempts(text, window) {
            hits.push(
                Hit::new(
                    Family::Injection,
                    PROMPT_INJECTION,
                    range,
                    Certainty::Context,
                )
                .instead(Instead::Mark),
            );
        }
    }
}

#[cfg(test)]
mod tests;
