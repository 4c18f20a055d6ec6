//! Which lines of a text are frames of a stack, in the forms that languages write.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Lines that are frames, or stand in a trace, by themselves.
const FRAMES: &str = r#"(?x)^(?:
    # Python
    [\ \t]*Traceback\ \(most\ recent\ call\ last\):?
  | [\ \t]*(?:\|[\ \t]*)?File\ "[^"]*",\ line\ [0-9]+.*
  | [\ \t]*During\ handling\ of\ the\ above\ exception.*
  | [\ \t]*The\ above\ exception\ was\ the\ direct\ cause.*
  | [\ \t]*\[Previous\ line\ repeated\ [0-9]+.*
  | [\ \t]*[\^~]{2,}[\ \t]*
    # Java, Kotlin, Scala, Clojure, .NET, JavaScript
  | [\ \t]+at\ (?:async\ |new\ |async\ new\ )?[0-9A-Za-z_.$<>\[\]/@\#*\ :\\`,&|+=~^-]*\(.*\)(?:\ in\ .+)?[\ \t]*
  | [\ \t]+at\ (?:async\ )?(?:file://|node:|/|[A-Za-z]:\\|https?://)\S+:[0-9]+(?::[0-9]+)?[\ \t]*
  | [\ \t]+at\ [0-9A-Za-z_.$`<>]+[\ \t]*(?:\(\))?\ in\ .+:line\ [0-9]+[\ \t]*
  | [\ \t]+at\ (?:<anonymous>|native|new\ Promise.*)
  | at\ [0-9A-Za-z_.$<>/]+\([^)]*\.(?:java|kt|scala|groovy|clj|js|ts|cs):?[0-9]*(?::[0-9]+)?\)[\ \t]*
  | [\ \t]*\.\.\.\ [0-9]+\ (?:more|common\ frames\ omitted).*
  | [\ \t]*---\ End\ of\ (?:inner\ exception\ )?stack\ trace.*
  | \S*@(?:https?|file|resource|chrome)://\S+:[0-9]+:[0-9]+[\ \t]*
    # Go
  | goroutine\ [0-9]+\ \[.*
  | created\ by\ \S+(?:\ in\ goroutine\ [0-9]+)?[\ \t]*
  | [\ \t]+\S+\.go:[0-9]+(?:\ \+0x[0-9a-f]+)?[\ \t]*
  | (?:[0-9A-Za-z_./*()-]+\.)?[0-9A-Za-z_.()*-]+\((?:\.\.\.|(?:0x[0-9a-f]+|\{.*\}|,|\ |\.{3}|\?)*)\)[\ \t]*
  | exit\ status\ [0-9]+[\ \t]*
  | \[signal\ SIG.*
    # Rust
  | stack\ backtrace:[\ \t]*
  | [\ \t]+[0-9]+:[\ \t]+(?:0x[0-9a-f]+\ -\ )?[0-9A-Za-z_<>:{}\#&\ ,.$*\[\];()=-]+[\ \t]*
  | note:\ (?:run\ with\ `RUST_BACKTRACE|[Ss]ome\ details\ are\ omitted).*
    # PHP
  | [\ \t]*(?:PHP\ )?Stack\ trace:[\ \t]*
  | (?:PHP[\ \t]+)?[\ \t]*\#[0-9]+[\ \t]+\{main\}.*
  | (?:PHP[\ \t]+)?[\ \t]*\#?[0-9]+\.?[\ \t]+\S+\([0-9]+\):\ .*
  | [\ \t]*\#[0-9]+\ \[internal\ function\]:.*
  | [\ \t]*thrown\ in\ .+\ on\ line\ [0-9]+[\ \t]*
    # Ruby, Perl, Lua
  | [\ \t]+from\ \S+:[0-9]+:in\ .*
  | [\ \t]+\S+\.rb:[0-9]+:in\ .*
  | [\ \t]*\S+\.p[lm]\ line\ [0-9]+\.?[\ \t]*
  | [\ \t]+\S+(?:::\S+)?\([^)]*\)\ called\ at\ .+\ line\ [0-9]+.*
  | [\ \t]*stack\ traceback:[\ \t]*
  | [\ \t]+\[C\]:\ (?:in|at)\ .*
  | [\ \t]+\S+\.lua:[0-9]+:\ in\ .*
    # Elixir, Erlang
  | [\ \t]+\([0-9A-Za-z_.\ -]+\)\ \S+\.(?:ex|exs|erl):[0-9]+:\ .*
  | [\ \t]+\S+\.(?:ex|exs|erl):[0-9]+:\ .*
    # C, C++, Swift, Objective-C
  | [\ \t]*\#[0-9]+[\ \t]+(?:0x[0-9a-f]+[\ \t]+)?in\ .*
  | [\ \t]*\#[0-9]+[\ \t]+0x[0-9a-f]+.*
  | [\ \t]*\S+\([^)]*\+0x[0-9a-f]+\)[\ \t]*\[0x[0-9a-f]+\][\ \t]*
  | [\ \t]*\S*\[0x[0-9a-f]+\][\ \t]*
  | [0-9]+[\ \t]+\S+[\ \t]+0x[0-9a-f]{8,16}\ .*
  | [\ \t]*\*{3}\ (?:Check\ failure\ )?[Ss]tack\ trace.*
    # PowerShell
  | [\ \t]*At\ (?:[A-Za-z]:\\|/)\S.*:[0-9]+\ char:[0-9]+[\ \t]*
  | [\ \t]*\+\ (?:CategoryInfo|FullyQualifiedErrorId|~+).*
    # Dart
  | \#[0-9]+[\ \t]+\S.*\((?:package|dart|file):[^)]*\)[\ \t]*
)$"#;

#[expect(
    clippy::expect_used,
    reason = "the pattern is ours; one that does not compile fails the first test"
)]
static FRAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(FRAMES).expect("the pattern of frames compiles"));

/// A line longer than this is no frame.
const LONGEST: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Frame,
    /// A call whose place stands on the next line (Go): alone it may be anything.
    Call,
    /// Source that a frame of Python quotes.
    Quote,
    Other,
}

/// Stretches of lines of frames, in order, each without its last line's end.
pub(super) fn traces(text: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut open: Option<Range<usize>> = None;
    let mut pending: Option<usize> = None;
    let mut python = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        let (start, end) = (at, at + bare.len());
        at += line.len();
        let kind = judge(bare, python, open.is_some());
        python = match kind {
            Line::Frame => bare.trim_start().starts_with("File \"") || bare.contains("| File \""),
            Line::Quote => python,
            _ => false,
        };
        match kind {
            Line::Frame | Line::Quote => {
                let from = pending.take().unwrap_or(start);
                match &mut open {
                    Some(block) => block.end = end,
                    None => open = Some(from..end),
                }
            }
            Line::Call => {
                pending.get_or_insert(start);
            }
            Line::Other if bare.trim().is_empty() => {}
            Line::Other => {
                pending = None;
                blocks.extend(open.take());
            }
        }
    }
    blocks.extend(open);
    blocks
}

fn judge(line: &str, python: bool, inside: bool) -> Line {
    if line.len() > LONGEST || line.trim().is_empty() {
        return Line::Other;
    }
    if python && line.starts_with("    ") {
        return Line::Quote;
    }
    if !FRAME.is_match(line) {
        return Line::Other;
    }
    let call = line.ends_with(')')
        && !line.starts_with([' ', '\t', '#', '@'])
        && !line.starts_with("at ")
        && !line.contains(' ');
    let numbered = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let weak = line.starts_with("exit status");
    match () {
        () if call => Line::Call,
        // A numbered list is none where no trace has begun.
        () if (numbered || weak) && !inside => Line::Other,
        () => Line::Frame,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> String {
        let mut out = String::new();
        let mut at = 0;
        for block in traces(text) {
            out.push_str(&text[at..block.start]);
            out.push('~');
            at = block.end;
        }
        out.push_str(&text[at..]);
        out
    }

    #[test]
    fn frames_go_and_messages_stay() {
        for (text, expected) in [
            (
                "Order 42 not found\nTraceback (most recent call last):\n  File \"/srv/a.py\", line 2, in get\n    return x\nValueError: bad",
                "Order 42 not found\n~\nValueError: bad",
            ),
            (
                "java.sql.SQLException: refused\n\tat com.acme.Dao.open(Dao.java:91)\n\tat a.B.c(Native Method)\nCaused by: java.net.ConnectException\n\t... 12 more",
                "java.sql.SQLException: refused\n~\nCaused by: java.net.ConnectException\n~",
            ),
            (
                "TypeError: x\n    at get (/app/src/a.js:7:1)\n    at async Promise.all (index 0)\n    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)",
                "TypeError: x\n~",
            ),
            (
                "panic: boom\n\ngoroutine 1 [running]:\nmain.orders(...)\n\t/home/b/auth.go:137 +0x1d\nexit status 2",
                "panic: boom\n\n~",
            ),
            (
                "System.Exception: no\n   at Acme.Web.Get(String id) in C:\\src\\Web.cs:line 12\n--- End of stack trace from previous location ---",
                "System.Exception: no\n~",
            ),
            (
                "x.php failed\nStack trace:\n#0 /var/www/html/index.php(868): run()\n#1 {main}",
                "x.php failed\n~",
            ),
            (
                "boom (RuntimeError)\n\tfrom app/a.rb:3:in 'b'\n\tfrom app/c.rb:9:in `d'",
                "boom (RuntimeError)\n~",
            ),
            (
                "thread 'main' panicked: no\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/abc/library/std/src/panicking.rs:665:5\nnote: run with `RUST_BACKTRACE=1`",
                "thread 'main' panicked: no\n~",
            ),
            (
                "** (KeyError) no key\n    (acme 1.0.0) lib/acme.ex:12: Acme.get/1",
                "** (KeyError) no key\n~",
            ),
            (
                "crash\n#0  0x00007f in foo () at file.cpp:12\n#1  0x00007f in main () at file.cpp:30",
                "crash\n~",
            ),
        ] {
            assert_eq!(left(text), expected);
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for text in [
            "The meeting is at (building 4) 10:30:05",
            "Caused by: a misconfigured proxy (see ticket 41)",
            "Look at com.acme.Service for details.",
            "Error: file not found at line 12 of the input",
            "Steps:\n 1: open the lid\n 2: close it",
            "call f(x)\nf(...)\nand wait",
            "#1 priority: ship\n#2 rest",
        ] {
            assert_eq!(left(text), text);
        }
    }
}
