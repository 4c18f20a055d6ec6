//! Following along: calls as they end, oldest first, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use time::OffsetDateTime;

use super::search::{Entry, Filter, SearchFault};
use crate::ids::CallId;
use crate::store::Store;
use crate::store::audit_calls::{CallQuery, Order, floor_id};

/// Commits do not become visible in the order of their call ids: what is looked
/// at begins this long before what was seen last.
const OVERLAP: Duration = Duration::from_secs(15);

/// A call that has not ended by then is shown as `unknown`, once.
const PATIENCE: Duration = Duration::from_mins(10);

/// How many are read at a time.
const READ: u32 = 500;

/// A place in the stream of calls. Ask [`Tail::next`] as often as you like.
#[derive(Debug)]
pub struct Tail {
    query: CallQuery,
    wants: Option<String>,
    finding: Option<String>,
    after: OffsetDateTime,
    seen: BTreeSet<CallId>,
    open: BTreeMap<CallId, OffsetDateTime>,
}

impl Tail {
    /// Follows the calls that `filter` asks for, from `since` on.
    pub fn new(filter: &Filter, since: OffsetDateTime) -> Result<Self, SearchFault> {
        let mut query = filter.query()?;
        // An open call has no outcome yet: these two are looked at when it has.
        let wants = query.outcome.take();
        let finding = query.finding.take();
        Ok(Self {
            query,
            wants,
            finding,
            after: since,
            seen: BTreeSet::new(),
            open: BTreeMap::new(),
        })
    }

    /// What has ended since the last time.
    pub async fn next(
        &mut self,
        store: &Store,
        now: OffsetDateTime,
    ) -> Result<Vec<Entry>, SearchFault> {
        let mut ended = self.look_again(store, now).await?;
        let mut after = None;
        loop {
            let query = CallQuery {
                since: Some(self.after),
                after,
                ..self.query.clone()
            };
            let rows = store.list_calls(&query, Order::Oldest, READ).await?;
            let last = rows.len() < READ as usize;
            after = rows.last().map(|row| CallId(row.call_id));
            for entry in rows.into_iter().map(Entry::from) {
                if self.seen.contains(&entry.call_id) || self.open.contains_key(&entry.call_id) {
                    continue;
                }
                self.sort(entry, now, &mut ended);
            }
            if last {
                break;
            }
        }
        self.move_on(now);
        ended.retain(|entry| self.wanted(entry));
        ended.sort_by_key(|entry| entry.call_id);
        Ok(ended)
    }

    async fn look_again(
        &mut self,
        store: &Store,
        now: OffsetDateTime,
    ) -> Result<Vec<Entry>, SearchFault> {
        let mut ended = Vec::new();
        let open: Vec<CallId> = self.open.keys().copied().collect();
        for some in open.chunks(READ as usize) {
            let query = CallQuery {
                call_ids: Some(some.to_vec()),
                ..CallQuery::default()
            };
            for row in store.list_calls(&query, Order::Oldest, READ).await? {
                self.sort(Entry::from(row), now, &mut ended);
            }
        }
        Ok(ended)
    }

    fn sort(&mut self, entry: Entry, now: OffsetDateTime, ended: &mut Vec<Entry>) {
        if entry.outcome == "unknown" && entry.time + PATIENCE > now {
            self.open.insert(entry.call_id, entry.time);
        } else {
            self.open.remove(&entry.call_id);
            self.seen.insert(entry.call_id);
            ended.push(entry);
        }
    }

    /// The next look begins a little before now; what lies before that need not be remembered.
    fn move_on(&mut self, now: OffsetDateTime) {
        self.after = self.after.max(now - OVERLAP);
        let floor = CallId(floor_id(self.after - OVERLAP));
        self.seen = self.seen.split_off(&floor);
    }

    fn wanted(&self, entry: &Entry) -> bool {
        let outcome = self.wants.as_ref().is_none_or(|wants| {
            entry.outcome == *wants
                || entry
                    .outcome
                    .strip_prefix(wants.as_str())
                    .is_some_and(|step| step.starts_with(':'))
        });
        let finding = self.finding.as_ref().is_none_or(|label| {
            entry
                .findings
                .as_ref()
                .is_some_and(|findings| findings.contains(label))
        });
        outcome && finding
    }
}
