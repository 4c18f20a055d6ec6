//! `toolgate sanitize`: JSON lines in, cleaned JSON lines out (design §9).

use std::io::{BufRead, BufWriter, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;

use crate::config::{Action, Sanitize};
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Json, JsonLimits, Untrusted};
use crate::sanitize::{Explanation, Findings, Sanitizer, Unclean, explain};

mod vectors;

pub(super) use vectors::failing_vectors;

/// `toolgate sanitize`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The configuration whose rules apply; the defaults without one.
    #[arg(long, short, requires = "tenant")]
    config: Option<PathBuf>,
    /// The tenant whose rules apply.
    #[arg(long, requires = "config")]
    tenant: Option<String>,
    /// The tool that the results come from, for exceptions that name tools.
    #[arg(long)]
    tool: Option<String>,
    /// Add to each finding where it was found, by what, what is done about it and which
    /// key decides. Never the value.
    #[arg(long)]
    explain: bool,
}

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let rules = rules(options)?;
    let sanitizer = Sanitizer::new();
    let mut out = BufWriter::new(stdout().lock());
    for (number, line) in (1_usize..).zip(stdin().lock().lines()) {
        let line = line.context("standard input cannot be read")?;
        if line.trim().is_empty() {
            continue;
        }
        let line = Json::parse(line.into_bytes().into(), &JsonLimits::UPSTREAM)
            .with_context(|| format!("line {number} is no JSON"))?;
        let answer = answer(&sanitizer, &line, &rules, options.explain);
        writeln!(out, "{}", answer.as_str())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn rules(options: &Options) -> anyhow::Result<Sanitize> {
    let (Some(path), Some(tenant)) = (&options.config, &options.tenant) else {
        return Ok(Sanitize::default());
    };
    let loaded = super::check::load(path)?;
    match loaded
        .config
        .tenants
        .iter()
        .find(|(id, _)| id.as_str() == tenant.as_str())
    {
        Some((_, tenant)) => Ok(tenant
            .sanitize
            .for_tool(options.tool.as_deref().unwrap_or_default())
            .into_owned()),
        None => bail!("the configuration has no tenant \"{tenant}\""),
    }
}

/// The line's answer: `{"id", "output", "findings"}`; `withheld` says why the output
/// is null.
fn answer(sanitizer: &Sanitizer, line: &Json, rules: &Sanitize, explains: bool) -> Json {
    let input = line.get("input").unwrap_or_else(Json::null);
    let mut rules = rules.clone();
    let asked = line
        .get("options")
        .and_then(|options| options.get("max_text_chars"))
        .and_then(|most| most.integer());
    if let Some(most) = asked.and_then(|most| usize::try_from(most).ok()) {
        rules.max_text = Some(most);
    }
    let row = ObjectBuilder::new().maybe("id", line.get("id").as_ref());
    match sanitizer.result(Untrusted::new(input), &rules) {
        Ok(clean) => row
            .json("output", clean.json())
            .json(
                "findings",
                &listed(clean.findings(), explains.then_some(&rules)),
            )
            .build(),
        Err(unclean) => {
            let reason = unclean.to_string();
            let findings = match unclean {
                Unclean::Blocked { findings, .. } => findings,
                Unclean::TooLarge { .. } => Findings::none(),
            };
            row.json("output", &Json::null())
                .json("findings", &listed(&findings, explains.then_some(&rules)))
                .text("withheld", &reason)
                .build()
        }
    }
}

/// The findings; explained where there are rules to explain them by.
fn listed(findings: &Findings, rules: Option<&Sanitize>) -> Json {
    let mut list = ArrayBuilder::new();
    if let Some(rules) = rules {
        for row in explain(findings, rules) {
            list.push(&explained(&row));
        }
        return list.build();
    }
    for (label, finding) in findings.iter() {
        let row = ObjectBuilder::new()
            .text("label", label)
            .integer("count", counted(finding.count));
        list.push(&row.build());
    }
    list.build()
}

fn counted(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn explained(row: &Explanation) -> Json {
    let mut places = ArrayBuilder::new();
    for place in &row.places {
        places.push(&Json::from_text(place));
    }
    let action = match row.action {
        Action::Redact if row.label == "prompt_injection" => "mark",
        Action::Redact => "redact",
        Action::Mask => "mask",
        Action::Flag => "flag",
        Action::Block => "block",
    };
    ObjectBuilder::new()
        .text("label", row.label)
        .integer("count", counted(row.count))
        .json("places", &places.build())
        .text("action", action)
        .text("decided_by", &row.decided_by)
        .text("why", row.why)
        .build()
}
