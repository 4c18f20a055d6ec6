//! `telemetry`: logs.

use serde::Deserialize;

/// `telemetry`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Least severe log line: a `tracing` filter such as `info` or `toolgate=debug`.
    pub log_filter: String,
    /// One JSON object a line, or text for people.
    pub log_format: LogFormat,
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
        }
    }
}
