//! `database`: Postgres, or one of our own.

use std::path::PathBuf;

use serde::Deserialize;

use super::Interval;
use super::check::Check;
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
    /// As whom the audit is written.
    pub audit: AuditDatabase,
    /// How long a statement or a connection may take.
    pub timeout: Interval,
}

/// `database.audit`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditDatabase {
    /// Connection string of a login that may only insert into the audit. May hold
    /// a password: prefer `writer_url_file`.
    pub writer_url: Option<Secret<String>>,
    /// File with that connection string.
    pub writer_url_file: Option<PathBuf>,
    /// What if the audit could only be written by a login that could alter it.
    pub roles: Separation,
}

/// `database.audit.roles`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Separation {
    /// It is written, and the start says so.
    #[default]
    Preferred,
    /// Calls are refused.
    Required,
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
            audit: AuditDatabase::default(),
            timeout: Interval::seconds(2),
        }
    }
}

impl Database {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        let given = [
            self.url.is_some(),
            self.url_file.is_some(),
            self.embedded.is_some(),
        ];
        match given.into_iter().filter(|given| *given).count() {
            1 => {}
            0 => check.key_fault(
                "says nothing of where the database is",
                "write one of `url_file`, `url` and `embedded`",
            ),
            _ => check.key_fault(
                "names more than one database",
                "keep one of `url_file`, `url` and `embedded`",
            ),
        }
        for (key, url) in [("url", &self.url), ("direct_url", &self.direct_url)] {
            if let Some(url) = url {
                check.within(key, |check| validate_connection(url, check));
            }
        }
        check.within("audit", |check| self.validate_audit(check));
        if self.embedded.is_some() && self.direct_url.is_some() {
            check.within("direct_url", |check| {
                check.fault("has no meaning beside `embedded`", "remove it");
            });
        }
        check.positive("connections", u64::from(self.connections));
        check.positive("audit_connections", u64::from(self.audit_connections));
        check.lasting("timeout", self.timeout);
    }

    fn validate_audit(&self, check: &mut Check<'_>) {
        let audit = &self.audit;
        if let Some(url) = &audit.writer_url {
            check.within("writer_url", |check| validate_connection(url, check));
        }
        let given = audit.writer_url.is_some() || audit.writer_url_file.is_some();
        if given && self.embedded.is_some() {
            check.fault("has no meaning beside `embedded`", "remove it");
        }
        if audit.writer_url.is_some() && audit.writer_url_file.is_some() {
            check.fault(
                "names more than one login",
                "keep one of `writer_url_file` and `writer_url`",
            );
        }
        if audit.roles == Separation::Required && self.direct_url.is_some() && !given {
            check.within("roles", |check| {
                check.fault(
                    "cannot be had over `url` beside `direct_url`: a transaction pooler keeps no roles",
                    "give `writer_url_file`",
                );
            });
        }
    }
}

fn validate_connection(url: &Secret<String>, check: &mut Check<'_>) {
    let url = url.expose();
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        check.fault(
            "is no connection string",
            "write `postgres://user@host/database`, with a password preferably in `url_file`",
        );
    }
}
