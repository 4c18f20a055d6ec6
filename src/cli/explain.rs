//! `toolgate explain`: whether a tenant and role may use a tool, a resource or a
//! prompt, and why.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::app;
use crate::ids::{Role, Scope, TenantId};
use crate::tenancy::Subject;

/// `toolgate explain`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// The tenant.
    #[arg(long)]
    tenant: String,
    /// A role; may be given several times.
    #[arg(long)]
    role: Vec<String>,
    /// A scope of the token; may be given several times. Without any, every scope counts as held.
    #[arg(long)]
    scope: Vec<String>,
    #[command(flatten)]
    what: What,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What is asked about.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// A tool's exposed name.
    #[arg(long)]
    tool: Option<String>,
    /// A resource's URI, or a template as it is listed.
    #[arg(long)]
    resource: Option<String>,
    /// A prompt's exposed name.
    #[arg(long)]
    prompt: Option<String>,
}

impl What {
    fn subject(&self) -> (Subject, &str) {
        let given = [
            (Subject::Tools, &self.tool),
            (Subject::Resources, &self.resource),
            (Subject::Prompts, &self.prompt),
        ];
        let mut given = given.into_iter();
        let found = given.find_map(|(subject, name)| Some((subject, name.as_deref()?)));
        found.unwrap_or((Subject::Tools, ""))
    }
}

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let loaded = super::check::load(&options.config)?;
    let tenant = TenantId::new(options.tenant.as_str());
    let roles: Vec<Role> = options
        .role
        .iter()
        .map(|role| Role::new(role.as_str()))
        .collect();
    let scopes: BTreeSet<Scope> = options
        .scope
        .iter()
        .map(|scope| Scope::new(scope.as_str()))
        .collect();
    let scopes = (!scopes.is_empty()).then_some(&scopes);
    let explanation = {
        let (subject, name) = options.what.subject();
        app::explain(&loaded, &tenant, &roles, scopes, subject, name).await?
    };
    if options.json {
        println!("{}", serde_json::to_string(&explanation)?);
    } else {
        println!("{}", explanation.text);
    }
    Ok(if explanation.callable {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}
