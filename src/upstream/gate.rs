//! How many requests may be in flight at one upstream.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::UpstreamError;

/// How long a request waits for its turn before it is told that the upstream is busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// The cap.
#[derive(Debug)]
pub(super) struct Gate(Arc<Semaphore>);

impl Gate {
    /// Lets `concurrent` requests in at a time; at least one.
    pub(super) fn new(concurrent: u32) -> Self {
        let permits = usize::try_from(concurrent).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(
            permits.clamp(1, Semaphore::MAX_PERMITS),
        )))
    }

    /// Waits for a turn, not longer than is of use.
    pub(super) async fn enter(
        &self,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, UpstreamError> {
        if let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() {
            return Ok(permit);
        }
        let until = deadline.min(Instant::now() + PATIENCE);
        match timeout_at(until, Arc::clone(&self.0).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(UpstreamError::Busy),
        }
    }
}
