//! A provider's keys, kept fresh: used as long as they may be, fetched by one for
//! all, and not oftener than is polite.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::watch;

use super::IdentityFault;
use super::source::{Remote, Source, SourceFault};
use crate::clock::SharedClock;
use crate::ids::ProviderId;
use crate::jose::KeySet;

/// How often keys are fetched and how long they are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTimings {
    /// Keys are kept at least so long, whatever their server says.
    pub min_age: Duration,
    /// Keys are kept at most so long, whatever their server says.
    pub max_age: Duration,
    /// Keys are kept so long if their server says nothing.
    pub default_age: Duration,
    /// A key id that is not known causes one fetch in so long.
    pub unknown_key: Duration,
    /// After a failure the next fetch waits so long.
    pub retry: Duration,
    /// Keys are believed so long after they were last fetched, if they cannot be
    /// fetched again.
    pub stale_limit: Duration,
    /// How long one fetch may take.
    pub timeout: Duration,
    /// How long the request that finds keys due for renewal waits for it before it
    /// goes on with the old ones.
    pub patience: Duration,
}

impl Default for KeyTimings {
    fn default() -> Self {
        Self {
            min_age: Duration::from_mins(1),
            max_age: Duration::from_hours(1),
            default_age: Duration::from_mins(5),
            unknown_key: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            stale_limit: Duration::from_hours(24),
            timeout: Duration::from_secs(5),
            patience: Duration::from_secs(1),
        }
    }
}

/// One set of keys.
pub(super) struct Snapshot {
    pub(super) keys: KeySet,
    /// Counts the changes: what was verified with another generation is verified again.
    pub(super) generation: u64,
    usable_until: i64,
}

/// The keys of one provider.
pub(super) struct ProviderKeys {
    provider: ProviderId,
    source: Source,
    timings: KeyTimings,
    clock: SharedClock,
    current: ArcSwapOption<Snapshot>,
    /// When to look at the source again.
    due: AtomicI64,
    /// When an unknown key may cause a fetch again.
    unknown_after: AtomicI64,
    failing: AtomicBool,
    /// The fetch that is under way: closed when it ends, however it ends.
    flight: Mutex<Option<watch::Receiver<()>>>,
}

impl ProviderKeys {
    pub(super) fn new(
        provider: ProviderId,
        source: Source,
        timings: KeyTimings,
        clock: SharedClock,
    ) -> Self {
        Self {
            provider,
            source,
            timings,
            clock,
            current: ArcSwapOption::empty(),
            due: AtomicI64::new(i64::MIN),
            unknown_after: AtomicI64::new(i64::MIN),
            failing: AtomicBool::new(false),
            flight: Mutex::default(),
        }
    }

    /// Whether another provider's keys are those of this one, from the same place.
    pub(super) fn are_those_of(&self, other: &Self) -> bool {
        self.provider == other.provider && self.source.is_same_place(&other.source)
    }

    /// The keys to use now, renewed if they are due.
    pub(super) async fn current(
        self: &Arc<Self>,
        now: i64,
    ) -> Result<Arc<Snapshot>, IdentityFault> {
        if passed(&self.due, now, self.timings.max_age) {
            self.renew(now).await;
        }
        self.usable(now).ok_or_else(|| self.unavailable())
    }

    /// The keys to use for a key id that is not among those of `generation`.
    /// `None`: it stays unknown.
    pub(super) async fn for_unknown_key(
        self: &Arc<Self>,
        generation: u64,
        now: i64,
    ) -> Result<Option<Arc<Snapshot>>, IdentityFault> {
        // Twice, because a fetch that was under way may have asked too early.
        for _ in 0..2 {
            if let Some(newer) = self.newer(generation, now) {
                return Ok(Some(newer));
            }
            let Some(flight) = self.fly_for_unknown_key(now) else {
                break;
            };
            landed(flight).await;
        }
        match self.newer(generation, now) {
            // While keys cannot be fetched nobody can say that the key is wrong.
            None if self.failing.load(Ordering::Relaxed) => Err(self.unavailable()),
            newer => Ok(newer),
        }
    }

    /// Reads keys from a file now; other sources are left alone.
    pub(super) fn load_file(&self, now: i64) -> Result<(), SourceFault> {
        let Source::File(file) = &self.source else {
            return Ok(());
        };
        self.due.store(now.saturating_add(1), Ordering::Relaxed);
        let read = file.changed(now, |content| {
            self.replace(KeySet::parse(&content?)?, i64::MAX);
            Ok(())
        });
        read.unwrap_or(Ok(()))
    }

    async fn renew(self: &Arc<Self>, now: i64) {
        match &self.source {
            Source::File(_) => {
                if let Err(fault) = self.load_file(now) {
                    self.log(&fault);
                }
            }
            Source::Remote(_) => {
                let (flight, started) = self.join_or_fly();
                if self.usable(now).is_none() {
                    landed(flight).await;
                } else if started {
                    // Whoever comes in the meantime uses the old keys.
                    let _ = tokio::time::timeout(self.timings.patience, landed(flight)).await;
                }
            }
        }
    }

    fn usable(&self, now: i64) -> Option<Arc<Snapshot>> {
        self.current
            .load_full()
            .filter(|snapshot| now < snapshot.usable_until)
    }

    fn newer(&self, generation: u64, now: i64) -> Option<Arc<Snapshot>> {
        self.usable(now)
            .filter(|snapshot| snapshot.generation != generation)
    }

    fn join_or_fly(self: &Arc<Self>) -> (watch::Receiver<()>, bool) {
        let mut flight = self.flight.lock().unwrap_or_else(PoisonError::into_inner);
        match under_way(flight.as_ref()) {
            Some(under_way) => (under_way, false),
            None => (self.fly(&mut flight), true),
        }
    }

    fn fly_for_unknown_key(self: &Arc<Self>, now: i64) -> Option<watch::Receiver<()>> {
        let mut flight = self.flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(under_way) = under_way(flight.as_ref()) {
            return Some(under_way);
        }
        let interval = self.timings.unknown_key;
        if !passed(&self.unknown_after, now, interval) {
            return None;
        }
        if matches!(self.source, Source::File(_)) {
            return None;
        }
        self.unknown_after
            .store(now.saturating_add(seconds(interval)), Ordering::Relaxed);
        Some(self.fly(&mut flight))
    }

    /// Starts a fetch in a task of its own, so that it ends well even if the
    /// request that needed it goes away.
    fn fly(self: &Arc<Self>, flight: &mut Option<watch::Receiver<()>>) -> watch::Receiver<()> {
        let (landing, receiver) = watch::channel(());
        let keys = Arc::clone(self);
        tokio::spawn(async move {
            if let Source::Remote(remote) = &keys.source {
                keys.fetch(remote).await;
            }
            drop(landing);
        });
        *flight = Some(receiver.clone());
        receiver
    }

    async fn fetch(&self, remote: &Remote) {
        let fetched = remote.fetch(self.timings.timeout).await;
        let now = self.clock.unix_seconds();
        self.failing.store(fetched.is_err(), Ordering::Relaxed);
        let wait = match fetched {
            Ok((keys, max_age)) => {
                let limit = seconds(self.timings.stale_limit);
                self.replace(keys, now.saturating_add(limit));
                max_age
                    .unwrap_or(self.timings.default_age)
                    .clamp(self.timings.min_age, self.timings.max_age)
            }
            Err(fault) => {
                self.log(&fault);
                self.timings.retry
            }
        };
        self.due
            .store(now.saturating_add(seconds(wait)), Ordering::Relaxed);
    }

    fn replace(&self, keys: KeySet, usable_until: i64) {
        let old = self.current.load_full();
        let generation = match &old {
            Some(old) if old.keys.digest() == keys.digest() => old.generation,
            Some(old) => old.generation + 1,
            None => 1,
        };
        if old.is_none_or(|old| old.generation != generation) {
            tracing::info!(
                identity_provider = %self.provider,
                keys = keys.len(),
                "an identity provider's signing keys are new"
            );
        }
        self.current.store(Some(Arc::new(Snapshot {
            keys,
            generation,
            usable_until,
        })));
    }

    fn log(&self, fault: &SourceFault) {
        tracing::warn!(
            identity_provider = %self.provider,
            error = %fault,
            "an identity provider's keys could not be read; those known stay in use for a while"
        );
    }

    fn unavailable(&self) -> IdentityFault {
        IdentityFault::KeysUnavailable {
            provider: self.provider.clone(),
        }
    }
}

/// Whether a moment has come. One farther away than it was ever set was set
/// before the clock was put back.
fn passed(moment: &AtomicI64, now: i64, farthest: Duration) -> bool {
    let moment = moment.load(Ordering::Relaxed);
    now >= moment || moment.saturating_sub(now) > seconds(farthest)
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

fn under_way(flight: Option<&watch::Receiver<()>>) -> Option<watch::Receiver<()>> {
    flight
        .filter(|flight| flight.has_changed().is_ok())
        .cloned()
}

async fn landed(mut flight: watch::Receiver<()>) {
    // Nothing is ever sent: this ends when the sender is dropped.
    let _ = flight.changed().await;
}
