//! A token bucket over all strangers together: what registrations and fetched
//! documents cost (`rules.md` §5). The one by address stands in front of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::config;

/// One bucket. Its size may change with the configuration.
#[derive(Debug, Default)]
pub(super) struct Bucket(Mutex<Option<Level>>);

#[derive(Clone, Copy, Debug)]
struct Level {
    /// Billionths of a token.
    tokens: u64,
    /// Milliseconds of the clock.
    at: i64,
}

const WHOLE: u64 = 1_000_000_000;

impl Bucket {
    /// Takes one token, or says how long until there is one.
    pub(super) fn take(&self, limits: &config::Bucket, now: i64) -> Result<(), Duration> {
        let full = u64::from(limits.burst.unwrap_or(limits.rate.count).max(1)) * WHOLE;
        let per = u64::try_from(limits.rate.per.as_millis()).unwrap_or(u64::MAX);
        // Billionths that come in a millisecond; a rate is at least one an hour.
        let speed = (u64::from(limits.rate.count) * WHOLE / per.max(1)).max(1);
        let mut level = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = level.map_or(full, |level| {
            let passed = u64::try_from(now.saturating_sub(level.at)).unwrap_or(0);
            level
                .tokens
                .saturating_add(passed.saturating_mul(speed))
                .min(full)
        });
        let (left, answer) = match tokens.checked_sub(WHOLE) {
            Some(left) => (left, Ok(())),
            None => (
                tokens,
                Err(Duration::from_millis((WHOLE - tokens).div_ceil(speed))),
            ),
        };
        *level = Some(Level {
            tokens: left,
            at: now,
        });
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let limits = config::Bucket {
            rate: "60/m".parse().unwrap(),
            burst: Some(3),
            concurrent: None,
            when_away: None,
        };
        let bucket = Bucket::default();
        for _ in 0..3 {
            assert_eq!(bucket.take(&limits, 0), Ok(()));
        }
        assert_eq!(bucket.take(&limits, 0), Err(Duration::from_secs(1)));
        assert!(bucket.take(&limits, 500).is_err());
        assert_eq!(bucket.take(&limits, 1000), Ok(()));
        // A clock that is set back gives nothing and takes nothing.
        assert!(bucket.take(&limits, 0).is_err());
        assert!(bucket.take(&limits, 3_600_000).is_ok());
    }
}
