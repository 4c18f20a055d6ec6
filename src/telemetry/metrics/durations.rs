//! How long things took: histograms with the boundaries of the conventions, each
//! bucket with a trace for an example.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;

use crate::clock::{Clock as _, SystemClock};
use crate::telemetry::trace;

/// Durations of one kind.
pub(super) type Timed = HistogramWithExemplars<Example>;
/// Durations by labels.
pub(super) type Durations<L> = Family<L, Timed, fn() -> Timed>;

/// Where an exemplar leads.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Example {
    trace_id: String,
    span_id: String,
}

/// The boundaries that OpenTelemetry's conventions for MCP recommend.
pub(super) fn durations() -> Timed {
    let bounds = [
        0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    ];
    HistogramWithExemplars::new(bounds.into_iter())
}

/// Takes a duration down, with the trace that is under way where it is kept.
pub(super) fn observe(durations: &Timed, took: Duration) {
    let example = trace::example().map(|place| Example {
        trace_id: place.trace_digits().to_owned(),
        span_id: place.span_digits().to_owned(),
    });
    let at = example.as_ref().map(|_| SystemClock.now().into());
    durations.observe(took.as_secs_f64(), example, at);
}
