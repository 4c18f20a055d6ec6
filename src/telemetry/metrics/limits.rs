//! How limits are counted: together, alone, and among how many.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::Metrics;
use super::labels::ResultLabel;
use crate::telemetry::names::metric;

#[derive(Debug)]
pub(super) struct LimitMetrics {
    decision: Histogram,
    store_up: Gauge,
    away: Family<ResultLabel, Counter>,
    replicas: Gauge,
}

impl Default for LimitMetrics {
    fn default() -> Self {
        Self {
            decision: Histogram::new([0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5]),
            store_up: Gauge::default(),
            away: Family::default(),
            replicas: Gauge::default(),
        }
    }
}

impl LimitMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            metric::LIMITS_DECISION,
            "How long the shared limits' store took to decide",
            Unit::Seconds,
            self.decision.clone(),
        );
        registry.register(
            metric::LIMITS_STORE_UP,
            "Whether limits are counted together with the other replicas",
            self.store_up.clone(),
        );
        registry.register(
            metric::LIMITS_AWAY,
            "Requests that came while the shared limits' store was away: counted by this replica alone, or refused",
            self.away.clone(),
        );
        registry.register(
            metric::LIVE_REPLICAS,
            "Replicas that live, as this one sees it",
            self.replicas.clone(),
        );
    }
}

impl Metrics {
    /// The shared limits' store decided.
    pub fn limits_decided(&self, took: Duration) {
        self.limits.decision.observe(took.as_secs_f64());
    }

    /// Whether the shared limits' store counts.
    pub fn limits_store_up(&self, up: bool) {
        self.limits.store_up.set(i64::from(up));
    }

    /// A request came while the shared limits' store was away.
    pub fn limits_away(&self, refused: bool) {
        let result = if refused { "refused" } else { "local" };
        self.limits
            .away
            .get_or_create(&ResultLabel { result })
            .inc();
    }

    /// So many replicas live.
    pub fn live_replicas(&self, replicas: u32) {
        self.limits.replicas.set(i64::from(replicas));
    }
}
