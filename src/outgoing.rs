//! Every connection that Toolgate makes over HTTP: certificates, proxy, pinned
//! names, and the guard against private addresses (SSRF).
//!
//! It sends what it is told and nothing else: it never sees an inbound request,
//! follows no redirect, keeps no cookie and reads no environment. It knows no
//! tenant and no protocol above HTTP.

mod answer;
mod challenge;
mod client;
mod connections;
mod fault;
mod fetch;
mod guard;
mod metadata_urls;
mod resolver;
mod target;

pub use answer::HttpAnswer;
pub use challenge::{Challenge, MalformedChallenge, parse_challenges};
pub use client::HttpClient;
pub use connections::{Outgoing, OutgoingSetupFault};
pub use fault::OutgoingFault;
pub use fetch::Fetched;
pub use guard::Reach;
pub use metadata_urls::metadata_urls;
pub use target::Target;

#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod tests;
