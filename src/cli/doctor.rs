//! `toolgate doctor URL`: walks a sign-in as a client would, for this server or any
//! other, and says in plain words what a client would stumble over. Without a URL:
//! what a configuration rests on ([`deployment`]).
//!
//! The walk keeps to the order of the MCP authorization page: challenge, protected
//! resource metadata (RFC 9728), authorization server metadata (RFC 8414),
//! registration (RFC 7591 or a metadata document), authorization code with PKCE,
//! token, tools. What a step finds goes into the [`Report`]; only what makes the
//! next step impossible ends the walk. A machine gets its token without a person: with
//! `--machine` or an assertion the walk is the same from there on.

mod authorize;
mod challenge;
mod deployment;
mod documents;
mod endpoint;
mod loopback;
mod machine;
mod registration;
mod report;
mod token;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use report::{Report, Subject};
use web::Web;

/// `toolgate doctor`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The MCP endpoint, such as <https://tools.example.com/mcp>. Without it the
    /// deployment is looked at from within: database, keys, Redis, identity providers,
    /// upstreams, telemetry.
    url: Option<String>,
    /// The deployment's configuration file, where no URL is given.
    #[arg(long, short, default_value = "toolgate.yaml", conflicts_with = "url")]
    config: PathBuf,
    /// What clients call the endpoint, where that is another URL than the one asked
    /// (from within a cluster): its documents have to name this one.
    #[arg(long, requires = "url")]
    public_url: Option<String>,
    /// Only reads: registers no client and asks for no authorization.
    #[arg(long, requires = "url")]
    read_only: bool,
    /// Goes on through a browser: prints the URL to open, waits for its return, fetches
    /// a token, lists the tools and refreshes once.
    #[arg(long, requires = "url", conflicts_with = "read_only")]
    sign_in: bool,
    /// A client that is registered already; without it one is registered.
    #[arg(long, requires = "url")]
    client_id: Option<String>,
    /// File with that client's secret.
    #[arg(long, requires = "client_id")]
    client_secret_file: Option<PathBuf>,
    #[command(flatten)]
    machine: machine::Options,
    /// Port of the redirect URI, where the client's is fixed.
    #[arg(long, default_value_t = 0)]
    callback_port: u16,
    /// Certificates to trust besides the public ones (PEM).
    #[arg(long, requires = "url")]
    ca_file: Option<PathBuf>,
    /// Seconds to wait for each answer.
    #[arg(long, default_value_t = 10)]
    timeout: u64,
    /// Seconds to wait for the browser.
    #[arg(long, default_value_t = 300)]
    patience: u64,
    /// One JSON object a finding.
    #[arg(long)]
    json: bool,
}

/// What is known of the server as the walk goes on.
#[derive(Debug, Default)]
struct Known {
    /// The resource that tokens are asked for (RFC 8707).
    resource: String,
    /// Scopes of the challenge, else of the metadata.
    scopes: Option<String>,
    /// The authorization server's own document.
    server: serde_json::Map<String, serde_json::Value>,
    /// Its issuer.
    issuer: String,
    /// Whether that is a guess: there is no document that names it.
    guessed: bool,
}

impl Known {
    /// Whether the metadata says that the issuer is in each answer (RFC 9207 §3).
    fn promises_iss(&self) -> bool {
        self.server
            .get("authorization_response_iss_parameter_supported")
            .and_then(serde_json::Value::as_bool)
            == Some(true)
    }
}

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let patience = Duration::from_secs(options.timeout);
    let Some(url) = &options.url else {
        let loaded = super::check::load(&options.config)?;
        let mut report = Report::new(Subject::Deployment, options.json);
        deployment::look(&loaded, patience, &mut report).await?;
        return Ok(report.finish());
    };
    let web = Web::new(options.ca_file.clone(), patience)?;
    let mut report = Report::new(Subject::SignIn, options.json);
    // A step that cannot be gone says why in the report.
    let _ = walk(&web, url, &options, &mut report).await;
    if report.has_met("challenge") {
        // Last: there are servers that a bad token ends.
        challenge::bad_token(&web, url, &mut report).await;
    }
    Ok(report.finish())
}

/// Each step; `None` where the next has nothing to stand on.
async fn walk(web: &Web, asked: &str, options: &Options, report: &mut Report) -> Option<()> {
    let named = match &options.public_url {
        Some(public) => endpoint::same_path(public, asked),
        None => asked.to_owned(),
    };
    endpoint::judge_url(&named, report)?;
    let challenge = challenge::ask(web, asked, report).await?;
    let mut known = documents::resource(web, asked, &named, &challenge, report).await?;
    documents::server(web, asked, &mut known, report).await?;
    if options.read_only {
        report.note(
            "read-only",
            "stopped before a client is registered (--read-only)",
        );
        return Some(());
    }
    if options.machine.is_wanted() {
        let tokens = machine::token(web, options, &known, report).await?;
        token::tools(web, asked, &tokens, report).await;
        return Some(());
    }
    let listener = loopback::Listener::bind(options.callback_port, report).await?;
    let client = registration::client(web, options, &known, &listener, report).await?;
    authorize::refusals(web, &known, &client, report).await;
    let code = authorize::code(web, options, &known, &client, listener, report).await?;
    let tokens = token::exchange(web, &known, &client, &code, report).await?;
    token::tools(web, asked, &tokens, report).await;
    token::refresh(web, &known, &client, &tokens, report).await;
    Some(())
}
