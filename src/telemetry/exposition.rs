//! The metrics as OTLP. They are recorded once, where Prometheus reads them; what
//! goes to a collector is made of the same exposition, so that both say the same and
//! a new metric is in both (as a collector's own Prometheus receiver would do it).
//!
//! Names and labels become those of the OpenTelemetry conventions.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Exemplar, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, exemplar, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::metrics::Metrics;
use super::names::field;
use crate::clock::{Clock as _, SystemClock};

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// Labels and what they are called in OTLP; others keep their names.
const ATTRIBUTES: [(&str, &str); 7] = [
    ("method", field::METHOD),
    ("tool", field::TOOL),
    ("upstream", field::UPSTREAM),
    ("tenant", field::TENANT),
    ("error_type", field::ERROR_TYPE),
    ("version", field::VERSION),
    ("transport", field::TRANSPORT),
];

/// Metrics of the process, whose names in the two worlds are not alike.
const PROCESS: [(&str, &str); 3] = [
    ("process_resident_memory", "process.memory.usage"),
    ("process_open_fds", "process.unix.file_descriptor.count"),
    ("process_cpu", "process.cpu.time"),
];

/// All metrics as they stand, as the message that a collector takes.
pub(super) fn request(metrics: &Metrics, resource: Vec<KeyValue>) -> ExportMetricsServiceRequest {
    let span = Span {
        start: metrics.started_nanos(),
        now: u64::try_from(SystemClock.now().unix_timestamp_nanos()).unwrap_or_default(),
    };
    let scope = InstrumentationScope {
        name: "toolgate".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let families = families(&metrics.render());
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: resource,
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics: families.iter().filter_map(|one| one.metric(span)).collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

/// From the process's start until now.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    now: u64,
}

/// One metric and its samples.
#[derive(Debug, Default)]
struct Family {
    name: String,
    help: String,
    kind: String,
    unit: String,
    samples: Vec<Sample>,
}

/// One line: what stands behind the family's name, labels, value, exemplar.
#[derive(Debug)]
struct Sample {
    suffix: String,
    labels: Vec<(String, String)>,
    value: String,
    exemplar: Option<(Vec<(String, String)>, String)>,
}

/// Reads an exposition of our own making (`OpenMetrics` 1.0).
fn families(text: &str) -> Vec<Family> {
    let mut all: Vec<Family> = Vec::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let mut words = about.splitn(3, ' ');
            let (what, name) = (words.next(), words.next().unwrap_or_default());
            let rest = words.next().unwrap_or_default().to_owned();
            if what == Some("HELP") {
                all.push(Family {
                    name: name.to_owned(),
                    help: rest,
                    ..Family::default()
                });
            } else if let Some(family) = all.last_mut() {
                match what {
                    Some("TYPE") => family.kind = rest,
                    Some("UNIT") => family.unit = rest,
                    _ => {}
                }
            }
        } else if let Some(family) = all.last_mut() {
            let sample = sample(line, &family.name);
            family.samples.extend(sample);
        }
    }
    all
}

fn sample(line: &str, family: &str) -> Option<Sample> {
    let rest = line.strip_prefix(family)?;
    let end = rest.find(['{', ' '])?;
    let (suffix, rest) = rest.split_at_checked(end)?;
    let (labels, rest) = labels(rest)?;
    let (value, rest) = match rest.trim_start().split_once(" # ") {
        Some((value, exemplar)) => (value, Some(exemplar)),
        None => (rest.trim(), None),
    };
    let exemplar = rest.and_then(|rest| {
        let (labels, rest) = self::labels(rest)?;
        let value = rest.split_whitespace().next()?;
        Some((labels, value.to_owned()))
    });
    Some(Sample {
        suffix: suffix.to_owned(),
        labels,
        value: value.to_owned(),
        exemplar,
    })
}

/// `{a="b",c="d"}`, if it stands there, and what follows.
fn labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let Some(mut rest) = text.strip_prefix('{') else {
        return Some((Vec::new(), text));
    };
    let mut all = Vec::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((all, rest));
        }
        let (name, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = behind.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        all.push((name.trim_start_matches(',').to_owned(), value));
        rest = behind.get(end + 1..)?;
    }
}

impl Family {
    fn metric(&self, span: Span) -> Option<Metric> {
        let suffix = format!("_{}", self.unit);
        let base = self.name.strip_suffix(&suffix).unwrap_or(&self.name);
        let data = match self.kind.as_str() {
            "counter" => Data::Sum(Sum {
                data_points: self.numbers(span, base),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            "gauge" => Data::Gauge(Gauge {
                data_points: self.numbers(span, base),
            }),
            "histogram" => Data::Histogram(Histogram {
                data_points: self.distributions(span, base),
                aggregation_temporality: CUMULATIVE,
            }),
            _ => return None,
        };
        Some(Metric {
            name: name_of(base)?,
            description: self.help.trim_end_matches('.').to_owned(),
            unit: match self.unit.as_str() {
                "seconds" => "s",
                "bytes" => "By",
                other => other,
            }
            .to_owned(),
            data: Some(data),
            ..Metric::default()
        })
    }

    fn numbers(&self, span: Span, base: &str) -> Vec<NumberDataPoint> {
        let point = |sample: &Sample| {
            let value = match sample.value.parse::<i64>() {
                Ok(whole) => number_data_point::Value::AsInt(whole),
                Err(_) => number_data_point::Value::AsDouble(sample.value.parse().ok()?),
            };
            Some(NumberDataPoint {
                attributes: attributes(base, &sample.labels),
                start_time_unix_nano: span.start,
                time_unix_nano: span.now,
                value: Some(value),
                ..NumberDataPoint::default()
            })
        };
        self.samples.iter().filter_map(point).collect()
    }

    fn distributions(&self, span: Span, base: &str) -> Vec<HistogramDataPoint> {
        let mut points: BTreeMap<Vec<(String, String)>, HistogramDataPoint> = BTreeMap::new();
        for sample in &self.samples {
            let (bound, own): (Vec<_>, Vec<_>) = sample
                .labels
                .iter()
                .cloned()
                .partition(|(name, _)| name == "le");
            let point = points
                .entry(own)
                .or_insert_with_key(|own| HistogramDataPoint {
                    attributes: attributes(base, own),
                    start_time_unix_nano: span.start,
                    time_unix_nano: span.now,
                    ..HistogramDataPoint::default()
                });
            match sample.suffix.as_str() {
                "_sum" => point.sum = sample.value.parse().ok(),
                "_count" => point.count = sample.value.parse().unwrap_or(0),
                "_bucket" => {
                    let before: u64 = point.bucket_counts.iter().sum();
                    let upto = sample.value.parse::<u64>().unwrap_or(before);
                    point.bucket_counts.push(upto.saturating_sub(before));
                    let bound = bound.first().and_then(|(_, text)| text.parse::<f64>().ok());
                    // The last bucket has no bound in OTLP.
                    point
                        .explicit_bounds
                        .extend(bound.filter(|bound| bound.is_finite()));
                    let exemplar = sample.exemplar.as_ref();
                    point
                        .exemplars
                        .extend(exemplar.and_then(|one| shown(one, span)));
                }
                _ => {}
            }
        }
        points.into_values().collect()
    }
}

fn shown((labels, value): &(Vec<(String, String)>, String), span: Span) -> Option<Exemplar> {
    let id = |name: &str, bytes: usize| {
        let (_, digits) = labels.iter().find(|(label, _)| label == name)?;
        let id = u128::from_str_radix(digits, 16).ok()?.to_be_bytes();
        id.get(16 - bytes..).map(<[u8]>::to_vec)
    };
    Some(Exemplar {
        time_unix_nano: span.now,
        trace_id: id("trace_id", 16)?,
        span_id: id("span_id", 8)?,
        value: Some(exemplar::Value::AsDouble(value.parse().ok()?)),
        ..Exemplar::default()
    })
}

/// `mcp_server_operation_duration` → `mcp.server.operation.duration`; what is ours
/// has its namespace set off.
fn name_of(base: &str) -> Option<String> {
    if base == "process_start_time" {
        // Every point says so already.
        return None;
    }
    let known = PROCESS.iter().find(|(name, _)| *name == base);
    Some(match known {
        Some((_, name)) => (*name).to_owned(),
        None if base.starts_with("mcp_") => base.replace('_', "."),
        None => base.replacen('_', ".", 1),
    })
}

fn attributes(base: &str, labels: &[(String, String)]) -> Vec<KeyValue> {
    let mut all: Vec<KeyValue> = Vec::with_capacity(labels.len() + 3);
    for (name, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
        let known = ATTRIBUTES.iter().find(|(label, _)| label == name);
        all.push(text(known.map_or(name.as_str(), |(_, key)| key), value));
        match name.as_str() {
            "error_type" if value.parse::<i64>().is_ok() => {
                all.push(text(field::RPC_STATUS, value));
            }
            "method" if value == "tools/call" => {
                all.push(text(field::OPERATION, field::EXECUTE_TOOL));
            }
            _ => {}
        }
    }
    if base.starts_with("mcp_server_") {
        all.push(text(field::TRANSPORT, "tcp"));
        all.push(text(field::PROTOCOL, "http"));
    }
    all
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Metrics;

    const TEXT: &str = "\
# HELP toolgate_calls Calls by how they ended.
# TYPE toolgate_calls counter
toolgate_calls_total{upstream=\"a\\\"b\\\\c\",tool=\"\",outcome=\"ok\"} 3
# HELP mcp_server_operation_duration_seconds How long MCP requests took.
# TYPE mcp_server_operation_duration_seconds histogram
# UNIT mcp_server_operation_duration_seconds seconds
mcp_server_operation_duration_seconds_sum{method=\"tools/call\",error_type=\"-32602\"} 1.5
mcp_server_operation_duration_seconds_count{method=\"tools/call\",error_type=\"-32602\"} 3
mcp_server_operation_duration_seconds_bucket{le=\"0.1\",method=\"tools/call\",error_type=\"-32602\"} 1 # {trace_id=\"0af7651916cd43dd8448eb211c80319c\",span_id=\"00f067aa0ba902b7\"} 0.05 1700000000.5
mcp_server_operation_duration_seconds_bucket{le=\"1.0\",method=\"tools/call\",error_type=\"-32602\"} 3
mcp_server_operation_duration_seconds_bucket{le=\"+Inf\",method=\"tools/call\",error_type=\"-32602\"} 3
# HELP process_cpu_seconds CPU.
# TYPE process_cpu_seconds counter
# UNIT process_cpu_seconds seconds
process_cpu_seconds_total 1.25
# EOF
";

    fn converted(text: &str) -> Vec<Metric> {
        let span = Span { start: 1, now: 2 };
        let families = families(text);
        families.iter().filter_map(|one| one.metric(span)).collect()
    }

    fn said(attributes: &[KeyValue]) -> Vec<(String, String)> {
        let value = |one: &KeyValue| match one.value.clone().unwrap().value.unwrap() {
            Value::StringValue(text) => text,
            other => panic!("{other:?}"),
        };
        attributes
            .iter()
            .map(|one| (one.key.clone(), value(one)))
            .collect()
    }

    #[test]
    fn counters_histograms_and_their_exemplars_are_converted() {
        let metrics = converted(TEXT);
        let names: Vec<_> = metrics
            .iter()
            .map(|one| (one.name.as_str(), one.unit.as_str()))
            .collect();
        assert_eq!(
            names,
            [
                ("toolgate.calls", ""),
                ("mcp.server.operation.duration", "s"),
                ("process.cpu.time", "s")
            ]
        );
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!()
        };
        assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE);
        let point = &sum.data_points[0];
        assert_eq!(point.value, Some(number_data_point::Value::AsInt(3)));
        assert_eq!(
            said(&point.attributes),
            [
                ("upstream.id".to_owned(), "a\"b\\c".to_owned()),
                ("outcome".to_owned(), "ok".to_owned())
            ]
        );
        let Some(Data::Histogram(histogram)) = &metrics[1].data else {
            panic!()
        };
        let point = &histogram.data_points[0];
        assert_eq!(point.explicit_bounds, [0.1, 1.0]);
        assert_eq!(point.bucket_counts, [1, 2, 0]);
        assert_eq!((point.count, point.sum), (3, Some(1.5)));
        assert_eq!(point.exemplars[0].trace_id[0], 0x0a);
        assert_eq!(point.exemplars[0].span_id.len(), 8);
        let attributes = said(&point.attributes);
        for (key, value) in [
            ("mcp.method.name", "tools/call"),
            ("error.type", "-32602"),
            ("rpc.response.status_code", "-32602"),
            ("gen_ai.operation.name", "execute_tool"),
            ("network.transport", "tcp"),
        ] {
            assert!(
                attributes.contains(&(key.to_owned(), value.to_owned())),
                "{key}"
            );
        }
    }

    #[test]
    fn everything_that_a_scrape_shows_is_exported() {
        let metrics = Metrics::new(1_700_000_000);
        let families = families(&metrics.render()).len();
        let request = request(&metrics, Vec::new());
        let sent = &request.resource_metrics[0].scope_metrics[0].metrics;
        assert_eq!(sent.len() + 1, families, "all but the start time");
        assert!(sent.iter().all(|one| one.name.contains('.')), "{sent:#?}");
    }
}
