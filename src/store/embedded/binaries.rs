//! Finds Postgres' programs: the newest of the machine's own that fits the
//! data, else one on `PATH`, else one that is fetched once and kept.

use std::fs;
use std::path::{Path, PathBuf};

use postgresql_embedded::{PostgreSQL, SettingsBuilder};

use super::account::Account;
use super::cluster::Place;
use super::{EmbeddedFault, EmbeddedSettings};

/// A directory with `initdb`, `pg_ctl` and `postgres`, all of one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binaries {
    pub(super) directory: PathBuf,
    pub(super) major: u32,
}

/// The oldest release that has everything we ask of it.
const OLDEST: u32 = 13;

impl Binaries {
    pub(super) async fn find(
        settings: &EmbeddedSettings,
        place: &Place,
        account: Option<&Account>,
    ) -> Result<Self, EmbeddedFault> {
        let wanted = place.major();
        let mut found = installed(Path::new("/usr/lib/postgresql"));
        let on_path = settings.search_path.iter();
        found.extend(on_path.filter_map(|directory| Self::at(directory)));
        found.retain(|binaries| {
            binaries.major >= OLDEST
                && account.is_none_or(|account| {
                    account
                        .closed_above(&binaries.program("postgres"))
                        .is_none()
                })
        });
        if let Some(fitting) = pick(&found, wanted) {
            return Ok(fitting.clone());
        }
        fetch(place, wanted).await.map_err(|fault| match wanted {
            Some(data) if !found.is_empty() => EmbeddedFault::WrongVersion {
                directory: place.directory.clone(),
                data,
                found: majors(&found),
            },
            _ => fault,
        })
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The binaries in `directory`, if it holds what is needed. The release is
    /// told by the path (`…/15/bin`) or by the version file beside it.
    fn at(directory: &Path) -> Option<Self> {
        let directory = fs::canonicalize(directory.join("pg_ctl")).ok()?;
        let directory = directory.parent()?.to_path_buf();
        let complete = ["initdb", "pg_ctl", "postgres"]
            .iter()
            .all(|name| directory.join(name).is_file());
        let major = major_of(&directory).filter(|_| complete)?;
        Some(Self { directory, major })
    }
}

/// What is installed below `root`, in the way of Debian: `15/bin`.
fn installed(root: &Path) -> Vec<Binaries> {
    fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Binaries::at(&entry.path().join("bin")))
        .collect()
}

fn pick(found: &[Binaries], wanted: Option<u32>) -> Option<&Binaries> {
    match wanted {
        Some(major) => found.iter().find(|binaries| binaries.major == major),
        // The first of the newest: the usual places come before `PATH`.
        None => found.iter().rev().max_by_key(|binaries| binaries.major),
    }
}

fn majors(found: &[Binaries]) -> String {
    let names: Vec<String> = found
        .iter()
        .map(|binaries| binaries.major.to_string())
        .collect();
    names.join(", ")
}

/// The number in `postgres --version`: `postgres (PostgreSQL) 15.6 (Debian …)`.
fn major_of(directory: &Path) -> Option<u32> {
    let said = std::process::Command::new(directory.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    parse_major(&String::from_utf8_lossy(&said.stdout))
}

fn parse_major(text: &str) -> Option<u32> {
    let version = text.split_whitespace().nth(2)?;
    let end = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    version.get(..end)?.parse().ok()
}

/// Fetches a release into the data's own directory. The crate would also make
/// a cluster, as ourselves and with rules of its own: an empty directory that
/// looks like one keeps it from that.
async fn fetch(place: &Place, wanted: Option<u32>) -> Result<Binaries, EmbeddedFault> {
    let none = |message: String| EmbeddedFault::NoBinaries(message);
    let pretended = place.directory.join("binaries").join("none");
    let io = |source| EmbeddedFault::Io {
        path: pretended.clone(),
        source,
    };
    fs::create_dir_all(&pretended).map_err(io)?;
    fs::write(pretended.join("postgresql.conf"), "").map_err(io)?;
    let version = wanted.map_or_else(|| "*".to_owned(), |major| format!("={major}"));
    let version = postgresql_embedded::VersionReq::parse(&version)
        .map_err(|fault| none(fault.to_string()))?;
    tracing::info!("This machine has no Postgres; fetching one. It is kept for later runs.");
    let mut fetched = PostgreSQL::new(
        SettingsBuilder::new()
            .version(version)
            .installation_dir(place.directory.join("binaries"))
            .data_dir(pretended)
            .temporary(false)
            .build(),
    );
    fetched
        .setup()
        .await
        .map_err(|fault| none(fault.to_string()))?;
    let directory = fetched.settings().binary_dir();
    Binaries::at(&directory).ok_or_else(|| none("what was fetched is not complete".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(major: u32) -> Binaries {
        Binaries {
            directory: PathBuf::from(format!("/usr/lib/postgresql/{major}/bin")),
            major,
        }
    }

    #[test]
    fn the_release_is_read_from_what_postgres_says() {
        let debian = "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n";
        assert_eq!(parse_major(debian), Some(15));
        assert_eq!(parse_major("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(parse_major("busybox"), None);
    }

    #[test]
    fn the_newest_release_makes_new_data_and_the_same_release_opens_old_data() {
        let found = [of(14), of(16), of(15)];
        assert_eq!(pick(&found, None), Some(&of(16)));
        assert_eq!(pick(&found, Some(14)), Some(&of(14)));
        assert_eq!(pick(&found, Some(12)), None);
    }
}
