//! From events to rows: names to ids, callers to their rows, and a place in
//! the chain for each event. Composing changes nothing; only a batch that is
//! durable moves the chain on ([`Ledger::advance`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use time::Date;

use super::chain::{Digest, GENESIS, Leaf, caller_digest, link};
use super::event::{Caller, Event};
use crate::clock::random;
use crate::store::audit_rows::{BodyRow, CallerRow, EventBatch, EventKey, EventRow, StoredCaller};

/// Where a chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) sequence: i64,
    pub(super) link: Digest,
}

const START: Head = Head {
    sequence: 0,
    link: GENESIS,
};

#[derive(Clone, Copy, Debug)]
struct KnownCaller {
    id: i32,
    digest: Digest,
}

/// What one writer knows: all of it is what the database holds already.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    writer: i32,
    names: HashMap<String, i32>,
    heads: HashMap<String, Head>,
    callers: HashMap<Date, HashMap<Caller, KnownCaller>>,
    next_caller: i32,
    last: Option<EventKey>,
    /// Chains that moved since they were signed last.
    moved: BTreeMap<String, (i64, Digest)>,
    unsigned: u64,
}

/// A batch, and what will be known once it is durable.
#[derive(Debug)]
pub(super) struct Composed {
    pub(super) batch: EventBatch,
    heads: HashMap<String, Head>,
    callers: HashMap<(Date, Caller), KnownCaller>,
    next_caller: i32,
}

/// Beyond so many the memory of names, or of a day's callers, starts anew.
/// Forgetting a caller costs one row more, forgetting names one look-up.
const REMEMBERED: usize = 50_000;

impl Ledger {
    pub(super) fn new(writer: i32) -> Self {
        Self {
            writer,
            ..Self::default()
        }
    }

    /// Its id.
    pub(super) fn writer(&self) -> i32 {
        self.writer
    }

    /// The last event that became durable.
    pub(super) fn last(&self) -> Option<EventKey> {
        self.last
    }

    /// The chains that moved since they were signed last, and where they stand.
    pub(super) fn moved(&self) -> &BTreeMap<String, (i64, Digest)> {
        &self.moved
    }

    /// Events that no checkpoint covers yet.
    pub(super) fn unsigned(&self) -> u64 {
        self.unsigned
    }

    /// These heads are signed.
    pub(super) fn signed(&mut self, chains: &[(String, i64, String)]) {
        for (tenant, count, _) in chains {
            if self
                .moved
                .get(tenant)
                .is_some_and(|(moved, _)| moved == count)
            {
                self.moved.remove(tenant);
            }
        }
        if self.moved.is_empty() {
            self.unsigned = 0;
        }
    }

    pub(super) fn forget_names(&mut self) {
        self.names.clear();
    }

    pub(super) fn forget_callers(&mut self) {
        self.callers.clear();
    }

    /// Whether the ids in `composed` still stand for what `events` say.
    pub(super) fn agrees<'a>(
        &self,
        composed: &Composed,
        events: impl Iterator<Item = &'a Event>,
    ) -> bool {
        events.zip(&composed.batch.events).all(|(event, row)| {
            let id = |name: Option<&str>| name.and_then(|name| self.names.get(name).copied());
            row.writer == self.writer
                && Some(row.tenant) == id(Some(&event.tenant))
                && row.version == id(event.version)
                && row.tool == id(event.tool.as_deref())
                && row.upstream == id(event.upstream.as_deref())
                && row.upstream_tool == id(event.upstream_tool.as_deref())
                && row.definition == id(event.definition.as_deref())
                && row.configuration == id(event.configuration.as_deref())
                && row.outcome == id(event.outcome.as_deref())
        })
    }

    /// The names of `events` whose ids are not known yet.
    pub(super) fn unknown_names<'a>(&self, events: impl Iterator<Item = &'a Event>) -> Vec<String> {
        let unknown: HashSet<&str> = events
            .flat_map(Event::names)
            .filter(|name| !self.names.contains_key(*name))
            .collect();
        unknown.into_iter().map(str::to_owned).collect()
    }

    /// Keeps ids. Called with all that [`Ledger::unknown_names`] asked for, or
    /// again with all of a batch's once the memory has started anew.
    pub(super) fn learn(&mut self, names: Vec<(String, i32)>) {
        self.names.extend(names);
    }

    /// Makes room before a batch rather than within it.
    pub(super) fn forget_excess(&mut self) {
        if self.names.len() > REMEMBERED {
            self.names.clear();
        }
        self.callers
            .retain(|_, callers| callers.len() <= REMEMBERED);
        // Today and yesterday are written, now and then tomorrow.
        while self.callers.len() > 3 {
            let Some(oldest) = self.callers.keys().min().copied() else {
                return;
            };
            self.callers.remove(&oldest);
        }
    }

    /// Rows for `events`, in their order. None when a name's id is missing,
    /// which the caller has ruled out by learning them.
    pub(super) fn compose<'a>(&self, events: impl Iterator<Item = &'a Event>) -> Option<Composed> {
        let mut composed = Composed {
            batch: EventBatch::default(),
            heads: HashMap::new(),
            callers: HashMap::new(),
            next_caller: self.next_caller,
        };
        for event in events {
            self.append(&mut composed, event)?;
        }
        Some(composed)
    }

    fn append(&self, composed: &mut Composed, event: &Event) -> Option<()> {
        let day = event.at.date();
        let tenant = *self.names.get(&event.tenant)?;
        let caller = event
            .caller
            .as_ref()
            .map(|caller| self.caller(composed, day, tenant, caller));
        let head = composed
            .heads
            .get(&event.tenant)
            .or_else(|| self.heads.get(&event.tenant))
            .unwrap_or(&START);
        let leaf = Leaf {
            writer: self.writer,
            tenant: &event.tenant,
            sequence: head.sequence + 1,
            at: event.at,
            call_id: event.call_id.0,
            event: event.kind as i16,
            linked_call_id: event.linked.map(|id| id.0),
            version: event.version,
            tool: event.tool.as_deref(),
            upstream: event.upstream.as_deref(),
            upstream_tool: event.upstream_tool.as_deref(),
            definition: event.definition.as_deref(),
            configuration: event.configuration.as_deref(),
            arguments_mode: event.arguments_mode,
            outcome: event.outcome.as_deref(),
            measures: event.measures,
            trace_id: event.trace_id.as_ref().map(<[u8; 16]>::as_slice),
            caller: caller.as_ref().map(|caller| caller.digest.as_slice()),
            body: event.body.as_ref().map(|body| body.digest.as_slice()),
        }
        .digest();
        let next = Head {
            sequence: head.sequence + 1,
            link: link(&head.link, &leaf),
        };
        let row = self.row(event, caller.map(|caller| caller.id), &next, leaf)?;
        composed.batch.events.push(row);
        if let Some(body) = &event.body {
            composed.batch.bodies.push(BodyRow {
                call_id: event.call_id,
                day,
                event: event.kind as i16,
                tenant,
                body: body.clone(),
            });
        }
        match composed.heads.get_mut(&event.tenant) {
            Some(head) => *head = next,
            None => {
                composed.heads.insert(event.tenant.clone(), next);
            }
        }
        Some(())
    }

    fn row(
        &self,
        event: &Event,
        caller: Option<i32>,
        head: &Head,
        leaf: Digest,
    ) -> Option<EventRow> {
        let id = |name: Option<&str>| match name {
            None => Some(None),
            Some(name) => self.names.get(name).map(|id| Some(*id)),
        };
        Some(EventRow {
            at: event.at,
            sequence: head.sequence,
            call_id: event.call_id,
            linked_call_id: event.linked,
            event: event.kind as i16,
            writer: self.writer,
            tenant: id(Some(&event.tenant))??,
            caller,
            version: id(event.version)?,
            tool: id(event.tool.as_deref())?,
            upstream: id(event.upstream.as_deref())?,
            upstream_tool: id(event.upstream_tool.as_deref())?,
            definition: id(event.definition.as_deref())?,
            configuration: id(event.configuration.as_deref())?,
            arguments_mode: event.arguments_mode,
            outcome: id(event.outcome.as_deref())?,
            measures: event.measures,
            trace_id: event.trace_id.map(|id| id.to_vec()),
            leaf,
            link: head.link,
        })
    }

    /// The caller's row of that day: known, or new in this batch.
    fn caller(
        &self,
        composed: &mut Composed,
        day: Date,
        tenant: i32,
        caller: &Caller,
    ) -> KnownCaller {
        if let Some(known) = self.callers.get(&day).and_then(|known| known.get(caller)) {
            return *known;
        }
        let key = (day, caller.clone());
        if let Some(known) = composed.callers.get(&key) {
            return *known;
        }
        let salt = random::<16>();
        let mut stored = StoredCaller {
            salt: Some(salt.to_vec()),
            digest: Vec::new(),
            issuer: caller.issuer.clone(),
            subject: caller.subject.clone(),
            client: caller.client.clone(),
            grant: caller.grant.clone(),
            token_id: caller.token_id.clone(),
            address: caller.address.clone(),
            client_info: caller.client_info.clone(),
        };
        let digest = caller_digest(&salt, &stored);
        stored.digest = digest.to_vec();
        composed.next_caller = composed.next_caller.wrapping_add(1);
        let known = KnownCaller {
            id: composed.next_caller,
            digest,
        };
        composed.batch.callers.push(CallerRow {
            day,
            writer: self.writer,
            caller: known.id,
            tenant,
            stored,
        });
        composed.callers.insert(key, known);
        known
    }

    /// A batch is durable: what it brought is known from now on.
    pub(super) fn advance(&mut self, composed: Composed) {
        self.last = composed
            .batch
            .events
            .last()
            .map(EventRow::key)
            .or(self.last);
        self.unsigned += composed.batch.events.len() as u64;
        for (tenant, head) in composed.heads {
            self.moved
                .insert(tenant.clone(), (head.sequence, head.link));
            self.heads.insert(tenant, head);
        }
        self.next_caller = composed.next_caller;
        for ((day, caller), known) in composed.callers {
            self.callers.entry(day).or_default().insert(caller, known);
        }
    }
}
