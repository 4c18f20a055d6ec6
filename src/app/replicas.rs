//! Limits where several replicas serve: counted together in Redis, or each its share.

use std::sync::Arc;

use anyhow::Context;

use super::App;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config};
use crate::limits::{Limits, Shared, SharedCondition, SharedSettings, Ticks};
use crate::telemetry::metrics::Metrics;

/// A replica whose heartbeat is older counts no more: four that were missed.
const SILENT_SECONDS: u32 = 20;

/// The limits that the configuration asks for.
pub(super) fn limits(config: &Config, metrics: &Arc<Metrics>) -> anyhow::Result<Limits> {
    let limits = Limits::new(Ticks::machine());
    Ok(match shared(config, metrics)? {
        Some(shared) => limits.with(shared),
        None => limits,
    })
}

fn shared(config: &Config, metrics: &Arc<Metrics>) -> anyhow::Result<Option<Shared>> {
    let redis = &config.redis;
    if redis.url.is_none() {
        return Ok(None);
    }
    let password = redis.password_file.as_deref().map(config::read_secret_file);
    let ca = redis.ca_file.as_ref().map(|file| {
        std::fs::read(file).with_context(|| format!("redis.ca_file: {}", file.display()))
    });
    Ok(Some(Shared::new(SharedSettings {
        redis,
        password: password.transpose().context("redis.password_file")?,
        ca: ca.transpose()?,
        metrics: Arc::clone(metrics),
    })?))
}

/// How the store of shared limits is set up; `None` where the configuration names none.
///
/// # Errors
/// Why nothing can be counted there.
pub(crate) async fn redis(config: &Config) -> Result<Option<SharedCondition>, String> {
    let metrics = Arc::new(Metrics::new(SystemClock.unix_seconds()));
    let shared = shared(config, &metrics).map_err(|fault| format!("{fault:#}"))?;
    match shared {
        None => Ok(None),
        Some(shared) => shared.condition().await.map(Some),
    }
}

/// Looks how many replicas live, and divides what is counted here among them.
pub(super) async fn share_limits(app: &App) {
    // While the database is away it stays as it was.
    let Ok(live) = app.store.list_live_replicas(SILENT_SECONDS).await else {
        return;
    };
    let replicas = u32::try_from(live.len()).unwrap_or(u32::MAX).max(1);
    let before = app.limits.divide(replicas);
    app.metrics.live_replicas(replicas);
    if before == replicas || app.limits.are_shared() {
        return;
    }
    if replicas > 1 {
        tracing::warn!(
            replicas,
            "Several replicas live and there is no `redis`: each serves its share of every limit."
        );
    } else {
        tracing::info!("This replica is the only one; it serves every limit whole.");
    }
}
