//! The series of tools. A call records with a few atomics: the series are looked
//! up when a tool comes into the catalogue, not when it is called.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

use super::super::names::metric;
use super::durations::{Durations, Timed, durations, observe};
use super::labels::{Bounded, CallLabels, OTHER, OperationLabels};
use crate::ids::{ToolName, UpstreamId};

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

type OfUpstream = HashMap<Arc<str>, Arc<ToolMetrics>>;

#[derive(Debug)]
pub(super) struct Tools {
    families: Families,
    unresolved: Arc<ToolMetrics>,
    names: Bounded,
    known: RwLock<HashMap<UpstreamId, OfUpstream>>,
}

#[derive(Clone, Debug)]
struct Families {
    durations: Durations<OperationLabels>,
    calls: Family<CallLabels, Counter>,
}

impl Tools {
    pub(super) fn new() -> Self {
        let families = Families {
            durations: Family::new_with_constructor(durations),
            calls: Family::default(),
        };
        Self {
            unresolved: ToolMetrics::new(families.clone(), "".into(), OTHER.into()).into(),
            families,
            names: Bounded::default(),
            known: RwLock::default(),
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
        let label = self.names.label(tool.as_str());
        {
            let tools = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = tools.get(upstream).and_then(|of| of.get(&label)) {
                return Arc::clone(known);
            }
        }
        let mut tools = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let of_upstream = tools.entry(upstream.clone()).or_default();
        let metrics = of_upstream.entry(Arc::clone(&label)).or_insert_with(|| {
            let upstream = upstream.as_str().into();
            Arc::new(ToolMetrics::new(self.families.clone(), upstream, label))
        });
        Arc::clone(metrics)
    }

    pub(super) fn unresolved(&self) -> Arc<ToolMetrics> {
        Arc::clone(&self.unresolved)
    }

    pub(super) fn operation(
        &self,
        method: &'static str,
        outcome: &'static str,
        error_type: &'static str,
        took: Duration,
    ) {
        let none: Arc<str> = "".into();
        let labels = OperationLabels {
            method,
            upstream: Arc::clone(&none),
            tool: none,
            outcome,
            error_type,
        };
        observe(&self.families.durations.get_or_create(&labels), took);
    }
}

/// The series of one tool; those of an outcome come into being with its first call.
#[derive(Debug)]
pub struct ToolMetrics {
    families: Families,
    upstream: Arc<str>,
    tool: Arc<str>,
    calls: [OnceLock<Counter>; CallOutcome::ALL.len()],
    /// Of the calls that went well: almost all.
    well: OnceLock<Timed>,
}

impl ToolMetrics {
    fn new(families: Families, upstream: Arc<str>, tool: Arc<str>) -> Self {
        Self {
            families,
            upstream,
            tool,
            calls: Default::default(),
            well: OnceLock::new(),
        }
    }

    /// A call ended.
    pub fn count(&self, outcome: CallOutcome) {
        let Some(slot) = self.calls.get(outcome as usize) else {
            return;
        };
        let labels = || CallLabels {
            upstream: Arc::clone(&self.upstream),
            tool: Arc::clone(&self.tool),
            outcome: outcome.as_str(),
        };
        let made = || self.families.calls.get_or_create_owned(&labels());
        slot.get_or_init(made).inc();
    }

    /// It was answered. `error_type` is the word for its failure; none is empty.
    pub fn took(&self, outcome: CallOutcome, error_type: &'static str, took: Duration) {
        if outcome == CallOutcome::Ok && error_type.is_empty() {
            let made = || self.durations(outcome.as_str(), error_type);
            observe(self.well.get_or_init(made), took);
        } else {
            observe(&self.durations(outcome.as_str(), error_type), took);
        }
    }

    fn durations(&self, outcome: &'static str, error_type: &'static str) -> Timed {
        let labels = OperationLabels {
            method: CALL,
            upstream: Arc::clone(&self.upstream),
            tool: Arc::clone(&self.tool),
            outcome,
            error_type,
        };
        self.families.durations.get_or_create_owned(&labels)
    }
}
