//! What answers of APIs are usually made of: of a literal those groups of bytes are
//! looked for that stand in little else.

use super::{ENTRIES, group_of, hash};

/// Names and addresses as answers have them.
const TEXT: &[u8] = include_bytes!("usual.txt");

/// How often groups occur, by their hash.
pub(super) struct Usual(Vec<u32>);

impl Usual {
    pub(super) fn new() -> Self {
        let mut counts = vec![0; ENTRIES];
        for group in TEXT.windows(3) {
            if let [a, b, c] = *group
                && let Some(count) = counts.get_mut(hash(group_of([a, b, c])))
            {
                *count += 1;
            }
        }
        Self(counts)
    }

    /// How often a group would be met in vain.
    fn cost(&self, group: [u8; 3]) -> u32 {
        self.0.get(hash(group_of(group))).copied().unwrap_or(0)
    }

    /// The rarest group of a literal, and its offset.
    pub(super) fn rarest(&self, text: &[u8]) -> Option<(u8, [u8; 3])> {
        let groups = text.windows(3).take(MOST).enumerate();
        groups
            .filter_map(|(offset, window)| Some((offset, <[u8; 3]>::try_from(window).ok()?)))
            .min_by_key(|(_, group)| self.cost(*group))
            .and_then(|(offset, group)| Some((u8::try_from(offset).ok()?, group)))
    }
}

/// So many bytes of a literal are enough to choose from.
const MOST: usize = 100;
