//! The arguments of a call: checked against the tool's own schema before anything
//! leaves, and refused in words that a model can act on.
//!
//! `null` as `arguments` is as good as none; a `null` inside is a value, and fits
//! only where the schema says so. What passes goes on as it came, byte for byte.
//! Knows no protocol: what a fault becomes for the caller is decided elsewhere.

mod check;
mod example;
mod headers;
mod message;

pub use check::{ArgumentFault, ValidCall, check};
pub use headers::{HeaderFault, check_headers};

#[cfg(test)]
mod tests;
