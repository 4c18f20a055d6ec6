//! `streams`: caps on open streams.

use serde::Deserialize;

/// `streams`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Streams {
    /// Open listen and GET streams of one user.
    pub per_user: u32,
    /// Open listen and GET streams of this replica.
    pub total: u32,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            per_user: 16,
            total: 20_000,
        }
    }
}
