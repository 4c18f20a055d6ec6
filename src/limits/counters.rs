//! How many at the same time: counters by key, and the permits that hold them up.
//! Memory is bounded by what is in flight: a counter at zero is gone.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::meter::Key;

const SHARDS: usize = 64;

/// Counters by key. Each key falls into one of several shards, so that tenants
/// do not wait for each other.
#[derive(Debug)]
pub(super) struct Counters {
    shards: Vec<Mutex<HashMap<Key, u32>>>,
}

impl Counters {
    pub(super) fn new() -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Arc::new(Self { shards })
    }

    fn shard(&self, key: Key) -> Option<MutexGuard<'_, HashMap<Key, u32>>> {
        let at = usize::from(key.low_byte()) % SHARDS;
        let shard = self.shards.get(at)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One more under `key`, unless `cap` are there already.
    pub(super) fn take(self: &Arc<Self>, key: Key, cap: u32) -> Option<Permit> {
        let mut shard = self.shard(key)?;
        let count = shard.entry(key).or_insert(0);
        if *count >= cap {
            if *count == 0 {
                shard.remove(&key);
            }
            return None;
        }
        *count += 1;
        Some(Permit {
            counters: Arc::clone(self),
            key,
        })
    }

    fn give_back(&self, key: Key) {
        let Some(mut shard) = self.shard(key) else {
            return;
        };
        if let Entry::Occupied(mut count) = shard.entry(key) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().unwrap().len())
            .sum()
    }
}

/// One of those at the same time; dropping it makes room.
#[derive(Debug)]
pub(super) struct Permit {
    counters: Arc<Counters>,
    key: Key,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.counters.give_back(self.key);
    }
}
