//! What goes to an OpenTelemetry collector, and how it gets there: like everything
//! else, by `outgoing`.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};

use crate::clock::Clock;
use crate::config::{self, Config, LogFormat, Signal};
use crate::ids::ReplicaId;
use crate::outgoing::{HttpClient, Outgoing, OutgoingFault, Reach, Target};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::{self, Identity, Otlp, Post, Settings, Telemetry};

/// Most bytes of a collector's answer that are read, so that its connection can be
/// used again.
const ANSWER: usize = 64 << 10;

/// Sets up logs, and traces for a collector.
pub(super) fn init(config: &config::Telemetry) -> anyhow::Result<Telemetry> {
    let otlp = match &config.otlp_endpoint {
        Some(endpoint) => Some(otlp(endpoint, config)?),
        None => None,
    };
    Ok(telemetry::init(Settings {
        filter: &config.log_filter,
        json: config.log_format == LogFormat::Json,
        otlp,
    })?)
}

fn otlp(endpoint: &str, config: &config::Telemetry) -> anyhow::Result<Otlp> {
    let headers = match &config.otlp_headers_file {
        Some(file) => {
            let text = config::read_secret_file(file).context("telemetry.otlp_headers_file")?;
            headers(text.expose()).ok_or_else(|| {
                anyhow!(
                    "telemetry.otlp_headers_file: {} must have one `Name: value` a line",
                    file.display()
                )
            })?
        }
        None => HeaderMap::new(),
    };
    let exports = |signal| config.otlp_signals.contains(&signal);
    Ok(Otlp {
        endpoint: endpoint.trim_end_matches('/').to_owned(),
        headers,
        timeout: config.otlp_timeout.0,
        metrics_interval: config.metrics_interval.0,
        sampling_ratio: config.sampling_ratio,
        traces: exports(Signal::Traces),
        metrics: exports(Signal::Metrics),
        logs: exports(Signal::Logs),
    })
}

fn headers(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.split_once(':')?;
        let name: HeaderName = name.trim().parse().ok()?;
        let mut value: HeaderValue = value.trim().parse().ok()?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Some(headers)
}

/// Sends the collector an empty message of each signal that is exported, as `toolgate
/// doctor` does: what a collector answers with 200 (OTLP §Response). `None` where there is
/// no collector.
///
/// # Errors
/// Why it takes nothing.
pub(crate) async fn collector(config: &Config) -> Result<Option<usize>, String> {
    let settings = &config.telemetry;
    let Some(endpoint) = &settings.otlp_endpoint else {
        return Ok(None);
    };
    let otlp = otlp(endpoint, settings).map_err(|fault| format!("{fault:#}"))?;
    let outgoing = Outgoing::new(&config.outgoing).map_err(|fault| fault.to_string())?;
    let client = outgoing.client(Reach::Private, otlp.timeout);
    let signals = [
        ("traces", otlp.traces),
        ("metrics", otlp.metrics),
        ("logs", otlp.logs),
    ];
    let mut taken = 0;
    for (signal, _) in signals.into_iter().filter(|(_, exported)| *exported) {
        let url = format!("{}/v1/{signal}", otlp.endpoint);
        let mut request = Request::post(url.as_str())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Bytes::new())
            .map_err(|fault| fault.to_string())?;
        request.headers_mut().extend(otlp.headers.clone());
        let asked = tokio::time::timeout(otlp.timeout, send(&client, request)).await;
        match asked {
            Ok(Ok(answer)) if answer.status().is_success() => taken += 1,
            Ok(Ok(answer)) => return Err(format!("{url} answers with {}", answer.status())),
            Ok(Err(fault)) => return Err(fault.to_string()),
            Err(_) => return Err(format!("{url} does not answer in time")),
        }
    }
    Ok(Some(taken))
}

/// The process's metrics.
pub(super) fn metrics(config: &Config, clock: &dyn Clock, telemetry: &Telemetry) -> Arc<Metrics> {
    let by_tenant = config.telemetry.tenant_metrics;
    let metrics = Metrics::with(clock.unix_seconds(), by_tenant, &telemetry.losses());
    Arc::new(metrics)
}

/// Begins to export.
pub(super) fn begin(
    telemetry: &mut Telemetry,
    config: &Config,
    replica: ReplicaId,
    outgoing: &Outgoing,
    metrics: &Arc<Metrics>,
) {
    let settings = &config.telemetry;
    // The operator names the collector, and it is mostly in the private network.
    let client = outgoing.client(Reach::Private, settings.otlp_timeout.0);
    let own = [
        ("service.name", settings.service_name.clone()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", replica.to_string()),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value));
    let more = settings.resource.clone();
    let identity: Identity = own.into_iter().chain(more).collect();
    telemetry.export(post(client), identity, metrics);
}

fn post(client: HttpClient) -> Post {
    Arc::new(move |request| {
        let client = client.clone();
        Box::pin(async move {
            send(&client, request)
                .await
                .map_err(|fault| fault.to_string())
        })
    })
}

async fn send(client: &HttpClient, request: Request<Bytes>) -> Result<Response<()>, OutgoingFault> {
    let (head, body) = request.into_parts();
    let target = Target::try_from(head.uri.to_string().as_str())?;
    let answer = client
        .send(head.method, target, head.headers, Some(body))
        .await?;
    let mut response = Response::new(());
    *response.headers_mut() = answer.headers().clone();
    if let Ok(status) = answer.status.try_into() {
        *response.status_mut() = status;
    }
    // What it says beside the status is of no use.
    let _ = answer.body(ANSWER).await;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_line_by_line() {
        let read = headers("Authorization: Bearer a:b\n\n x-scope : t1 \n").unwrap();
        assert_eq!(read["authorization"], "Bearer a:b");
        assert!(read["authorization"].is_sensitive());
        assert_eq!(read["x-scope"], "t1");
        for bad in ["no colon", "a b: c", "a: \u{7}"] {
            assert!(headers(bad).is_none(), "{bad:?}");
        }
    }
}
