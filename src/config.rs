//! The configuration: one YAML file, a type per section, each with its docs,
//! its default and its rules. This is the only module that reads the environment.
//!
//! Everything is checked before anything starts (`load`), and again
//! before a changed file takes the place of the running one: a wrong file is
//! refused whole.

mod audit;
mod authorization_server;
mod clients;
mod database;
mod identity_providers;
mod keeping;
mod limits;
mod names;
mod outgoing;
mod redis;
mod resources;
mod sanitize;
mod server;
mod streams;
mod telemetry;
mod tenants;
mod tools;
mod upstreams;
mod users;
mod values;
mod watched;

mod check;
mod decode;
mod document;
mod environment;
mod fault;
mod key_path;
mod keys;
mod load;
mod overrides;
mod paths;
mod secret_file;
#[cfg(test)]
mod test_folder;
mod validate;
mod watch;
mod web_url;

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Deserialize;

pub use audit::{ArgumentsMode, Audit, AuditedMethods, Durability};
pub use authorization_server::{AuthorizationServer, Registration, SigningAlgorithm};
pub use clients::{Client, ClientGrant};
pub use database::{AuditDatabase, Database, Embedded, Separation};
pub use environment::{
    CONFIG_VARIABLE, Environment, environment, home, inherited_environment, search_path,
};
pub use fault::{ConfigFaults, Fault, Origin, Severity, render, render_json};
pub use identity_providers::{Algorithm, Claims, IdentityProvider, Login};
pub use keeping::{Keeping, LegalHold};
pub use keys::{Key, keys};
pub use limits::{Bucket, EdgeLimits, TenantLimits, ToolLimits};
pub use load::{Loaded, load, parse};
pub use names::{NameRule, NameRules};
pub use outgoing::Outgoing;
pub use redis::{Redis, WhenAway};
pub use resources::{ResourceUris, Resources};
pub use sanitize::{
    Action, CustomPattern, Expression, Sanitize, SanitizeException, SanitizeExceptions,
    SanitizeVector, labels,
};
pub use secret_file::{SecretFileFault, read_secret_file};
pub use server::Server;
pub use streams::Streams;
pub use telemetry::{LogFormat, Telemetry};
pub use tenants::{RoleRules, Tenant};
pub use tools::{Pattern, Rule, RuleSet, ToolRule};
pub use upstreams::{
    Breaker, Credentials, DefinitionPolicy, HeaderCredential, McpUpstream, StdioUpstream, Timeouts,
    Upstream, UpstreamKind,
};
pub use users::{Admin, AdminRole, LOCAL_PROVIDER, User};
pub use values::{ByteSize, Day, Interval, Rate};
pub use watch::Watch;
pub use watched::WatchedFile;

use crate::ids::{ClientId, ProviderId, TenantId, UpstreamId};

/// The whole configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the service listens and what it is called.
    pub server: Server,
    /// Postgres.
    pub database: Database,
    /// How long the audit's records are kept.
    pub audit: Keeping,
    /// File with the deployment's keys: 64 hexadecimal digits a line, the first
    /// seals, all open. Required unless the database is embedded.
    pub keys_file: Option<PathBuf>,
    /// Where replicas count limits together.
    pub redis: Redis,
    /// Caps on open streams.
    pub streams: Streams,
    /// Limits by address, for callers that are not known yet.
    pub edge: EdgeLimits,
    /// Whose tokens are believed, and for which tenants.
    pub identity_providers: IndexMap<ProviderId, IdentityProvider>,
    /// The built-in authorization server.
    pub authorization_server: AuthorizationServer,
    /// OAuth clients that are known beforehand, by their ids.
    pub clients: IndexMap<ClientId, Client>,
    /// People who sign in with a password, for development.
    pub users: IndexMap<String, User>,
    /// Who may use the console.
    pub admins: Vec<Admin>,
    /// The tenants, by id.
    pub tenants: IndexMap<TenantId, Tenant>,
    /// Rules for tools by exposed name, for every tenant; of several that match, the later wins.
    pub tools: Vec<ToolRule>,
    /// How the URIs of many servers live side by side.
    pub resources: Resources,
    /// Where tools come from, in order: on a collision of names the earlier wins.
    pub upstreams: IndexMap<UpstreamId, Upstream>,
    /// Every connection that Toolgate makes.
    pub outgoing: Outgoing,
    /// Logs.
    pub telemetry: Telemetry,
}
