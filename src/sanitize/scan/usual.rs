//! What answers of APIs are usually made of: of a literal those groups of bytes are
//! looked for that stand in little else.

use super::{BITS, group_of, hash};

/// Names and addresses as answers have them.
const TEXT: &[u8] = include_bytes!("usual.txt");

/// How often groups occur, by their hash.
pub(super) struct Usual(Vec<u32>);

impl Usual {
    pub(super) fn new() -> Self {
        let mut counts = vec![0; BITS];
        for group in TEXT.windows(3) {
            if let [a, b, c] = *group
                && let Some(count) = counts.get_mut(usize::from(hash(group_of([a, b, c]))))
            {
                *count += 1;
            }
        }
        Self(counts)
    }

    /// How often these would be met in vain.
    pub(super) fn cost(&self, groups: impl Iterator<Item = [u8; 3]>) -> u32 {
        groups
            .filter_map(|group| self.0.get(usize::from(hash(group_of(group)))))
            .sum()
    }

    /// Two neighbouring groups of a literal, the rarest, and the offset of the first.
    pub(super) fn rarest(&self, text: &[u8]) -> Option<(usize, [[u8; 3]; 2])> {
        let pairs = text.windows(4).enumerate().take(MOST);
        pairs
            .filter_map(|(offset, window)| match *window {
                [a, b, c, d] => Some((offset, [[a, b, c], [b, c, d]])),
                _ => None,
            })
            .min_by_key(|(_, pair)| self.cost(pair.iter().copied()))
    }
}

/// So many bytes of a literal are enough to choose from.
const MOST: usize = 100;
