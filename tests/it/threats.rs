//! The threat model in `docs/security.md`: every row is shown by tests that exist, and
//! every item of the lists that it answers to is there.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

fn model() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let (model, _) = text
        .split_once("## What was tried against signing in")
        .unwrap();
    model.to_owned()
}

/// The tables whose last column is `Shown by`.
fn rows(model: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut shows = false;
    for line in model.lines() {
        if !line.starts_with('|') {
            shows = false;
        } else if line.ends_with("| Shown by |") {
            shows = true;
        } else if shows && !line.starts_with("|---") {
            rows.push(line);
        }
    }
    rows
}

#[test]
fn every_threat_names_tests_that_exist() {
    let model = model();
    let named = Regex::new(r"`(\w+)::(\w+)`").unwrap();
    let root = env!("CARGO_MANIFEST_DIR");
    let rows = rows(&model);
    assert!(rows.len() >= 65, "{}", rows.len());
    for row in rows {
        let shown = row.trim_end_matches(" |").rsplit("| ").next().unwrap();
        let mut tests = 0;
        for test in named.captures_iter(shown) {
            tests += 1;
            let file = format!("{root}/tests/it/{}.rs", &test[1]);
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let attribute = format!(
                r"#\[(tokio::)?test[^\n]*\]\n(?:#\[[^\n]*\n)*(?:async )?fn {}\(",
                &test[2]
            );
            let is_test = Regex::new(&attribute).unwrap().is_match(&text);
            assert!(is_test, "{row}: {file} has no test {}", &test[2]);
        }
        assert!(tests > 0, "shown by nothing: {row}");
    }
}

#[test]
fn every_item_of_the_lists_is_answered() {
    let model = model();
    let item = Regex::new(r"(?m)^\| ((?:MCP|API|LLM)\d+) ").unwrap();
    let found: BTreeSet<String> = item
        .captures_iter(&model)
        .map(|item| item[1].to_owned())
        .collect();
    let wanted = (1..=10).flat_map(|n| {
        [
            format!("MCP{n:02}"),
            format!("API{n}"),
            format!("LLM{n:02}"),
        ]
    });
    assert_eq!(found, wanted.collect());
}
