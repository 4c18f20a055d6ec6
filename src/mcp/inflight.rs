//! Calls of legacy sessions that run on this replica, so that
//! `notifications/cancelled` finds them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::ids::SessionId;

type Key = (SessionId, String);

/// The calls that run here.
#[derive(Default)]
pub(super) struct InFlight(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    running: HashMap<Key, (u64, CancellationToken)>,
    entered: u64,
}

/// One call's place; given back when dropped.
pub(super) struct Entry {
    calls: Arc<InFlight>,
    key: Key,
    number: u64,
}

impl InFlight {
    /// Takes a place. Of two calls with the same id the later is the one that a cancellation finds.
    pub(super) fn enter(
        self: &Arc<Self>,
        session: SessionId,
        id: String,
        cancel: CancellationToken,
    ) -> Entry {
        let key = (session, id);
        let mut calls = self.calls();
        calls.entered += 1;
        let number = calls.entered;
        calls.running.insert(key.clone(), (number, cancel));
        Entry {
            calls: Arc::clone(self),
            key,
            number,
        }
    }

    /// Cancels a call; `false` where it does not run here.
    pub(super) fn cancel(&self, session: SessionId, id: &str) -> bool {
        let calls = self.calls();
        let found = calls.running.get(&(session, id.to_owned()));
        found.inspect(|(_, cancel)| cancel.cancel()).is_some()
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut calls = self.calls.calls();
        // A later call with the same id keeps its place.
        if calls.running.get(&self.key).map(|(number, _)| *number) == Some(self.number) {
            calls.running.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_of_two_calls_with_one_id_can_be_cancelled_when_the_earlier_is_over() {
        let calls = Arc::new(InFlight::default());
        let session = SessionId(uuid::Uuid::nil());
        let (first, second) = (CancellationToken::new(), CancellationToken::new());
        let earlier = calls.enter(session, "1".to_owned(), first.clone());
        let later = calls.enter(session, "1".to_owned(), second.clone());
        drop(earlier);
        assert!(calls.cancel(session, "1"));
        assert!(second.is_cancelled() && !first.is_cancelled());
        drop(later);
        assert!(!calls.cancel(session, "1"));
    }
}
