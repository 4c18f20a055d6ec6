//! What can go wrong between us and Postgres, in the words that decide what to
//! do next: try elsewhere, ask again, or give the data up. Texts of the server
//! stay inside: they quote values.

use sqlx::Error;

/// Why the store could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written: no connection, no time, no room, or not a primary.
    #[error("the database is not available ({0})")]
    Unavailable(String),
    /// The statement was sent and the answer never came: it may have taken effect.
    #[error("the database did not say whether the statement took effect")]
    InDoubt,
    /// The database refused these values, and would refuse them again.
    #[error("the database refused the values (SQLSTATE {code})")]
    Rejected {
        /// The SQLSTATE, or `encode` when the values could not even be sent.
        code: String,
        /// The constraint that was violated.
        constraint: Option<String>,
    },
    /// A row is not what this program writes.
    #[error("a stored {0} is inconsistent")]
    Inconsistent(&'static str),
    /// A connection string that cannot be read. The string itself is not shown.
    #[error("the connection string of the database cannot be read")]
    BadUrl,
    /// A newer release has migrated the database.
    #[error(
        "the database's schema is {found}, newer than {known}, the newest that this release knows"
    )]
    SchemaNewer {
        /// The newest migration that was applied.
        found: i64,
        /// The newest migration of this program.
        known: i64,
    },
    /// A migration did not apply.
    #[error("the schema could not be migrated: {0}")]
    Migration(String),
}

impl StoreError {
    /// What `error` means for a statement that had been sent.
    pub(super) fn of_statement(error: &Error) -> Self {
        match error {
            Error::Database(fault) => {
                let code = fault.code().unwrap_or_default();
                match code.get(..2).unwrap_or_default() {
                    // The server went away, before or after the commit.
                    "08" => Self::InDoubt,
                    "57" if code != "57014" => Self::InDoubt,
                    // Data, integrity, and limits of a row.
                    "22" | "23" | "54" => Self::Rejected {
                        code: code.into_owned(),
                        constraint: fault.constraint().map(str::to_owned),
                    },
                    _ => Self::Unavailable(format!("SQLSTATE {code}")),
                }
            }
            Error::Io(_) | Error::Protocol(_) | Error::WorkerCrashed => Self::InDoubt,
            Error::Encode(_) => Self::Rejected {
                code: "encode".to_owned(),
                constraint: None,
            },
            Error::RowNotFound
            | Error::ColumnDecode { .. }
            | Error::ColumnNotFound(_)
            | Error::ColumnIndexOutOfBounds { .. }
            | Error::Decode(_) => Self::Inconsistent("row"),
            other => Self::of_connection(other),
        }
    }

    /// What `error` means where nothing had been sent yet.
    pub(super) fn of_connection(error: &Error) -> Self {
        match error {
            Error::Database(fault) => {
                Self::Unavailable(format!("SQLSTATE {}", fault.code().unwrap_or_default()))
            }
            Error::Io(fault) => Self::Unavailable(reason(fault)),
            Error::Tls(fault) => Self::Unavailable(format!("TLS: {fault}")),
            Error::PoolTimedOut => Self::Unavailable("no connection in time".to_owned()),
            Error::PoolClosed => Self::Unavailable("closed".to_owned()),
            _ => Self::Unavailable("no connection".to_owned()),
        }
    }

    /// Whether the connection that brought this must not be used again: it is
    /// gone, in an unknown state, or leads to a server that is no primary any
    /// more (25006) or is shutting down (57P0x).
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::InDoubt => true,
            Self::Unavailable(reason) => {
                // A cancelled statement or a lock that was not had leaves a good connection.
                !matches!(
                    reason.as_str(),
                    "SQLSTATE 57014" | "SQLSTATE 55P03" | "SQLSTATE 40001" | "SQLSTATE 40P01"
                )
            }
            _ => false,
        }
    }
}

/// A fault of the connection, without what a server may have said.
fn reason(fault: &std::io::Error) -> String {
    let within = fault.get_ref();
    let tls = within.and_then(|within| within.downcast_ref::<rustls::Error>());
    tls.map_or_else(|| fault.kind().to_string(), |tls| format!("TLS: {tls}"))
}
