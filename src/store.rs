//! Postgres: the only place for SQL. A file per group of tables, each turning
//! rows into domain values and database faults into [`StoreError`].
//!
//! Knows nothing of calls, protocols or who asks: what a row means is decided
//! above. Everything here ends within the configured time, whatever the
//! database does, and a server starts while the database is away.

pub mod audit_calls;
pub mod audit_chain;
pub mod audit_checkpoints;
pub mod audit_erasures;
pub mod audit_events;
pub mod audit_orphans;
pub mod audit_partitions;
mod audit_rare;
mod audit_role;
pub mod audit_rows;
pub mod audit_scan;
pub mod condition;
mod connect;
pub mod embedded;
mod error;
pub mod listen;
pub mod messages;
pub mod oauth_clients;
pub mod oauth_families;
pub mod oauth_grants;
pub mod oauth_revocations;
pub mod oauth_sign_ins;
pub mod oauth_signing_keys;
pub mod replicas;
pub mod request_states;
mod schema;
pub mod sealed;
mod session;
pub mod sessions;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use connect::{DatabaseSettings, Store};
pub use error::StoreError;
pub use schema::{SchemaState, migrate};
