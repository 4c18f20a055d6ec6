//! How long an answer is waited for. Time in which the upstream itself waits for
//! something that it asked of the caller does not count, and meanwhile the request
//! gives up its place among those in flight.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

/// However often it asks, no request lasts longer.
const LONGEST: Duration = Duration::from_hours(1);

/// The time that one request has.
#[derive(Debug)]
pub(super) struct Patience {
    state: watch::Sender<State>,
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// When the time is over, unless it is held.
    until: Instant,
    /// What was left when it was held.
    left: Duration,
    holds: u32,
    /// When it is over in any case.
    latest: Instant,
}

/// Holds the time while it lives.
#[derive(Debug)]
pub(super) struct Hold(Arc<Patience>);

impl Patience {
    /// Until `deadline`, with a place among the requests in flight.
    pub(super) fn new(deadline: Instant, place: Option<OwnedSemaphorePermit>) -> Arc<Self> {
        let state = State {
            until: deadline,
            left: Duration::ZERO,
            holds: 0,
            latest: deadline.max(Instant::now() + LONGEST),
        };
        Arc::new(Self {
            state: watch::Sender::new(state),
            place: Mutex::new(place),
        })
    }

    /// Holds the time until what is given back is dropped. The place is not taken
    /// again: who has waited for its user is not made to queue.
    pub(super) fn hold(self: &Arc<Self>) -> Hold {
        self.state.send_modify(|state| {
            if state.holds == 0 {
                state.left = state.until.saturating_duration_since(Instant::now());
            }
            state.holds += 1;
        });
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        drop(place.take());
        Hold(Arc::clone(self))
    }

    /// Waits until the time is over.
    pub(super) async fn over(&self) {
        let mut changes = self.state.subscribe();
        loop {
            let state = *changes.borrow_and_update();
            let until = if state.holds == 0 {
                state.until.min(state.latest)
            } else {
                state.latest
            };
            tokio::select! {
                () = sleep_until(until) => return,
                // The sender is in `self`.
                _ = changes.changed() => {}
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| {
            state.holds = state.holds.saturating_sub(1);
            if state.holds == 0 {
                state.until = Instant::now() + state.left;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_upstream_waits_does_not_count() {
        let patience = Patience::new(Instant::now() + Duration::from_secs(10), None);
        advance(Duration::from_secs(4)).await;
        let hold = patience.hold();
        let second = patience.hold();
        advance(Duration::from_mins(5)).await;
        drop(hold);
        assert!(
            timeout(Duration::from_mins(1), patience.over())
                .await
                .is_err()
        );
        drop(second);
        assert!(
            timeout(Duration::from_secs(5), patience.over())
                .await
                .is_err()
        );
        assert!(
            timeout(Duration::from_secs(2), patience.over())
                .await
                .is_ok()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let patience = Patience::new(Instant::now() + Duration::from_secs(10), None);
        let _hold = patience.hold();
        assert!(
            timeout(LONGEST + Duration::from_secs(1), patience.over())
                .await
                .is_ok()
        );
    }
}
