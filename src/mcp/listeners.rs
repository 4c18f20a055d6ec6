//! The GET streams that are open on this replica: one a session, the newest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::ids::SessionId;
use crate::limits::{StreamPermit, StreamsFull};

/// The GET streams that are open here, one a session.
#[derive(Default)]
pub(super) struct Listeners(Mutex<HashMap<SessionId, Open>>);

/// An open stream: what closes it, and its place under the caps.
#[derive(Clone)]
pub(super) struct Open {
    /// Milliseconds of the Unix epoch.
    at: i64,
    pub(super) ended: CancellationToken,
    /// The session has other subscriptions now.
    pub(super) poked: Arc<Notify>,
    pub(super) permit: Arc<StreamPermit>,
}

impl Listeners {
    /// A new stream; the session's older stream here is closed and leaves its
    /// place under the caps to the new one.
    pub(super) fn open(
        &self,
        session: SessionId,
        at: i64,
        permit: impl FnOnce() -> Result<StreamPermit, StreamsFull>,
    ) -> Result<Open, StreamsFull> {
        let mut streams = self.lock();
        let permit = match streams.get(&session) {
            Some(older) => Arc::clone(&older.permit),
            None => Arc::new(permit()?),
        };
        let open = Open {
            at,
            ended: CancellationToken::new(),
            poked: Arc::default(),
            permit,
        };
        if let Some(older) = streams.insert(session, open.clone()) {
            older.ended.cancel();
        }
        Ok(open)
    }

    /// Lets the session's stream, if it is here, look at its subscriptions again.
    pub(super) fn poke(&self, session: SessionId) {
        if let Some(open) = self.lock().get(&session) {
            open.poked.notify_one();
        }
    }

    /// Closes the session's stream, if it is here.
    pub(super) fn close(&self, session: SessionId) {
        self.close_older(session, i64::MAX);
    }

    /// Closes the session's stream, if it is here and was opened before `at`.
    pub(super) fn close_older(&self, session: SessionId, at: i64) {
        let mut streams = self.lock();
        if streams.get(&session).is_some_and(|open| open.at < at)
            && let Some(open) = streams.remove(&session)
        {
            open.ended.cancel();
        }
    }

    /// A stream is over: it is forgotten, unless a newer one has its place.
    pub(super) fn over(&self, session: SessionId, stream: &Open) {
        stream.ended.cancel();
        let mut streams = self.lock();
        if streams
            .get(&session)
            .is_some_and(|open| open.ended.is_cancelled())
        {
            streams.remove(&session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
