//! How many requests may be in flight at one upstream.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::UpstreamError;

/// How long a request waits for its turn before it is told that the upstream is busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// The cap.
#[derive(Debug)]
pub(super) struct Gate(Semaphore);

impl Gate {
    /// Lets `concurrent` requests in at a time; at least one.
    pub(super) fn new(concurrent: u32) -> Self {
        let permits = usize::try_from(concurrent).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS)))
    }

    /// Waits for a turn, not longer than is of use.
    pub(super) async fn enter(
        &self,
        deadline: Instant,
    ) -> Result<SemaphorePermit<'_>, UpstreamError> {
        if let Ok(permit) = self.0.try_acquire() {
            return Ok(permit);
        }
        let until = deadline.min(Instant::now() + PATIENCE);
        match timeout_at(until, self.0.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(UpstreamError::Busy),
        }
    }
}
