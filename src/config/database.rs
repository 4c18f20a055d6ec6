//! `database`: Postgres, or one of our own.

use std::path::PathBuf;

use serde::Deserialize;

use super::Interval;
use crate::secret::Secret;

/// `database`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// Connection string. May hold a password: prefer `url_file`.
    pub url: Option<Secret<String>>,
    /// File with the connection string.
    pub url_file: Option<PathBuf>,
    /// Connection string for migrations and `LISTEN`, where `url` leads through a transaction pooler.
    pub direct_url: Option<Secret<String>>,
    /// A Postgres that Toolgate starts and stops itself. For one replica.
    pub embedded: Option<Embedded>,
    /// Connections for everything but the audit.
    pub connections: u32,
    /// Connections for writing the audit.
    pub audit_connections: u32,
    /// How long a statement or a connection may take.
    pub timeout: Interval,
}

/// `database.embedded`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedded {
    /// Where its data lives; kept between runs.
    pub data_dir: PathBuf,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            url_file: None,
            direct_url: None,
            embedded: None,
            connections: 8,
            audit_connections: 4,
            timeout: Interval::seconds(2),
        }
    }
}
