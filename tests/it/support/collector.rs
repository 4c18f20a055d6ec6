//! An OpenTelemetry collector inside the test: takes OTLP over HTTP in Protocol
//! Buffers, read by the project's own definitions.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::eventually;

/// Attributes, their values as text.
pub(crate) type Attributes = BTreeMap<String, String>;

/// A span as it came.
#[derive(Clone, Debug)]
pub(crate) struct SeenSpan {
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) state: String,
    pub(crate) attributes: Attributes,
    /// Trace and span of each link.
    pub(crate) links: Vec<(String, String)>,
    pub(crate) failed: bool,
    pub(crate) words: String,
    pub(crate) took: std::time::Duration,
    pub(crate) resource: Attributes,
}

impl SeenSpan {
    /// An attribute; nothing where there is none.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

/// A log record as it came.
#[derive(Clone, Debug)]
pub(crate) struct SeenLog {
    pub(crate) body: String,
    pub(crate) severity: String,
    pub(crate) trace: String,
    pub(crate) span: String,
    pub(crate) attributes: Attributes,
    pub(crate) resource: Attributes,
}

/// The running collector.
#[derive(Debug)]
pub(crate) struct Collector {
    address: SocketAddr,
    taken: Arc<Taken>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Taken {
    /// What it answers.
    status: AtomicU16,
    requests: Mutex<Vec<(String, HeaderMap, Bytes)>>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Collector {
    /// One on a free port.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::new(Taken {
            status: AtomicU16::new(200),
            requests: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/{signal}", post(take))
            .with_state(Arc::clone(&taken));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            taken,
            task,
        }
    }

    /// Its base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The configuration that exports to it, quickly.
    pub(crate) fn yaml(&self) -> String {
        format!(
            "telemetry: {{ otlp_endpoint: \"{}\", metrics_interval: 200ms }}",
            self.url()
        )
    }

    /// Answers with this status from now on.
    pub(crate) fn answer(&self, status: u16) {
        self.taken.status.store(status, Ordering::Relaxed);
    }

    /// Everything that came for a signal and was accepted, with its headers.
    pub(crate) fn requests(&self, signal: &str) -> Vec<(HeaderMap, Bytes)> {
        let requests = self.taken.requests.lock().unwrap();
        let of_signal = requests.iter().filter(|(given, ..)| given == signal);
        of_signal
            .map(|(_, headers, body)| (headers.clone(), body.clone()))
            .collect()
    }

    /// All spans so far.
    pub(crate) fn spans(&self) -> Vec<SeenSpan> {
        let mut all = Vec::new();
        for (_, body) in self.requests("traces") {
            for of_resource in ExportTraceServiceRequest::decode(body)
                .unwrap()
                .resource_spans
            {
                let resource = of_resource_attributes(of_resource.resource.as_ref());
                let spans = of_resource
                    .scope_spans
                    .into_iter()
                    .flat_map(|one| one.spans);
                all.extend(spans.map(|span| seen(span, &resource)));
            }
        }
        all
    }

    /// Waits for a span.
    pub(crate) async fn span(&self, what: &str, is: impl Fn(&SeenSpan) -> bool) -> SeenSpan {
        eventually(what, async || {
            self.spans().into_iter().find(|span| is(span))
        })
        .await
    }

    /// The spans right below this one, in the order of their names.
    pub(crate) fn below(&self, parent: &SeenSpan) -> Vec<SeenSpan> {
        let mut below = self.spans();
        below.retain(|span| span.trace == parent.trace && span.parent == parent.id);
        below.sort_by(|one, other| one.name.cmp(&other.name));
        below
    }

    /// The metrics of the latest export.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let Some((_, body)) = self.requests("metrics").pop() else {
            return Vec::new();
        };
        let request = ExportMetricsServiceRequest::decode(body).unwrap();
        let of_scopes = request
            .resource_metrics
            .into_iter()
            .flat_map(|one| one.scope_metrics);
        of_scopes.flat_map(|one| one.metrics).collect()
    }

    /// All log records so far.
    pub(crate) fn logs(&self) -> Vec<SeenLog> {
        let mut all = Vec::new();
        for (_, body) in self.requests("logs") {
            for of_resource in ExportLogsServiceRequest::decode(body)
                .unwrap()
                .resource_logs
            {
                let resource = of_resource_attributes(of_resource.resource.as_ref());
                for record in of_resource
                    .scope_logs
                    .into_iter()
                    .flat_map(|one| one.log_records)
                {
                    all.push(SeenLog {
                        body: shown(record.body.as_ref()),
                        severity: record.severity_text,
                        trace: hex(&record.trace_id),
                        span: hex(&record.span_id),
                        attributes: attributes(&record.attributes),
                        resource: resource.clone(),
                    });
                }
            }
        }
        all
    }

    /// Everything that came, as text to search in.
    pub(crate) fn everything(&self) -> String {
        let requests = self.taken.requests.lock().unwrap();
        let bodies = requests
            .iter()
            .map(|(_, _, body)| String::from_utf8_lossy(body).into_owned());
        bodies.collect::<Vec<_>>().join("\n")
    }
}

async fn take(
    State(taken): State<Arc<Taken>>,
    Path(signal): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let status = taken.status.load(Ordering::Relaxed);
    if status == 200 {
        taken.requests.lock().unwrap().push((signal, headers, body));
    }
    StatusCode::from_u16(status).unwrap()
}

fn seen(span: Span, resource: &Attributes) -> SeenSpan {
    let took = span
        .end_time_unix_nano
        .saturating_sub(span.start_time_unix_nano);
    let status = span.status.clone().unwrap_or_default();
    SeenSpan {
        kind: span.kind(),
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        state: span.trace_state,
        attributes: attributes(&span.attributes),
        links: span
            .links
            .iter()
            .map(|link| (hex(&link.trace_id), hex(&link.span_id)))
            .collect(),
        failed: status.code() == SpanStatus::Error,
        words: status.message,
        took: std::time::Duration::from_nanos(took),
        resource: resource.clone(),
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |byte: u8| char::from_digit(u32::from(byte), 16).unwrap();
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn of_resource_attributes(resource: Option<&Resource>) -> Attributes {
    resource
        .map(|resource| attributes(&resource.attributes))
        .unwrap_or_default()
}

/// Attributes as text.
pub(crate) fn attributes(all: &[KeyValue]) -> Attributes {
    let pair = |one: &KeyValue| (one.key.clone(), shown(one.value.as_ref()));
    all.iter().map(pair).collect()
}

fn shown(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        Some(Any::BoolValue(flag)) => flag.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}
