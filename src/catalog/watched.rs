//! The resources of one upstream that somebody wants to hear of: one subscription
//! there for all who watch here, and none where nobody does.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

/// What is watched, by the upstream's own URI.
#[derive(Clone, Default)]
pub(super) struct Watched(Arc<Shared>);

#[derive(Default)]
struct Shared {
    counts: Mutex<HashMap<String, watch::Sender<u64>>>,
    changed: Notify,
}

/// Somebody's watch of a resource; it ends when this is dropped.
pub struct Watch {
    watched: Watched,
    uri: String,
    updates: watch::Receiver<u64>,
}

impl Watched {
    pub(super) fn watch(&self, uri: &str) -> Watch {
        let mut counts = self.lock();
        let known = counts.contains_key(uri);
        let updates = counts.entry(uri.to_owned()).or_default().subscribe();
        drop(counts);
        if !known {
            self.0.changed.notify_one();
        }
        Watch {
            watched: self.clone(),
            uri: uri.to_owned(),
            updates,
        }
    }

    /// Waits until other resources are watched than before.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// What is watched now.
    pub(super) fn wanted(&self) -> BTreeSet<String> {
        self.lock().keys().cloned().collect()
    }

    /// The upstream says that a resource changed. Servers may speak of a part of
    /// what was subscribed to (MCP 2025-11-25 schema, `ResourceUpdatedNotification`):
    /// whoever watches what lies above it hears that too.
    pub(super) fn updated(&self, uri: &str) {
        for (watched, updates) in &*self.lock() {
            let below = uri.strip_prefix(watched.as_str()).is_some_and(|rest| {
                rest.is_empty() || watched.ends_with('/') || rest.starts_with('/')
            });
            if below {
                updates.send_modify(|count| *count += 1);
            }
        }
    }

    /// Word of updates was lost.
    pub(super) fn all_updated(&self) {
        for updates in self.lock().values() {
            updates.send_modify(|count| *count += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<u64>>> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Waits for the next update. Never ends where the upstream is gone.
    pub async fn updated(&mut self) {
        if self.updates.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut counts = self.watched.lock();
        // This watch is still one of them.
        if counts
            .get(&self.uri)
            .is_some_and(|updates| updates.receiver_count() <= 1)
        {
            counts.remove(&self.uri);
            self.watched.0.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_subscription_serves_all_who_watch_and_ends_with_the_last() {
        let watched = Watched::default();
        let mut first = watched.watch("a://1");
        let second = watched.watch("a://1");
        let other = watched.watch("a://2");
        assert_eq!(watched.wanted().len(), 2);
        watched.updated("a://1");
        first.updated().await;
        assert!(!first.updates.has_changed().unwrap() && !other.updates.has_changed().unwrap());
        drop(first);
        assert_eq!(watched.wanted().len(), 2);
        drop(second);
        assert_eq!(watched.wanted(), BTreeSet::from(["a://2".to_owned()]));
    }
}
