//! The cap on recorded refusals: one by one up to ten a second and client, a
//! count beyond. So a client that hammers a wall costs the audit eleven rows a
//! second, and none of its knocks goes uncounted.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use time::OffsetDateTime;

use super::facts::{CallFacts, Finish};
use crate::ids::{ClientId, TenantId};

/// Refusals of one client that are recorded one by one, a second.
pub(super) const ONE_BY_ONE: u32 = 10;

/// Beyond so many clients in a second, or so many counts waiting, refusals are
/// counted per tenant and outcome alone: memory is bounded, the count stays exact.
const MOST: usize = 20_000;

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CountKey {
    pub(super) second: i64,
    pub(super) tenant: TenantId,
    pub(super) client: Option<ClientId>,
    pub(super) outcome: String,
    pub(super) reason: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    second: i64,
    recorded: HashMap<(TenantId, ClientId), u32>,
    counts: HashMap<CountKey, i64>,
}

/// Shared by all calls; locked for a look-up at a time.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<State>);

impl Refusals {
    /// Whether this refusal is to be recorded by itself. If not, it has been counted.
    pub(super) fn admit(&self, facts: &CallFacts, finish: &Finish, now: OffsetDateTime) -> bool {
        let second = now.unix_timestamp();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.second != second {
            state.second = second;
            state.recorded.clear();
        }
        let client = (facts.tenant.clone(), facts.client.clone());
        if let Some(recorded) = state.recorded.get_mut(&client) {
            if *recorded < ONE_BY_ONE {
                *recorded += 1;
                return true;
            }
        } else if state.recorded.len() < MOST {
            state.recorded.insert(client, 1);
            return true;
        }
        state.count(facts, finish, second);
        false
    }

    /// The counts of seconds before `now`, or all of them.
    pub(super) fn take(&self, before: Option<OffsetDateTime>) -> Vec<(CountKey, i64)> {
        let second = before.map_or(i64::MAX, OffsetDateTime::unix_timestamp);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state
            .counts
            .extract_if(|key, _| key.second < second)
            .collect()
    }
}

impl State {
    fn count(&mut self, facts: &CallFacts, finish: &Finish, second: i64) {
        let mut key = CountKey {
            second,
            tenant: facts.tenant.clone(),
            client: Some(facts.client.clone()),
            outcome: finish.outcome.word(),
            reason: finish.reason.clone(),
        };
        if self.counts.len() >= MOST && !self.counts.contains_key(&key) {
            key.client = None;
            key.reason = None;
        }
        *self.counts.entry(key).or_default() += 1;
    }
}
