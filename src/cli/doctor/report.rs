//! What was found, said as it is found: for a person, or as one JSON object a line.

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
    /// Not as good as it could be: some clients stumble, or something is at risk.
    Warning,
    /// It does not work, or must not be relied on.
    Failure,
}

/// What the findings are about, and so what their sum means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    /// Signing in as a client.
    SignIn,
    /// A deployment of our own.
    Deployment,
}

/// Something to change: what is wrong, why it matters, what to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble<'a> {
    pub(super) what: &'a str,
    pub(super) why: &'a str,
    pub(super) change: &'a str,
}

#[derive(Debug, Default, Serialize)]
struct Finding<'a> {
    level: Option<Level>,
    step: &'a str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
}

/// Everything that is said.
#[derive(Debug)]
pub(super) struct Report {
    subject: Subject,
    json: bool,
    failures: usize,
    warnings: usize,
    /// Steps in which something was found as it should be.
    met: BTreeSet<String>,
}

impl Report {
    pub(super) fn new(subject: Subject, json: bool) -> Self {
        Self {
            subject,
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

    /// Something to change. A failure where it does not work without, or people would
    /// rely on what is not so; else a warning.
    pub(super) fn trouble(&mut self, level: Level, step: &str, trouble: Trouble<'_>) {
        match level {
            Level::Failure => self.failures += 1,
            Level::Warning => self.warnings += 1,
            Level::Ok | Level::Note => {}
        }
        self.print(&Finding {
            level: Some(level),
            step,
            text: plain(trouble.what),
            why: Some(plain(trouble.why)),
            change: Some(plain(trouble.change)),
        });
    }

    fn say(&self, level: Level, step: &str, text: &str) {
        self.print(&Finding {
            level: Some(level),
            step,
            text: plain(text),
            ..Finding::default()
        });
    }

    fn print(&self, finding: &Finding<'_>) {
        if self.json {
            println!("{}", serde_json::to_string(finding).unwrap_or_default());
            return;
        }
        let mark = match finding.level {
            Some(Level::Ok) => "ok  ",
            Some(Level::Note) | None => "    ",
            Some(Level::Warning) => "warn",
            Some(Level::Failure) => "FAIL",
        };
        println!("{mark}  {:<14} {}", finding.step, finding.text);
        for (word, text) in [("why", &finding.why), ("change", &finding.change)] {
            if let Some(text) = text {
                println!("{:20} {word}: {text}", "");
            }
        }
    }

    /// The sum of it, and the exit code: 1 when there is a failure.
    pub(super) fn finish(self) -> ExitCode {
        if !self.json {
            println!();
            println!("{}", self.sum());
        }
        if self.failures == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn sum(&self) -> String {
        let (failures, warnings) = (self.failures, self.warnings);
        match (self.subject, failures, warnings) {
            (Subject::SignIn, 0, 0) => "Nothing that a client would stumble over.".to_owned(),
            (Subject::SignIn, 0, _) => format!("{warnings} warning(s): some clients may stumble."),
            (Subject::SignIn, ..) => {
                format!("{failures} failure(s): clients cannot, or should not, sign in like this.")
            }
            (Subject::Deployment, 0, 0) => "Nothing that needs to be changed.".to_owned(),
            (Subject::Deployment, 0, _) => {
                format!("{warnings} warning(s): it runs, and something is at risk.")
            }
            (Subject::Deployment, ..) => format!(
                "{failures} failure(s), {warnings} warning(s): do not let people depend on it like this."
            ),
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
