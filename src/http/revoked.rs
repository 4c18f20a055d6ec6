//! What ends a stream whose token was revoked.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::identity::{OwnTokens, Principal};

/// How long such a stream may take to end by itself.
const FAREWELL: Duration = Duration::from_millis(200);

/// Ends when the caller's token is good no more, and streams that can say so had a
/// moment to.
pub(super) fn ending(
    own: &Arc<OwnTokens>,
    epoch: &watch::Receiver<u64>,
    principal: Arc<Principal>,
) -> impl Future<Output = ()> + use<> {
    let own = Arc::clone(own);
    let mut epoch = epoch.clone();
    async move {
        while !own.is_revoked(&principal) {
            if epoch.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        tokio::time::sleep(FAREWELL).await;
    }
}
