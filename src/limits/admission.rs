//! What a passed limit gives, and what a refused one says.

use std::sync::Arc;
use std::time::Duration;

use super::counters::Permit;
use super::meter::Settings;
use super::shared::Lease;
use crate::config::Bucket;

/// When to come back if there are too many at the same time: nobody knows when
/// one of them ends, so this is a guess that does not hammer.
const WHEN_FULL: Duration = Duration::from_secs(1);

/// A class of tools that spends a bucket of its own in each tenant: those that
/// one entry of `tools` with `limits` matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolClass {
    /// The glob of the entry, as configured.
    pub rule: Arc<str>,
    /// The entry's bucket.
    pub bucket: Bucket,
}

/// Where a caller stands with one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which limit: `client`, `user`, `tenant`, `tool`, `browse`.
    pub policy: &'static str,
    /// What a full bucket holds.
    pub quota: u32,
    /// Time in which an empty bucket fills.
    pub window: Duration,
    /// What is left.
    pub remaining: u32,
    /// Time until the bucket is full.
    pub reset: Duration,
}

impl Standing {
    pub(super) fn of(policy: &'static str, settings: Settings, remaining: u32) -> Self {
        let spent = settings.burst.saturating_sub(remaining);
        Self {
            policy,
            quota: settings.burst,
            window: settings.window(),
            remaining,
            reset: settings.one.saturating_mul(spent),
        }
    }
}

/// Room among those at the same time; dropping it makes room again.
#[derive(Debug)]
pub(super) enum Place {
    /// Counted in this process.
    Here(#[expect(dead_code, reason = "held for its drop")] Permit),
    /// Counted by all replicas together: under every cap of one admission.
    Shared(#[expect(dead_code, reason = "held for its drop")] Lease),
}

/// The proof that a request is within its limits. Holds its places among those
/// at the same time until it is dropped.
#[derive(Debug)]
pub struct Admission {
    places: Vec<Place>,
    standings: Vec<Standing>,
}

impl Admission {
    pub(super) fn new(places: Vec<Place>, standings: Vec<Standing>) -> Self {
        Self { places, standings }
    }

    /// Every bucket that was spent, narrow to wide.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The bucket that will refuse first: what `RateLimit` headers tell.
    pub fn tightest(&self) -> Option<&Standing> {
        self.standings
            .iter()
            .min_by_key(|standing| (standing.remaining, std::cmp::Reverse(standing.reset)))
    }

    /// Both admissions as one, dropped together.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.places.extend(other.places);
        self.standings.extend(other.standings);
        self
    }
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitFault {
    /// Over a limit.
    #[error(transparent)]
    Over(#[from] Limited),
    /// Nobody can tell: the store that replicas count in is away, and a limit says
    /// that it is not to be counted by each alone.
    #[error("the store of the shared limits is away")]
    Away,
}

/// Over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("over the {policy} limit")]
pub struct Limited {
    /// Which limit: `client`, `user`, `tenant`, `tool`, `browse`.
    pub policy: &'static str,
    /// What a full bucket holds; of too many at once: how many may be.
    pub quota: u32,
    /// Time in which an empty bucket fills.
    pub window: Duration,
    /// When to come back.
    pub retry_after: Duration,
    /// Whether there are too many at the same time, rather than too many in a while.
    pub concurrent: bool,
}

impl Limited {
    /// Too many in a while.
    pub(super) fn of_rate(policy: &'static str, settings: Settings, retry_after: Duration) -> Self {
        Self {
            policy,
            quota: settings.burst,
            window: settings.window(),
            retry_after: retry_after.max(Duration::from_millis(1)),
            concurrent: false,
        }
    }

    /// Too many at the same time.
    pub(super) fn of_places(policy: &'static str, bucket: &Bucket, cap: u32) -> Self {
        Self {
            policy,
            quota: cap,
            window: Settings::of(bucket).window(),
            retry_after: WHEN_FULL,
            concurrent: true,
        }
    }
}
