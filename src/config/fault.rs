//! What is wrong with a configuration, where, and what to write instead.
//!
//! A fault repeats keys, never values: a value may be a secret.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

/// Whether the configuration can be used all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but probably does not do what was meant.
    Warning,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file as a whole.
    File,
    /// A place in the file.
    Line {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
    },
    /// An environment variable.
    Variable(Arc<str>),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whether the configuration can be used all the same.
    pub severity: Severity,
    /// The configuration file.
    pub file: Arc<Path>,
    /// Where in it, or which environment variable.
    pub origin: Origin,
    /// The key, such as `tenants.acme.limits.per_user.rate`; empty for the file as a whole.
    pub path: String,
    /// What is wrong.
    pub wrong: String,
    /// What to write instead; may be empty.
    pub instead: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File => write!(f, "{}: ", self.file.display())?,
            Origin::Line { line, column } => {
                write!(f, "{}:{line}:{column}: ", self.file.display())?;
            }
            Origin::Variable(name) => write!(f, "{name}: ")?,
        }
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.wrong)?;
        if !self.instead.is_empty() {
            write!(f, "; {}", self.instead)?;
        }
        Ok(())
    }
}

/// Why a configuration was refused: every fault that could be found, and the warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFaults(pub Vec<Fault>);

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(render(&self.0).trim_end())
    }
}

impl std::error::Error for ConfigFaults {}

/// Faults for people: one a line, in the order of the file.
pub fn render(faults: &[Fault]) -> String {
    let mut text = String::new();
    for fault in in_order(faults) {
        text.push_str(&fault.to_string());
        text.push('\n');
    }
    text
}

/// Faults for scripts: one JSON object, `{"ok": …, "faults": […]}`.
pub fn render_json(faults: &[Fault]) -> String {
    let report = Report {
        ok: !faults.iter().any(|f| f.severity == Severity::Error),
        faults: in_order(faults).into_iter().map(Row::from).collect(),
    };
    serde_json::to_string_pretty(&report).unwrap_or_default()
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    faults: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    severity: Severity,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
    path: String,
    wrong: String,
    instead: String,
}

impl From<&Fault> for Row {
    fn from(fault: &Fault) -> Self {
        let (line, column, variable) = match &fault.origin {
            Origin::File => (None, None, None),
            Origin::Line { line, column } => (Some(*line), Some(*column), None),
            Origin::Variable(name) => (None, None, Some(name.to_string())),
        };
        Self {
            severity: fault.severity,
            file: fault.file.display().to_string(),
            line,
            column,
            variable,
            path: fault.path.clone(),
            wrong: fault.wrong.clone(),
            instead: fault.instead.clone(),
        }
    }
}

fn in_order(faults: &[Fault]) -> Vec<&Fault> {
    let mut ordered: Vec<&Fault> = faults.iter().collect();
    ordered.sort_by_key(|fault| match fault.origin {
        Origin::File => (0, 0, 0),
        Origin::Line { line, column } => (1, line, column),
        Origin::Variable(_) => (2, 0, 0),
    });
    ordered
}

/// The nearest of some words, where one is near enough to have been meant.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .filter_map(|candidate| {
            let plain = candidate.to_lowercase().replace('-', "_");
            let likeness = strsim::jaro_winkler(&word, &plain);
            let edits = strsim::osa_distance(&word, &plain);
            let slip = edits <= 1 && plain.len() > 2 || edits <= 2 && plain.len() > 5;
            (slip || likeness >= 0.8).then_some((edits, likeness, candidate))
        })
        .min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)))
        .map(|(_, _, candidate)| candidate)
}

/// `a, b and c` in backticks, at most twelve.
pub(super) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some(_) if words.len() > 12 => {
            let shown: Vec<&str> = words.iter().take(12).map(String::as_str).collect();
            format!("{} and {} more", shown.join(", "), words.len() - 12)
        }
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(origin: Origin, path: &str) -> Fault {
        Fault {
            severity: Severity::Error,
            file: Path::new("toolgate.yaml").into(),
            origin,
            path: path.to_owned(),
            wrong: "unknown key".to_owned(),
            instead: "did you mean `limits`?".to_owned(),
        }
    }

    #[test]
    fn a_fault_says_where_what_and_what_instead() {
        let at = Origin::Line {
            line: 12,
            column: 5,
        };
        for (origin, expected) in [
            (
                at,
                "toolgate.yaml:12:5: a.b: unknown key; did you mean `limits`?",
            ),
            (
                Origin::Variable("TOOLGATE_A__B".into()),
                "TOOLGATE_A__B: a.b: unknown key; did you mean `limits`?",
            ),
            (
                Origin::File,
                "toolgate.yaml: a.b: unknown key; did you mean `limits`?",
            ),
        ] {
            assert_eq!(fault(origin, "a.b").to_string(), expected);
        }
    }

    #[test]
    fn the_form_for_scripts_has_the_same_parts() {
        let at = Origin::Line {
            line: 12,
            column: 5,
        };
        let json: serde_json::Value =
            serde_json::from_str(&render_json(&[fault(at, "a.b")])).unwrap();
        assert_eq!(json["ok"], false);
        assert_eq!(json["faults"][0]["line"], 12);
        assert_eq!(json["faults"][0]["path"], "a.b");
        assert_eq!(json["faults"][0]["severity"], "error");
        assert_eq!(
            render_json(&[]).replace(['\n', ' '], ""),
            r#"{"ok":true,"faults":[]}"#
        );
    }

    #[test]
    fn the_nearest_word_is_one_that_could_have_been_meant() {
        let known = ["limits", "tools", "roles", "hide_without_scopes"];
        assert_eq!(nearest("limitz", known), Some("limits"));
        assert_eq!(nearest("Tools", known), Some("tools"));
        assert_eq!(
            nearest("hide-without-scopes", known),
            Some("hide_without_scopes")
        );
        assert_eq!(nearest("quux", known), None);
        assert_eq!(nearest("ulr", ["allow_private", "url"]), Some("url"));
    }
}
