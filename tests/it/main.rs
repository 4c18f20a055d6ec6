//! The tests that come in by the front door: the real server over its own
//! database, real clients and upstreams around it. One binary, a file per
//! behaviour; `support` holds what they share.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests fail by panicking, read the real clock and make plain HTTP clients"
)]

mod answers;
mod changes;
mod kit;
mod layering;
mod protocol;
mod real_clients;
mod real_upstreams;
mod sessions;
mod smoke;
mod streams;
mod support;
