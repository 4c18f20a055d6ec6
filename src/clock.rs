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

/// A time as text: RFC 3339 in UTC with all six digits of the second's fraction, so
/// that times have one length, line up, and sort as text.
pub mod timestamp {
    use serde::Serializer;
    use time::format_description::BorrowedFormatItem;
    use time::macros::format_description;
    use time::{OffsetDateTime, UtcOffset};

    const FORM: &[BorrowedFormatItem<'_>] =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

    /// The text.
    pub fn text(time: OffsetDateTime) -> String {
        let utc = time.to_offset(UtcOffset::UTC);
        utc.format(FORM).unwrap_or_default()
    }

    /// For `#[serde(serialize_with)]`.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(
        time: &OffsetDateTime,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(*time))
    }

    /// For `#[serde(serialize_with)]` where there may be none.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize_option<S: Serializer>(
        time: &Option<OffsetDateTime>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn every_time_has_the_same_length_and_is_in_utc() {
            let whole = time::macros::datetime!(2026-07-28 12:00:00 +2);
            assert_eq!(text(whole), "2026-07-28T10:00:00.000000Z");
            let fraction = time::macros::datetime!(2026-07-28 12:00:00.120 UTC);
            assert_eq!(text(fraction), "2026-07-28T12:00:00.120000Z");
        }
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
