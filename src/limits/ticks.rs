//! Time for limits: it only goes forward, and tests move it.

use std::time::{Duration, Instant};

use governor::clock::{Clock, FakeRelativeClock};
use governor::nanos::Nanos;

/// A steady clock. The wall clock is no good here: setting it back would lock
/// callers out, setting it forward would fill every bucket.
#[derive(Clone, Debug)]
pub struct Ticks(Source);

#[derive(Clone, Debug)]
enum Source {
    Machine(Instant),
    Moved(FakeRelativeClock),
}

impl Ticks {
    /// The machine's steady clock.
    pub fn machine() -> Self {
        Self(Source::Machine(Instant::now()))
    }

    /// A clock that stands still until [`Ticks::advance`]; for tests.
    pub fn manual() -> Self {
        Self(Source::Moved(FakeRelativeClock::default()))
    }

    /// Moves a manual clock; the machine's goes its own way.
    pub fn advance(&self, by: Duration) {
        if let Source::Moved(clock) = &self.0 {
            clock.advance(by);
        }
    }
}

impl Clock for Ticks {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        match &self.0 {
            Source::Machine(start) => start.elapsed().into(),
            Source::Moved(clock) => clock.now(),
        }
    }
}
