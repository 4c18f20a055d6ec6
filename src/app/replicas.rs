//! Limits where several replicas serve: counted together in Redis, or each its share.

use std::sync::Arc;

use anyhow::Context;

use super::App;
use crate::config::{self, Config};
use crate::limits::{Limits, Shared, SharedSettings, Ticks};
use crate::telemetry::metrics::Metrics;

/// A replica whose heartbeat is older counts no more: four that were missed.
const SILENT_SECONDS: u32 = 20;

/// The limits that the configuration asks for.
pub(super) fn limits(config: &Config, metrics: &Arc<Metrics>) -> anyhow::Result<Limits> {
    let limits = Limits::new(Ticks::machine());
    let redis = &config.redis;
    if redis.url.is_none() {
        return Ok(limits);
    }
    let password = redis.password_file.as_deref().map(config::read_secret_file);
    let ca = redis.ca_file.as_ref().map(|file| {
        std::fs::read(file).with_context(|| format!("redis.ca_file: {}", file.display()))
    });
    let shared = Shared::new(SharedSettings {
        redis,
        password: password.transpose().context("redis.password_file")?,
        ca: ca.transpose()?,
        metrics: Arc::clone(metrics),
    })?;
    Ok(limits.with(shared))
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
