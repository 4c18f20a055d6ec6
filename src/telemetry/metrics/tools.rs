//! The series of tools. A call records with a few atomics: the series are looked
//! up when a tool comes into the catalogue, not when it is called.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::super::names::metric;
use super::labels::{CallLabels, OperationLabels};
use crate::ids::{ToolName, UpstreamId};

/// Exposed names that have series of their own.
const MOST_TOOLS: usize = 500;
const OTHER: &str = "other";
const CALL: &str = "tools/call";

/// How a call ended: the words of the audit, with one for all refusals (their step
/// is a label of the refusals).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The tool answered.
    Ok,
    /// The tool answered that it failed.
    ToolError,
    /// The call did not reach the tool.
    Refused,
    /// The tool did not answer in time.
    Timeout,
    /// The caller went away.
    Cancelled,
    /// The upstream is away or broken.
    UpstreamError,
    /// The answer could not be recorded.
    Withheld,
    /// Nobody knows.
    Unknown,
}

impl CallOutcome {
    /// Every outcome, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Ok,
        Self::ToolError,
        Self::Refused,
        Self::Timeout,
        Self::Cancelled,
        Self::UpstreamError,
        Self::Withheld,
        Self::Unknown,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::UpstreamError => "upstream_error",
            Self::Withheld => "withheld",
            Self::Unknown => "unknown",
        }
    }
}

type Durations = Family<OperationLabels, Histogram, fn() -> Histogram>;

/// The boundaries that OpenTelemetry's conventions for MCP recommend.
fn durations() -> Histogram {
    Histogram::new([
        0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    ])
}

#[derive(Debug)]
pub(super) struct Tools {
    families: Families,
    unresolved: ToolMetrics,
    known: Mutex<Known>,
}

#[derive(Clone, Debug)]
struct Families {
    durations: Durations,
    calls: Family<CallLabels, Counter>,
}

/// Grows to `MOST_TOOLS` names and one `other` for each upstream.
#[derive(Debug, Default)]
struct Known {
    names: HashSet<Arc<str>>,
    tools: HashMap<UpstreamId, HashMap<Arc<str>, Arc<ToolMetrics>>>,
}

impl Tools {
    pub(super) fn new() -> Self {
        let families = Families {
            durations: Family::new_with_constructor(durations),
            calls: Family::default(),
        };
        Self {
            unresolved: ToolMetrics::new(families.clone(), "".into(), OTHER.into()),
            families,
            known: Mutex::default(),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            metric::OPERATION_DURATION,
            "How long MCP requests took",
            Unit::Seconds,
            self.families.durations.clone(),
        );
        registry.register(
            metric::CALLS,
            "Calls by how they ended",
            self.families.calls.clone(),
        );
    }

    pub(super) fn tool(&self, upstream: &UpstreamId, tool: &ToolName) -> Arc<ToolMetrics> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { names, tools } = &mut *known;
        let label = match names.get(tool.as_str()) {
            Some(name) => Arc::clone(name),
            None if names.len() < MOST_TOOLS => {
                let name: Arc<str> = tool.as_str().into();
                names.insert(Arc::clone(&name));
                name
            }
            None => OTHER.into(),
        };
        let of_upstream = tools.entry(upstream.clone()).or_default();
        let metrics = of_upstream.entry(Arc::clone(&label)).or_insert_with(|| {
            let upstream = upstream.as_str().into();
            Arc::new(ToolMetrics::new(self.families.clone(), upstream, label))
        });
        Arc::clone(metrics)
    }

    pub(super) fn unresolved(&self) -> &ToolMetrics {
        &self.unresolved
    }

    pub(super) fn operation(&self, method: &'static str, outcome: &'static str, took: Duration) {
        let none: Arc<str> = "".into();
        self.families
            .durations
            .get_or_create(&OperationLabels {
                method,
                upstream: Arc::clone(&none),
                tool: none,
                outcome,
            })
            .observe(took.as_secs_f64());
    }
}

/// The series of one tool; those of an outcome come into being with its first call.
#[derive(Debug)]
pub struct ToolMetrics {
    families: Families,
    upstream: Arc<str>,
    tool: Arc<str>,
    series: [OnceLock<Series>; CallOutcome::ALL.len()],
}

#[derive(Debug)]
struct Series {
    calls: Counter,
    durations: Histogram,
}

impl ToolMetrics {
    fn new(families: Families, upstream: Arc<str>, tool: Arc<str>) -> Self {
        Self {
            families,
            upstream,
            tool,
            series: Default::default(),
        }
    }

    /// A call ended.
    pub fn record(&self, outcome: CallOutcome, took: Duration) {
        let Some(slot) = self.series.get(outcome as usize) else {
            return;
        };
        let series = slot.get_or_init(|| self.make(outcome.as_str()));
        series.calls.inc();
        series.durations.observe(took.as_secs_f64());
    }

    fn make(&self, outcome: &'static str) -> Series {
        let (upstream, tool) = (&self.upstream, &self.tool);
        Series {
            calls: self.families.calls.get_or_create_owned(&CallLabels {
                upstream: Arc::clone(upstream),
                tool: Arc::clone(tool),
                outcome,
            }),
            durations: self
                .families
                .durations
                .get_or_create_owned(&OperationLabels {
                    method: CALL,
                    upstream: Arc::clone(upstream),
                    tool: Arc::clone(tool),
                    outcome,
                }),
        }
    }
}
