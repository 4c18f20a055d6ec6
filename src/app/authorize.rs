//! What runs beside the authorization server: hearing of revocations, keeping its keys.

use std::sync::Arc;
use std::time::Duration;

use super::App;

/// Revocations are asked for at least so often: every replica knows within a second.
const POLL: Duration = Duration::from_millis(800);
/// Between looks at the keys.
const KEYS: Duration = Duration::from_secs(20);
/// The same while there are none.
const NO_KEYS: Duration = Duration::from_millis(500);

/// Asks for revocations: often, and at once when this replica revoked something.
pub(super) async fn follow_revocations(app: Arc<App>) {
    loop {
        if is_enabled(&app) {
            hear_revocations(&app).await;
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = app.oauth.revocation() => {}
        }
    }
}

/// Asks for revocations now. Open streams of theirs end.
pub(super) async fn hear_revocations(app: &App) {
    match app.own_tokens.hear_revocations().await {
        Ok(true) => app.epoch.send_modify(|epoch| *epoch += 1),
        Ok(false) => {}
        Err(error) => tracing::debug!(%error, "Revocations could not be read; asking again."),
    }
}

/// Makes signing keys when they are due.
pub(super) async fn keep_keys(app: Arc<App>) {
    let mut failed = false;
    loop {
        let mut pause = KEYS;
        if is_enabled(&app) {
            let snapshot = app.current.load_full();
            let renewed = app.oauth.renew_keys(&snapshot.oauth).await;
            if let Err(error) = &renewed {
                pause = NO_KEYS;
                if !failed {
                    tracing::warn!(%error, "The signing keys could not be looked at; trying again.");
                }
            }
            failed = renewed.is_err();
        }
        tokio::time::sleep(pause).await;
    }
}

fn is_enabled(app: &App) -> bool {
    app.current.load().config.authorization_server.enabled
}
