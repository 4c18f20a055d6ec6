//! What runs beside requests: refreshing lists, hearing other replicas, the
//! heartbeat, the changed file, tidying.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::task::TaskTracker;

use super::{App, audit, authorize, replicas};
use crate::audit::{Act, ActKind, hexadecimal};
use crate::catalog::HealthState;
use crate::config::{self, Watch};
use crate::ids::UpstreamId;
use crate::oauth::grants;
use crate::protocol::{Json, JsonLimits};
use crate::store::StoreError;

/// Between heartbeats; a replica that missed four, while others did not, is gone.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);
/// Between looks at the messages whatever happens, and at the upstreams.
const POLL: Duration = Duration::from_secs(1);
/// Rows of replicas that have been silent for so long, and messages nobody took, may go.
const STALE_SECONDS: u32 = 3600;
/// A silent replica's row goes when its calls are settled; this is for what never was.
const FORGOTTEN_SECONDS: u32 = 30 * 24 * 3600;
/// Between tidyings.
const TIDY: Duration = Duration::from_mins(1);

/// Starts everything; all of it ends with `lifecycle.background`.
pub(super) fn start(app: &Arc<App>) -> TaskTracker {
    let tracker = TaskTracker::new();
    let ended = &app.lifecycle.background;
    tracker.spawn(Arc::clone(&app.catalog).run(ended.clone()));
    tracker.spawn({
        let (limits, ending) = (Arc::clone(&app.limits), ended.clone());
        async move { limits.keep(ending).await }
    });
    tracker.spawn(
        ended
            .clone()
            .run_until_cancelled_owned(heartbeat(Arc::clone(app))),
    );
    tracker.spawn(
        ended
            .clone()
            .run_until_cancelled_owned(hear(Arc::clone(app))),
    );
    tracker.spawn(
        ended
            .clone()
            .run_until_cancelled_owned(follow_file(Arc::clone(app))),
    );
    tracker.spawn(
        ended
            .clone()
            .run_until_cancelled_owned(tidy(Arc::clone(app))),
    );
    tracker.spawn(
        ended
            .clone()
            .run_until_cancelled_owned(authorize::follow_revocations(Arc::clone(app))),
    );
    tracker.spawn(
        ended
            .clone()
            .run_until_cancelled_owned(authorize::keep_keys(Arc::clone(app))),
    );
    tracker.spawn(
        ended
            .clone()
            .run_until_cancelled_owned(show_upstreams(Arc::clone(app))),
    );
    tracker.spawn(
        ended
            .clone()
            .run_until_cancelled_owned(audit::run(Arc::clone(app))),
    );
    tracker.close();
    tracker
}

async fn heartbeat(app: Arc<App>) {
    let mut away = false;
    loop {
        let beat = app
            .store
            .insert_replica(
                app.id,
                None,
                env!("CARGO_PKG_VERSION"),
                audit::call_limit(&app),
            )
            .await;
        match (&beat, away) {
            (Err(error), false) => tracing::warn!(%error, "The heartbeat could not be written."),
            (Ok(()), true) => tracing::info!("The database is back."),
            _ => {}
        }
        away = beat.is_err();
        replicas::share_limits(&app).await;
        tokio::time::sleep(HEARTBEAT).await;
    }
}

/// Messages from other replicas.
async fn hear(app: Arc<App>) {
    let mut listener = app.store.listen(app.id, POLL);
    loop {
        listener.next().await;
        let messages = match app.store.delete_messages(app.id).await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::debug!(%error, "Messages from other replicas could not be read; asking again.");
                continue;
            }
        };
        for message in messages {
            if message.exchange == grants::EXCHANGE {
                authorize::hear_revocations(&app).await;
                continue;
            }
            match Json::parse(Bytes::from(message.body), &JsonLimits::CALLER) {
                Ok(message) => app.server.heard(&message),
                Err(error) => {
                    tracing::warn!(%error, "A message from another replica could not be read.");
                }
            }
        }
    }
}

/// The changed configuration file. A wrong one is refused whole.
async fn follow_file(app: Arc<App>) {
    let mut watch = Watch::start(
        &app.loaded,
        config::environment(),
        &app.lifecycle.background,
    );
    while let Some(changed) = watch.recv().await {
        let before = app.current.load().digest;
        let act = Act::new(ActKind::CONFIGURATION, "reload").configuration(before);
        let (outcome, act) = match changed {
            Ok(loaded) => {
                let act = act.detail("new", hexadecimal(&loaded.digest));
                match app.adopt(&loaded).await {
                    Ok(()) => (Ok(()), act),
                    // The text may quote what an upstream says; it is in the log.
                    Err(error) => (
                        Err(format!("{error:#}")),
                        act.failed("could not be adopted"),
                    ),
                }
            }
            Err(faults) => {
                let act = act.detail("faults", faults.0.len()).refused("wrong");
                (Err(config::render(&faults.0)), act)
            }
        };
        app.metrics.config_reload(outcome.is_ok());
        app.auditor.note(&act);
        match outcome {
            Ok(()) => tracing::info!("The changed configuration is in force."),
            Err(faults) => tracing::error!(
                faults,
                "The changed configuration is wrong and was refused; the old one stays in force."
            ),
        }
    }
}

/// Shows in the metrics which upstreams answer.
async fn show_upstreams(app: Arc<App>) {
    let mut shown: Vec<UpstreamId> = Vec::new();
    loop {
        let health = app.catalog.health();
        for gone in shown
            .iter()
            .filter(|id| !health.iter().any(|(known, _)| known == *id))
        {
            app.metrics.upstream_gone(gone);
        }
        for (id, health) in &health {
            app.metrics.upstream_up(id, health.state == HealthState::Up);
        }
        shown = health.into_iter().map(|(id, _)| id).collect();
        tokio::time::sleep(POLL).await;
    }
}

async fn tidy(app: Arc<App>) {
    loop {
        tokio::time::sleep(TIDY).await;
        app.limits.tidy();
        app.current.load().edge.sweep();
        if let Err(error) = tidy_rows(&app).await {
            tracing::debug!(%error, "Old rows could not be removed; trying again later.");
        }
    }
}

/// Removes what replicas and sessions that are gone have left.
async fn tidy_rows(app: &App) -> Result<(), StoreError> {
    if app.current.load().config.authorization_server.enabled {
        let snapshot = app.current.load_full();
        app.oauth.tidy(&snapshot.oauth).await?;
    }
    app.store.delete_stale_messages(STALE_SECONDS).await?;
    app.store.delete_dead_replicas(FORGOTTEN_SECONDS).await?;
    let lifetime = app.current.load().config.server.session_lifetime.0;
    let now = app.clock.now();
    app.store
        .delete_expired_sessions(now, now - lifetime)
        .await?;
    app.store.delete_expired_request_states(now).await?;
    Ok(())
}
