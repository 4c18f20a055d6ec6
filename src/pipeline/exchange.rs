//! One request that an upstream works on, and all that it says meanwhile. It
//! outlives the caller's request where the caller has to be asked first.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::audit::Recorded;
use crate::dispatch::{DispatchFault, Dispatcher, Errand, Origin};
use crate::protocol::{Json, Untrusted, UpstreamEvent};
use crate::telemetry::names::span;
use crate::telemetry::{TraceContext, trace};
use crate::upstream::UpstreamError;

use super::Call;
use super::events::BACKLOG;

type Outcome = Result<Untrusted<Json>, DispatchFault>;

/// A request under way. Dropped before its end, the upstream is told to stop.
pub(super) struct Exchange {
    running: JoinHandle<Outcome>,
    events: mpsc::Receiver<Untrusted<UpstreamEvent>>,
    outcome: Option<Outcome>,
    begun: Instant,
    /// Where in a trace it began.
    pub(super) place: Option<TraceContext>,
    _cancel: DropGuard,
}

/// What comes next of it.
pub(super) enum Turn {
    /// It says something.
    Event(Untrusted<UpstreamEvent>),
    /// It is over; nothing comes behind this.
    Done(Outcome),
}

impl Exchange {
    /// Sends a recorded request.
    pub(super) fn begin(
        dispatcher: &std::sync::Arc<Dispatcher>,
        errand: Errand,
        recorded: &Recorded,
        origin: Origin,
        call: &Call,
    ) -> Self {
        let (sender, events) = mpsc::channel(BACKLOG);
        let cancel = CancellationToken::new();
        let credentials = std::sync::Arc::clone(&call.credentials);
        let token = cancel.clone();
        let running = dispatcher.call(errand, recorded, origin, credentials, sender, token);
        Self {
            running: tokio::spawn(trace::carried(trace::stepping(span::DISPATCH, running))),
            events,
            outcome: None,
            begun: Instant::now(),
            place: trace::here(),
            _cancel: cancel.drop_guard(),
        }
    }

    /// One that never ends by itself, and what fires when it is dropped.
    #[cfg(test)]
    pub(super) fn idle() -> (Self, CancellationToken) {
        let cancel = CancellationToken::new();
        let exchange = Self {
            running: tokio::spawn(std::future::pending()),
            events: mpsc::channel(BACKLOG).1,
            outcome: None,
            begun: Instant::now(),
            place: None,
            _cancel: cancel.clone().drop_guard(),
        };
        (exchange, cancel)
    }

    /// The next that it says. Safe to drop and call again.
    pub(super) async fn next(&mut self) -> Turn {
        loop {
            if let Some(outcome) = self.outcome.take() {
                // What was said before the end is heard before it.
                return match self.events.try_recv() {
                    Ok(event) => {
                        self.outcome = Some(outcome);
                        Turn::Event(event)
                    }
                    Err(_) => Turn::Done(outcome),
                };
            }
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Turn::Event(event),
                outcome = &mut self.running => {
                    // A task that broke off has left nothing to tell.
                    let broken = || Err(DispatchFault::Upstream(UpstreamError::Broken));
                    self.outcome = Some(outcome.unwrap_or_else(|_| broken()));
                }
            }
        }
    }

    /// How long it has been under way.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}
