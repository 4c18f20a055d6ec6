//! What runs beside requests: refreshing lists, hearing other replicas, the
//! heartbeat, the changed file, tidying.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::task::TaskTracker;

use super::App;
use crate::audit::{AuditObserver, LaneName};
use crate::config::{self, Watch};
use crate::protocol::{Json, JsonLimits};
use crate::telemetry::metrics::Metrics;

/// Between heartbeats; a replica that missed three is gone.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Between tidyings of limiters.
const TIDY: Duration = Duration::from_secs(60);

/// Starts everything; all of it ends with `lifecycle.background`.
pub(super) fn start(app: &Arc<App>) -> TaskTracker {
    let tracker = TaskTracker::new();
    let ended = &app.lifecycle.background;
    tracker.spawn(Arc::clone(&app.catalog).run(ended.clone()));
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
    tracker.close();
    tracker
}

async fn heartbeat(app: Arc<App>) {
    let mut away = false;
    loop {
        let beat = app
            .store
            .update_replica_heartbeat(app.id, env!("CARGO_PKG_VERSION"))
            .await;
        match (&beat, away) {
            (Err(error), false) => tracing::warn!(%error, "The heartbeat could not be written."),
            (Ok(()), true) => tracing::info!("The database is back."),
            _ => {}
        }
        away = beat.is_err();
        tokio::time::sleep(HEARTBEAT).await;
    }
}

/// Messages from other replicas.
async fn hear(app: Arc<App>) {
    let mut messages = app.store.listen(app.id);
    while let Some(message) = messages.recv().await {
        match Json::parse(Bytes::from(message), &JsonLimits::CALLER) {
            Ok(message) => app.server.heard(&message).await,
            Err(error) => {
                tracing::warn!(%error, "A message from another replica could not be read.")
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
        let outcome = match changed {
            Ok(loaded) => app
                .adopt(&loaded)
                .await
                .map_err(|error| format!("{error:#}")),
            Err(faults) => Err(config::render(&faults.0)),
        };
        app.metrics.config_reload(outcome.is_ok());
        match outcome {
            Ok(()) => tracing::info!("The changed configuration is in force."),
            Err(faults) => tracing::error!(
                faults,
                "The changed configuration is wrong and was refused; the old one stays in force."
            ),
        }
    }
}

async fn tidy(app: Arc<App>) {
    loop {
        tokio::time::sleep(TIDY).await;
        app.limits.tidy();
        app.current.load().edge.sweep();
    }
}

/// Feeds the audit's measurements to the counters.
pub(super) fn audit_observer(metrics: &Arc<Metrics>) -> Arc<dyn AuditObserver> {
    Arc::new(Observer(Arc::clone(metrics)))
}

struct Observer(Arc<Metrics>);

impl AuditObserver for Observer {
    fn batch(&self, _lane: LaneName, size: usize, took: Duration) {
        self.0.audit_committed(size, took);
    }

    fn failure(&self, _lane: LaneName) {
        self.0.audit_failed();
    }
}
