//! `streams`: caps on open streams.

use serde::Deserialize;

use super::check::Check;

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

impl Streams {
    pub(super) fn validate(self, check: &mut Check<'_>) {
        check.positive("per_user", u64::from(self.per_user));
        check.positive("total", u64::from(self.total));
    }
}
