//! What passes between callers and lanes, and who is told of it.

use std::time::Duration;

use tokio::sync::oneshot;

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
    /// Refusals, which never wait in a dispatched call's batch nor make it wait.
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
    /// A batch of `size` events became durable, `took` after it was begun.
    fn batch(&self, lane: LaneName, size: usize, took: Duration);
    /// `events` could not be made durable in time.
    fn failure(&self, lane: LaneName, events: usize);
    /// `events` are durable and not covered by a checkpoint. Told each second: what
    /// stays above nothing for long means that signing has stopped.
    fn unsigned(&self, _lane: LaneName, _events: u64) {}
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl AuditObserver for Unobserved {
    fn batch(&self, _: LaneName, _: usize, _: Duration) {}
    fn failure(&self, _: LaneName, _: usize) {}
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
}

impl Job {
    /// An event that nobody waits for, and that is written all the same.
    pub(super) fn unwaited(event: Event) -> Self {
        Self {
            event,
            waiter: None,
            fallback: Fallback::Keep,
        }
    }
}
