//! `toolgate sanitize`: JSON lines in, cleaned JSON lines out (design §9), and what a
//! scorer of the corpus relies on.

use std::io::Write;
use std::process::{Command, Stdio};

use super::support::config::TOOLGATE;
use super::support::{Value, json};

/// Runs the command over the lines and returns its lines by id.
fn sanitize(args: &[&str], lines: &[Value]) -> Vec<Value> {
    let mut child = Command::new(TOOLGATE)
        .arg("sanitize")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": false })
}

#[test]
fn every_line_is_answered_with_its_id_output_and_findings() {
    let token = "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";
    let lines = [
        json!({ "id": "a", "input": text(&format!("key {token}")) }),
        json!({ "id": 2, "input": text("nothing to see") }),
        json!({ "id": "e", "input": { "error": { "code": -1, "message": "no\u{200b}pe" } } }),
    ];
    let out = sanitize(&[], &lines);
    assert_eq!(
        out,
        [
            json!({
                "id": "a",
                "output": text("key [REDACTED:github_token]"),
                "findings": [{ "label": "github_token", "count": 1 }],
            }),
            json!({ "id": 2, "output": text("nothing to see"), "findings": [] }),
            json!({
                "id": "e",
                "output": { "error": { "code": -1, "message": "nope" } },
                "findings": [{ "label": "invisible", "count": 1 }],
            }),
        ]
    );
}

#[test]
fn a_text_is_cut_to_the_limit_that_the_line_asks_for() {
    let long = "word ".repeat(100);
    let line = json!({ "id": 1, "input": text(&long), "options": { "max_text_chars": 60 } });
    let out = sanitize(&[], &[line]);
    let shown = out[0]["output"]["content"][0]["text"].as_str().unwrap();
    assert!(
        shown.starts_with(&long[..60]) && shown.chars().count() <= 180,
        "{shown}"
    );
    assert_eq!(out[0]["findings"][0]["label"], "oversize");
}

#[test]
fn explained_findings_name_their_places() {
    let line = json!({ "id": 1, "input": text("password: hunter2") });
    let out = sanitize(&["--explain"], &[line]);
    assert_eq!(out[0]["findings"][0]["places"], json!(["/content/0/text"]));
}
