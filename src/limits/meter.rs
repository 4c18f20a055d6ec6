//! Token buckets by key, all with one rate and burst.
//!
//! governor decides (GCRA). It has no look without taking, and a call spends
//! several buckets, of which the last may refuse: so what the others gave is put
//! back. That is exact, also among concurrent callers: a bucket's state is one
//! number, the time at which it will be full, taking adds the price of one and
//! giving back subtracts it. For this the states are shared between governor's
//! limiter and the meter.

use std::hash::{BuildHasher, Hash, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::direct::NotKeyed;
use governor::state::keyed::{DashMapStateStore, ShrinkableKeyedStateStore};
use governor::{NotUntil, Quota, RateLimiter};

use super::Ticks;
use crate::config::Bucket;

/// How often the number of keys is looked at: every so many takes.
const LOOK_EVERY: usize = 256;
/// Below this many keys nothing is swept between schedules.
const FEW_KEYS: usize = 65_536;
/// With this many keys that are all being limited, newcomers of a tenant share a
/// bucket: memory stays bounded, and no bucket in use is forgotten.
const MOST_KEYS: usize = 524_288;

/// A digest of who is limited: fixed size, and nobody can choose one that
/// collides, because the hash is keyed anew in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(u128);

impl Key {
    pub(super) fn low_byte(self) -> u8 {
        self.0.to_le_bytes().first().copied().unwrap_or_default()
    }
}

/// Makes keys.
#[derive(Debug, Default)]
pub(super) struct Keyer(RandomState, RandomState);

impl Keyer {
    /// The key of a kind of limit, a tenant and whoever is meant in it.
    pub(super) fn key(&self, parts: impl Hash) -> Key {
        let high = u128::from(self.0.hash_one(&parts));
        let low = u128::from(self.1.hash_one(&parts));
        Key(high << 64 | low)
    }
}

/// The settings that a meter's states belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Settings {
    /// Time in which one token comes.
    pub(super) one: Duration,
    /// How many the bucket holds.
    pub(super) burst: u32,
}

impl Settings {
    pub(super) fn of(bucket: &Bucket) -> Self {
        let one = bucket.rate.per / bucket.rate.count.max(1);
        let a_second =
            bucket.rate.count / u32::try_from(bucket.rate.per.as_secs()).unwrap_or(1).max(1);
        Self {
            one: one.max(Duration::from_nanos(1)),
            burst: bucket.burst.unwrap_or(a_second).max(1),
        }
    }

    /// Time in which an empty bucket fills.
    pub(super) fn window(self) -> Duration {
        self.one.saturating_mul(self.burst)
    }

    fn quota(self) -> Quota {
        Quota::with_period(self.one)
            .unwrap_or_else(|| Quota::per_second(NonZeroU32::MIN))
            .allow_burst(self.held())
    }

    fn held(self) -> NonZeroU32 {
        NonZeroU32::new(self.burst).unwrap_or(NonZeroU32::MIN)
    }
}

/// governor's own states by key, shared with the meter.
#[derive(Clone)]
struct States(Arc<DashMapStateStore<Key>>);

impl StateStore for States {
    type Key = Key;

    fn measure_and_replace<T, F, E>(&self, key: &Key, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.0.measure_and_replace(key, decide)
    }
}

impl ShrinkableKeyedStateStore<Key> for States {
    fn retain_recent(&self, drop_below: Nanos) {
        ShrinkableKeyedStateStore::retain_recent(&*self.0, drop_below);
    }

    fn shrink_to_fit(&self) {
        ShrinkableKeyedStateStore::shrink_to_fit(&*self.0);
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What one take left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    key: Key,
    tokens: NonZeroU32,
    pub(super) remaining: u32,
}

/// Buckets by key with the same settings.
pub(super) struct Meter {
    settings: Settings,
    limiter: RateLimiter<Key, States, Ticks, StateInformationMiddleware>,
    states: States,
    ticks: Ticks,
    takes: AtomicUsize,
    sweep_at: AtomicUsize,
    crowded: AtomicBool,
    most_keys: usize,
    /// Schedules since the last take.
    idle: AtomicU32,
}

impl Meter {
    pub(super) fn new(settings: Settings, ticks: &Ticks) -> Self {
        Self::bounded(settings, ticks, FEW_KEYS, MOST_KEYS)
    }

    pub(super) fn bounded(settings: Settings, ticks: &Ticks, few: usize, most: usize) -> Self {
        let states = States(Arc::default());
        let limiter = RateLimiter::new(settings.quota(), states.clone(), ticks.clone());
        Self {
            settings,
            limiter,
            states,
            ticks: ticks.clone(),
            takes: AtomicUsize::new(1),
            sweep_at: AtomicUsize::new(few),
            crowded: AtomicBool::new(false),
            most_keys: most,
            idle: AtomicU32::new(0),
        }
    }

    /// Takes so many tokens, or all that a small bucket holds, from the bucket of `key`;
    /// or says how long until they are there. `spill` is the tenant's bucket for
    /// newcomers when there are too many keys.
    pub(super) fn take(&self, key: Key, spill: Key, tokens: u32) -> Result<Taken, Duration> {
        self.idle.store(0, Ordering::Relaxed);
        if self
            .takes
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(LOOK_EVERY)
        {
            self.look();
        }
        let crowded = self.crowded.load(Ordering::Relaxed);
        let key = if crowded && !self.states.0.contains_key(&key) {
            spill
        } else {
            key
        };
        let tokens = NonZeroU32::new(tokens).unwrap_or(NonZeroU32::MIN);
        let tokens = tokens.min(self.settings.held());
        match self.limiter.check_key_n(&key, tokens) {
            Ok(Ok(left)) => Ok(Taken {
                key,
                tokens,
                remaining: left.remaining_burst_capacity(),
            }),
            Ok(Err(refusal)) => Err(self.wait(&refusal)),
            // No bucket is asked for more than it holds.
            Err(_) => Err(self.settings.window()),
        }
    }

    fn wait(&self, refusal: &NotUntil<Nanos>) -> Duration {
        let wait = refusal.wait_time_from(self.ticks.now());
        wait.max(Duration::from_millis(1))
    }

    /// Puts back what [`Meter::take`] took.
    pub(super) fn give_back(&self, taken: Taken) {
        let price = Nanos::from(self.settings.one.saturating_mul(taken.tokens.get()));
        if let Some(state) = self.states.0.get(&taken.key) {
            let result: Result<(), ()> = state.measure_and_replace(&NotKeyed::NonKey, |full_at| {
                let full_at = full_at.unwrap_or_default();
                Ok(((), full_at.saturating_sub(price)))
            });
            // The decision above has no refusal.
            let _ = result;
        }
    }

    fn look(&self) {
        if self.states.len() >= self.sweep_at.load(Ordering::Relaxed) {
            self.sweep();
        }
    }

    /// Forgets the keys whose buckets are full again: a fresh one is the same.
    pub(super) fn sweep(&self) {
        self.limiter.retain_recent();
        let left = self.states.len();
        self.crowded
            .store(left >= self.most_keys, Ordering::Relaxed);
        let few = FEW_KEYS.min(self.most_keys);
        self.sweep_at.store(
            (left * 2).clamp(few, self.most_keys.max(left + left / 8)),
            Ordering::Relaxed,
        );
    }

    /// A scheduled sweep. Whether the meter has been empty and unused for long
    /// enough to be dropped.
    pub(super) fn tidy(&self) -> bool {
        self.sweep();
        self.limiter.shrink_to_fit();
        // More than one schedule, so that no caller still holds it half-way.
        self.idle.fetch_add(1, Ordering::Relaxed) > 2 && self.states.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Meter({:?}, {} keys)", self.settings, self.len())
    }
}
