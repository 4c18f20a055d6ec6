//! A circuit breaker: after so many failures in a row nothing is sent for a
//! while, then one call may try.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config;

/// The breaker of one tenant and upstream.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: config::Breaker,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Closed to calls until then; at that time one may try.
    open_until: Option<Instant>,
}

impl Breaker {
    pub(super) fn new(settings: config::Breaker) -> Self {
        Self {
            settings,
            state: Mutex::default(),
        }
    }

    /// Lets a call through, or says how long to wait. The one call that tries an
    /// open circuit pushes the next try away, so that they come one at a time.
    pub(super) fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.open_until {
            Some(until) if now < until => Err(until - now),
            Some(_) => {
                state.open_until = Some(now + self.settings.open_for.0);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes note of how a call went.
    pub(super) fn settle(&self, now: Instant, failed: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !failed {
            *state = State::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures >= self.settings.failures {
            state.open_until = Some(now + self.settings.open_for.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Interval;

    #[test]
    fn it_opens_after_failures_in_a_row_and_lets_one_try() {
        let breaker = Breaker::new(config::Breaker {
            failures: 2,
            open_for: Interval::seconds(10),
        });
        let start = Instant::now();
        breaker.settle(start, true);
        breaker.settle(start, false);
        breaker.settle(start, true);
        assert!(
            breaker.admit(start).is_ok(),
            "a success in between counts the failures anew"
        );
        breaker.settle(start, true);
        assert_eq!(breaker.admit(start), Err(Duration::from_secs(10)));
        let later = start + Duration::from_secs(10);
        assert!(breaker.admit(later).is_ok(), "one may try");
        assert_eq!(
            breaker.admit(later),
            Err(Duration::from_secs(10)),
            "and only one"
        );
        breaker.settle(later, false);
        assert!(breaker.admit(later).is_ok());
    }
}
