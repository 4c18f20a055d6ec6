//! Logs and metrics: start-up, names, and the handles that others record with.
//! It takes plain settings and knows nothing of the configuration. The only place
//! for `tracing-subscriber` and `prometheus-client`.

mod logs;
pub mod metrics;
pub mod names;

pub use logs::{TelemetryFault, init};
