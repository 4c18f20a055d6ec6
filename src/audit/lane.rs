//! One lane: a task that writes what has gathered while it was writing the
//! batch before. Nothing waits for company; under load batches grow by
//! themselves.
//!
//! What it promises: an answer `Ok` means durable. An event whose waiter has
//! been told otherwise, and whose commit turns out to have happened after all,
//! is followed by a correction, so that the record says what the caller was told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};

use super::auditor::AuditFault;
use super::checkpoint::Signer;
use super::compose::Composed;
use super::event::Event;
use super::job::{AuditObserver, Fallback, Job, LaneName};
use super::refusals::Refusals;
use super::writer::{Failed, Settled, Writer};
use crate::clock::{SharedClock, call_id_at};
use crate::ids::ReplicaId;
use crate::store::{Store, StoreError};

/// The most events of one commit.
pub(super) const BATCH_MAX: usize = 512;

/// The most bytes of arguments of one commit, beyond its first event: a statement of
/// hundreds of megabytes would not be sent in time.
const BATCH_BYTES: usize = 4 << 20;

/// How long a caller waits for its event to be durable.
pub(super) const BUDGET: Duration = Duration::from_secs(2);

/// How long a lane works on a batch before it says that it cannot be had. Less than
/// callers wait: when the first of them is refused, the lane is known not to be
/// healthy, and no overlapped call is dispatched after it.
const WORKING: Duration = Duration::from_millis(1_900);

/// How long storing a checkpoint may take.
const SIGNING: Duration = Duration::from_secs(1);

/// Between attempts at work that nobody waits for any more.
const LATER: Duration = Duration::from_millis(250);

/// The most events kept for later that nobody waits for.
const KEPT_MAX: usize = 50_000;

/// A batch that may or may not be durable, and whose waiters have been told that it is not.
struct Unresolved {
    composed: Composed,
    jobs: Vec<Job>,
}

pub(super) struct Lane {
    name: LaneName,
    clock: SharedClock,
    observer: Arc<dyn AuditObserver>,
    /// Whether the last batch became durable: callers that need not wait look at this.
    pub(super) healthy: Arc<AtomicBool>,
    /// Counts to write once a second; the refusals' lane alone has them.
    refusals: Option<Arc<Refusals>>,
    writer: Writer,
    unresolved: Option<Unresolved>,
    kept: Vec<Job>,
}

impl Lane {
    pub(super) fn new(
        name: LaneName,
        store: &Store,
        replica: ReplicaId,
        clock: SharedClock,
        observer: Arc<dyn AuditObserver>,
        refusals: Option<Arc<Refusals>>,
        signer: Option<Arc<Signer>>,
    ) -> Self {
        Self {
            name,
            clock: Arc::clone(&clock),
            observer,
            healthy: Arc::new(AtomicBool::new(true)),
            refusals,
            writer: Writer::new(name, replica, clock, store.audit_connection(), signer),
            unresolved: None,
            kept: Vec::new(),
        }
    }

    /// Writes until every sender is gone and all that can be written is.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Job>) {
        let mut jobs = Vec::with_capacity(BATCH_MAX);
        let mut second = each_second();
        loop {
            let waiting = self.unresolved.is_some() || !self.kept.is_empty();
            let closed = tokio::select! {
                received = inbox.recv_many(&mut jobs, BATCH_MAX) => received == 0,
                _ = second.tick() => { self.keep_counts(false); self.sign(false).await; false }
                () = sleep(LATER), if waiting => false,
            };
            if closed {
                break;
            }
            self.settle(&mut jobs).await;
        }
        self.keep_counts(true);
        // Two attempts: the first may be spent on a batch in doubt.
        for _ in 0..2 {
            while self.settle(&mut jobs).await && !self.kept.is_empty() {}
        }
        self.sign(true).await;
        if !self.kept.is_empty() || self.unresolved.is_some() {
            tracing::error!(
                lane = self.name.name(),
                events = self.kept.len(),
                in_doubt = self.unresolved.is_some(),
                "The audit closes with events that could not be written."
            );
        }
        self.writer.close().await;
    }

    /// Signs what is durable. While the database is away there is nothing to sign,
    /// and callers must not wait for the attempt.
    async fn sign(&mut self, last: bool) {
        if last || self.healthy.load(Ordering::Relaxed) {
            let until = Instant::now() + SIGNING;
            if let Err(fault) = self.writer.sign(last, until).await {
                tracing::warn!(
                    lane = self.name.name(),
                    error = %fault,
                    "A checkpoint could not be stored; it is tried again in a second."
                );
            }
        }
        self.observer.unsigned(self.name, self.writer.unsigned());
    }

    /// One round: first what is in doubt, then what was kept, then `jobs`,
    /// which is empty afterwards. Says whether all of it went well.
    async fn settle(&mut self, jobs: &mut Vec<Job>) -> bool {
        let until = Instant::now() + WORKING;
        if !self.resolve(until).await {
            self.fail_all(jobs.drain(..), &AuditFault::Unavailable);
            return false;
        }
        let mut parts = Vec::new();
        if !jobs.is_empty() {
            parts.extend(portions(std::mem::take(jobs)).into_iter().rev());
        }
        let kept = self.kept.len().min(BATCH_MAX);
        if kept > 0 {
            let kept = portions(self.kept.drain(..kept).collect());
            parts.extend(kept.into_iter().rev());
        }
        if parts.is_empty() {
            return true;
        }
        let well = self.write_parts(parts, until).await;
        self.healthy.store(well, Ordering::Relaxed);
        well
    }

    async fn write_parts(&mut self, mut parts: Vec<Vec<Job>>, until: Instant) -> bool {
        let mut well = true;
        while let Some(mut part) = parts.pop() {
            if !well {
                // Later events of a chain must not overtake one in doubt.
                self.fail_all(part.into_iter(), &AuditFault::Unavailable);
                continue;
            }
            let begun = Instant::now();
            let once = !self.healthy.load(Ordering::Relaxed);
            match self.writer.write(&part, until, once).await {
                Ok(()) => {
                    let first = part.iter().map(|job| job.since).min().unwrap_or(begun);
                    self.observer
                        .batch(self.name, part.len(), begun.elapsed(), first.elapsed());
                    self.answer(part);
                }
                Err(Failed::Poisoned(_)) if part.len() > 1 => {
                    let rest = part.split_off(part.len() / 2);
                    parts.push(rest);
                    parts.push(part);
                }
                Err(Failed::Poisoned(fault)) => self.give_up(part, &fault),
                Err(Failed::Away(fault)) => {
                    self.warn(&fault, part.len());
                    self.fail_all(part.into_iter(), &AuditFault::Unavailable);
                    well = false;
                }
                Err(Failed::InDoubt(composed)) => {
                    self.warn(&StoreError::InDoubt, part.len());
                    self.hold(composed, part);
                    well = false;
                }
            }
        }
        well
    }

    /// Tells the waiters, and notes a correction for each who did not wait so long.
    fn answer(&mut self, jobs: Vec<Job>) {
        for mut job in jobs {
            let told = job
                .waiter
                .take()
                .is_none_or(|waiter| waiter.send(Ok(())).is_ok());
            if !told {
                self.correct(&job);
            }
        }
    }

    fn correct(&mut self, job: &Job) {
        if let Fallback::Correct(outcome) = job.fallback {
            let event = Event::correction(&job.event, self.clock.now(), outcome);
            self.keep(Job::unwaited(event));
        }
    }

    /// Settles the batch in doubt, if there is one. Only an answer from the
    /// database settles it: everything else leaves it in doubt.
    async fn resolve(&mut self, until: Instant) -> bool {
        let Some(Unresolved { composed, jobs }) = self.unresolved.take() else {
            return true;
        };
        match self.writer.settle(composed, &jobs, until).await {
            Ok(Settled::There) => {
                for job in &jobs {
                    self.correct(job);
                }
                true
            }
            Ok(Settled::Missing) => {
                let jobs = jobs.into_iter();
                for job in jobs.filter(|job| job.fallback == Fallback::Keep) {
                    self.keep(job);
                }
                true
            }
            Err(composed) => {
                self.unresolved = Some(Unresolved { composed, jobs });
                self.healthy.store(false, Ordering::Relaxed);
                false
            }
        }
    }

    fn hold(&mut self, composed: Composed, mut jobs: Vec<Job>) {
        self.observer.failure(self.name, jobs.len());
        for job in &mut jobs {
            if let Some(waiter) = job.waiter.take() {
                let _ = waiter.send(Err(AuditFault::Unavailable));
            }
        }
        self.unresolved = Some(Unresolved { composed, jobs });
    }

    /// Nothing of `jobs` is durable: waiters are told, and what must be told sooner or later is kept.
    fn fail_all(&mut self, jobs: impl Iterator<Item = Job>, fault: &AuditFault) {
        let mut count = 0;
        for mut job in jobs {
            count += 1;
            if let Some(waiter) = job.waiter.take() {
                let _ = waiter.send(Err(fault.clone()));
            }
            if job.fallback == Fallback::Keep {
                self.keep(job);
            }
        }
        if count > 0 {
            self.observer.failure(self.name, count);
        }
    }

    /// One event that the database will never take. Its call is refused.
    fn give_up(&mut self, jobs: Vec<Job>, fault: &StoreError) {
        for mut job in jobs {
            tracing::error!(
                lane = self.name.name(),
                call.id = %job.event.call_id,
                error = %fault,
                "An event cannot be recorded; its call is refused."
            );
            self.observer.failure(self.name, 1);
            if let Some(waiter) = job.waiter.take() {
                let _ = waiter.send(Err(AuditFault::Rejected));
            }
        }
    }

    fn keep(&mut self, job: Job) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(job);
        } else {
            self.observer.lost(self.name);
            tracing::error!(
                lane = self.name.name(),
                call.id = %job.event.call_id,
                "The database has been away for so long that an event is lost."
            );
        }
    }

    fn keep_counts(&mut self, all: bool) {
        let Some(refusals) = self.refusals.clone() else {
            return;
        };
        let now = self.clock.now();
        for (key, count) in refusals.take((!all).then_some(now)) {
            let at = time::OffsetDateTime::from_unix_timestamp(key.second).unwrap_or(now);
            self.keep(Job::unwaited(Event::counted(
                // Of that second too: look-ups go by ids.
                call_id_at(at),
                at,
                &key.tenant,
                key.client.as_ref(),
                &key.outcome,
                key.reason.as_deref(),
                count,
            )));
        }
    }

    /// The lane is not healthy from here on, before anybody is told so.
    fn warn(&self, fault: &StoreError, events: usize) {
        // Once per outage.
        if self.healthy.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                lane = self.name.name(),
                events,
                error = %fault,
                "The audit cannot be written; calls are refused until it can."
            );
        }
    }
}

/// `jobs` in their order, in parts of which none is too large for one statement.
fn portions(jobs: Vec<Job>) -> Vec<Vec<Job>> {
    let mut portions = Vec::new();
    let mut portion = Vec::with_capacity(jobs.len());
    let mut bytes = 0_usize;
    for job in jobs {
        // Nothing else of an event may be large.
        let body = job.event.body.as_ref();
        let weight = body.and_then(|body| body.arguments.as_ref());
        let weight = weight.map_or(0, String::len);
        if bytes.saturating_add(weight) > BATCH_BYTES && !portion.is_empty() {
            portions.push(std::mem::take(&mut portion));
            bytes = 0;
        }
        bytes = bytes.saturating_add(weight);
        portion.push(job);
    }
    if !portion.is_empty() {
        portions.push(portion);
    }
    portions
}

fn each_second() -> Interval {
    let mut second = interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    second
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::event::Kind;
    use crate::clock::{SystemClock, new_call_id};
    use crate::store::audit_rows::StoredBody;

    fn jobs(count: usize, bytes: usize) -> Vec<Job> {
        let job = |_| {
            let at = time::OffsetDateTime::UNIX_EPOCH;
            let id = new_call_id(&SystemClock);
            let mut event = Event::bare(at, id, Kind::Started, &"acme".into());
            let arguments = Some("x".repeat(bytes));
            event.body = Some(StoredBody {
                arguments,
                ..StoredBody::default()
            });
            Job::unwaited(event)
        };
        (0..count).map(job).collect()
    }

    #[test]
    fn a_batch_of_large_bodies_is_committed_in_portions_in_its_order() {
        let jobs = jobs(40, 256 << 10);
        let order: Vec<_> = jobs.iter().map(|job| job.event.call_id).collect();
        let portions = portions(jobs);
        let sizes: Vec<_> = portions.iter().map(Vec::len).collect();
        assert_eq!(sizes, [16, 16, 8]);
        let after: Vec<_> = portions
            .iter()
            .flatten()
            .map(|job| job.event.call_id)
            .collect();
        assert_eq!(after, order);
        assert_eq!(super::portions(self::jobs(512, 200)).len(), 1);
        assert_eq!(super::portions(self::jobs(2, 5 << 20)).len(), 2);
        assert!(super::portions(Vec::new()).is_empty());
    }
}
