//! A child process with its output kept, ended when it is dropped.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, Socket, Type};

use super::keeper::{self, Ending};
use super::{PATIENCE, Value, kept};

/// A free port on loopback, below the range that outgoing connections take
/// theirs from, and given to nobody else in this process. It is bound and not listened
/// on: a child that is forked at that moment holds it until it runs its own program,
/// and a port that somebody listens on could not be taken meanwhile.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let start = u16::try_from(std::process::id() * 97 % 19_000).unwrap();
        let port = 12_000 + (start + step) % 19_000;
        if is_free(port).is_ok() {
            return port;
        }
    }
}

fn is_free(port: u16) -> std::io::Result<()> {
    let probe = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    probe.set_reuse_address(true)?;
    probe.bind(&SocketAddr::from(([127, 0, 0, 1], port)).into())
}

/// A running child.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    output: Output,
}

/// What a child has printed so far, on both of its streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output(Arc<Mutex<Vec<String>>>);

impl Process {
    /// Starts it with both output streams read line by line.
    pub(crate) fn start(name: &str, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        keeper::keep(child.id(), Ending::Kill);
        let output = Output::default();
        let copy = (name == "toolgate").then(|| Arc::new(Mutex::new(kept::output(name))));
        output.follow(child.stdout.take().unwrap(), copy.clone());
        output.follow(child.stderr.take().unwrap(), copy);
        Self {
            name: name.to_owned(),
            child,
            ended: None,
            output,
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed.
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            send(self.id(), signal);
        }
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().unwrap();
            if self.ended.is_some() {
                keeper::forget(self.id());
            }
        }
        self.ended
    }

    /// Waits for its end; `None` if that takes longer than `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while self.ended().is_none() && start.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.ended
    }

    /// Asks it to end, and kills it if it does not within `limit`.
    pub(crate) fn end(&mut self, limit: Duration) {
        self.signal(Signal::SIGTERM);
        if self.wait(limit).is_none() {
            self.kill();
        }
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.wait(PATIENCE);
    }

    /// Resident memory in MiB: now, and at most so far.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let mib = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
            kib / 1024
        };
        (mib("VmRSS:"), mib("VmHWM:"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.signal(Signal::SIGCONT);
            self.end(Duration::from_secs(2));
        }
        if std::thread::panicking() {
            eprintln!("--- {} printed ---\n{}", self.name, self.output.tail(40));
        }
    }
}

impl Output {
    /// Reads it line by line, also into a file that outlives the test.
    fn follow(&self, stream: impl Read + Send + 'static, copy: Option<Arc<Mutex<File>>>) {
        let lines = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
                if let Some(copy) = &copy {
                    copy.lock().unwrap().write_all(&line).unwrap();
                }
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                lines.lock().unwrap().push(text);
                line.clear();
            }
        });
    }

    /// All lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The lines that are JSON objects.
    pub(crate) fn json(&self) -> Vec<Value> {
        let lines = self.lines();
        let objects = lines.iter().filter(|line| line.starts_with('{'));
        objects
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Whether `text` is in any line.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.0
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.contains(text))
    }

    /// Waits for the first line that holds `text`.
    pub(crate) async fn line_with(&self, text: &str) -> String {
        super::eventually(&format!("a line with {text:?}"), async || {
            self.lines().into_iter().find(|line| line.contains(text))
        })
        .await
    }

    /// The last `count` lines.
    pub(crate) fn tail(&self, count: usize) -> String {
        let lines = self.0.lock().unwrap();
        lines.iter().skip(lines.len().saturating_sub(count)).fold(
            String::new(),
            |mut text, line| {
                writeln!(text, "{line}").unwrap();
                text
            },
        )
    }
}

/// Sends a signal to one process, by its number.
pub(crate) fn send(pid: u32, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill(Pid::from_raw(pid.try_into().unwrap()), signal);
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Its exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// What it printed on standard output.
    pub(crate) stdout: String,
    /// What it printed on standard error.
    pub(crate) stderr: String,
}

impl Outcome {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

/// Runs a command to its end; panics with what it printed unless it succeeds.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}
