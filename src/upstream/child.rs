//! A child process in its own process group, which ends as a whole; its standard
//! error goes to the log, bounded.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout};

use super::lines::{Line, Lines};
use crate::config;
use crate::ids::UpstreamId;
use crate::protocol::Untrusted;
use crate::sanitize::Sanitizer;

/// How long each of the two polite requests to end may take.
const GRACE: Duration = Duration::from_secs(2);
/// Longest line of standard error that is logged.
const LOGGED_LINE: usize = 1024;
/// Most lines of it a second.
const LOGGED_A_SECOND: u32 = 50;

/// A running child.
pub(super) struct Process {
    child: Child,
    group: Option<Pid>,
}

/// Its streams.
pub(super) struct Pipes {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) errors: ChildStderr,
}

impl Process {
    /// Starts it. Of the environment it gets what is configured and nothing of the
    /// service's secrets.
    pub(super) fn start(kind: &config::StdioUpstream) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(&kind.command);
        command
            .args(&kind.args)
            .env_clear()
            .envs(config::inherited_environment())
            .envs(&kind.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &kind.cwd {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        let missing = || io::Error::other("a pipe is missing");
        let pipes = Pipes {
            input: child.stdin.take().ok_or_else(missing)?,
            output: child.stdout.take().ok_or_else(missing)?,
            errors: child.stderr.take().ok_or_else(missing)?,
        };
        let process = Self {
            child,
            group: group.map(Pid::from_raw),
        };
        Ok((process, pipes))
    }

    /// Waits until it exits.
    pub(super) async fn exited(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }

    /// Ends it and everything it started. Its input must be closed already, which
    /// is the first request to end (MCP stdio, Shutdown).
    pub(super) async fn end(mut self) -> Option<ExitStatus> {
        for request in [None, Some(Signal::SIGTERM)] {
            if let Some(signal) = request {
                self.signal(signal);
            }
            if let Ok(status) = timeout(GRACE, self.child.wait()).await {
                // What it started may have outlived it.
                self.signal(Signal::SIGKILL);
                return status.ok();
            }
        }
        self.signal(Signal::SIGKILL);
        self.child.wait().await.ok()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // A group that is gone already is what was wanted.
            let _ = killpg(group, signal);
        }
    }
}

/// Logs what the child writes to its standard error until it closes it: readily
/// while it starts, since that says why it does not, and for debugging later.
pub(super) async fn log_errors(id: UpstreamId, errors: ChildStderr, started: Arc<AtomicBool>) {
    let mut lines = Lines::new(errors, LOGGED_LINE);
    let mut second = Instant::now();
    let mut logged = 0;
    let mut left_out = 0_u32;
    while let Ok(Some(line)) = lines.next().await {
        if second.elapsed() >= Duration::from_secs(1) {
            if left_out > 0 {
                tracing::debug!(upstream.id = %id, lines = left_out, "standard error was left out");
            }
            (second, logged, left_out) = (Instant::now(), 0, 0);
        }
        if logged == LOGGED_A_SECOND {
            left_out += 1;
            continue;
        }
        logged += 1;
        let text = match &line {
            Line::Whole(text) | Line::Cut { head: text, .. } => shown(text),
        };
        if started.load(Ordering::Relaxed) {
            tracing::debug!(upstream.id = %id, line = %text, "the upstream's standard error");
        } else {
            tracing::info!(upstream.id = %id, line = %text, "the upstream's standard error");
        }
    }
}

/// One line of a child's words, cleaned: a log is read in terminals, and kept by
/// others than the secrets in it.
fn shown(text: &[u8]) -> String {
    static SANITIZER: LazyLock<Sanitizer> = LazyLock::new(Sanitizer::new);
    let text = String::from_utf8_lossy(text).into_owned();
    SANITIZER
        .line(Untrusted::new(text), LOGGED_LINE)
        .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_moves_no_cursor_and_tells_no_secret() {
        assert_eq!(shown(b"a\x1b[31mb\xff"), "ab\u{fffd}");
        assert_eq!(
            shown(b"starting with DB_PASSWORD=hunter2x9 now"),
            "starting with DB_PASSWORD=[REDACTED:password] now"
        );
    }
}
