//! `explain`: the one decision, with its reasons, from a configuration and what
//! its upstreams list now.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::anyhow;

use crate::catalog::{Catalog, Health};
use crate::clock::{SharedClock, SystemClock};
use crate::config::Loaded;
use crate::credentials::Credentials;
use crate::ids::{Role, Scope, TenantId, UpstreamId};
use crate::outgoing::Outgoing;
use crate::sanitize::Sanitizer;
use crate::telemetry::metrics::Metrics;
use crate::tenancy::{Subject, Tenants};
use crate::visibility::{self, Explanation};

use super::snapshot;

/// Says whether `tenant` with `roles` and `scopes` may use a tool, a resource or a
/// prompt, and why.
///
/// # Errors
/// When the configuration cannot be put to work.
pub(crate) async fn explain(
    loaded: &Loaded,
    tenant: &TenantId,
    roles: &[Role],
    scopes: Option<&BTreeSet<Scope>>,
    subject: Subject,
    name: &str,
) -> anyhow::Result<Explanation> {
    let tenants = Tenants::new(&loaded.config);
    let decisive = tenants
        .get(tenant)
        .ok_or_else(|| anyhow!("there is no tenant {tenant}"))?;
    let catalog = catalog(loaded).await?;
    let view = catalog.view(tenant);
    let explanation = match subject {
        Subject::Tools => visibility::explain(&decisive, roles, scopes, &view, name),
        subject => visibility::explain_item(&decisive, roles, &view, subject, name),
    };
    catalog.shutdown().await;
    Ok(explanation)
}

/// How every upstream fares that is asked now.
///
/// # Errors
/// When the configuration cannot be put to work.
pub(crate) async fn upstreams(loaded: &Loaded) -> anyhow::Result<Vec<(UpstreamId, Health)>> {
    let catalog = catalog(loaded).await?;
    let health = catalog.health();
    catalog.shutdown().await;
    Ok(health)
}

/// What the upstreams of a configuration offer now.
async fn catalog(loaded: &Loaded) -> anyhow::Result<Arc<Catalog>> {
    let config = &loaded.config;
    let clock: SharedClock = Arc::new(SystemClock);
    let outgoing = Arc::new(Outgoing::new(&config.outgoing)?);
    let credentials = Credentials::new(&config.upstreams, Arc::clone(&clock))?;
    let catalog = Catalog::new(Arc::new(Sanitizer::new()));
    let credentials = Arc::new(credentials);
    let metrics = Arc::new(Metrics::new(clock.unix_seconds()));
    snapshot::fill(&catalog, config, &outgoing, &credentials, &clock, &metrics).await?;
    Ok(catalog)
}
