//! The tools of all upstreams, as each tenant may come to see them: cleaned,
//! named, compiled, kept fresh. Knows nothing of callers: which of a tenant's
//! tools one may see is decided in `visibility`.
//!
//! Definitions are read with the gateway's own credential for the upstream, never
//! for a caller, so what is kept here belongs to no caller and nothing of one
//! caller can reach another through it. An upstream serves the tenants that the
//! configuration gives it; names are looked up within one tenant's view only.
//!
//! Order: a view is sorted by exposed name. On a collision the upstream that
//! stands earlier in the configuration wins, always; within one upstream, the
//! definition that stands earlier in its list.

mod catalogue;
mod digest;
mod fetch;
mod health;
mod judge;
mod reconfigure;
mod rule;
mod schema;
mod source;
mod tool;
mod upkeep;
mod view;

pub use catalogue::Catalog;
pub use digest::of as canonical_digest;
pub use health::{Health, State as HealthState};
pub use judge::{LeftOut, Reason};
pub use rule::EffectiveToolRule;
pub use schema::{Fault, FaultKind, HeaderRule, ParamHeader, ParamKind, Schema, SchemaFault};
pub use tool::Tool;
pub use view::{SelectionKey, View, fingerprint};

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
