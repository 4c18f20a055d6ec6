//! The audit's figures that are worth an alert: lag, queues, partitions, losses.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::Metrics;
use super::labels::LaneLabel;
use crate::telemetry::names::metric;

#[derive(Debug)]
pub(super) struct AuditMetrics {
    lag: Histogram,
    lost: Counter,
    orphans: Counter,
    queue: Family<LaneLabel, Gauge>,
    unsigned: Family<LaneLabel, Gauge>,
    partitions_ahead: Gauge,
    default_rows: Gauge,
    restricted: Gauge,
}

impl Default for AuditMetrics {
    fn default() -> Self {
        Self {
            lag: Histogram::new([
                0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 10.0, 60.0,
            ]),
            lost: Counter::default(),
            orphans: Counter::default(),
            queue: Family::default(),
            unsigned: Family::default(),
            partitions_ahead: Gauge::default(),
            default_rows: Gauge::default(),
            restricted: Gauge::default(),
        }
    }
}

impl AuditMetrics {
    pub(super) fn lag(&self, lag: Duration) {
        self.lag.observe(lag.as_secs_f64());
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            metric::AUDIT_LAG,
            "How long the first event of a batch waited until it was durable",
            Unit::Seconds,
            self.lag.clone(),
        );
        registry.register(
            metric::AUDIT_LOST,
            "Events that were to be written later and are lost: should be 0",
            self.lost.clone(),
        );
        registry.register(
            metric::AUDIT_ORPHANS,
            "Calls without an end that were closed",
            self.orphans.clone(),
        );
        registry.register(
            metric::AUDIT_QUEUE,
            "Events that wait to be written",
            self.queue.clone(),
        );
        registry.register(
            metric::AUDIT_UNSIGNED,
            "Durable events that no checkpoint covers yet: back to 0 within seconds",
            self.unsigned.clone(),
        );
        registry.register(
            metric::AUDIT_PARTITIONS_AHEAD,
            "Days ahead of today that have partitions: should be 7, alert below 3",
            self.partitions_ahead.clone(),
        );
        registry.register(
            metric::AUDIT_DEFAULT_ROWS,
            "Rows in the default partitions, counted up to 10001: should be 0",
            self.default_rows.clone(),
        );
        registry.register(
            metric::AUDIT_RESTRICTED,
            "Whether the audit is written by a login that can only add to it",
            self.restricted.clone(),
        );
    }
}

impl Metrics {
    /// An event that was to be written later is lost.
    pub fn audit_lost(&self) {
        self.audit.lost.inc();
    }

    /// Calls without an end were closed.
    pub fn audit_orphans_closed(&self, calls: u64) {
        self.audit.orphans.inc_by(calls);
    }

    /// So many events wait in a lane.
    pub fn audit_queued(&self, lane: &'static str, events: usize) {
        let events = i64::try_from(events).unwrap_or(i64::MAX);
        let label = LaneLabel { lane };
        self.audit.queue.get_or_create(&label).set(events);
    }

    /// So many durable events of a lane are not covered by a checkpoint.
    pub fn audit_unsigned(&self, lane: &'static str, events: u64) {
        let events = i64::try_from(events).unwrap_or(i64::MAX);
        let label = LaneLabel { lane };
        self.audit.unsigned.get_or_create(&label).set(events);
    }

    /// Days ahead that have partitions, and rows that lie outside of any.
    pub fn audit_partitions(&self, ahead: i64, default_rows: i64) {
        self.audit.partitions_ahead.set(ahead);
        self.audit.default_rows.set(default_rows);
    }

    /// Whether the audit is written by a login that can only add to it.
    pub fn audit_restricted(&self, restricted: bool) {
        self.audit.restricted.set(i64::from(restricted));
    }
}
