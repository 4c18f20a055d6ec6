//! `toolgate grants`: who has let which apps in, and ending that.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

use crate::app;
use crate::ids::{ClientId, Subject, TenantId};

/// `toolgate grants`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Lists the grants of a tenant.
    ///
    /// Example: toolgate grants list --config toolgate.yaml --tenant acme
    List(Which),
    /// Ends grants: their refresh tokens at once, their access tokens on every replica
    /// within a second. Exit code 1: there was none.
    ///
    /// Example: toolgate grants revoke --config toolgate.yaml --tenant acme --client dyn-0123
    Revoke(Which),
}

/// Which grants.
#[derive(Debug, Args)]
pub(super) struct Which {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
    /// Of this tenant.
    #[arg(long)]
    tenant: String,
    /// Only this subject (`sub` of the gateway's own tokens, as in the audit).
    #[arg(long)]
    subject: Option<String>,
    /// Only this client.
    #[arg(long)]
    client: Option<String>,
    /// Only this grant.
    #[arg(long)]
    grant: Option<Uuid>,
    /// All of the tenant's. Needed to revoke without saying which.
    #[arg(long)]
    all: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let (which, end) = match command {
        Command::List(which) => (which, false),
        Command::Revoke(which) => (which, true),
    };
    if end
        && !which.all
        && which.subject.is_none()
        && which.client.is_none()
        && which.grant.is_none()
    {
        bail!("say which: --subject, --client, --grant, or --all");
    }
    let loaded = super::check::load(&which.config)?;
    let authorization = app::Authorization::open(&loaded).await?;
    let tenant = TenantId::from(which.tenant.as_str());
    let subject = which.subject.as_deref().map(Subject::from);
    let client = which.client.as_deref().map(ClientId::from);
    let mut grants = authorization
        .grants(&tenant, subject.as_ref(), client.as_ref())
        .await?;
    grants.retain(|grant| which.grant.is_none_or(|id| id == grant.grant_id));
    for grant in &grants {
        if end {
            authorization
                .revoke(&loaded, &tenant, grant.grant_id)
                .await?;
        }
        if which.json {
            let line = json!({
                "grant": grant.grant_id.to_string(), "tenant": grant.tenant,
                "subject": grant.subject, "client": grant.client_id,
                "client_name": grant.client_name, "scopes": grant.scopes,
                "created_at": grant.created_at.to_string(), "used_at": grant.used_at.to_string(),
                "revoked": end,
            });
            println!("{line}");
        } else {
            let word = if end { "Revoked" } else { "Grant" };
            println!(
                "{word} {} of {} for {} ({}), last used {}",
                grant.grant_id, grant.subject, grant.client_name, grant.client_id, grant.used_at
            );
        }
    }
    if grants.is_empty() && !which.json {
        println!("There is no such grant.");
    }
    Ok(if end && grants.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
