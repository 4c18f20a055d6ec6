//! What the whole suite leaves behind for its last step, `tests/secrets.py`: everything
//! that the program under test printed, and every secret that a test made or was given.
//! No secret may stand in any output, in whatever test and form.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// Shorter texts are found by chance.
const SHORTEST: usize = 9;

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("printed");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file for what one process prints.
pub(crate) fn output(name: &str) -> File {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let test = std::thread::current()
        .name()
        .unwrap_or("main")
        .replace("::", ".");
    let file = format!("{}-{number}-{name}-{test}.log", std::process::id());
    let path = folder().join(file);
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
}

/// Notes a secret.
pub(crate) fn secret(kind: &str, text: &str) {
    static KNOWN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    static FILE: OnceLock<File> = OnceLock::new();
    if text.len() < SHORTEST || text.contains(['\n', '\t']) {
        return;
    }
    let mut known = KNOWN.lock().unwrap();
    if known.get_or_insert_default().insert(text.to_owned()) {
        let path = folder().join(format!("{}.secrets", std::process::id()));
        let mut file = FILE.get_or_init(|| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .unwrap()
        });
        writeln!(file, "{kind}\t{text}").unwrap();
    }
}

/// Notes the secrets of an answer: tokens and client secrets.
pub(crate) fn secrets_of(body: &str) {
    let Ok(object) = serde_json::from_str::<serde_json::Value>(body) else {
        return;
    };
    for kind in ["access_token", "refresh_token", "client_secret"] {
        if let Some(text) = object[kind].as_str() {
            secret(kind, text);
        }
    }
}
