//! Time, randomness and fresh ids. The only place that reads the wall clock or
//! the system's random source; everything else takes a [`Clock`].

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use time::OffsetDateTime;
use uuid::{Builder, Uuid};

use crate::ids::{CallId, ReplicaId, SessionId};

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock, UTC.
    fn now(&self) -> OffsetDateTime;

    /// Seconds since the Unix epoch, as JWT claims count them (RFC 7519 §2, `NumericDate`).
    fn unix_seconds(&self) -> i64 {
        self.now().unix_timestamp()
    }

    /// Milliseconds since the Unix epoch.
    fn unix_millis(&self) -> i64 {
        i64::try_from(self.now().unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
    }
}

/// A clock that is handed around.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the wall clock"
    )]
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }
}

/// A clock that stands still until it is moved; for tests.
#[derive(Debug)]
pub struct ManualClock(std::sync::Mutex<OffsetDateTime>);

impl ManualClock {
    /// Stands at `start`.
    pub fn new(start: OffsetDateTime) -> Self {
        Self(std::sync::Mutex::new(start))
    }

    /// Moves forward.
    pub fn advance(&self, by: Duration) {
        let mut now = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *now += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> OffsetDateTime {
        *self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// `N` bytes of the system's random source.
///
/// # Panics
/// When the operating system has no randomness to give: nothing safe can follow.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(
        clippy::expect_used,
        reason = "without randomness nothing safe can follow"
    )]
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system's random source works");
    bytes
}

fn uuid_v7(at: OffsetDateTime) -> Uuid {
    let millis = at.unix_timestamp_nanos() / 1_000_000;
    Builder::from_unix_timestamp_millis(u64::try_from(millis).unwrap_or(0), &random::<10>())
        .into_uuid()
}

/// A new call id: `UUIDv7` of the clock's time.
pub fn new_call_id(clock: &dyn Clock) -> CallId {
    CallId(uuid_v7(clock.now()))
}

/// A new call id of another time than now.
pub fn call_id_at(at: OffsetDateTime) -> CallId {
    CallId(uuid_v7(at))
}

/// A new replica id.
pub fn new_replica_id(clock: &dyn Clock) -> ReplicaId {
    ReplicaId(uuid_v7(clock.now()))
}

/// A new session id.
pub fn new_session_id(clock: &dyn Clock) -> SessionId {
    SessionId(uuid_v7(clock.now()))
}
