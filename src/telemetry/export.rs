//! From this process to an OpenTelemetry collector: OTLP over HTTP with Protocol
//! Buffers. A collector that is slow or away costs telemetry, never a call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use opentelemetry::InstrumentationScope;
use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::logs::tonic::group_logs_by_resource_and_scope;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{LogBatch, SdkLogRecord};
use opentelemetry_sdk::trace::SpanData;
use prost::Message as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::exposition;
use super::metrics::Metrics;
use super::queue::{Batches, Losses, Signal};

/// Pauses before a batch that may be taken later is sent again (OTLP, Failures).
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// Longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Sends a request to the collector, by the ways that the deployment has.
pub type Post =
    Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Result<Response<()>, String>> + Send + Sync>;

/// Where to, and how.
#[derive(Clone)]
pub struct Otlp {
    /// The collector's base URL; `/v1/traces` and the like are put behind it.
    pub endpoint: String,
    /// Headers of every request. They may hold a secret.
    pub headers: HeaderMap,
    /// How long one request may take.
    pub timeout: Duration,
    /// Between two exports of the metrics.
    pub metrics_interval: Duration,
    /// How many traces of a hundred are kept whose caller has not decided, over a hundred.
    pub sampling_ratio: f64,
    /// Whether traces go out.
    pub traces: bool,
    /// Whether metrics go out.
    pub metrics: bool,
    /// Whether log lines go out.
    pub logs: bool,
}

/// Who sends: attributes of the resource.
pub type Identity = Vec<(String, String)>;

/// A log record as it waits.
pub(super) type Logged = Box<(SdkLogRecord, InstrumentationScope)>;

/// The collector, as the senders see it.
pub(super) struct Collector {
    pub(super) otlp: Otlp,
    pub(super) post: Post,
    pub(super) resource: ResourceAttributesWithSchema,
    pub(super) losses: Losses,
    pub(super) closing: CancellationToken,
    /// Whether the last request was taken; a change is said once.
    pub(super) reached: watch::Sender<bool>,
}

/// The resource that telemetry is about.
pub(super) fn resource(identity: Identity) -> ResourceAttributesWithSchema {
    let attributes = identity
        .into_iter()
        .map(|(key, value)| KeyValue::new(key, value));
    let resource = Resource::builder_empty().with_attributes(attributes);
    (&resource.build()).into()
}

impl Collector {
    pub(super) async fn send_traces(self: Arc<Self>, waiting: mpsc::Receiver<SpanData>) {
        let mut batches = Batches::new(waiting, self.closing.clone());
        while let Some(batch) = batches.next().await {
            let count = batch.len();
            let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
            let message = ExportTraceServiceRequest { resource_spans };
            self.send(Signal::Traces, count, message.encode_to_vec())
                .await;
        }
    }

    pub(super) async fn send_logs(self: Arc<Self>, waiting: mpsc::Receiver<Logged>) {
        let mut batches = Batches::new(waiting, self.closing.clone());
        while let Some(batch) = batches.next().await {
            let message = self.logs_of(&batch).encode_to_vec();
            self.send(Signal::Logs, batch.len(), message).await;
        }
    }

    fn logs_of(&self, batch: &[Logged]) -> ExportLogsServiceRequest {
        let records: Vec<_> = batch.iter().map(|one| (&one.0, &one.1)).collect();
        let resource_logs =
            group_logs_by_resource_and_scope(&LogBatch::new(&records), &self.resource);
        ExportLogsServiceRequest { resource_logs }
    }

    /// The metrics as a scrape would see them, now and then and at the end.
    pub(super) async fn send_metrics(self: Arc<Self>, metrics: Arc<Metrics>) {
        let mut due = interval(self.otlp.metrics_interval);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        due.tick().await;
        loop {
            let over = tokio::select! {
                _ = due.tick() => false,
                () = self.closing.cancelled() => true,
            };
            let resource = self.resource.attributes.0.clone();
            let message = exposition::request(&metrics, resource);
            self.send(Signal::Metrics, 1, message.encode_to_vec()).await;
            if over {
                return;
            }
        }
    }

    /// Sends a message until it is taken, or is not worth another attempt.
    async fn send(&self, signal: Signal, count: usize, message: Vec<u8>) {
        let body = Bytes::from(message);
        let mut pauses = PAUSES.into_iter();
        let fault = loop {
            let again = match self.attempt(signal, body.clone()).await {
                Ok(()) => {
                    if !self.reached.send_replace(true) {
                        tracing::info!("The collector takes telemetry again.");
                    }
                    return;
                }
                Err(again) => again,
            };
            let Some(pause) = pauses.next().filter(|_| again.worth) else {
                break again.why;
            };
            tokio::select! {
                () = tokio::time::sleep(again.after.unwrap_or(pause)) => {}
                () = self.closing.cancelled() => break again.why,
            }
        };
        self.losses.not_taken(signal, count);
        if self.reached.send_replace(false) {
            let signal = signal.as_str();
            tracing::warn!(signal, error = %fault, "The collector does not take telemetry; it is dropped until it does.");
        }
    }

    async fn attempt(&self, signal: Signal, body: Bytes) -> Result<(), Refused> {
        let url = format!("{}/v1/{}", self.otlp.endpoint, signal.as_str());
        let mut request = Request::post(url)
            .body(body)
            .map_err(|error| Refused::for_good(error.to_string()))?;
        request.headers_mut().extend(self.otlp.headers.clone());
        let kind = HeaderValue::from_static("application/x-protobuf");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        let sent = timeout(self.otlp.timeout, (self.post)(request)).await;
        let answer = sent
            .unwrap_or_else(|_| Err("no answer in time".to_owned()))
            .map_err(Refused::for_now)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let why = format!("it answered {status}");
        Err(Refused {
            why,
            worth: matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            ),
            after: retry_after(answer.headers()),
        })
    }
}

/// Why a request was not taken.
struct Refused {
    why: String,
    /// Whether it may be taken later.
    worth: bool,
    after: Option<Duration>,
}

impl Refused {
    fn for_good(why: String) -> Self {
        Self {
            why,
            worth: false,
            after: None,
        }
    }

    fn for_now(why: String) -> Self {
        Self {
            worth: true,
            ..Self::for_good(why)
        }
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}
