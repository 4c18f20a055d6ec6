//! What was found, said as it is found.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// To know.
    Note,
    /// Some clients stumble.
    Warning,
    /// Clients fail.
    Failure,
}

#[derive(Debug, Serialize)]
struct Finding<'a> {
    level: Level,
    step: &'a str,
    text: &'a str,
}

/// Everything that is said.
#[derive(Debug)]
pub(super) struct Report {
    json: bool,
    failures: usize,
    warnings: usize,
    /// Steps in which something was found as it should be.
    met: BTreeSet<String>,
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            failures: 0,
            warnings: 0,
            met: BTreeSet::new(),
        }
    }

    /// Whether anything of a step was as it should be.
    pub(super) fn has_met(&self, step: &str) -> bool {
        self.met.contains(step)
    }

    /// As it should be.
    pub(super) fn ok(&mut self, step: &str, text: impl AsRef<str>) {
        self.met.insert(step.to_owned());
        self.say(Level::Ok, step, text.as_ref());
    }

    /// To know.
    pub(super) fn note(&mut self, step: &str, text: impl AsRef<str>) {
        self.say(Level::Note, step, text.as_ref());
    }

    /// Some clients stumble; the text says which.
    pub(super) fn warn(&mut self, step: &str, text: impl AsRef<str>) {
        self.warnings += 1;
        self.say(Level::Warning, step, text.as_ref());
    }

    /// Clients fail; the text says what to change.
    pub(super) fn fail(&mut self, step: &str, text: impl AsRef<str>) {
        self.failures += 1;
        self.say(Level::Failure, step, text.as_ref());
    }

    /// [`Report::ok`] where it holds, else [`Report::fail`].
    pub(super) fn hold(&mut self, step: &str, holds: bool, ok: &str, otherwise: &str) {
        if holds {
            self.ok(step, ok);
        } else {
            self.fail(step, otherwise);
        }
    }

    /// [`Report::ok`] where it holds, else [`Report::warn`].
    pub(super) fn prefer(&mut self, step: &str, holds: bool, ok: &str, otherwise: &str) {
        if holds {
            self.ok(step, ok);
        } else {
            self.warn(step, otherwise);
        }
    }

    fn say(&self, level: Level, step: &str, text: &str) {
        let text = plain(text);
        if self.json {
            let finding = Finding {
                level,
                step,
                text: &text,
            };
            println!("{}", serde_json::to_string(&finding).unwrap_or_default());
            return;
        }
        let mark = match level {
            Level::Ok => "ok  ",
            Level::Note => "    ",
            Level::Warning => "warn",
            Level::Failure => "FAIL",
        };
        println!("{mark}  {step:<14} {text}");
    }

    /// The sum of it, and the exit code: 1 when a client would fail.
    pub(super) fn finish(self) -> ExitCode {
        if !self.json {
            println!();
            match (self.failures, self.warnings) {
                (0, 0) => println!("Nothing that a client would stumble over."),
                (0, warnings) => println!("{warnings} warning(s): some clients may stumble."),
                (failures, _) => {
                    println!(
                        "{failures} failure(s): clients cannot, or should not, sign in like this."
                    )
                }
            }
        }
        if self.failures == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// What a server said must not move the cursor or paint the terminal.
fn plain(text: &str) -> String {
    let shown = text
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    shown.collect()
}
