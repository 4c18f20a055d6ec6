//! What the gateway proves itself with to an upstream: so far a header with a
//! fixed value from a file. Never the caller's token, which it does not see.

mod header_file;
mod store;

pub use store::{CredentialFault, Credentials};
