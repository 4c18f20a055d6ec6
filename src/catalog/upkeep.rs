//! Keeps the catalogue fresh: each source is read again when its upstream
//! announces a change, when its time is up, when somebody doubts it, and when its
//! credential changes; with pauses while it is away.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::catalogue::Catalog;
use super::source::Source;
use crate::upstream::News;

/// How often the credential is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Least time between two readings of one source: an upstream may announce
/// changes as often as it likes.
const PACE: Duration = Duration::from_millis(500);
/// Pause before an upstream is asked again to tell of resources.
const RESUBSCRIBE: Duration = Duration::from_secs(5);

impl Catalog {
    /// Does the upkeep until it is cancelled.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut tending = JoinSet::new();
        loop {
            for source in self.sources.load().values() {
                if !source.tended.swap(true, Ordering::SeqCst) {
                    tending.spawn(Arc::clone(&self).tend(Arc::clone(source)));
                    tending.spawn(Arc::clone(&self).attend(Arc::clone(source)));
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.sources_changed.notified() => {}
                Some(_) = tending.join_next() => {}
            }
        }
    }

    /// Ends all upstreams. Nothing may be asked of the catalogue afterwards.
    pub async fn shutdown(&self) {
        let sources = self.sources.load_full();
        for source in sources.values() {
            source.stop.cancel();
        }
        let ends = sources.values().map(|source| source.upstream.shutdown());
        futures_util::future::join_all(ends).await;
    }

    async fn tend(self: Arc<Self>, source: Arc<Source>) {
        let mut announced = source.announced.clone();
        let mut deaf = false;
        while !source.stop.is_cancelled() {
            let due = source.read_due();
            let drop_due = source.drop_due();
            let look = Instant::now() + LOOK;
            let next = [Some(due), drop_due, Some(look)]
                .into_iter()
                .flatten()
                .min();
            let read = tokio::select! {
                () = source.stop.cancelled() => return,
                () = source.wake.notified() => true,
                change = announced.changed(), if !deaf => {
                    deaf = change.is_err();
                    !deaf
                }
                () = tokio::time::sleep_until(next.unwrap_or(due)) => due <= Instant::now(),
            };
            let credentials = self.credentials.load_full();
            if read || source.credential_changed(credentials.as_deref()) {
                self.read_in_time(&source).await;
            } else if drop_due.is_some_and(|at| at <= Instant::now()) {
                self.rebuild();
            }
        }
    }

    /// Keeps the upstream's word on resources that somebody watches.
    async fn attend(self: Arc<Self>, source: Arc<Source>) {
        let Some(mut news) = source.upstream.news() else {
            return;
        };
        let mut due = None;
        loop {
            let retry = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = source.stop.cancelled() => return,
                () = source.watched.changed() => {}
                () = retry => {}
                heard = news.recv() => match heard {
                    Ok(News::Updated(uri)) => {
                        source.watched.updated(&uri);
                        continue;
                    }
                    // It knows of no subscription any more.
                    Ok(News::Forgotten) => {}
                    Err(RecvError::Lagged(_)) => {
                        source.watched.all_updated();
                        continue;
                    }
                    Err(RecvError::Closed) => return,
                },
            }
            let wanted = source.watched.wanted();
            let credentials = self.credentials.load_full();
            let credential = source.credential(credentials.as_deref()).ok().flatten();
            let told = source.upstream.subscribe(wanted, credential).await;
            due = told.is_err().then(|| Instant::now() + RESUBSCRIBE);
        }
    }

    async fn read_in_time(&self, source: &Source) {
        if let Some(pause) = source.age().and_then(|age| PACE.checked_sub(age)) {
            tokio::time::sleep(pause).await;
        }
        tokio::select! {
            () = source.stop.cancelled() => {}
            () = self.read(source) => {}
        }
    }
}
