//! What all upstreams offer (tools, resources, templates, prompts), as each tenant
//! may come to see it: cleaned, named, compiled, kept fresh. Which of it one caller
//! may see is decided in `visibility`.
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
mod item;
mod judge;
mod others;
mod owners;
mod reconfigure;
mod rule;
mod schema;
mod shelf;
mod source;
mod template;
mod tool;
mod upkeep;
mod uris;
mod view;
mod watched;

pub use catalogue::Catalog;
pub use digest::of as canonical_digest;
pub use health::{Health, State as HealthState};
pub use item::{Family, Item};
pub use judge::{LeftOut, Reason};
pub use rule::EffectiveToolRule;
pub use schema::{Fault, FaultKind, HeaderRule, ParamHeader, ParamKind, Schema, SchemaFault};
pub use shelf::{Listed, SelectionKey, Shelf, fingerprint};
pub use tool::Tool;
pub use uris::{Place, Uris};
pub use view::View;
pub use watched::Watch;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
