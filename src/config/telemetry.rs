//! `telemetry`: logs, and what goes to an OpenTelemetry collector.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Deserialize;

use super::Interval;
use super::check::Check;
use super::fault::nearest;

/// `telemetry`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Least severe log line: a `tracing` filter such as `info` or `toolgate=debug`.
    pub log_filter: String,
    /// One JSON object a line, or text for people.
    pub log_format: LogFormat,
    /// The collector's base URL (OTLP over HTTP); nothing is exported without it.
    pub otlp_endpoint: Option<String>,
    /// Headers for the collector, one `Name: value` a line.
    pub otlp_headers_file: Option<PathBuf>,
    /// How long one request to the collector may take.
    pub otlp_timeout: Interval,
    /// What is exported.
    pub otlp_signals: Vec<Signal>,
    /// Time between two exports of the metrics.
    pub metrics_interval: Interval,
    /// Share of the traces that are kept where the caller has not decided, from 0 to 1.
    pub sampling_ratio: f64,
    /// Whether calls are counted by tenant too.
    pub tenant_metrics: bool,
    /// `service.name`
    pub service_name: String,
    /// More attributes of what is exported, such as `deployment.environment.name`.
    pub resource: IndexMap<String, String>,
}

/// Of `telemetry.otlp_signals`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Spans.
    Traces,
    /// What `/metrics` shows.
    Metrics,
    /// Log lines.
    Logs,
}

/// `telemetry.log_format`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// For a terminal.
    Text,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            log_filter: "info".to_owned(),
            log_format: LogFormat::Json,
            otlp_endpoint: None,
            otlp_headers_file: None,
            otlp_timeout: Interval::seconds(10),
            otlp_signals: vec![Signal::Traces, Signal::Metrics, Signal::Logs],
            metrics_interval: Interval::seconds(30),
            sampling_ratio: 1.0,
            tenant_metrics: false,
            service_name: "toolgate".to_owned(),
            resource: IndexMap::new(),
        }
    }
}

impl Telemetry {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.within("log_filter", |check| {
            for directive in self.log_filter.split(',') {
                validate_directive(directive.trim(), check);
            }
        });
        if let Some(endpoint) = &self.otlp_endpoint {
            check.within("otlp_endpoint", |check| {
                let url = check.url(endpoint, "http://collector.example.com:4318");
                if url.is_some_and(|url| url.query) {
                    check.fault("has a query (`?…`)", "remove what follows `?`");
                }
            });
        }
        check.lasting("otlp_timeout", self.otlp_timeout);
        check.lasting("metrics_interval", self.metrics_interval);
        if !(0.0..=1.0).contains(&self.sampling_ratio) {
            check.within("sampling_ratio", |check| {
                check.fault("is no share", "write a number from 0 to 1, such as `0.1`");
            });
        }
        self.validate_resource(check);
    }

    fn validate_resource(&self, check: &mut Check<'_>) {
        check.within("resource", |check| {
            for key in self.resource.keys() {
                if matches!(
                    key.as_str(),
                    "service.name" | "service.version" | "service.instance.id"
                ) {
                    check.within(key, |check| {
                        check.key_fault(
                            "is Toolgate's own to say",
                            "remove it; `telemetry.service_name` names the service",
                        );
                    });
                }
            }
        });
    }
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A level, a target, or `target=level`. A misspelt level would be taken for a
/// target, and switch everything else off.
fn validate_directive(directive: &str, check: &mut Check<'_>) {
    let level = |word: &str| LEVELS.contains(&word.to_ascii_lowercase().as_str());
    let is_wrong = match directive.rsplit_once('=') {
        Some((target, word)) => target.is_empty() || !level(word),
        None => directive.is_empty() || (!level(directive) && nearest(directive, LEVELS).is_some()),
    };
    if is_wrong {
        check.fault(
            "is no log filter",
            "write a level (off, error, warn, info, debug, trace), or `target=level`, separated by commas",
        );
    }
}
