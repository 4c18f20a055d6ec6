//! Logs, metrics and traces: start-up, names, and the handles that others record
//! with. It takes plain settings and knows nothing of the configuration, nor of how a
//! collector is reached. The only place for `tracing-subscriber`, `prometheus-client`
//! and OpenTelemetry.

mod export;
mod exposition;
mod logs;
pub mod metrics;
pub mod names;
mod place;
mod queue;
mod start;
pub mod trace;

pub use export::{Identity, Otlp, Post};
pub use logs::TelemetryFault;
pub use place::TraceContext;
pub use queue::Losses;
pub use start::{Settings, Telemetry, init};
