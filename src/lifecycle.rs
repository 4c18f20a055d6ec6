//! Start to stop: signals, readiness, the two-stage drain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The stages of a stop, in order.
#[derive(Debug, Default)]
pub struct Lifecycle {
    /// Set once the upstreams have been read.
    started: AtomicBool,
    /// Set while the service should not get new traffic.
    stopping: AtomicBool,
    /// Fires when open streams are to end gracefully.
    pub streams: CancellationToken,
    /// Fires when listeners are to close.
    pub listeners: CancellationToken,
    /// Fires when background work is to end.
    pub background: CancellationToken,
}

/// What asked for the stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// An orchestrator (SIGTERM): traffic must find another replica first.
    Orderly,
    /// A person (SIGINT): at once.
    Now,
}

impl Lifecycle {
    /// Whether traffic may come.
    pub fn is_ready(&self) -> bool {
        self.started.load(Ordering::Acquire) && !self.stopping.load(Ordering::Acquire)
    }

    /// The start is over.
    pub fn started(&self) {
        self.started.store(true, Ordering::Release);
    }

    /// First stage: readiness off, wait; then streams end and listeners close.
    pub async fn drain(&self, stop: Stop, delay: Duration) {
        self.stopping.store(true, Ordering::Release);
        if stop == Stop::Orderly {
            tracing::info!(
                delay_ms = delay.as_millis(),
                "Stopping: readiness is off, requests are still served."
            );
            tokio::time::sleep(delay).await;
        }
        self.streams.cancel();
        self.listeners.cancel();
    }
}

/// SIGTERM and SIGINT, heard from the moment this is made.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the signals cannot be listened for.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::Orderly,
            _ = self.interrupt.recv() => Stop::Now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_orderly_stop_serves_on_for_the_delay() {
        let lifecycle = Lifecycle::default();
        assert!(!lifecycle.is_ready());
        lifecycle.started();
        assert!(lifecycle.is_ready());
        let drain = lifecycle.drain(Stop::Orderly, Duration::from_secs(5));
        tokio::pin!(drain);
        assert!(
            tokio::time::timeout(Duration::from_secs(4), &mut drain)
                .await
                .is_err()
        );
        assert!(!lifecycle.is_ready() && !lifecycle.listeners.is_cancelled());
        drain.await;
        assert!(lifecycle.listeners.is_cancelled() && lifecycle.streams.is_cancelled());
    }
}
