//! One chain: which places have events, whether each follows from the one before,
//! and what checkpoints say of it. Events may come in any order; those that come in
//! order cost nothing but their digest.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::super::chain::{Digest, GENESIS, link};

/// Consecutive events.
#[derive(Clone, Copy, Debug)]
struct Segment {
    last: i64,
    first_leaf: Digest,
    first_link: Digest,
    last_link: Digest,
}

/// What a checkpoint says of the chain.
#[derive(Clone, Copy, Debug)]
struct Head {
    sequence: i64,
    link: Digest,
    matched: bool,
    beyond: bool,
}

/// How an event fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It follows, or what it should follow has not come yet.
    Fits,
    /// It does not follow from the event before.
    Broken,
    /// Its place is taken.
    Taken,
}

/// A chain.
#[derive(Debug, Default)]
pub(super) struct Links {
    segments: BTreeMap<i64, Segment>,
    heads: Vec<Head>,
    next_head: usize,
    /// The highest place that a checkpoint covers.
    pub(super) signed: i64,
}

impl Links {
    /// What a checkpoint says. In order, since writers sign in order.
    pub(super) fn head(&mut self, sequence: i64, link: Digest, beyond: bool) {
        self.signed = self.signed.max(sequence);
        self.heads.push(Head {
            sequence,
            link,
            matched: false,
            beyond,
        });
    }

    /// Forgets what has been matched; called between days.
    pub(super) fn tidy(&mut self) {
        self.heads.retain(|head| !head.matched);
        self.heads.sort_by_key(|head| head.sequence);
        self.next_head = 0;
    }

    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn last(&self) -> i64 {
        self.segments
            .last_key_value()
            .map_or(0, |(_, segment)| segment.last)
    }

    pub(super) fn first(&self) -> Option<i64> {
        self.segments.first_key_value().map(|(first, _)| *first)
    }

    /// Whether an event stands at a place.
    pub(super) fn covers(&self, sequence: i64) -> bool {
        let before = self.segments.range(..=sequence).next_back();
        before.is_some_and(|(_, segment)| segment.last >= sequence)
    }

    /// Whether the event's link follows from the event before it, where that has come.
    pub(super) fn follows(&self, sequence: i64, leaf: &Digest, stored: &Digest) -> Option<bool> {
        let previous = if sequence == 1 {
            GENESIS
        } else {
            let (_, segment) = self.segments.range(..sequence).next_back()?;
            (segment.last == sequence - 1).then_some(segment.last_link)?
        };
        Some(link(&previous, leaf) == *stored)
    }

    /// Puts an event at its place.
    pub(super) fn put(&mut self, sequence: i64, leaf: Digest, stored: Digest) -> Fit {
        let before = self.segments.range_mut(..=sequence).next_back();
        if let Some((_, segment)) = before {
            if segment.last >= sequence {
                return Fit::Taken;
            }
            if segment.last + 1 == sequence {
                let fits = link(&segment.last_link, &leaf) == stored;
                segment.last = sequence;
                segment.last_link = stored;
                return if fits { Fit::Fits } else { Fit::Broken };
            }
        }
        let fits = sequence != 1 || link(&GENESIS, &leaf) == stored;
        self.segments.insert(
            sequence,
            Segment {
                last: sequence,
                first_leaf: leaf,
                first_link: stored,
                last_link: stored,
            },
        );
        if fits { Fit::Fits } else { Fit::Broken }
    }

    /// Whether what was signed of this place, if anything, is what stands there.
    pub(super) fn matches(&mut self, sequence: i64, stored: &Digest) -> bool {
        while self
            .heads
            .get(self.next_head)
            .is_some_and(|head| head.sequence < sequence)
        {
            self.next_head += 1;
        }
        let mut at = self.next_head;
        let before = at.checked_sub(1).and_then(|at| self.heads.get(at));
        if before.is_none_or(|head| head.sequence < sequence)
            && self
                .heads
                .get(at)
                .is_none_or(|head| head.sequence > sequence)
        {
            return true;
        }
        if self
            .heads
            .get(at)
            .is_none_or(|head| head.sequence != sequence)
        {
            match self
                .heads
                .binary_search_by_key(&sequence, |head| head.sequence)
            {
                Ok(found) => at = found,
                Err(_) => return true,
            }
        }
        match self.heads.get_mut(at) {
            Some(head) => {
                head.matched = true;
                head.link == *stored
            }
            None => true,
        }
    }

    /// Joins segments that touch, and gives the places where the later one does not follow.
    pub(super) fn join(&mut self) -> Vec<i64> {
        let mut broken = Vec::new();
        let mut joined: BTreeMap<i64, Segment> = BTreeMap::new();
        for (first, segment) in std::mem::take(&mut self.segments) {
            if let Some((_, before)) = joined.iter_mut().next_back()
                && before.last + 1 == first
            {
                if link(&before.last_link, &segment.first_leaf) != segment.first_link {
                    broken.push(first);
                }
                before.last = segment.last;
                before.last_link = segment.last_link;
                continue;
            }
            joined.insert(first, segment);
        }
        self.segments = joined;
        broken
    }

    /// Says what stands before a segment, from elsewhere: a dropped day, a day out of
    /// range. False where the segment does not follow from it.
    pub(super) fn anchor(&self, first: i64, previous: &Digest) -> bool {
        self.segments
            .get(&first)
            .is_none_or(|segment| link(previous, &segment.first_leaf) == segment.first_link)
    }

    /// Places up to the last that is known of which there is no event. The tail, if
    /// any, comes last and says so.
    pub(super) fn gaps(&self) -> Vec<(RangeInclusive<i64>, bool)> {
        let mut gaps = Vec::new();
        let mut next = 1;
        for (first, segment) in &self.segments {
            if *first > next {
                gaps.push((next..=first - 1, false));
            }
            next = segment.last + 1;
        }
        let signed = self
            .heads
            .iter()
            .filter(|head| !head.beyond)
            .map(|head| head.sequence)
            .max();
        if let Some(signed) = signed.filter(|signed| *signed >= next) {
            gaps.push((next..=signed, true));
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links of a chain whose leaves are numbered.
    fn chain(length: u8) -> Vec<(i64, Digest, Digest)> {
        let mut previous = GENESIS;
        (1..=length)
            .map(|n| {
                let leaf = [n; 32];
                previous = link(&previous, &leaf);
                (i64::from(n), leaf, previous)
            })
            .collect()
    }

    #[test]
    fn any_order_gives_one_whole_chain() {
        let mut events = chain(40);
        for turn in 0..7 {
            let mut links = Links::default();
            events.rotate_left(turn * 5);
            events.swap(turn, 30);
            for (place, leaf, stored) in &events {
                assert_ne!(links.put(*place, *leaf, *stored), Fit::Taken);
            }
            assert_eq!(links.join(), Vec::<i64>::new());
            assert_eq!((links.segments(), links.last()), (1, 40));
            assert!(links.gaps().is_empty());
        }
    }

    #[test]
    fn a_gap_a_break_and_a_taken_place_are_told_apart() {
        let events = chain(10);
        let mut links = Links::default();
        for (place, leaf, stored) in &events {
            match place {
                4 | 5 => {}
                8 => assert_eq!(links.put(8, [0xee; 32], *stored), Fit::Broken),
                _ => assert_eq!(links.put(*place, *leaf, *stored), Fit::Fits),
            }
        }
        assert_eq!(links.put(2, [1; 32], [1; 32]), Fit::Taken);
        assert!(links.join().is_empty());
        assert_eq!(links.gaps(), [(4..=5, false)]);
    }

    #[test]
    fn a_head_without_its_event_is_a_missing_tail() {
        let events = chain(5);
        let mut links = Links::default();
        for (place, leaf, stored) in &events[..3] {
            links.put(*place, *leaf, *stored);
        }
        links.head(3, events[2].2, false);
        links.head(5, events[4].2, false);
        assert!(links.matches(3, &events[2].2));
        assert!(!Links::default().gaps().iter().any(|_| true));
        assert_eq!(links.gaps(), [(4..=5, true)]);
        let mut rewritten = Links::default();
        rewritten.head(3, events[2].2, false);
        assert!(!rewritten.matches(3, &[9; 32]));
    }
}
