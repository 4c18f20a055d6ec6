//! `explain`: the one decision, with its reasons, from a configuration and what
//! its upstreams list now.

use std::sync::Arc;

use crate::clock::{SharedClock, SystemClock};
use crate::config::Loaded;
use crate::credentials::Credentials;
use crate::ids::{Role, Scope, TenantId};
use crate::outgoing::Outgoing;
use crate::sanitize::Sanitizer;
use crate::tenancy::Tenants;
use crate::visibility::{self, Explanation};

use super::snapshot;

/// Says whether `tenant` with `roles` and `scopes` may use `tool`, and why.
///
/// # Errors
/// When the configuration cannot be put to work.
pub async fn explain(
    loaded: &Loaded,
    tenant: &TenantId,
    roles: &[Role],
    scopes: &[Scope],
    tool: &str,
) -> anyhow::Result<Explanation> {
    let clock: SharedClock = Arc::new(SystemClock);
    let outgoing = Arc::new(Outgoing::new(&loaded.config.outgoing)?);
    let credentials = Arc::new(Credentials::new(
        &loaded.config.upstreams,
        Arc::clone(&clock),
    )?);
    let catalog = snapshot::catalog(
        &loaded.config,
        &Arc::new(Sanitizer::new()),
        &outgoing,
        &credentials,
        &clock,
    )?;
    catalog.refresh_all().await;
    let tenants = Tenants::new(&loaded.config);
    let view = catalog.view(tenant);
    let explanation = visibility::explain(&tenants, tenant, roles, scopes, &view, tool);
    catalog.shutdown().await;
    Ok(explanation)
}
