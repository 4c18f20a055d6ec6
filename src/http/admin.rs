//! The admin listener: does the process live, is it ready, what has it counted.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

use crate::telemetry::metrics::Metrics;

/// Readiness and what it is made of.
#[derive(Debug, Serialize)]
pub struct Health {
    /// Whether traffic may come.
    pub ready: bool,
    /// Each part and what is the matter with it; empty text where nothing is.
    pub checks: BTreeMap<&'static str, String>,
}

/// Asks how things are.
pub type HealthCheck = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Health> + Send>> + Send + Sync>;

#[derive(Clone)]
struct Admin {
    health: HealthCheck,
    metrics: Arc<Metrics>,
}

/// The admin listener's service.
pub fn admin_router(health: HealthCheck, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_text))
        .with_state(Admin { health, metrics })
}

async fn ready(State(admin): State<Admin>) -> Response {
    let health = (admin.health)().await;
    let status = if health.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = serde_json::to_string(&health).unwrap_or_default();
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        body + "\n",
    )
        .into_response()
}

async fn metrics_text(State(admin): State<Admin>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], admin.metrics.render()).into_response()
}
