//! What a passed limit gives, and what a refused one says.

use std::sync::Arc;
use std::time::Duration;

use super::counters::Permit;
use crate::config::Bucket;

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

/// The proof that a request is within its limits. Holds its places among those
/// at the same time until it is dropped.
#[derive(Debug)]
pub struct Admission {
    permits: Vec<Permit>,
    standings: Vec<Standing>,
}

impl Admission {
    pub(super) fn new(permits: Vec<Permit>, standings: Vec<Standing>) -> Self {
        Self { permits, standings }
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
        self.permits.extend(other.permits);
        self.standings.extend(other.standings);
        self
    }
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
