//! Legacy sessions at one server, one per caller and what it can do: never shared,
//! closed when idle, bounded in number. A caller without a session of its own has
//! several, each lent to one request at a time.

use std::collections::HashMap;
use std::future::Future;
use std::ops::Deref;
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
/// Most sessions that one caller leaves unused.
const MOST_UNUSED: usize = 64;
/// Callers that meet in one lock are one in so many.
const SHARDS: usize = 16;

/// Whose session: the caller's, with which credential it was opened, and what the
/// server was told that the client can do.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionKey(CallerKey, [u8; 32], [u8; 32]);

impl SessionKey {
    pub(super) fn of(request: &UpstreamRequest) -> Self {
        let hashed = |text: &str| -> [u8; 32] {
            let hash = digest(&SHA256, text.as_bytes());
            hash.as_ref().try_into().unwrap_or_default()
        };
        let credential = request.credential.as_ref();
        let proof = credential.map(|credential| hashed(credential.value.expose()));
        let declared = request.declared();
        let able = (declared.as_str() != "{}").then(|| hashed(declared.as_str()));
        Self(
            request.caller,
            proof.unwrap_or_default(),
            able.unwrap_or_default(),
        )
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
    /// Sessions that are lent to one request at a time, and are not at the moment.
    unused: Mutex<Vec<Arc<Session>>>,
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

    /// The caller's session, opened where there is none. `alone`: one that nobody
    /// else uses meanwhile.
    pub(super) async fn get(
        &self,
        key: SessionKey,
        alone: bool,
        open: impl Future<Output = Result<Arc<Session>, UpstreamError>>,
    ) -> Result<Lease, UpstreamError> {
        let slot = self.slot(key);
        if alone {
            let unused = lock(&slot.unused).pop();
            let session = match unused {
                Some(session) => session,
                None => open.await?,
            };
            return Ok(Lease {
                session,
                home: Some(slot),
            });
        }
        let mut place = slot.session.lock().await;
        if let Some(session) = &*place {
            return Ok(Lease::of(Arc::clone(session)));
        }
        let session = open.await?;
        *place = Some(Arc::clone(&session));
        Ok(Lease::of(session))
    }

    /// The sessions that belong to a caller alone and are open now.
    pub(super) async fn of(&self, caller: CallerKey) -> Vec<Arc<Session>> {
        let mut slots = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let own = shard.iter().filter(|(key, _)| key.0 == caller);
            slots.extend(own.map(|(_, slot)| Arc::clone(slot)));
        }
        let mut open = Vec::with_capacity(slots.len());
        for slot in slots {
            open.extend(slot.session.lock().await.clone());
        }
        open
    }

    /// Keeps a session that is open already.
    pub(super) async fn put(&self, key: SessionKey, alone: bool, session: Arc<Session>) {
        let slot = self.slot(key);
        if alone {
            lock(&slot.unused).push(session);
        } else {
            *slot.session.lock().await = Some(session);
        }
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

/// The use of a session by one request. One that was lent alone is given back.
pub(super) struct Lease {
    session: Arc<Session>,
    home: Option<Arc<Slot>>,
}

impl Lease {
    /// The use of a session that is shared, or kept by nobody.
    pub(super) fn of(session: Arc<Session>) -> Self {
        Self {
            session,
            home: None,
        }
    }
}

impl Deref for Lease {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(home) = &self.home else { return };
        let mut unused = lock(&home.unused);
        if !self.session.face().is_lost() && unused.len() < MOST_UNUSED {
            unused.push(Arc::clone(&self.session));
        }
    }
}

impl Slot {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
