//! Stack traces, paths of source and names of inner hosts in words about a failure.
//! What a failure says first stays, and so does the last cause. Results that did not
//! fail keep their traces: a log or a ticket may be what was asked for.
//!
//! A text is read line by line ([`lines`]): lines of frames that follow each other
//! become one placeholder.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::detect::{Certainty, Cue, Detector, Family, Hit, Hits, Instead, Place, Subject};

mod lines;

/// Frames of a stack.
pub(super) const STACK_TRACE: &str = "stack_trace";
/// The path of a file of the program that failed.
pub(super) const INTERNAL_PATH: &str = "internal_path";
/// The name of an inner host.
pub(super) const INTERNAL_HOST: &str = "internal_host";

const CUES: &[Cue] = &[
    Cue::Word("traceback"),
    Cue::Word("stack"),
    Cue::Word("goroutine"),
    Cue::Word("panicked"),
    Cue::Word("panic:"),
    Cue::Word("exception"),
    Cue::Word("error:"),
    Cue::Word("site-packages"),
    Cue::Word("node_modules"),
    Cue::Word("node:internal"),
    Cue::Word(".java"),
    Cue::Word(".kt:"),
    Cue::Word(".scala:"),
    Cue::Word(".js:"),
    Cue::Word(".mjs:"),
    Cue::Word(".cjs:"),
    Cue::Word(".ts:"),
    Cue::Word(".jsx:"),
    Cue::Word(".tsx:"),
    Cue::Word(".py"),
    Cue::Word(".go:"),
    Cue::Word(".rs:"),
    Cue::Word(".cs"),
    Cue::Word(".vb:"),
    Cue::Word(".php"),
    Cue::Word(".rb:"),
    Cue::Word(".cpp"),
    Cue::Word(".cc:"),
    Cue::Word(".hpp:"),
    Cue::Word(".swift"),
    Cue::Word(".ex:"),
    Cue::Word(".exs:"),
    Cue::Word(".erl"),
    Cue::Word(".lua:"),
    Cue::Word(".pl line"),
    Cue::Word(".pm line"),
    Cue::Word(".dart:"),
    Cue::Word(".clj:"),
    Cue::Word("native method"),
    Cue::Word("unknown source"),
    Cue::Word(".internal"),
    Cue::Word(".intranet"),
    Cue::Word(".corp"),
    Cue::Word(".lan"),
    Cue::Word(".svc"),
    Cue::Word("cluster.local"),
    Cue::Word(".localdomain"),
    Cue::Word("home.arpa"),
];

/// The family.
pub(super) const DETECTOR: Detector = Detector {
    cues: CUES,
    plausible: |_, _| true,
    names: |_| false,
    find,
};

/// A file of source with the place in it, under any folders; packages of a language
/// that is installed; `in …/x.php on line 7`.
const PATHS: &str = r#"(?x)
    (?: \b(?:in|at|from)\x20 )?
    (?: file:// )?
    (?: [A-Za-z]:[\\/] | \\\\ | ~?/ | (?:\.{1,2}/) | \b(?:src|lib|app|internal|pkg|cmd|crates)/ )
    (?: [0-9A-Za-z_.@+$()\x20-]+ [\\/] )*?
    [0-9A-Za-z_.@+$-]+ \. (?:py|pyx|java|kt|scala|groovy|clj|js|mjs|cjs|jsx|ts|tsx|vue|go|rs|cs|vb|fs|php|phtml|rb|erb|c|cc|cpp|cxx|h|hpp|m|mm|swift|ex|exs|erl|pl|pm|lua|dart|jl|ps1|so|dll|dylib|jar|class)
    (?: (?: :[0-9]+ (?: :[0-9]+ )? | \([0-9]+ (?:,[0-9]+)? \) | :line\x20[0-9]+ | "?,?\x20(?:on\x20)?line\x20[0-9]+ )
      | \b )"#;

/// Names that no public resolver knows.
const HOSTS: &str = r"(?ix)
    \b (?: [a-z0-9_-]{1,63}\. ){1,8} (?: internal | intranet | localdomain | lan | corp | home\.arpa | svc | (?:svc\.)?cluster\.local ) \b (?: :[0-9]{1,5} )?
  | \b (?: [a-z0-9_-]{1,63}\. ){1,8} local:[0-9]{1,5}\b";

struct Patterns {
    paths: Regex,
    hosts: Regex,
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are ours; one that does not compile fails the first test"
)]
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns {
    paths: Regex::new(PATHS).expect("the pattern of paths compiles"),
    hosts: Regex::new(HOSTS).expect("the pattern of hosts compiles"),
});

fn find(subject: &Subject<'_>, hits: &mut Hits) {
    if subject.context.place != Place::Error {
        return;
    }
    let text = subject.text;
    let blocks = lines::traces(text);
    let mut at = 0;
    for block in &blocks {
        words(text, at..block.start, hits);
        hits.push(hit(STACK_TRACE, block.clone()));
        at = block.end;
    }
    words(text, at..text.len(), hits);
}

fn hit(label: &'static str, range: Range<usize>) -> Hit {
    Hit::new(Family::Traces, label, range, Certainty::Structure)
}

/// Paths and hosts in what is no frame.
fn words(text: &str, range: Range<usize>, hits: &mut Hits) {
    let part = text.get(range.clone()).unwrap_or_default();
    for found in PATTERNS.paths.find_iter(part) {
        let before = part.get(..found.start()).unwrap_or_default();
        // A path inside an address of the web is no file.
        let is_web = before
            .rsplit(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '('))
            .next()
            .is_some_and(|word| {
                word.contains(":/") || word.ends_with(|c: char| c.is_alphanumeric() || c == ':')
            });
        // A path from a project's own root counts with a line in it only.
        let preposition_less = found
            .as_str()
            .trim_start_matches("in ")
            .trim_start_matches("at ")
            .trim_start_matches("from ");
        let is_relative = !preposition_less.starts_with(['/', '\\', '~', 'f'])
            && preposition_less.as_bytes().get(1) != Some(&b':');
        let has_line = found
            .as_str()
            .ends_with(|c: char| c.is_ascii_digit() || c == ')');
        if is_web || (is_relative && !has_line) {
            continue;
        }
        let preposition = ["in ", "at ", "from "]
            .iter()
            .find(|word| found.as_str().starts_with(**word))
            .map_or(0, |word| word.len());
        let start = range.start + found.start() + preposition;
        hits.push(hit(INTERNAL_PATH, start..range.start + found.end()));
    }
    for found in PATTERNS.hosts.find_iter(part) {
        let range = range.start + found.start()..range.start + found.end();
        hits.push(hit(INTERNAL_HOST, range).instead(Instead::Placeholder));
    }
}

#[cfg(test)]
mod tests;
