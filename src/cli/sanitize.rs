//! `toolgate sanitize`: what the rules make of results, without a server.

use std::io::{BufRead, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use super::check;
use crate::config::{Action, Sanitize, SanitizeVector};
use crate::ids::TenantId;
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Json, JsonLimits, Untrusted};
use crate::sanitize::{Explanation, Findings, Sanitizer, explain};

/// `toolgate sanitize`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The configuration file. Without one the defaults hold.
    #[arg(long, short)]
    config: Option<PathBuf>,
    /// Whose rules. Needed with a configuration that has several tenants.
    #[arg(long, requires = "config")]
    tenant: Option<String>,
    /// The tool that the results come from, for exceptions that name tools.
    #[arg(long)]
    tool: Option<String>,
    /// Says what was found, where, by what and what is done about it, in place of the
    /// output. Never the value.
    #[arg(long)]
    explain: bool,
}

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let rules = rules(options)?;
    let rules = rules.for_tool(options.tool.as_deref().unwrap_or_default());
    let sanitizer = Sanitizer::new();
    for (number, line) in stdin().lock().lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let row = Json::parse(line.into_bytes().into(), &JsonLimits::UPSTREAM)
            .with_context(|| format!("line {} is no JSON", number + 1))?;
        let input = row.get("input").unwrap_or_else(Json::null);
        let (output, findings, withheld) = match sanitizer.result(Untrusted::new(input), &rules) {
            Ok(clean) => (clean.json().clone(), clean.findings().clone(), None),
            Err(unclean) => (Json::null(), unclean.findings(), Some(unclean.to_string())),
        };
        if options.explain {
            print!(
                "{}",
                explained(&row, &findings, &rules, withheld.as_deref())
            );
        } else {
            let row = ObjectBuilder::new()
                .maybe("id", row.get("id").as_ref())
                .json("output", &output)
                .json("findings", &listed(&findings));
            println!("{}", row.build().as_str());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn rules(options: &Options) -> anyhow::Result<Sanitize> {
    let Some(path) = &options.config else {
        return Ok(Sanitize::default());
    };
    let config = check::load(path)?.config;
    let tenant = match &options.tenant {
        Some(tenant) => config.tenants.get(&TenantId::new(tenant.as_str())),
        None if config.tenants.len() == 1 => config.tenants.values().next(),
        None => bail!("say whose rules: --tenant"),
    };
    tenant
        .map(|tenant| tenant.sanitize.clone())
        .context("the configuration has no such tenant")
}

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

/// A line for each kind that was found.
fn explained(row: &Json, findings: &Findings, rules: &Sanitize, withheld: Option<&str>) -> String {
    let mut out = String::new();
    if let Some(id) = row.get("id") {
        out.push_str(id.as_str());
        out.push('\n');
    }
    for row in explain(findings, rules) {
        out.push_str(&line(&row));
    }
    if findings.is_empty() {
        out.push_str("  nothing found\n");
    }
    if let Some(withheld) = withheld {
        out.push_str(&format!("  {withheld}\n"));
    }
    out
}

fn line(row: &Explanation) -> String {
    let does = match row.action {
        Action::Redact if row.label == "prompt_injection" => "marked",
        Action::Redact => "redacted",
        Action::Mask => "masked",
        Action::Flag => "counted",
        Action::Block => "the answer is withheld",
    };
    format!(
        "  {} x{} at {}: {} (by `{}`), because of {}\n",
        row.label,
        row.count,
        row.places.join(", "),
        does,
        row.decided_by,
        row.why
    )
}

/// What the vectors of a tenant's rules say, one line for each that fails.
pub(super) fn failing_vectors(rules: &Sanitize) -> Vec<String> {
    let sanitizer = Sanitizer::new();
    (0..)
        .zip(&rules.vectors)
        .filter_map(|(number, vector): (usize, _)| {
            let fault = fault(&sanitizer, vector, rules)?;
            Some(format!("vectors[{number}]: {fault}"))
        })
        .collect()
}

fn fault(sanitizer: &Sanitizer, vector: &SanitizeVector, rules: &Sanitize) -> Option<String> {
    let text = Json::from_text(&vector.text);
    let result = match &vector.key {
        Some(key) => ObjectBuilder::new().json(
            "structuredContent",
            &ObjectBuilder::new().json(key, &text).build(),
        ),
        None => {
            let block = ObjectBuilder::new()
                .text("type", "text")
                .json("text", &text);
            let mut content = ArrayBuilder::new();
            content.push(&block.build());
            ObjectBuilder::new().json("content", &content.build())
        }
    };
    let result = result.boolean("isError", vector.is_error).build();
    let (json, findings) = match sanitizer.result(Untrusted::new(result), rules) {
        Ok(clean) => (Some(clean.json().clone()), clean.findings().clone()),
        Err(unclean) => (None, unclean.findings()),
    };
    let found: Vec<&str> = findings.iter().map(|(label, _)| label).collect();
    let mut expected: Vec<&str> = vector.finds.iter().map(String::as_str).collect();
    expected.sort_unstable();
    if found != expected {
        return Some(format!("finds {found:?}, not {expected:?}"));
    }
    let becomes = vector.becomes.as_ref()?;
    let text = json.and_then(|json| match &vector.key {
        Some(key) => text_of(&json.get("structuredContent")?.get(key)?),
        None => text_of(&json.get("content")?.elements().next()?.get("text")?),
    });
    (text.as_deref() != Some(becomes.as_str()))
        .then(|| "becomes another text than `becomes` says".to_owned())
}

fn text_of(json: &Json) -> Option<String> {
    Some(json.string()?.into_owned())
}
