//! The import order of style.md §1, held by a test: modules use what stands above
//! them, libraries stay in their places, what upstreams say is opened in one place,
//! files stay small and say what they are for.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules in import order: a module may use rows above its own. `Ordered` rows
/// may use what stands to their left; siblings of the others are strangers.
const ROWS: &[Row] = &[
    Row::Ordered(&["ids", "secret", "clock"]),
    Row::Strangers(&["config", "telemetry", "protocol", "jose", "seal"]),
    Row::Strangers(&["store", "outgoing", "sanitize"]),
    Row::Strangers(&["audit", "oauth", "upstream", "identity", "sample"]),
    Row::Strangers(&["credentials", "tenancy"]),
    Row::Strangers(&["limits"]),
    Row::Strangers(&["catalog"]),
    Row::Strangers(&["visibility"]),
    Row::Strangers(&["arguments"]),
    Row::Strangers(&["dispatch"]),
    Row::Strangers(&["pipeline"]),
    Row::Strangers(&["mcp"]),
    Row::Strangers(&["http"]),
    Row::Ordered(&["lifecycle", "app", "cli"]),
];

/// Paths that only some modules may name: a library, and the files it belongs to.
const PLACES: &[(&str, &[&str])] = &[
    ("sqlx::", &["src/store", "src/upstream/sql"]),
    ("reqwest::", &["src/outgoing"]),
    ("axum::", &["src/http"]),
    ("tower::", &["src/http"]),
    ("tower_http::", &["src/http"]),
    ("tower_governor::", &["src/http"]),
    ("governor::", &["src/limits"]),
    ("redis::", &["src/limits"]),
    (
        "std::process::",
        &["src/upstream", "src/store/embedded", "src/cli", "src/main"],
    ),
    (
        "tokio::process::",
        &["src/upstream", "src/store/embedded", "src/cli"],
    ),
    (
        "process::Command",
        &["src/upstream", "src/store/embedded", "src/cli"],
    ),
    ("std::env::", &["src/config", "src/cli"]),
    ("env::var", &["src/config"]),
    ("prometheus_client::", &["src/telemetry"]),
    ("tracing_subscriber::", &["src/telemetry"]),
    ("opentelemetry::", &["src/telemetry"]),
    ("opentelemetry_sdk::", &["src/telemetry"]),
    ("jsonwebtoken::", &["src/jose"]),
    ("postgresql_embedded::", &["src/store/embedded"]),
    (
        "anyhow::",
        &["src/app", "src/lifecycle", "src/cli", "src/main"],
    ),
];

/// Where `Untrusted` may be opened.
const OPENERS: &[&str] = &["src/sanitize", "src/protocol/untrusted"];

/// Longest file, its tests not counted.
const MAX_LINES: usize = 400;

enum Row {
    Ordered(&'static [&'static str]),
    Strangers(&'static [&'static str]),
}

impl Row {
    fn modules(&self) -> &'static [&'static str] {
        match self {
            Self::Ordered(modules) | Self::Strangers(modules) => modules,
        }
    }
}

/// A module's row and its place in it.
fn rank(module: &str) -> Option<(usize, usize)> {
    ROWS.iter().enumerate().find_map(|(row, modules)| {
        let column = modules.modules().iter().position(|name| *name == module)?;
        Some((row, column))
    })
}

fn may_import(from: &str, to: &str) -> bool {
    let (Some(from), Some(to)) = (rank(from), rank(to)) else {
        return false;
    };
    let ordered = matches!(ROWS[from.0], Row::Ordered(_));
    to.0 < from.0 || (to.0 == from.0 && (to.1 == from.1 || (ordered && to.1 < from.1)))
}

/// The source without what is no code: comments, strings, characters. Lines stay.
fn code_of(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let len = skipped(rest, out.chars().next_back());
        if len == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(rest[..len].chars().filter(|c| *c == '\n'));
            out.push(' ');
            rest = &rest[len..];
        }
    }
    out
}

/// Bytes of the comment, string or character that `rest` begins with.
fn skipped(rest: &str, before: Option<char>) -> usize {
    let until = |from: usize, end: &str| {
        rest[from..]
            .find(end)
            .map_or(rest.len(), |at| from + at + end.len())
    };
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return until(2, "*/");
    }
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !in_word && (rest.starts_with("r\"") || rest.starts_with("r#")) {
        let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
        if rest[1 + hashes..].starts_with('"') {
            return until(2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    if rest.starts_with('"') {
        return closing(rest, '"');
    }
    let is_char = rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'');
    if rest.starts_with('\'') && is_char {
        return closing(rest, '\'');
    }
    0
}

/// Bytes up to the unescaped `quote` that closes what `rest` opens.
fn closing(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

/// The code without the inline modules and items that only tests have.
fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        let item = &rest[at..];
        let end = match (item.find('{'), item.find(';')) {
            (Some(open), Some(semicolon)) if semicolon < open => semicolon + 1,
            (Some(open), _) => open + block_len(&item[open..]),
            (None, semicolon) => semicolon.map_or(item.len(), |at| at + 1),
        };
        rest = &item[end..];
    }
    out.push_str(rest);
    out
}

fn block_len(block: &str) -> usize {
    let mut depth = 0;
    for (at, c) in block.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    block.len()
}

/// First segments of the path, or of the group of paths, that `rest` begins with.
fn heads(rest: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '*'))
            .collect()
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![word(rest)];
    };
    let mut heads = vec![word(group)];
    let mut depth = 1;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => heads.push(word(&group[at + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads.retain(|head| !head.is_empty());
    heads
}

/// Offsets of `needle` where no word goes on before it.
fn occurrences<'a>(code: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(needle)
        .map(|(at, _)| at)
        .filter(|at| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Whether the code names a library, or a part of one. `tower_governor::governor::`
/// is no `governor::`: a library's name begins a path.
fn names(code: &str, library: &str) -> bool {
    let begins = |at: usize| {
        let before = code[..at].strip_suffix("::").unwrap_or_default();
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    let whole = library.ends_with("::");
    occurrences(code, library).any(|at| !whole || begins(at))
}

/// The modules at the crate's root that the code names.
fn imports(path: &str, code: &str) -> Vec<String> {
    let packed: String = code
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" ::", "::")
        .replace(":: ", "::");
    let mut found: Vec<String> = occurrences(&packed, "crate::")
        .flat_map(|at| heads(&packed[at + "crate::".len()..]))
        .collect();
    // `src/a.rs` is one step below the root, `src/a/b.rs` two.
    let depth = path.split('/').count() - 1;
    for at in occurrences(&packed, "super::") {
        let chain = &packed[at..];
        if packed[..at].ends_with("super::") {
            continue;
        }
        let steps = chain
            .split("super::")
            .take_while(|part| part.is_empty())
            .count();
        if steps >= depth {
            found.extend(heads(&chain[steps * "super::".len()..]));
        }
    }
    found
}

/// Everything that is wrong with one file.
fn faults(path: &str, source: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !source.starts_with("//!") {
        faults.push(format!("{path} does not open with its purpose (`//!`)"));
    }
    let code = without_tests(&code_of(source));
    let lines = own_lines(source);
    if lines > MAX_LINES {
        faults.push(format!(
            "{path} has {lines} lines without its tests; {MAX_LINES} are allowed"
        ));
    }
    let module = path
        .trim_start_matches("src/")
        .trim_end_matches(".rs")
        .split('/')
        .next()
        .unwrap();
    if !matches!(module, "lib" | "main") {
        if rank(module).is_none() {
            faults.push(format!("{path}: module `{module}` stands in no row"));
        }
        for import in imports(path, &code) {
            if import != module && !may_import(module, &import) {
                faults.push(format!("{path}: `{module}` may not use `{import}`"));
            }
        }
    }
    for (library, places) in PLACES {
        let stays = places.iter().any(|place| is_at(path, place));
        if !stays && names(&code, library) {
            faults.push(format!(
                "{path} names `{library}`, which belongs to {}",
                places.join(", ")
            ));
        }
    }
    if !OPENERS.iter().any(|place| is_at(path, place)) && opens_untrusted(&code) {
        faults.push(format!("{path} opens `Untrusted`; only `sanitize` may"));
    }
    faults
}

/// Whether `path` is the file or lies in the folder that `place` names.
fn is_at(path: &str, place: &str) -> bool {
    path.strip_prefix(place)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest.starts_with(".rs"))
}

fn opens_untrusted(code: &str) -> bool {
    let packed: String = code.split_whitespace().collect();
    let named = packed.contains("Untrusted");
    packed.contains(".open()")
        || packed.contains("Untrusted::open")
        || packed.contains("Untrusted::peek")
        || (named && packed.contains(".peek()"))
}

/// Lines without those of inline tests.
fn own_lines(source: &str) -> usize {
    source
        .lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .count()
}

fn source_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Files that only tests have: `tests.rs`, and what `#[cfg(test)] mod x;` declares.
fn is_test_file(root: &Path, path: &Path) -> bool {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let inside = path.components().any(|part| part.as_os_str() == "tests");
    if name == "tests" || inside {
        return true;
    }
    let folder = path.parent().unwrap();
    let parent = folder.with_extension("rs");
    let declares = |file: &Path| {
        fs::read_to_string(file).is_ok_and(|source| {
            let packed: String = source.split_whitespace().collect::<Vec<_>>().join(" ");
            ["", "pub(crate) "]
                .iter()
                .any(|reach| packed.contains(&format!("#[cfg(test)] {reach}mod {name};")))
        })
    };
    declares(&parent) || (folder == root && declares(&root.join("lib.rs")))
}

#[test]
fn the_source_keeps_its_layers() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.join("src");
    let mut files = Vec::new();
    source_files(&root, &mut files);
    assert!(files.len() > 20, "the source was not found");
    let mut found = Vec::new();
    for file in files {
        let path = file
            .strip_prefix(package)
            .unwrap()
            .to_string_lossy()
            .replace('\\', "/");
        let source = fs::read_to_string(&file).unwrap();
        if !is_test_file(&root, &file) {
            found.extend(faults(&path, &source));
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_module_of_the_library_has_a_row() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    for line in lib.lines() {
        if let Some(module) = line
            .strip_prefix("pub mod ")
            .and_then(|rest| rest.strip_suffix(';'))
        {
            assert!(rank(module).is_some(), "`{module}` stands in no row");
        }
    }
}

fn faults_of(path: &str, code: &str) -> Vec<String> {
    faults(path, &format!("//! Purpose.\n{code}"))
}

#[test]
fn an_upward_or_sideward_import_is_a_fault() {
    for (path, code) in [
        ("src/store.rs", "use crate::http::router;"),
        ("src/store/rows.rs", "use crate::{ids::TenantId, pipeline};"),
        (
            "src/store/rows.rs",
            "use crate::{\n    ids,\n    config::{A, B},\n    audit::X,\n};",
        ),
        ("src/store.rs", "fn f() { crate::mcp::answer() }"),
        ("src/store.rs", "use super::limits::Limits;"),
        ("src/store/rows.rs", "use super::super::http;"),
        (
            "src/store/a/b.rs",
            "use super::super::super::{ids, visibility};",
        ),
        ("src/store.rs", "use super::*;"),
        ("src/store.rs", "use crate::sanitize::Sanitizer;"),
        ("src/identity.rs", "use crate::upstream::Upstream;"),
        ("src/app.rs", "use crate::cli::run;"),
        ("src/store.rs", "use crate :: http :: router;"),
        ("src/unheard_of.rs", ""),
        ("src/store.rs", "use crate::unheard_of::X;"),
    ] {
        assert_eq!(faults_of(path, code).len(), 1, "{path}: {code}");
    }
}

#[test]
fn imports_from_above_and_within_are_none() {
    for (path, code) in [
        (
            "src/store.rs",
            "use crate::{config::Database, ids::TenantId};",
        ),
        (
            "src/store/rows.rs",
            "use super::StoreError; use crate::store::pool;",
        ),
        (
            "src/store/a/b.rs",
            "use super::super::pool; pub(super) fn f() {} pub(in crate::store) fn g() {}",
        ),
        (
            "src/store.rs",
            "// crate::http is above\n/* crate::http */ const A: &str = \"crate::http\";",
        ),
        (
            "src/store.rs",
            "const A: &str = r#\"use crate::http;\"#; const B: char = '\"'; fn f<'a>(x: &'a str) {}",
        ),
        (
            "src/store.rs",
            "#[cfg(test)]\nmod tests {\n    use crate::http::x;\n    fn f() { if a {} }\n}\n",
        ),
        ("src/cli.rs", "use crate::{app, lifecycle};"),
        ("src/clock.rs", "use crate::ids::CallId;"),
        ("src/main.rs", "use toolgate::cli;"),
    ] {
        assert_eq!(faults_of(path, code), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn a_library_outside_its_place_is_a_fault() {
    for (path, code) in [
        ("src/audit.rs", "use sqlx::PgPool;"),
        ("src/identity.rs", "let client = reqwest::Client::new();"),
        ("src/mcp.rs", "use axum::Json;"),
        ("src/mcp.rs", "use tower::Service;"),
        ("src/http.rs", "use governor::Quota;"),
        ("src/catalog.rs", "tokio::process::Command::new(x);"),
        ("src/store/pool.rs", "use std::process::exit;"),
        ("src/limits.rs", "let x = std::env::args();"),
        ("src/mcp.rs", "use prometheus_client::registry::Registry;"),
        ("src/store_like.rs", "use sqlx::PgPool;"),
    ] {
        assert!(!faults_of(path, code).is_empty(), "{path}: {code}");
    }
    for (path, code) in [
        ("src/store/rows.rs", "use sqlx::PgPool;"),
        ("src/upstream/sql.rs", "use sqlx::PgPool;"),
        ("src/upstream/stdio.rs", "use tokio::process::Command;"),
        ("src/http/router.rs", "use tower_governor::GovernorLayer;"),
    ] {
        assert_eq!(faults_of(path, code), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn opening_what_an_upstream_said_is_a_fault() {
    for code in [
        "let json = result.open();",
        "let json = result\n    .open();",
        "use crate::protocol::Untrusted; fn f(x: &Untrusted<u8>) { x.peek(); }",
        "results.map(crate::protocol::Untrusted::open)",
    ] {
        assert_eq!(faults_of("src/dispatch.rs", code).len(), 1, "{code}");
        assert_eq!(
            faults_of("src/sanitize/sanitizer.rs", code),
            Vec::<String>::new(),
            "{code}"
        );
    }
    for code in [
        "sealer.open(text, aad)",
        "let next = chars.peek();",
        "options.open(path)",
    ] {
        assert_eq!(
            faults_of("src/mcp.rs", code),
            Vec::<String>::new(),
            "{code}"
        );
    }
}

#[test]
fn a_long_or_nameless_file_is_a_fault() {
    let long = "const A: u8 = 1;\n".repeat(MAX_LINES);
    assert_eq!(faults_of("src/ids.rs", &long).len(), 1);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
    assert_eq!(faults_of("src/ids.rs", &tests), Vec::<String>::new());
    assert_eq!(faults("src/ids.rs", "use std::fmt;\n").len(), 1);
}
