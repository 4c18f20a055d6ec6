//! `audit`: how long records are kept.

use serde::Deserialize;

use super::check::Check;
use super::{Day, Interval};

/// `audit`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keeping {
    /// How long records are kept: whole days. Without it for ever.
    pub retention: Option<Interval>,
    /// Days that are kept whatever their age.
    pub holds: Vec<LegalHold>,
}

/// `audit.holds[]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegalHold {
    /// The first day, UTC.
    pub from: Day,
    /// The last day; without it there is no end yet.
    pub until: Option<Day>,
    /// Why, for those who read the file.
    pub reason: Option<String>,
}

const DAY_SECONDS: u64 = 24 * 3600;

impl Keeping {
    /// Retention in days.
    pub fn retention_days(&self) -> Option<u32> {
        let days = self.retention?.0.as_secs() / DAY_SECONDS;
        Some(u32::try_from(days).unwrap_or(u32::MAX))
    }

    pub(super) fn validate(&self, check: &mut Check<'_>) {
        if let Some(retention) = self.retention
            && (retention.0.as_secs() < DAY_SECONDS
                || retention.0.as_millis() % u128::from(DAY_SECONDS * 1000) != 0)
        {
            check.within("retention", |check| {
                check.fault("is no number of whole days", "write such as `400d`");
            });
        }
        check.each("holds", &self.holds, |hold, check| {
            if hold.until.is_some_and(|until| until < hold.from) {
                check.within("until", |check| {
                    check.fault("lies before `from`", "exchange the two");
                });
            }
        });
    }
}
