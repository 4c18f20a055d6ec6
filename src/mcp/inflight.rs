//! Calls of legacy sessions that run on this replica, so that
//! `notifications/cancelled` finds them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::ids::SessionId;

type Key = (SessionId, String);

/// The calls that run here.
#[derive(Default)]
pub(super) struct InFlight(Mutex<HashMap<Key, CancellationToken>>);

/// One call's place; given back when dropped.
pub(super) struct Entry {
    calls: Arc<InFlight>,
    key: Key,
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
        self.calls().insert(key.clone(), cancel);
        Entry {
            calls: Arc::clone(self),
            key,
        }
    }

    /// Cancels a call; `false` where it does not run here.
    pub(super) fn cancel(&self, session: SessionId, id: &str) -> bool {
        let found = self.calls().get(&(session, id.to_owned())).cloned();
        found.inspect(CancellationToken::cancel).is_some()
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<Key, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.calls.calls().remove(&self.key);
    }
}
