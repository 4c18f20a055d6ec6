//! Tests from the outside: the real server, real upstreams, one binary.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed; the lints' exception for tests does not reach helpers"
)]

mod layering;
