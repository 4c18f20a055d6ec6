//! What cleaning costs: clean, dirty and hostile JSON of several sizes, bytes in to
//! bytes out on one core, beside a plain set of expressions.

#![expect(
    clippy::disallowed_methods,
    reason = "which lines are measured comes by the environment"
)]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use toolgate::config::Sanitize;
use toolgate::protocol::{Json, JsonLimits, Untrusted};
use toolgate::sanitize::Sanitizer;

/// A row of a list as an API returns it, without anything to find.
fn row(number: usize) -> String {
    format!(
        r#"{{"id":{number},"node_id":"MDEwOlJlcG9zaXRvcnkx{number}","name":"service-{number}","full_name":"acme/service-{number}","private":false,"html_url":"https://github.com/acme/service-{number}","description":"Reads orders, writes invoices; see docs/guide.md","created_at":"2026-05-15T15:20:41Z","sha":"ecd34ac26384ba13d09cf0ae32a5ee89e04e65f7","language":"Rust","open_issues":{number},"default_branch":"main"}}"#
    )
}

/// A result of about `bytes`; every `every`th row holds a secret and an escape.
fn result(bytes: usize, every: Option<usize>) -> Json {
    let mut rows = String::new();
    let mut number = 0;
    while rows.len() < bytes {
        if number > 0 {
            rows.push(',');
        }
        rows.push_str(&row(number));
        if every.is_some_and(|every| number % every == 0) {
            // Writing to a String does not fail.
            let _ = write!(
                rows,
                r#",{{"log":"\u001b[31mDB_PASSWORD=hunter{number}\u001b[0m postgres://app:s3cr{number}t@db/x"}}"#
            );
        }
        number += 1;
    }
    let text =
        format!(r#"{{"content":[],"structuredContent":{{"rows":[{rows}]}},"isError":false}}"#);
    Json::parse(text.into(), &JsonLimits::UPSTREAM).unwrap_or_else(|_| Json::null())
}

/// The same rows as a text block that holds JSON.
fn mirrored(bytes: usize) -> Json {
    let rows = result(bytes, None);
    let block = Json::from_text(rows.as_str());
    let text = format!(
        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
        block.as_str()
    );
    Json::parse(text.into(), &JsonLimits::UPSTREAM).unwrap_or_else(|_| Json::null())
}

fn cleaning(criterion: &mut Criterion) {
    let sanitizer = Sanitizer::new();
    let rules = Sanitize::default();
    let mut group = criterion.benchmark_group("sanitize");
    for size in [1 << 10, 10 << 10, 1 << 20] {
        for (name, json) in [
            ("clean", result(size, None)),
            ("mirrored", mirrored(size)),
            ("sparse", result(size, Some(100))),
            ("dense", result(size, Some(1))),
        ] {
            let bytes = u64::try_from(json.as_str().len()).unwrap_or(u64::MAX);
            group.throughput(Throughput::Bytes(bytes));
            group.bench_with_input(BenchmarkId::new(name, size), &json, |bencher, json| {
                bencher.iter(|| black_box(sanitizer.result(Untrusted::new(json.clone()), &rules)));
            });
        }
    }
    group.finish();
}

/// Text in a rule's own alphabet, without end.
fn hostile(criterion: &mut Criterion) {
    let sanitizer = Sanitizer::new();
    let rules = Sanitize::default();
    let mut group = criterion.benchmark_group("hostile");
    group.sample_size(10);
    for piece in [
        "eyJ",
        "password=",
        "Bearer ",
        "://a:b@",
        "AKIA",
        "sk-ant-api03-",
        "%40",
        "&#64;",
        "a b ",
        "4 1",
        "cookie: a=b;",
        "-----BEGIN PRIVATE KEY-----",
        "MDEw",
    ] {
        let text = Json::from_text(&piece.repeat((1 << 20) / piece.len()));
        let json = format!(
            r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
            text.as_str()
        );
        let json = Json::parse(json.into(), &JsonLimits::UPSTREAM).unwrap_or_else(|_| Json::null());
        let bytes = u64::try_from(json.as_str().len()).unwrap_or(u64::MAX);
        group.throughput(Throughput::Bytes(bytes));
        group.bench_with_input(
            BenchmarkId::from_parameter(piece),
            &json,
            |bencher, json| {
                bencher.iter(|| black_box(sanitizer.result(Untrusted::new(json.clone()), &rules)));
            },
        );
    }
    group.finish();
}

/// Patterns as scanners write them: the same job by one set of expressions.
const PATTERNS: &[&str] = &[
    r"gh[pousr]_[A-Za-z0-9]{36}",
    r"github_pat_\w{22}_\w{59}",
    r"glpat-[\w-]{20}",
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    r"AIza[\w-]{35}",
    r"GOCSPX-[\w-]{28}",
    r"xox[abeprs]-[0-9A-Za-z-]{20,}",
    r"hooks\.slack\.com/services/T\w{8,}/B\w{8,}/\w{20,}",
    r"[sr]k_(?:live|test)_\w{16,}",
    r"sk-ant-\w+-[\w-]{80,}",
    r"sk-proj-[\w-]{40,}",
    r"hf_[A-Za-z]{34}",
    r"npm_\w{36}",
    r"pypi-AgEI[\w-]{40,}",
    r"SG\.[\w-]{22}\.[\w-]{43}",
    r"\bSK[0-9a-f]{32}\b",
    r"dop_v1_[0-9a-f]{64}",
    r"hvs\.[\w-]{20,}",
    r"dapi[0-9a-f]{32}",
    r"shp(?:at|ca|pa|ss)_[0-9a-f]{32}",
    r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"://[^\s/:@]+:[^\s/@]+@",
    r#"(?i)(?:password|passwd|pwd|secret|token|api[_-]?key)["']?\s*[:=]\s*["']?[^\s"']{6,}"#,
    r"(?i)bearer\s+[\w.~+/-]{16,}",
    r"[\w.+-]+@[\w-]+\.[\w.-]+",
    r"\b(?:\d[ -]?){13,19}\b",
    r"\b\d{3}-\d{2}-\d{4}\b",
    r"\b[A-Z]{2}\d{2}[A-Z0-9]{11,30}\b",
    r"\+\d[\d ().-]{8,16}\d",
    r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
    r"[\x00-\x08\x0b-\x1f\x7f]",
    r"[\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}\u{e0000}-\u{e007f}]",
    r"!\[[^\]]*\]\([^)]*\)",
    r"(?i)<(?:script|img|iframe|style)\b",
];

/// The same texts by one `RegexSet`, which only says which patterns match.
fn expressions(criterion: &mut Criterion) {
    let Ok(set) = regex::RegexSet::new(PATTERNS) else {
        return;
    };
    let mut group = criterion.benchmark_group("regex_set");
    group.sample_size(10);
    for (name, json) in [
        ("clean", result(1 << 20, None)),
        ("dense", result(1 << 20, Some(1))),
    ] {
        let bytes = u64::try_from(json.as_str().len()).unwrap_or(u64::MAX);
        group.throughput(Throughput::Bytes(bytes));
        group.bench_with_input(BenchmarkId::from_parameter(name), &json, |bencher, json| {
            bencher.iter(|| black_box(set.matches(json.as_str())));
        });
    }
    group.finish();
}

/// Lines of a file as `toolgate sanitize` reads them, where `SANITIZE_LINES` names
/// one: for material that is not ours to ship.
fn lines(criterion: &mut Criterion) {
    let Some(file) = std::env::var_os("SANITIZE_LINES") else {
        return;
    };
    let text = std::fs::read(file).unwrap_or_default();
    let inputs: Vec<Json> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| Json::parse(line.to_vec().into(), &JsonLimits::UPSTREAM).ok())
        .filter_map(|line| line.get("input"))
        .collect();
    let bytes: usize = inputs.iter().map(|json| json.as_str().len()).sum();
    let sanitizer = Sanitizer::new();
    let rules = Sanitize::default();
    let mut group = criterion.benchmark_group("lines");
    group.throughput(Throughput::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)));
    group.bench_function("all", |bencher| {
        bencher.iter(|| {
            for json in &inputs {
                let _ = black_box(sanitizer.result(Untrusted::new(json.clone()), &rules));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, cleaning, hostile, expressions, lines);
criterion_main!(benches);
