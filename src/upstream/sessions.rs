//! Legacy sessions at one server, one per caller: never shared, closed when idle,
//! bounded in number.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use tokio::time::{Instant, timeout};

use super::http::Http;
use super::session::Session;
use super::{CallerKey, UpstreamError, UpstreamRequest};

/// How long a session may be unused.
const IDLE: Duration = Duration::from_mins(10);
/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(30);
/// Most sessions kept at one server; beyond it the longest unused is closed.
const MOST: usize = 1024;
/// Callers that meet in one lock are one in so many.
const SHARDS: usize = 16;

/// Whose session: the caller's, and with which credential it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionKey(CallerKey, [u8; 32]);

impl SessionKey {
    pub(super) fn of(request: &UpstreamRequest) -> Self {
        let mut proof = [0; 32];
        if let Some(credential) = &request.credential {
            let hash = digest(&SHA256, credential.value.expose().as_bytes());
            proof = hash.as_ref().try_into().unwrap_or(proof);
        }
        Self(request.caller, proof)
    }
}

type Shard = HashMap<SessionKey, Arc<Slot>>;

/// The sessions. One that leaves the table is closed when its last request is done.
pub(super) struct Sessions {
    shards: [Mutex<Shard>; SHARDS],
    began: Instant,
    swept: AtomicBool,
}

/// The place of one caller's session. Whoever opens it holds the lock, so that all
/// others of the same caller wait for the one session.
#[derive(Default)]
struct Slot {
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    /// Milliseconds from the table's beginning to the last use.
    used: AtomicU64,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Self {
            shards: Default::default(),
            began: Instant::now(),
            swept: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn slot(&self, key: SessionKey) -> Arc<Slot> {
        let CallerKey(caller) = key.0;
        let number = usize::from(caller.first().copied().unwrap_or_default()) % SHARDS;
        let Some(shard) = self.shards.get(number) else {
            return Arc::default();
        };
        let mut shard = lock(shard);
        if shard.len() >= MOST / SHARDS && !shard.contains_key(&key) {
            let oldest = shard.iter().min_by_key(|(_, slot)| slot.used());
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                shard.remove(&oldest);
            }
        }
        let slot = Arc::clone(shard.entry(key).or_default());
        slot.used.store(self.now(), Ordering::Relaxed);
        slot
    }

    /// The caller's session, opened where there is none.
    pub(super) async fn get(
        &self,
        key: SessionKey,
        open: impl Future<Output = Result<Arc<Session>, UpstreamError>>,
    ) -> Result<Arc<Session>, UpstreamError> {
        let slot = self.slot(key);
        let mut place = slot.session.lock().await;
        if let Some(session) = &*place {
            return Ok(Arc::clone(session));
        }
        let session = open.await?;
        *place = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Keeps a session that is open already.
    pub(super) async fn put(&self, key: SessionKey, session: Arc<Session>) {
        *self.slot(key).session.lock().await = Some(session);
    }

    /// Drops a session that the server does not know any more, unless it has been
    /// replaced already.
    pub(super) async fn forget(&self, key: SessionKey, session: &Arc<Session>) {
        session.face().lose();
        let slot = self.slot(key);
        let mut place = slot.session.lock().await;
        if place.as_ref().is_some_and(|now| Arc::ptr_eq(now, session)) {
            *place = None;
        }
    }

    /// Sees to it that idle sessions are let go of even when nobody asks for one.
    pub(super) fn keep_swept(&self, http: &Arc<Http>) {
        if self.swept.swap(true, Ordering::Relaxed) {
            return;
        }
        let http = Arc::clone(http);
        http.tasks.clone().spawn(async move {
            while timeout(SWEEP, http.stop.cancelled()).await.is_err() {
                http.sessions.sweep(IDLE);
            }
        });
    }

    /// Lets go of what has been unused for so long.
    pub(super) fn sweep(&self, idle: Duration) {
        let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        for shard in &self.shards {
            lock(shard).retain(|_, slot| now.saturating_sub(slot.used()) < idle);
        }
    }

    /// Lets go of all.
    pub(super) fn close(&self) {
        for shard in &self.shards {
            lock(shard).clear();
        }
    }
}

impl Slot {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
