//! A circuit breaker: after so many failures in a row nothing is sent for a
//! while, then one call may try.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config;

/// The breaker of one tenant and upstream.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

/// What a call tells of its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// It works.
    Well,
    /// It is ill.
    Ill,
    /// Nothing: the call did not get as far as the upstream.
    None,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Closed to calls until then; at that time one may try.
    open_until: Option<Instant>,
}

impl Breaker {
    /// Lets a call through, or says how long to wait. The one call that tries an
    /// open circuit pushes the next try away, so that they come one at a time.
    pub(super) fn admit(&self, now: Instant, settings: config::Breaker) -> Result<(), Duration> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.open_until {
            Some(until) if now < until => Err(until - now),
            Some(_) => {
                state.open_until = Some(now + settings.open_for.0);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes note of how a call went.
    pub(super) fn settle(&self, now: Instant, settings: config::Breaker, sign: Sign) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match sign {
            Sign::None => {}
            Sign::Well => *state = State::default(),
            Sign::Ill => {
                state.failures = state.failures.saturating_add(1);
                if state.failures >= settings.failures {
                    state.open_until = Some(now + settings.open_for.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Interval;

    fn settings() -> config::Breaker {
        config::Breaker {
            failures: 2,
            open_for: Interval::seconds(10),
        }
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_lets_one_try() {
        let breaker = Breaker::default();
        let start = Instant::now();
        let settle = |now, sign| breaker.settle(now, settings(), sign);
        let admit = |now| breaker.admit(now, settings());
        settle(start, Sign::Ill);
        settle(start, Sign::Well);
        settle(start, Sign::Ill);
        assert!(
            admit(start).is_ok(),
            "a success in between counts the failures anew"
        );
        settle(start, Sign::Ill);
        assert_eq!(admit(start), Err(Duration::from_secs(10)));
        let later = start + Duration::from_secs(10);
        assert!(admit(later).is_ok(), "one may try");
        assert_eq!(admit(later), Err(Duration::from_secs(10)), "and only one");
        settle(later, Sign::Well);
        assert!(admit(later).is_ok());
    }

    #[test]
    fn a_call_that_did_not_reach_the_upstream_says_nothing_of_it() {
        let breaker = Breaker::default();
        let start = Instant::now();
        breaker.settle(start, settings(), Sign::Ill);
        breaker.settle(start, settings(), Sign::None);
        breaker.settle(start, settings(), Sign::Ill);
        assert!(breaker.admit(start, settings()).is_err());
        breaker.settle(start, settings(), Sign::None);
        assert!(breaker.admit(start, settings()).is_err());
    }
}
