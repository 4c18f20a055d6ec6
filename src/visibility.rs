//! The one decision on what a caller may see, for lists and calls alike.
//!
//! What is allowed for the tenant and for the caller's roles is put together; any
//! deny wins; silence is no. It knows rules and what they are about (tools, resources,
//! prompts), no protocol: what is hidden and what is missing are one refusal to
//! outsiders, and two to the record.

mod decision;
mod explain;
mod visible;

pub use decision::{Ground, Named, Verdict, decide};
pub use explain::{Explanation, explain, explain_item};
pub use visible::{
    Fingerprints, Invisible, Visible, fingerprints, list, list_items, may_see_any, missing_scopes,
    reachable, see, see_prompt, see_resource, see_template,
};

#[cfg(test)]
mod tests;
