//! Looks at one event after the other. Pure: what it is shown comes from the store,
//! what it concludes goes into the report.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::super::chain::{Digest, Leaf, body_digest, caller_digest};
use super::erasures::Erasures;
use super::findings::{Finding, FindingKind, Report};
use super::links::{Fit, Links};
use super::signatures::Signatures;
use crate::store::audit_rows::{StoredBody, StoredCaller};
use crate::store::audit_scan::{ScannedCaller, ScannedEvent};

/// Writer and tenant.
pub(super) type ChainKey = (i32, i32);

/// One chain.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) links: Links,
    /// The highest place up to which events are what was signed.
    agreed: i64,
    rewritten: bool,
    /// When its last event was.
    pub(super) newest: Option<time::OffsetDateTime>,
}

/// An event that is not what its digest covers.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) event: ScannedEvent,
    pub(super) caller: Option<Digest>,
    pub(super) caller_gone: bool,
    /// Whether it is a link of its chain all the same.
    pub(super) placed: bool,
    /// The callers of that number, and that day, of other writers.
    pub(super) elsewhere: HashMap<i32, Digest>,
}

/// Events that are looked into one by one; the rest is counted.
const MISFITS: usize = 2_000;
/// Segments of one chain, beyond which its rows lie in no order worth the name.
const SEGMENTS: usize = 50_000;

/// How often each name was used by events that are whole, and by others.
#[derive(Debug, Default)]
pub(super) struct Usage(HashMap<i32, (u64, u64)>);

impl Usage {
    fn note(&mut self, event: &ScannedEvent, whole: bool) {
        for id in names_of(event) {
            let (good, bad) = self.0.entry(id).or_default();
            if whole {
                *good += 1;
            } else {
                *bad += 1;
            }
        }
    }

    /// Names that no whole event uses, and how many others do.
    pub(super) fn suspects(&self) -> HashMap<i32, u64> {
        let suspect = |(id, (good, bad)): (&i32, &(u64, u64))| {
            (*good == 0 && *bad > 0).then_some((*id, *bad))
        };
        self.0.iter().filter_map(suspect).collect()
    }
}

pub(super) fn names_of(event: &ScannedEvent) -> impl Iterator<Item = i32> {
    [
        Some(event.tenant),
        event.version,
        event.tool,
        event.upstream,
        event.upstream_tool,
        event.definition,
        event.configuration,
        event.outcome,
    ]
    .into_iter()
    .flatten()
}

/// Everything that is known so far.
pub(super) struct Examiner {
    pub(super) names: HashMap<i32, Arc<str>>,
    pub(super) chains: HashMap<ChainKey, Chain>,
    pub(super) signatures: Signatures,
    pub(super) usage: Usage,
    pub(super) misfits: Vec<Misfit>,
    pub(super) more_misfits: u64,
    pub(super) erasures: Erasures,
    pub(super) report: Report,
    /// Ids of tenants by name, as far as checkpoints name them.
    pub(super) tenants: HashMap<String, i32>,
    pub(super) unknown_tenants: HashSet<String>,
    callers: HashMap<(i32, i32), (Digest, Option<i32>)>,
}

impl Examiner {
    pub(super) fn new(names: Vec<(i32, String)>, signatures: Signatures) -> Self {
        Self {
            names: names
                .into_iter()
                .map(|(id, name)| (id, Arc::from(name)))
                .collect(),
            chains: HashMap::new(),
            signatures,
            usage: Usage::default(),
            misfits: Vec::new(),
            more_misfits: 0,
            erasures: Erasures::default(),
            report: Report::default(),
            tenants: HashMap::new(),
            unknown_tenants: HashSet::new(),
            callers: HashMap::new(),
        }
    }

    pub(super) fn name(&self, id: i32) -> String {
        self.names
            .get(&id)
            .map_or_else(|| format!("(name {id})"), ToString::to_string)
    }

    /// A new day begins: its callers come first.
    pub(super) fn begin_day(&mut self) {
        self.callers.clear();
        for chain in self.chains.values_mut() {
            chain.links.tidy();
        }
    }

    pub(super) fn caller(&mut self, scanned: &ScannedCaller) {
        let caller = &scanned.stored;
        let whole = match &caller.salt {
            Some(salt) => caller_digest(salt, caller).as_slice() == caller.digest,
            None => is_empty_caller(caller),
        };
        if !whole {
            self.report.add(
                Finding::new(
                    FindingKind::AlteredCaller,
                    format!("caller {} is not what its digest covers", scanned.caller),
                )
                .writer(scanned.writer),
            );
        }
        if caller.salt.is_none() {
            self.erased(scanned.erased_by, || {
                Finding::new(
                    FindingKind::UnrecordedErasure,
                    format!("caller {} was emptied by no erasure", scanned.caller),
                )
                .writer(scanned.writer)
            });
        }
        if let Some(digest) = array(&caller.digest) {
            self.callers
                .insert((scanned.writer, scanned.caller), (digest, scanned.tenant));
        }
    }

    fn erased(&mut self, by: Option<Uuid>, finding: impl FnOnce() -> Finding) {
        match by {
            Some(by) => {
                self.report.erased += 1;
                self.erasures.name(by);
            }
            None => self.report.add(finding()),
        }
    }

    /// One event. False when the rows lie in no order and had better be sorted.
    pub(super) fn event(&mut self, event: ScannedEvent) -> bool {
        self.report.events += 1;
        self.body(&event);
        self.erasures.read(&event, &self.names);
        let known = event
            .caller
            .and_then(|caller| self.callers.get(&(event.writer, caller)).copied());
        let caller = known.map(|(digest, _)| digest);
        self.shown_to(&event, known.and_then(|(_, tenant)| tenant));
        let computed = self.leaf(&event, caller);
        let (Some(leaf), Some(link)) = (array(&event.leaf), array(&event.link)) else {
            let finding =
                Finding::new(FindingKind::AlteredEvent, "its digests have a wrong length");
            self.report.add(self.placed(finding, &event));
            return true;
        };
        let whole = computed == Some(leaf);
        self.usage.note(&event, whole);
        let key = (event.writer, event.tenant);
        let chain = self.chains.entry(key).or_default();
        chain.newest = chain.newest.max(Some(event.at));
        let sequence = event.sequence;
        let place = match computed {
            _ if whole => Some(leaf),
            _ if chain.links.follows(sequence, &leaf, &link) == Some(true) => Some(leaf),
            Some(computed) if chain.links.follows(sequence, &computed, &link) == Some(true) => {
                Some(computed)
            }
            _ => None,
        };
        if let Some(leaf) = place {
            self.put(&event, leaf, link);
        }
        let sorted = self
            .chains
            .get(&key)
            .is_none_or(|chain| chain.links.segments() < SEGMENTS);
        if !whole {
            self.misfit(event, caller, place.is_some());
        }
        sorted
    }

    /// Row-level security goes by a column of the row's own, which no digest covers:
    /// it has to name the event's tenant.
    fn shown_to(&mut self, event: &ScannedEvent, caller: Option<i32>) {
        for (kind, what, tenant) in [
            (FindingKind::AlteredCaller, "caller", caller),
            (FindingKind::AlteredBody, "body", event.body_tenant),
        ] {
            if let Some(tenant) = tenant.filter(|tenant| *tenant != event.tenant) {
                let why = format!("its {what} is shown to tenant `{}`", self.name(tenant));
                let finding = self.placed(Finding::new(kind, why), event);
                self.report.add(finding);
            }
        }
    }

    fn put(&mut self, event: &ScannedEvent, leaf: Digest, link: Digest) {
        let sequence = event.sequence;
        let chain = self.chains.entry((event.writer, event.tenant)).or_default();
        let fit = chain.links.put(sequence, leaf, link);
        let finding = match fit {
            Fit::Fits => None,
            Fit::Broken => Some(Finding::new(
                FindingKind::BrokenChain,
                "it does not follow from the event before it",
            )),
            Fit::Taken => Some(Finding::new(
                FindingKind::DuplicatedEvent,
                "another event stands at its place",
            )),
        };
        let mut rewritten = None;
        if fit != Fit::Taken {
            if chain.links.matches(sequence, &link) {
                chain.agreed = chain.agreed.max(sequence);
            } else if !chain.rewritten {
                chain.rewritten = true;
                rewritten = Some(chain.agreed + 1);
            }
        }
        if let Some(finding) = finding {
            self.report.add(self.placed(finding, event));
        }
        if let Some(first) = rewritten {
            let finding = Finding::new(
                FindingKind::RewrittenChain,
                "the chain differs from what its writer signed; the place is that of a checkpoint",
            );
            let finding = self
                .placed(finding, event)
                .at(first.min(sequence), sequence);
            self.report.add(finding);
        }
    }

    fn misfit(&mut self, event: ScannedEvent, caller: Option<Digest>, placed: bool) {
        if self.misfits.len() >= MISFITS {
            self.more_misfits += 1;
            return;
        }
        let number = event.caller.unwrap_or_default();
        let elsewhere = self
            .signatures
            .writers()
            .filter_map(|row| {
                let (digest, _) = self.callers.get(&(row.writer, number))?;
                Some((row.writer, *digest))
            })
            .collect();
        self.misfits.push(Misfit {
            elsewhere,
            caller_gone: event.caller.is_some() && caller.is_none(),
            event,
            caller,
            placed,
        });
    }

    fn body(&mut self, event: &ScannedEvent) {
        let Some(body) = &event.body else { return };
        let whole = match &body.salt {
            Some(salt) => body_digest(salt, body).as_slice() == body.digest,
            None => is_empty_body(body),
        };
        if !whole {
            let finding = Finding::new(
                FindingKind::AlteredBody,
                "its arguments, reason, findings or details are not what their digest covers",
            );
            self.report.add(self.placed(finding, event));
        }
        if body.salt.is_none() {
            let finding = self.placed(
                Finding::new(
                    FindingKind::UnrecordedErasure,
                    "its body was emptied by no erasure",
                ),
                event,
            );
            self.erased(event.body_erased_by, || finding);
        }
    }

    /// What the leaf should be; none where a name is not in the dictionary.
    fn leaf(&self, event: &ScannedEvent, caller: Option<Digest>) -> Option<Digest> {
        self.leaf_of(event, caller, |leaf| leaf)
    }

    /// The same, were something about the event otherwise.
    pub(super) fn leaf_of<'a>(
        &'a self,
        event: &'a ScannedEvent,
        caller: Option<Digest>,
        otherwise: impl FnOnce(Leaf<'a>) -> Leaf<'a>,
    ) -> Option<Digest> {
        let name = |id: Option<i32>| match id {
            None => Some(None),
            Some(id) => self.names.get(&id).map(|name| Some(&**name)),
        };
        let leaf = otherwise(Leaf {
            writer: event.writer,
            tenant: self.names.get(&event.tenant)?,
            sequence: event.sequence,
            at: event.at,
            call_id: event.call_id,
            event: event.event,
            linked_call_id: event.linked_call_id,
            version: name(event.version)?,
            tool: name(event.tool)?,
            upstream: name(event.upstream)?,
            upstream_tool: name(event.upstream_tool)?,
            definition: name(event.definition)?,
            configuration: name(event.configuration)?,
            arguments_mode: event.arguments_mode,
            outcome: name(event.outcome)?,
            measures: event.measures,
            trace_id: event.trace_id.as_deref(),
            caller: None,
            body: event.body.as_ref().map(|body| body.digest.as_slice()),
        });
        // The caller's digest lives no longer than this call.
        let leaf = Leaf {
            caller: caller.as_ref().map(<[u8; 32]>::as_slice),
            ..leaf
        };
        Some(leaf.digest())
    }

    /// A finding about this event.
    pub(super) fn placed(&self, finding: Finding, event: &ScannedEvent) -> Finding {
        let mut finding = finding
            .chain(event.writer, self.name(event.tenant))
            .at(event.sequence, event.sequence);
        finding.time = Some(event.at);
        finding.call_id = Some(event.call_id);
        finding
    }
}

pub(super) fn array(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok()
}

/// Nothing but digests: what an erasure leaves.
fn is_empty_caller(caller: &StoredCaller) -> bool {
    let bare = StoredCaller {
        digest: caller.digest.clone(),
        ..StoredCaller::default()
    };
    *caller == bare
}

fn is_empty_body(body: &StoredBody) -> bool {
    let bare = StoredBody {
        digest: body.digest.clone(),
        marks: body.marks,
        ..StoredBody::default()
    };
    *body == bare
}
