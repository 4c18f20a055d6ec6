//! What the audit needs beside requests: upkeep of its tables, calls without an
//! end closed, its figures shown.

use std::sync::Arc;
use std::time::Duration;

use super::App;
use super::background::HEARTBEAT;
use super::database::maintain;
use crate::audit::{AuditObserver, LaneName, Recovery, UpkeepFault, partitions_ahead};
use crate::telemetry::metrics::Metrics;

/// Between runs of upkeep, where this process may do it.
const UPKEEP: Duration = Duration::from_hours(1);
/// Between attempts while the database is away.
const UPKEEP_AGAIN: Duration = Duration::from_mins(1);
/// Between looks at the lanes' queues.
const QUEUES: Duration = Duration::from_secs(1);
/// Between looks at the partitions.
const PARTITIONS: Duration = Duration::from_secs(30);

/// Runs all of it until it is dropped.
pub(super) async fn run(app: Arc<App>) {
    tokio::join!(
        upkeep(&app),
        recover(&app),
        show_queues(&app),
        show_partitions(&app),
        show_role(&app),
        app.auditor.keep_counts()
    );
}

/// How long a call of this replica may run.
pub(super) fn call_limit(app: &App) -> Duration {
    let snapshot = app.current.load();
    let config = &snapshot.config;
    let upstreams = config.upstreams.values().map(|one| one.timeout.call.0);
    let tools = config.tools.iter().filter_map(|rule| Some(rule.timeout?.0));
    upstreams.chain(tools).max().unwrap_or_default()
}

/// Where the login owns the tables, as in a deployment of one login, nobody else
/// need run `toolgate audit maintain`.
async fn upkeep(app: &App) {
    loop {
        let snapshot = app.current.load_full();
        let pause = match maintain(&app.store, &snapshot.config, &app.keys, false).await {
            Ok(done) => {
                if !done.made.is_empty() || !done.dropped.is_empty() || done.moved > 0 {
                    super::audit_command::note_upkeep(&app.auditor, &done);
                    tracing::info!(
                        made = done.made.len(),
                        dropped = done.dropped.len(),
                        moved = done.moved,
                        "The audit's partitions were maintained."
                    );
                }
                UPKEEP
            }
            Err(UpkeepFault::NotOwner) => {
                tracing::debug!("The audit's partitions are their owner's to maintain.");
                UPKEEP
            }
            Err(error) => {
                tracing::warn!(%error, "The audit's partitions could not be maintained; trying again.");
                UPKEEP_AGAIN
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn recover(app: &App) {
    let mut recovery = Recovery::new(app.id);
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        match recovery
            .look(&app.store, &app.auditor, app.clock.now())
            .await
        {
            Ok(recovered) => {
                if recovered.closed > 0 {
                    tracing::warn!(
                        calls = recovered.closed,
                        "Calls that have no end were closed; they read `unknown`."
                    );
                }
                app.metrics.audit_orphans_closed(recovered.closed);
            }
            Err(error) => {
                tracing::debug!(%error, "Calls without an end could not be looked for; trying again.");
            }
        }
    }
}

async fn show_queues(app: &App) {
    loop {
        for (lane, events) in app.auditor.queued() {
            app.metrics.audit_queued(lane.name(), events);
        }
        tokio::time::sleep(QUEUES).await;
    }
}

async fn show_partitions(app: &App) {
    loop {
        if let Ok(figures) = app.store.partition_figures().await {
            let ahead = partitions_ahead(&figures.days, app.clock.now().date());
            // Today's is none ahead.
            let ahead = i64::from(ahead) - 1;
            app.metrics.audit_partitions(ahead, figures.in_default);
        }
        tokio::time::sleep(PARTITIONS).await;
    }
}

/// Asks once how the audit is written, so that a login that could alter it is
/// told of at the start rather than with the first call.
async fn show_role(app: &App) {
    loop {
        // What goes wrong here is said by the store, or by the readiness probe.
        let _ = app.store.check_audit_role().await;
        let restricted = app.store.audit_is_restricted();
        app.metrics.audit_restricted(restricted);
        tokio::time::sleep(if restricted { UPKEEP } else { PARTITIONS }).await;
    }
}

/// Feeds the audit's measurements to the counters.
pub(super) fn observer(metrics: &Arc<Metrics>) -> Arc<dyn AuditObserver> {
    Arc::new(Observer(Arc::clone(metrics)))
}

struct Observer(Arc<Metrics>);

impl AuditObserver for Observer {
    fn batch(&self, _lane: LaneName, size: usize, took: Duration, lag: Duration) {
        self.0.audit_committed(size, took, lag);
    }

    fn failure(&self, _lane: LaneName, _events: usize) {
        self.0.audit_failed();
    }

    fn lost(&self, _lane: LaneName) {
        self.0.audit_lost();
    }

    fn unsigned(&self, lane: LaneName, events: u64) {
        self.0.audit_unsigned(lane.name(), events);
    }
}
