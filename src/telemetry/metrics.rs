//! What is counted and measured. Labels are upstream, tool, outcome, method,
//! reason and kind of finding: never a session, client, user or tenant, nor any
//! text that a caller chooses.

mod audit;
mod labels;
mod limits;
mod process;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use self::labels::{LabelLabel, ReasonLabel, ResultLabel, UpstreamLabel};
use super::names::metric;
use crate::ids::{ToolName, UpstreamId};

pub use self::tools::{CallOutcome, ToolMetrics};

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics that are handed around.
pub type SharedMetrics = Arc<Metrics>;

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    tools: tools::Tools,
    refusals: Family<ReasonLabel, Counter>,
    authentication_failures: Family<ReasonLabel, Counter>,
    findings: Family<LabelLabel, Counter>,
    audit_batch_size: Histogram,
    audit_commit: Histogram,
    audit_failures: Counter,
    audit: audit::AuditMetrics,
    limits: limits::LimitMetrics,
    inflight_calls: Gauge,
    open_streams: Gauge,
    upstream_up: Family<UpstreamLabel, Gauge>,
    config_reloads: Family<ResultLabel, Counter>,
}

impl Metrics {
    /// Fresh metrics of a process that started at this time (seconds since the Unix epoch).
    pub fn new(started: i64) -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            tools: tools::Tools::new(),
            refusals: Family::default(),
            authentication_failures: Family::default(),
            findings: Family::default(),
            audit_batch_size: Histogram::new((0..=9).map(|power| f64::from(1_u32 << power))),
            audit_commit: Histogram::new([
                0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0,
            ]),
            audit_failures: Counter::default(),
            audit: audit::AuditMetrics::default(),
            limits: limits::LimitMetrics::default(),
            inflight_calls: Gauge::default(),
            open_streams: Gauge::default(),
            upstream_up: Family::default(),
            config_reloads: Family::default(),
        };
        let mut registry = Registry::default();
        metrics.tools.register(&mut registry);
        metrics.register_counters(&mut registry);
        metrics.audit.register(&mut registry);
        metrics.limits.register(&mut registry);
        metrics.register_gauges(&mut registry);
        process::register(&mut registry, started);
        metrics.registry = registry;
        metrics
    }

    fn register_counters(&self, registry: &mut Registry) {
        registry.register(
            metric::REFUSALS,
            "Requests refused before they reached an upstream",
            self.refusals.clone(),
        );
        registry.register(
            metric::AUTHENTICATION_FAILURES,
            "Tokens that were not accepted",
            self.authentication_failures.clone(),
        );
        registry.register(
            metric::SANITIZE_FINDINGS,
            "Findings in what tools returned",
            self.findings.clone(),
        );
        registry.register(
            metric::AUDIT_FAILURES,
            "Audit batches that could not be committed",
            self.audit_failures.clone(),
        );
        registry.register(
            metric::CONFIG_RELOADS,
            "Changes of the configuration file",
            self.config_reloads.clone(),
        );
        registry.register(
            metric::AUDIT_BATCH_SIZE,
            "Events in a batch of the audit",
            self.audit_batch_size.clone(),
        );
        registry.register_with_unit(
            metric::AUDIT_COMMIT,
            "How long a batch of the audit took to commit",
            Unit::Seconds,
            self.audit_commit.clone(),
        );
    }

    fn register_gauges(&self, registry: &mut Registry) {
        registry.register(
            metric::INFLIGHT_CALLS,
            "Calls that run now",
            self.inflight_calls.clone(),
        );
        registry.register(
            metric::OPEN_STREAMS,
            "Streams that are open now",
            self.open_streams.clone(),
        );
        registry.register(
            metric::UPSTREAM_UP,
            "Whether an upstream answers",
            self.upstream_up.clone(),
        );
    }

    /// The series of one tool, to be kept and recorded with. The first 500 exposed
    /// names have their own; later ones share `other`.
    pub fn tool(&self, upstream: &UpstreamId, tool: &ToolName) -> Arc<ToolMetrics> {
        self.tools.tool(upstream, tool)
    }

    /// A call of a tool that the caller does not have. Its name is the caller's text
    /// and no label.
    pub fn unresolved_call(&self, outcome: CallOutcome, took: Duration) {
        self.tools.unresolved().record(outcome, took);
    }

    /// A request of another method than `tools/call`, answered. `method` and
    /// `outcome` are words of the program, so that their number is bounded.
    pub fn operation(&self, method: &'static str, outcome: &'static str, took: Duration) {
        self.tools.operation(method, outcome, took);
    }

    /// A request was refused.
    pub fn refusal(&self, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// A token was not accepted.
    pub fn authentication_failure(&self, reason: &'static str) {
        let label = ReasonLabel { reason };
        self.authentication_failures.get_or_create(&label).inc();
    }

    /// Something was found in what a tool returned.
    pub fn findings(&self, label: &'static str, count: u64) {
        self.findings
            .get_or_create(&LabelLabel { label })
            .inc_by(count);
    }

    /// A batch of the audit was committed, `lag` after its first event was handed over.
    pub fn audit_committed(&self, events: usize, took: Duration, lag: Duration) {
        self.audit.lag(lag);
        self.audit_batch_size
            .observe(u32::try_from(events).map_or(f64::MAX, f64::from));
        self.audit_commit.observe(took.as_secs_f64());
    }

    /// A batch of the audit could not be committed.
    pub fn audit_failed(&self) {
        self.audit_failures.inc();
    }

    /// A call begins; it ends when the guard is dropped.
    pub fn inflight_call(&self) -> Counted {
        Counted::new(&self.inflight_calls)
    }

    /// A stream opens; it closes when the guard is dropped.
    pub fn open_stream(&self) -> Counted {
        Counted::new(&self.open_streams)
    }

    /// Whether an upstream answers.
    pub fn upstream_up(&self, upstream: &UpstreamId, up: bool) {
        self.upstream_up
            .get_or_create(&UpstreamLabel::new(upstream))
            .set(i64::from(up));
    }

    /// An upstream is no longer configured.
    pub fn upstream_gone(&self, upstream: &UpstreamId) {
        self.upstream_up.remove(&UpstreamLabel::new(upstream));
    }

    /// The configuration file changed, and was taken or refused.
    pub fn config_reload(&self, taken: bool) {
        let result = if taken { "taken" } else { "refused" };
        self.config_reloads
            .get_or_create(&ResultLabel { result })
            .inc();
    }

    /// Everything as `OpenMetrics` text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Something that is counted while it lasts.
#[derive(Debug)]
pub struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests;
