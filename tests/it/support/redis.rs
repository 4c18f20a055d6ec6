//! A Redis of the test's own, which keeps nothing when it ends.

use std::process::Command;
use std::sync::Mutex;

use nix::sys::signal::Signal;

use super::PATIENCE;
use super::process::{Process, free_port, run};

/// A running Redis.
#[derive(Debug)]
pub(crate) struct Redis {
    port: u16,
    more: Vec<String>,
    process: Mutex<Option<Process>>,
}

impl Redis {
    /// One on loopback, with these arguments besides.
    pub(crate) fn start(more: &[&str]) -> Self {
        let redis = Self {
            port: free_port(),
            more: more.iter().map(|one| (*one).to_owned()).collect(),
            process: Mutex::new(None),
        };
        redis.resume();
        redis
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again, empty, on the same port.
    pub(crate) fn resume(&self) {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--port", &self.port.to_string(), "--dir", "/tmp"])
            .args(&self.more);
        let process = Process::start("redis-server", &mut command);
        let begun = std::time::Instant::now();
        while !process.output().contains("Ready to accept connections") {
            assert!(begun.elapsed() < PATIENCE, "Redis does not come up");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        *self.process.lock().unwrap() = Some(process);
    }

    /// Ends it: connections are cut, and what it knew is gone.
    pub(crate) fn stop(&self) {
        drop(self.process.lock().unwrap().take());
    }

    /// Stops it where it is: connections stay open and nothing answers.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on after `freeze`.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &*self.process.lock().unwrap() {
            process.signal(signal);
        }
    }

    /// Asks it something, as a person would.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        let answer = run(command.args(["-p", &self.port.to_string()]).args(words));
        answer.trim().to_owned()
    }
}
