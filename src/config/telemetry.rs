//! `telemetry`: logs.

use serde::Deserialize;

use super::check::Check;
use super::fault::nearest;

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

impl Telemetry {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.within("log_filter", |check| {
            for directive in self.log_filter.split(',') {
                validate_directive(directive.trim(), check);
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
