//! Where a derived text came from: a map of its offsets back into the original.
//! Knows nothing of what was done to the text.

use std::ops::Range;

/// A stretch of the derived text and the stretch it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    at: usize,
    len: usize,
    from: usize,
    from_len: usize,
}

impl Piece {
    /// Byte for byte the same. Escapes are always longer than what they spell.
    fn is_verbatim(self) -> bool {
        self.len == self.from_len
    }
}

/// Maps ranges of a derived text back. Without pieces the two texts are equal.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    pieces: Vec<Piece>,
    len: usize,
}

impl Offsets {
    /// Says that the next `len` bytes came from `from_len` bytes at `from`.
    pub(super) fn push(&mut self, len: usize, from: usize, from_len: usize) {
        if len == 0 {
            return;
        }
        let at = self.len;
        self.len += len;
        let piece = Piece {
            at,
            len,
            from,
            from_len,
        };
        if let Some(last) = self.pieces.last_mut()
            && last.is_verbatim()
            && piece.is_verbatim()
            && last.from + last.from_len == from
        {
            last.len += len;
            last.from_len += from_len;
            return;
        }
        self.pieces.push(piece);
    }

    /// The smallest range of the original that holds all of `range`. An empty
    /// range has no place of its own and stands before what follows it.
    pub(super) fn back(&self, range: &Range<usize>) -> Range<usize> {
        if self.pieces.is_empty() {
            return range.clone();
        }
        let start = self.start(range.start);
        let end = if range.end > range.start {
            self.end(range.end)
        } else {
            start
        };
        start..end.max(start)
    }

    /// The smallest range of the derived text that holds what came of `range`.
    pub(super) fn forth(&self, range: &Range<usize>) -> Range<usize> {
        let first = self
            .pieces
            .partition_point(|piece| piece.from + piece.from_len <= range.start);
        let behind = self.pieces.partition_point(|piece| piece.from < range.end);
        let touched = self.pieces.get(first..behind).unwrap_or_default();
        match (touched.first(), touched.last()) {
            (Some(first), Some(last)) => {
                let into = if first.is_verbatim() {
                    range.start.saturating_sub(first.from)
                } else {
                    0
                };
                let end = if last.is_verbatim() {
                    (range.end - last.from).min(last.len)
                } else {
                    last.len
                };
                first.at + into..last.at + end
            }
            _ => 0..0,
        }
    }

    fn start(&self, offset: usize) -> usize {
        let after = self.pieces.partition_point(|piece| piece.at <= offset);
        match after.checked_sub(1).and_then(|at| self.pieces.get(at)) {
            Some(piece) if piece.is_verbatim() => piece.from + (offset - piece.at),
            Some(piece) => piece.from,
            None => 0,
        }
    }

    fn end(&self, offset: usize) -> usize {
        let after = self.pieces.partition_point(|piece| piece.at < offset);
        match after.checked_sub(1).and_then(|at| self.pieces.get(at)) {
            Some(piece) if piece.is_verbatim() => piece.from + (offset - piece.at).min(piece.len),
            Some(piece) => piece.from + piece.from_len,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_without_pieces_changes_nothing() {
        assert_eq!(Offsets::default().back(&(3..7)), 3..7);
    }

    #[test]
    fn an_escape_is_taken_whole() {
        // original: a\u0041bc, derived: aAbc
        let mut map = Offsets::default();
        map.push(1, 0, 1);
        map.push(1, 1, 6);
        map.push(2, 7, 2);
        assert_eq!(map.back(&(0..1)), 0..1);
        assert_eq!(map.back(&(1..2)), 1..7);
        assert_eq!(map.back(&(0..3)), 0..8);
        assert_eq!(map.back(&(3..4)), 8..9);
    }

    #[test]
    fn a_range_of_the_original_is_found_again() {
        // original: ab%40cd, derived: ab@cd
        let mut map = Offsets::default();
        map.push(2, 0, 2);
        map.push(1, 2, 3);
        map.push(2, 5, 2);
        assert_eq!(map.forth(&(1..6)), 1..4);
        assert_eq!(map.forth(&(2..5)), 2..3);
        assert_eq!(map.forth(&(6..7)), 4..5);
    }

    #[test]
    fn what_was_dropped_inside_a_range_belongs_to_it() {
        // original: ab--cd, derived: abcd
        let mut map = Offsets::default();
        map.push(2, 0, 2);
        map.push(2, 4, 2);
        assert_eq!(map.back(&(1..3)), 1..5);
        assert_eq!(map.back(&(2..3)), 4..5);
        assert_eq!(map.back(&(0..2)), 0..2);
    }
}
