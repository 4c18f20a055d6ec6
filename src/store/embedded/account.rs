//! Whom the server runs as: Postgres refuses to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

use super::EmbeddedFault;

/// Another user than ours, for the server and its files.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) user: u32,
    pub(super) group: u32,
}

pub(super) fn is_root() -> bool {
    Uid::effective().is_root()
}

impl Account {
    /// None for an ordinary user, who is good enough. For root: whoever owns
    /// the data already, else `postgres`, else `nobody`.
    pub(super) fn choose(data: &Path) -> Result<Option<Self>, EmbeddedFault> {
        if !is_root() {
            return Ok(None);
        }
        if let Ok(found) = fs::metadata(data)
            && found.uid() != 0
        {
            let name = User::from_uid(Uid::from_raw(found.uid()))
                .ok()
                .flatten()
                .map_or_else(|| found.uid().to_string(), |user| user.name);
            return Ok(Some(Self {
                name,
                user: found.uid(),
                group: found.gid(),
            }));
        }
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .map(|user| {
                Some(Self {
                    name: user.name,
                    user: user.uid.as_raw(),
                    group: user.gid.as_raw(),
                })
            })
            .ok_or_else(|| EmbeddedFault::Command {
                program: "postgres".to_owned(),
                message: "must not run as root, and there is no user `postgres` or `nobody`"
                    .to_owned(),
            })
    }

    /// Gives a file or directory to the account.
    pub(super) fn own(&self, path: &Path) -> Result<(), EmbeddedFault> {
        chown(path, Some(self.user), Some(self.group)).map_err(|source| EmbeddedFault::Io {
            path: path.to_path_buf(),
            source,
        })
    }

    /// Fails where a directory above `path` is closed to the account.
    pub(super) fn check_reach(&self, path: &Path) -> Result<(), EmbeddedFault> {
        match self.closed_above(path) {
            None => Ok(()),
            Some(closed) => Err(EmbeddedFault::Unreachable {
                user: self.name.clone(),
                path: closed,
            }),
        }
    }

    /// The first directory above `path` that is closed to the account.
    pub(super) fn closed_above(&self, path: &Path) -> Option<PathBuf> {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        above
            .into_iter()
            .filter(|directory| !directory.as_os_str().is_empty())
            .find(|directory| fs::metadata(directory).is_ok_and(|found| !self.may_pass(&found)))
            .map(Path::to_path_buf)
    }

    fn may_pass(&self, found: &fs::Metadata) -> bool {
        let bit = if found.uid() == self.user {
            0o100
        } else if found.gid() == self.group {
            0o010
        } else {
            0o001
        };
        found.mode() & bit != 0
    }
}
