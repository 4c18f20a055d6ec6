//! Sees the configuration file change. Watches folders rather than the file: an
//! editor puts a new file in its place, and Kubernetes swaps a symbolic link
//! above it. Where nothing can be watched (some network file systems, too few
//! inotify instances) it looks every few seconds.
//!
//! It decides nothing: a faulty file comes out as its faults, and the caller keeps
//! what it has.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::environment::Environment;
use super::fault::ConfigFaults;
use super::load::{self, Loaded};

/// A file is read when nothing has happened for so long, …
const QUIET: Duration = Duration::from_millis(150);
/// … or when so much time has passed since the first change.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often to look all the same, should a watched folder have stayed silent …
const WATCHED: Duration = Duration::from_secs(30);
/// … and where none can be watched.
const UNWATCHED: Duration = Duration::from_secs(2);
/// Symbolic links that are followed.
const MOST_LINKS: usize = 16;

type Change = Result<Loaded, ConfigFaults>;

/// A running watch. Ends when it is dropped or its token is cancelled.
#[derive(Debug)]
pub struct Watch {
    changes: mpsc::Receiver<Change>,
    _stop: DropGuard,
}

impl Watch {
    /// Begins to watch the file that `running` came from. Must be called within a
    /// tokio runtime. The environment stays what it was: it cannot change.
    pub fn start(running: &Loaded, environment: Environment, stop: &CancellationToken) -> Self {
        let (sender, changes) = mpsc::channel(1);
        let stop = stop.child_token();
        let file = File {
            path: running.path.clone(),
            environment,
            seen: Some(running.digest),
        };
        tokio::spawn(run(file, sender, stop.clone()));
        Self {
            changes,
            _stop: stop.drop_guard(),
        }
    }

    /// The next change: the new configuration, or why it was refused. The same
    /// content is never reported twice in a row. `None` when the watch has ended.
    /// May be dropped and called again without losing a change.
    pub async fn recv(&mut self) -> Option<Change> {
        self.changes.recv().await
    }
}

struct File {
    path: PathBuf,
    environment: Environment,
    /// The digest of what was last read; `None` when it could not be read.
    seen: Option<[u8; 32]>,
}

impl File {
    /// Reads the file, and checks it where it is not what was read before.
    fn look(&mut self) -> Option<Change> {
        let bytes = load::read(&self.path).ok();
        let digest = bytes
            .as_ref()
            .map(|bytes| load::digest(bytes, &self.environment));
        if digest == self.seen {
            return None;
        }
        self.seen = digest;
        Some(match bytes {
            Some(bytes) => load::parse(&self.path, &bytes, &self.environment),
            None => load::load(&self.path, &self.environment),
        })
    }
}

async fn run(mut file: File, sender: mpsc::Sender<Change>, stop: CancellationToken) {
    let mut warned = false;
    loop {
        // A new watcher each time: the links on the way to the file may lead elsewhere now.
        let (note, mut events) = mpsc::channel(1);
        let watcher = watcher(&file.path, &note);
        if let (Err(fault), false) = (&watcher, warned) {
            warned = true;
            tracing::warn!(
                path = %file.path.display(),
                error = %fault,
                "the configuration file cannot be watched; it is read every two seconds instead"
            );
        }
        // Looked at once more before waiting: it may have changed while nobody watched.
        let looked = tokio::task::spawn_blocking(move || (file.look(), file)).await;
        let Ok((change, back)) = looked else { return };
        file = back;
        if let Some(change) = change {
            tokio::select! {
                () = stop.cancelled() => return,
                sent = sender.send(change) => if sent.is_err() { return },
            }
        }
        let pause = if watcher.is_ok() { WATCHED } else { UNWATCHED };
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
            _ = events.recv() => settle(&mut events).await,
        }
    }
}

/// Waits until whoever writes is done.
async fn settle(events: &mut mpsc::Receiver<()>) {
    let latest = Instant::now() + PATIENCE;
    loop {
        tokio::select! {
            () = sleep(QUIET) => return,
            () = sleep_until(latest) => return,
            _ = events.recv() => {}
        }
    }
}

fn watcher(path: &Path, note: &mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let note = note.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading the file is an event too, and would be ours.
        let matters = event.map_or(true, |event| !matches!(event.kind, EventKind::Access(_)));
        if matters {
            // A full channel already says that something happened.
            let _ = note.try_send(());
        }
    })?;
    for folder in folders(path) {
        watcher.watch(&folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// The folder of the file, and of every link on the way to it.
fn folders(path: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let target = std::fs::read_link(&path).map(|target| folder.join(target));
        if !folders.contains(&folder) && (folders.is_empty() || folder.is_dir()) {
            folders.push(folder);
        }
        match target {
            Ok(target) => path = target,
            Err(_) => break,
        }
    }
    folders
}

#[cfg(test)]
mod tests;
