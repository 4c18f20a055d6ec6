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
    clippy::too_many_lines,
    reason = "tests fail by panicking, read the real clock, make plain HTTP clients, and are as long as their tables"
)]

mod account;
mod answers;
mod changes;
mod cleaning;
mod commands;
mod consent;
mod discovery;
mod drain;
mod failures;
mod federation;
mod forwarding;
mod identity;
mod isolation;
mod kit;
mod layering;
mod limits;
mod outage;
mod pages;
mod protocol;
mod quickstart;
mod real_clients;
mod real_upstreams;
mod records;
mod routes;
mod sessions;
mod sign_in;
mod smoke;
mod streams;
mod support;
mod tools;
