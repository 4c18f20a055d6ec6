//! How long to wait before trying again: doubling, with jitter, so that many who
//! lost the same thing do not come back at once.

use std::time::Duration;

use crate::clock;

/// Growing pauses.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            next: first,
        }
    }

    /// Starts over after something worked.
    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next pause: between half of the step and all of it.
    pub(super) fn pause(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.most);
        let share = u32::from(u16::from_le_bytes(clock::random()));
        step / 2 + (step / 2) * share / u32::from(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(400));
        for most in [100, 200, 400, 400] {
            let pause = backoff.pause();
            assert!(pause >= Duration::from_millis(most / 2));
            assert!(pause <= Duration::from_millis(most));
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(100));
    }
}
