//! Acts that strangers can cause as often as they like: ten a second of a kind and
//! reason are recorded one by one, the rest is counted. Locked for a look-up at a
//! time, bounded in memory, exact in its counts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use time::OffsetDateTime;

use super::act::{Act, ActKind, ActOutcome, Actor};
use super::refusals::ONE_BY_ONE;
use crate::ids::TenantId;

/// Beyond so many different counts in wait, tenant and reason are given up for them.
const MOST: usize = 10_000;

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Knock {
    pub(super) second: i64,
    kind: ActKind,
    action: &'static str,
    outcome: ActOutcome,
    tenant: Option<TenantId>,
    reason: Option<String>,
}

impl Knock {
    fn of(act: &Act, second: i64) -> Self {
        Self {
            second,
            kind: act.kind,
            action: act.action,
            outcome: act.outcome,
            tenant: act.tenant.clone(),
            reason: act.reason.clone(),
        }
    }

    /// The act that stands for all that were counted.
    pub(super) fn act(self) -> Act {
        Act {
            tenant: self.tenant,
            outcome: self.outcome,
            reason: self.reason,
            actor: Actor::default(),
            ..Act::new(self.kind, self.action)
        }
    }
}

#[derive(Debug, Default)]
struct State {
    second: i64,
    kept: HashMap<Knock, u32>,
    counts: HashMap<Knock, i64>,
}

/// Shared by all requests.
#[derive(Debug, Default)]
pub(super) struct Knocks(Mutex<State>);

impl Knocks {
    /// Whether this one is to be recorded by itself. If not, it has been counted.
    pub(super) fn admit(&self, act: &Act, now: OffsetDateTime) -> bool {
        let knock = Knock::of(act, now.unix_timestamp());
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.second != knock.second {
            state.second = knock.second;
            state.kept.clear();
        }
        if let Some(kept) = state.kept.get_mut(&knock) {
            if *kept < ONE_BY_ONE {
                *kept += 1;
                return true;
            }
        } else if state.kept.len() < MOST {
            state.kept.insert(knock, 1);
            return true;
        }
        state.count(knock);
        false
    }

    /// Counts one that was admitted and found no room.
    pub(super) fn count(&self, act: &Act, now: OffsetDateTime) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.count(Knock::of(act, now.unix_timestamp()));
    }

    /// Puts a count back that found no room.
    pub(super) fn put_back(&self, knock: Knock, count: i64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state.counts.entry(knock).or_default() += count;
    }

    /// The counts of seconds before `now`, or all of them.
    pub(super) fn take(&self, before: Option<OffsetDateTime>) -> Vec<(Knock, i64)> {
        let second = before.map_or(i64::MAX, OffsetDateTime::unix_timestamp);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state
            .counts
            .extract_if(|knock, _| knock.second < second)
            .collect()
    }
}

impl State {
    fn count(&mut self, mut knock: Knock) {
        if self.counts.len() >= MOST && !self.counts.contains_key(&knock) {
            knock.tenant = None;
            knock.reason = None;
        }
        *self.counts.entry(knock).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(reason: String) -> Act {
        Act::new(ActKind::TOKEN_REFUSED, "request").refused(reason)
    }

    #[test]
    fn ten_a_second_are_kept_and_every_other_one_is_counted() {
        let knocks = Knocks::default();
        let now = OffsetDateTime::UNIX_EPOCH;
        let kept = (0..1_000)
            .filter(|_| knocks.admit(&refused("expired".to_owned()), now))
            .count();
        assert_eq!(kept, 10);
        assert!(knocks.admit(&refused("malformed".to_owned()), now));
        assert!(knocks.take(Some(now)).is_empty(), "its second is not over");
        let later = now + time::Duration::SECOND;
        let counts: Vec<i64> = knocks
            .take(Some(later))
            .into_iter()
            .map(|(_, n)| n)
            .collect();
        assert_eq!(counts, [990]);
        assert!(knocks.admit(&refused("expired".to_owned()), later));
    }

    #[test]
    fn memory_is_bounded_and_the_count_stays_exact() {
        let knocks = Knocks::default();
        let now = OffsetDateTime::UNIX_EPOCH;
        let all = 3 * MOST;
        let mut kept = 0;
        for reason in 0..all {
            kept += usize::from(knocks.admit(&refused(reason.to_string()), now));
        }
        let counts = knocks.take(None);
        assert!(counts.len() <= MOST + 1);
        let counted: i64 = counts.iter().map(|(_, count)| count).sum();
        assert_eq!(
            i64::try_from(kept).unwrap() + counted,
            i64::try_from(all).unwrap()
        );
    }
}
