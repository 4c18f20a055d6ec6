//! Reads JSON lines `{"id": …, "input": <result>}` and writes what the sanitizer
//! makes of them: `{"id": …, "output": …, "findings": […]}`. For scoring.

#![expect(
    clippy::print_stdout,
    reason = "its output is what this program is for"
)]

use std::io::{BufRead, stdin};

use toolgate::config::Sanitize;
use toolgate::protocol::json::{ArrayBuilder, ObjectBuilder};
use toolgate::protocol::{Json, JsonLimits, Untrusted};
use toolgate::sanitize::{Findings, Sanitizer};

fn listed(findings: &Findings) -> Json {
    let mut list = ArrayBuilder::new();
    for (label, finding) in findings.iter() {
        let count = i64::try_from(finding.count).unwrap_or(i64::MAX);
        let row = ObjectBuilder::new()
            .text("label", label)
            .integer("count", count);
        list.push(&row.build());
    }
    list.build()
}

fn main() -> anyhow::Result<()> {
    let sanitizer = Sanitizer::new();
    let rules = Sanitize::default();
    for line in stdin().lock().lines() {
        let line = Json::parse(line?.into_bytes().into(), &JsonLimits::UPSTREAM)?;
        let input = line.get("input").unwrap_or_else(Json::null);
        let (output, findings) = match sanitizer.result(Untrusted::new(input), &rules) {
            Ok(clean) => (clean.json().clone(), clean.findings().clone()),
            Err(_) => (Json::null(), Findings::none()),
        };
        let row = ObjectBuilder::new()
            .maybe("id", line.get("id").as_ref())
            .json("output", &output)
            .json("findings", &listed(&findings));
        println!("{}", row.build().as_str());
    }
    Ok(())
}
