//! What passes between callers and lanes, and who is told of it.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::auditor::AuditFault;
use super::event::Event;

/// Which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum LaneName {
    /// `started` events: calls wait for these before dispatch.
    Started = 1,
    /// `finished` events: answers wait for these.
    Finished = 2,
    /// Refusals, and calls closed for want of an end: what no dispatched call's
    /// batch waits for, nor they for it.
    Refused = 3,
}

impl LaneName {
    /// The word for metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Finished => "finished",
            Self::Refused => "refused",
        }
    }
}

/// Told what the lanes do; wired to metrics by the program.
pub trait AuditObserver: Send + Sync + 'static {
    /// A batch of `size` events became durable, `took` after it was begun and
    /// `lag` after the first of them was handed over.
    fn batch(&self, lane: LaneName, size: usize, took: Duration, lag: Duration);
    /// `events` could not be made durable in time.
    fn failure(&self, lane: LaneName, events: usize);
    /// `events` are durable and not covered by a checkpoint. Told each second: what
    /// stays above nothing for long means that signing has stopped.
    fn unsigned(&self, _lane: LaneName, _events: u64) {}
    /// An event that was to be written later is lost: too many wait already.
    fn lost(&self, lane: LaneName);
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl AuditObserver for Unobserved {
    fn batch(&self, _: LaneName, _: usize, _: Duration, _: Duration) {}
    fn failure(&self, _: LaneName, _: usize) {}
    fn lost(&self, _: LaneName) {}
}

/// What becomes of an event when its commit fails, or succeeds after its waiter was told that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallback {
    /// Given up; if it is durable after all, this is its outcome.
    Correct(&'static str),
    /// Given up; if it is durable after all, it is right as it stands.
    Drop,
    /// Written later: it tells what happened whether or not anybody waits.
    Keep,
}

pub(super) type Answer = Result<(), AuditFault>;

/// An event on its way.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) event: Event,
    pub(super) waiter: Option<oneshot::Sender<Answer>>,
    pub(super) fallback: Fallback,
    /// When it was handed over.
    pub(super) since: Instant,
}

impl Job {
    /// An event that nobody waits for, and that is written all the same.
    pub(super) fn unwaited(event: Event) -> Self {
        Self {
            event,
            waiter: None,
            fallback: Fallback::Keep,
            since: Instant::now(),
        }
    }
}
