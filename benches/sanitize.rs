//! What cleaning costs: clean and dirty JSON of several sizes, bytes in to bytes
//! out on one core.

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

criterion_group!(benches, cleaning);
criterion_main!(benches);
