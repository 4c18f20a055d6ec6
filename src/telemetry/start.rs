//! Start-up and end: the log's subscriber, the tracer, and what carries both and the
//! metrics to a collector.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::logs::LogRecord as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogProcessor, SdkLogRecord, SdkLoggerProvider};
use opentelemetry_sdk::trace::{
    Sampler, SdkTracerProvider, Span as SdkSpan, SpanData, SpanProcessor,
};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::export::{self, Collector, Identity, Logged, Otlp, Post};
use super::logs::{self, BoxedLayer, TelemetryFault};
use super::metrics::Metrics;
use super::names::field;
use super::queue::{Losses, Queue, Signal};
use super::trace::{self, RequestId};

/// How long the last of everything may take to go out.
const FAREWELL: Duration = Duration::from_secs(5);
/// What exporting says of itself: it would be exported, and say so again.
const OWN: [&str; 6] = [
    "toolgate::telemetry",
    "toolgate::outgoing",
    "hyper",
    "reqwest",
    "h2",
    "rustls",
];

/// What is logged, and what is exported.
pub struct Settings<'a> {
    /// The least severe log line (`info`, `warn,toolgate=debug`).
    pub filter: &'a str,
    /// Whether a line is a JSON object, or text.
    pub json: bool,
    /// The collector, where there is one.
    pub otlp: Option<Otlp>,
}

/// Telemetry of the process, set up once.
pub struct Telemetry {
    otlp: Option<Otlp>,
    losses: Losses,
    spans: Option<mpsc::Receiver<SpanData>>,
    logged: Option<mpsc::Receiver<Logged>>,
    closing: CancellationToken,
    running: TaskTracker,
}

/// Sets up logs and, for a collector, traces. What comes before
/// [`Telemetry::export`] waits.
///
/// # Errors
/// When the filter cannot be read, or this is done a second time.
pub fn init(settings: Settings<'_>) -> Result<Telemetry, TelemetryFault> {
    let mut telemetry = Telemetry {
        otlp: settings.otlp,
        losses: Losses::default(),
        spans: None,
        logged: None,
        closing: CancellationToken::new(),
        running: TaskTracker::new(),
    };
    let mut layers = vec![logs::layer(settings.filter, settings.json)?];
    if telemetry.otlp.as_ref().is_some_and(|otlp| otlp.logs) {
        layers.push(telemetry.log_layer(settings.filter)?);
    }
    logs::install(layers)?;
    if let Some(otlp) = telemetry.otlp.as_ref().filter(|otlp| otlp.traces) {
        let (queue, spans) = Queue::new(Signal::Traces, telemetry.losses.clone());
        let ratio = Sampler::TraceIdRatioBased(otlp.sampling_ratio);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(ratio)))
            .with_span_processor(Ended(queue))
            .build();
        let scope =
            InstrumentationScope::builder("toolgate").with_version(env!("CARGO_PKG_VERSION"));
        trace::install(provider.tracer_with_scope(scope.build()));
        telemetry.spans = Some(spans);
    }
    Ok(telemetry)
}

impl Telemetry {
    fn log_layer(&mut self, filter: &str) -> Result<BoxedLayer, TelemetryFault> {
        let (queue, logged) = Queue::new(Signal::Logs, self.losses.clone());
        self.logged = Some(logged);
        trace::logs_are_exported();
        let provider = SdkLoggerProvider::builder()
            .with_log_processor(Said(queue))
            .build();
        let ours = |target: &str| OWN.iter().any(|own| target.starts_with(own));
        Ok(OpenTelemetryTracingBridge::new(&provider)
            .with_filter(filter_fn(move |metadata| !ours(metadata.target())))
            .with_filter(EnvFilter::builder().parse(filter)?)
            .boxed())
    }

    /// Counts what is lost on the way to the collector.
    pub fn losses(&self) -> Losses {
        self.losses.clone()
    }

    /// Begins to export, over `post`, as the process that `identity` says.
    pub fn export(&mut self, post: Post, identity: Identity, metrics: &Arc<Metrics>) {
        let Some(otlp) = self.otlp.clone() else {
            return;
        };
        let collector = Arc::new(Collector {
            post,
            resource: export::resource(identity),
            losses: self.losses.clone(),
            closing: self.closing.clone(),
            reached: watch::Sender::new(true),
            otlp,
        });
        if let Some(spans) = self.spans.take() {
            self.running
                .spawn(Arc::clone(&collector).send_traces(spans));
        }
        if let Some(logged) = self.logged.take() {
            self.running.spawn(Arc::clone(&collector).send_logs(logged));
        }
        if collector.otlp.metrics {
            self.running
                .spawn(collector.send_metrics(Arc::clone(metrics)));
        }
    }

    /// Sends what still waits, and gives up after a while.
    pub async fn close(self) {
        self.closing.cancel();
        self.running.close();
        if timeout(FAREWELL, self.running.wait()).await.is_err() {
            tracing::warn!("Not all telemetry could be sent before the end.");
        }
    }
}

/// Takes spans that ended.
#[derive(Debug)]
struct Ended(Queue<SpanData>);

impl SpanProcessor for Ended {
    fn on_start(&self, _span: &mut SdkSpan, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Takes log records, with the id of the request that they are about.
#[derive(Debug)]
struct Said(Queue<Logged>);

impl LogProcessor for Said {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        Context::map_current(|context| {
            if let Some(RequestId(id)) = context.get::<RequestId>() {
                record.add_attribute(field::REQUEST, id.to_string());
            }
        });
        self.0.push(Box::new((record.clone(), scope.clone())));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}
