//! The command line: one file per subcommand, exit codes, `--json` where a script
//! would want it. The only module that prints.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this module is what talks to the terminal"
)]

mod audit;
mod call;
mod check;
mod doctor;
mod explain;
mod grants;
mod keys;
mod migrate;
mod quickstart;
mod ready;
mod sample;
mod sanitize;
mod serve;
mod token;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// The remote MCP endpoint that a company puts in front of its tools.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the service.
    ///
    /// Example: toolgate serve --config toolgate.yaml
    Serve(ConfigFile),
    /// Starts everything on this machine: an embedded Postgres, sample tenants, users and tools.
    ///
    /// Example: toolgate quickstart --listen 127.0.0.1:8080
    Quickstart(quickstart::Options),
    /// Checks a configuration file without starting anything. Exit code 1: it is wrong.
    ///
    /// Example: toolgate check --config toolgate.yaml
    Check(check::Options),
    /// Says whether a tenant and role may use a tool, and which rule decides.
    ///
    /// Example: toolgate explain --config toolgate.yaml --tenant acme --role support --tool `crm_find_customer`
    Explain(explain::Options),
    /// Calls a tool, or lists the tools when none is named. Exit code 2: the tool reports an error.
    ///
    /// Example: toolgate call `crm_find_customer` --args '{"query": "Ada"}' --url <http://127.0.0.1:8080/mcp> --token-file token
    Call(call::Options),
    /// With a URL: walks a sign-in as a client would, and says what a client would stumble over.
    /// Without: says what is wrong with what a configuration rests on, and what to change. Exit
    /// code 1: clients cannot sign in, or the deployment must not be relied on.
    ///
    /// Examples: toolgate doctor <https://tools.example.com/mcp>,
    /// toolgate doctor --config toolgate.yaml
    Doctor(doctor::Options),
    /// Asks the running service of a configuration whether it is ready. Exit code 1: it is not.
    ///
    /// Example: toolgate ready --config toolgate.yaml
    Ready(ConfigFile),
    /// Prints an access token for a user of the quickstart data.
    ///
    /// Example: toolgate token --user alice@acme.test
    Token(token::Options),
    /// Cleans JSON lines as the gateway cleans results: `{"id", "input"}` on standard input, `{"id", "output", "findings"}` on standard output.
    ///
    /// Example: toolgate sanitize --explain < results.jsonl
    Sanitize(sanitize::Options),
    /// Reads the audit.
    #[command(subcommand)]
    Audit(audit::Command),
    /// Shows and ends what people have let in: apps that act for them.
    #[command(subcommand)]
    Grants(grants::Command),
    /// Shows and rotates what access tokens are signed with.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Brings the database to this release's schema. Replicas wait for it.
    ///
    /// Example: toolgate migrate --config toolgate.yaml
    Migrate(ConfigFile),
    /// The sample tools that quickstart fronts: an MCP server on standard streams.
    #[command(hide = true)]
    SampleTools(sample::Options),
}

/// Which configuration.
#[derive(Debug, Args)]
struct ConfigFile {
    /// The configuration file.
    #[arg(long, short, default_value = "toolgate.yaml")]
    config: PathBuf,
}

/// Runs the command line's command.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("toolgate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(options) => Ok(check::run(&options)),
        Command::Token(options) => token::run(&options),
        Command::Sanitize(options) => sanitize::run(&options),
        Command::Serve(file) => on_runtime(serve::run(file)),
        Command::Quickstart(options) => on_runtime(quickstart::run(options)),
        Command::Explain(options) => on_runtime(explain::run(options)),
        Command::Call(options) => on_runtime(call::run(options)),
        Command::Ready(file) => on_runtime(ready::run(file)),
        Command::Doctor(options) => on_runtime(doctor::run(options)),
        Command::Audit(command) => on_runtime(audit::run(command)),
        Command::Grants(command) => on_runtime(grants::run(command)),
        Command::Keys(command) => on_runtime(keys::run(command)),
        Command::Migrate(file) => on_runtime(migrate::run(file)),
        Command::SampleTools(options) => on_runtime(sample::run(options)),
    }
}

fn on_runtime(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(command);
    // A blocking read of standard input must not hold up the end.
    runtime.shutdown_background();
    outcome
}
