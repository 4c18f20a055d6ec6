//! Ends what the tests started, even where the tests themselves are killed.
//!
//! A shell waits at the other end of a pipe. It is told of each process and
//! folder; when the pipe closes, however this process ended, it cleans up.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// What the shell does. `KILL` is for ordinary children, `QUIT` for a
/// postmaster, which must not be killed outright: it ends its own children.
const SCRIPT: &str = r#"
kept=""; folders=""
while read -r what value; do
  case $what in
    KILL|QUIT) kept="$kept $what:$value" ;;
    forget) left=""; for one in $kept; do [ "${one##*:}" = "$value" ] || left="$left $one"; done; kept=$left ;;
    folder) folders="$folders $value" ;;
  esac
done
for one in $kept; do kill "-${one%%:*}" "${one##*:}" 2>/dev/null; kill -CONT "${one##*:}" 2>/dev/null; done
for one in $kept; do
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    kill -0 "${one##*:}" 2>/dev/null || break
    sleep 0.1
  done
done
for one in $folders; do rm -rf "$one"; done
"#;

/// How a kept process is ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// At once.
    Kill,
    /// Postgres' immediate shutdown.
    Quit,
}

/// Has the process ended when the tests are over.
pub(crate) fn keep(pid: u32, ending: Ending) {
    let word = match ending {
        Ending::Kill => "KILL",
        Ending::Quit => "QUIT",
    };
    tell(&format!("{word} {pid}"));
}

/// The process has ended: its number may belong to another one soon.
pub(crate) fn forget(pid: u32) {
    tell(&format!("forget {pid}"));
}

/// Has the folder removed when the tests are over.
pub(crate) fn keep_folder(path: &Path) {
    tell(&format!("folder {}", path.display()));
}

fn tell(line: &str) {
    let mut shell = shell();
    let pipe = shell.stdin.as_mut().expect("the keeper's pipe");
    writeln!(pipe, "{line}").expect("the keeper listens");
}

fn shell() -> MutexGuard<'static, Child> {
    static SHELL: OnceLock<Mutex<Child>> = OnceLock::new();
    let start = || {
        let child = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Out of reach of the Ctrl-C that ends the tests.
            .process_group(0)
            .spawn()
            .expect("sh starts");
        Mutex::new(child)
    };
    SHELL.get_or_init(start).lock().expect("the keeper")
}
