//! `streams`: caps on open streams.

use serde::Deserialize;

use super::Interval;
use super::check::Check;

/// `streams`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Streams {
    /// Open listen and GET streams of one user.
    pub per_user: u32,
    /// Open listen and GET streams of this replica.
    pub total: u32,
    /// Calls that wait for input of their caller.
    pub input: Input,
}

/// `streams.input`: calls whose upstream has asked the caller for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Input {
    /// How long the caller may take to answer.
    pub timeout: Interval,
    /// Calls of one user that wait on this replica.
    pub per_user: u32,
    /// Calls that wait on this replica.
    pub total: u32,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            timeout: Interval::seconds(600),
            per_user: 16,
            total: 1000,
        }
    }
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            per_user: 16,
            total: 20_000,
            input: Input::default(),
        }
    }
}

impl Streams {
    pub(super) fn validate(self, check: &mut Check<'_>) {
        check.positive("per_user", u64::from(self.per_user));
        check.positive("total", u64::from(self.total));
        check.within("input", |check| {
            check.lasting("timeout", self.input.timeout);
            check.positive("per_user", u64::from(self.input.per_user));
            check.positive("total", u64::from(self.input.total));
        });
    }
}
