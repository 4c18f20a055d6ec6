//! The edge: routes, layers, what HTTP asks and gets. Everything that needs a
//! socket, a header or a status is here; what is decided is decided below.

mod address;
mod admin;
mod base;
mod bearer;
mod cors;
mod edge;
mod endpoint;
mod host;
mod media;
mod metadata;
mod oauth;
mod pages;
mod request_id;
mod revoked;
mod router;
mod serve;
mod sse;
mod unread;

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::audit::Auditor;
use crate::catalog::Catalog;
use crate::config;
use crate::credentials::Credentials;
use crate::identity::{Identity, OwnTokens};
use crate::mcp::Server;
use crate::oauth as oauth_rules;
use crate::telemetry::metrics::Metrics;
use crate::tenancy::Tenants;

pub use admin::{Health, HealthCheck, admin_router};
pub use base::Base;
pub use edge::EdgeLimiter;
pub use router::{Access, ROUTES, Route, public_router};
pub use serve::{Listening, serve};

/// Everything that follows from one configuration. A request keeps the one that
/// it began under.
pub struct Snapshot {
    /// The configuration.
    pub config: config::Config,
    /// Its digest.
    pub digest: [u8; 32],
    /// What the service is called.
    pub base: Base,
    /// Whose tokens are believed.
    pub identity: Arc<Identity>,
    /// The tenants' rules.
    pub tenants: Tenants,
    /// Credentials for upstreams.
    pub credentials: Arc<Credentials>,
    /// Where unauthenticated callers are limited.
    pub edge: EdgeLimiter,
    /// The authorization server's part of it.
    pub oauth: oauth_rules::Settings,
}

/// What handlers work with.
#[derive(Clone)]
pub struct Edge {
    /// The configuration in force.
    pub current: Arc<ArcSwap<Snapshot>>,
    /// Bumped when it changes.
    pub epoch: watch::Receiver<u64>,
    /// The MCP server.
    pub server: Arc<Server>,
    /// The tools that there are.
    pub catalog: Arc<Catalog>,
    /// The authorization server.
    pub oauth: Arc<oauth_rules::AuthorizationServer>,
    /// What is known of our own tokens.
    pub own_tokens: Arc<OwnTokens>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Who was refused, for the record.
    pub auditor: Arc<Auditor>,
}
