//! The deployment's keys: there, strong, kept from others, not too many.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::app;
use crate::cli::doctor::report::{Level, Report, Trouble};
use crate::config::{Config, read_secret_file};

const STEP: &str = "keys";

/// A random key has some thirty different bytes; fewer than this is not chance.
const LEAST_DIFFERENT: usize = 18;
/// The key that seals and those that were in use before it.
const USUAL: usize = 3;

pub(super) fn look(config: &Config, report: &mut Report) {
    let Some(file) = &config.keys_file else {
        return report.note(
            STEP,
            "the keys lie beside the embedded database: back them up with it",
        );
    };
    if let Err(fault) = app::keys(config) {
        return report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: &format!("{fault:#}"),
                why: "nothing can be sealed or signed: the service does not start",
                change: "put one line of `openssl rand -hex 32` into the file, the same on every replica",
            },
        );
    }
    let Ok(text) = read_secret_file(file) else {
        return;
    };
    let lines: Vec<&str> = text.expose().split_whitespace().collect();
    report.ok(STEP, format!("{} key(s); the first seals", lines.len()));
    for (line, _) in (1..).zip(&lines).filter(|(_, key)| is_made_up(key)) {
        report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: &format!("key {line} does not look random"),
                why: "whoever guesses it makes sessions and tokens, and reads what is sealed in the database",
                change: "put a line of `openssl rand -hex 32` on top, roll out, and remove the old one when the longest session is over",
            },
        );
    }
    if lines.len() > USUAL {
        report.trouble(
            Level::Warning,
            STEP,
            Trouble {
                what: &format!("{} keys still open what they sealed", lines.len()),
                why: "an old key that leaked is as good as a new one for as long as its line stands here",
                change: "remove lines whose rotation is over (docs/operations.md)",
            },
        );
    }
    permissions(file, report);
}

/// Whether no random source gave it.
fn is_made_up(key: &str) -> bool {
    let mut pairs: Vec<&[u8]> = key.as_bytes().chunks(2).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.len() < LEAST_DIFFERENT
}

fn permissions(file: &Path, report: &mut Report) {
    let Ok(metadata) = std::fs::metadata(file) else {
        return;
    };
    let mode = metadata.mode() & 0o777;
    if mode & 0o027 == 0 {
        return report.ok(
            STEP,
            format!("the file is closed to others (mode {mode:o})"),
        );
    }
    report.trouble(
        Level::Warning,
        STEP,
        Trouble {
            what: &format!("the file is open to others (mode {mode:o})"),
            why: "every account of the machine that reads it can make sessions and tokens; one that writes it can do so unnoticed",
            change: "chmod 0440 or 0400, owned by the account that Toolgate runs as",
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Keys;

    #[test]
    fn a_key_that_somebody_typed_is_told_from_a_random_one() {
        for made_up in [
            "0".repeat(64),
            "0123456789abcdef".repeat(4),
            "deadbeef".repeat(8),
        ] {
            assert!(is_made_up(&made_up), "{made_up}");
        }
        for _ in 0..1000 {
            assert!(!is_made_up(&Keys::generate_line()));
        }
    }
}
