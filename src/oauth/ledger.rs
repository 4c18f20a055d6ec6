//! Nothing takes effect unrecorded: what is about to happen is on record first, and
//! what then does not happen after all is noted as well.

use std::pin::Pin;

use thiserror::Error;

use super::Event;
use crate::store::StoreError;

/// Where events go: the audit, in the words of whoever acts.
pub trait Ledger: Send + Sync {
    /// Puts on record what is about to happen; it has to be durable before it may.
    fn record(
        &self,
        event: Event,
    ) -> Pin<Box<dyn Future<Output = Result<(), Unrecorded>> + Send + '_>>;

    /// Puts on record what happened anyway or, with a reason, what was on record and
    /// did not happen. Nobody waits for it.
    fn note(&self, event: Event, failed: Option<&'static str>);
}

/// It could not be put on record, and so does not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("what was asked for could not be put on record")]
pub struct Unrecorded;

/// Makes a change once it is on record. `false` where there was nothing left to change:
/// somebody was faster.
pub(super) async fn make<E>(
    ledger: &dyn Ledger,
    event: Event,
    change: impl Future<Output = Result<bool, StoreError>>,
) -> Result<bool, E>
where
    E: From<Unrecorded> + From<StoreError>,
{
    ledger.record(event.clone()).await?;
    let changed = change.await;
    match &changed {
        Ok(true) => {}
        Ok(false) => ledger.note(event, Some("nothing left to change")),
        // A commit whose answer was lost may have taken effect.
        Err(_) => ledger.note(event, Some("not known to have taken effect")),
    }
    Ok(changed?)
}
