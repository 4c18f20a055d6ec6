//! A file that the configuration names and whose content is read again when it
//! changes: keys, credentials.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use zeroize::Zeroizing;

/// Nothing that is watched is longer.
const MAX_BYTES: u64 = 1 << 20;

/// A file that is looked at once a second at most.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    looked: AtomicI64,
    seen: Mutex<Seen>,
}

/// What was there at the last look.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Unreadable(io::ErrorKind),
    /// Modification time, size and inode: a file that is replaced with the times
    /// of the old one, as by a mounted secret, is seen too.
    Version(i64, i64, u64, u64),
}

impl WatchedFile {
    /// Watches a path. Nothing is read yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            looked: AtomicI64::new(i64::MIN),
            seen: Mutex::new(Seen::Nothing),
        }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the content to `take`, if it is not what it was at the last look, and
    /// returns what `take` makes of it. `now` in seconds: within the second of the
    /// last look there is none. An error comes once, not at every look. Nobody else
    /// looks before `take` is done, so that an older content never comes last. The content
    /// is wiped afterwards: it may be a key.
    pub fn changed<T>(
        &self,
        now: i64,
        take: impl FnOnce(io::Result<Zeroizing<String>>) -> T,
    ) -> Option<T> {
        if self.looked.swap(now, Ordering::Relaxed) == now {
            return None;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, content) = match self.look(&seen) {
            Ok(None) => return None,
            Ok(Some((version, content))) => (version, Ok(content)),
            Err(error) => (Seen::Unreadable(error.kind()), Err(error)),
        };
        if *seen == found {
            return None;
        }
        *seen = found;
        Some(take(content))
    }

    fn look(&self, seen: &Seen) -> io::Result<Option<(Seen, Zeroizing<String>)>> {
        let file = File::open(&self.path)?;
        let metadata = file.metadata()?;
        let found = Seen::Version(
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.size(),
            metadata.ino(),
        );
        if *seen == found {
            return Ok(None);
        }
        // Room for all of it at once: a growing buffer leaves copies behind.
        let expected = metadata.size().min(MAX_BYTES);
        let room = usize::try_from(expected).unwrap_or_default() + 2;
        let mut content = Zeroizing::new(String::with_capacity(room));
        file.take(MAX_BYTES).read_to_string(&mut content)?;
        Ok(Some((found, content)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_when_it_changed_and_once_a_second_at_most() {
        let path = std::env::temp_dir().join(format!("toolgate-watched-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let file = WatchedFile::new(&path);
        let text = |content: io::Result<Zeroizing<String>>| Some(content.ok()?.to_string());
        let changed = |now| file.changed(now, text);
        assert_eq!(changed(1), Some(None), "the error comes");
        assert_eq!(changed(2), None, "and comes once");
        std::fs::write(&path, "a").unwrap();
        assert_eq!(changed(2), None, "this second was looked at");
        assert_eq!(changed(3), Some(Some("a".to_owned())));
        assert_eq!(changed(4), None);
        std::fs::write(&path, "bb").unwrap();
        assert_eq!(changed(5), Some(Some("bb".to_owned())));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(changed(6), Some(None));
        std::fs::write(&path, "bb").unwrap();
        assert_eq!(changed(7), Some(Some("bb".to_owned())));
        std::fs::remove_file(&path).unwrap();
    }
}
