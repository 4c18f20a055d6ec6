//! The one decision on what a caller may see, for lists and calls alike.
//!
//! What is allowed for the tenant and for the caller's roles is put together; any
//! deny wins; silence is no. It knows rules and tools, no protocol: a hidden tool
//! and a missing one are one refusal to outsiders, and two to the record.

mod decision;
mod explain;
mod visible;

pub use decision::{Ground, Named, Verdict, decide};
pub use explain::{Explanation, explain};
pub use visible::{Invisible, Visible, fingerprint, list, missing_scopes, reachable, see};

#[cfg(test)]
mod tests;
