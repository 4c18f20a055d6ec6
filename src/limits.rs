//! How often and how much at once, by who calls: client, user, tenant, class of
//! tools. The only place that knows governor and Redis.
//!
//! Keys are made of verified identities and configured rules, never of a
//! caller's text, and every key starts with the tenant. Limits by address are
//! for callers that are not known yet: they live at the edge, in `http`, and
//! take [`address_key`] from here.
//!
//! A bucket's state belongs to its settings: meters are kept by rate and burst,
//! so a reload that leaves a bucket alone leaves its state alone, and one that
//! changes it starts full. Nothing has to be told of a reload.
//!
//! `local` counts in this process, `shared` in a store that all replicas have; both
//! decide alike. `limiter` chooses: with a store it is asked, while that is away each
//! limit says whether it is counted here or not at all.

mod address;
mod admission;
mod charge;
mod counters;
mod limiter;
mod local;
mod meter;
mod shared;
mod streams;
mod ticks;

pub use address::address_key;
// For naming the type of the layer that limits by address, which lives in `http`.
pub use admission::{Admission, LimitFault, Limited, Standing, ToolClass};
pub use governor::{clock::QuantaInstant, middleware::NoOpMiddleware};
pub use limiter::{Cost, Limits};
pub use shared::{Shared, SharedCondition, SharedFault, SharedSettings};
pub use streams::{StreamCaps, StreamPermit, StreamsFull};
pub use ticks::Ticks;

#[cfg(test)]
mod tests;
