//! One upstream as a source: what it last offered, how it fares, when to
//! ask it again. Its faults stay its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fetch::{List, Offer, Reader};
use super::health::{Health, State as Condition, word};
use super::item::{Family, Items};
use super::judge::{Bench, LeftOut};
use super::others::Others;
use super::tool::Tool;
use super::watched::Watched;
use crate::config::{self, ResourceUris, ToolRule};
use crate::credentials::Credentials;
use crate::ids::UpstreamId;
use crate::sanitize::Sanitizer;
use crate::upstream::{Abilities, Credential, Upstream};

/// A list is never read again sooner, whatever the upstream says of its freshness.
const SHORTEST: Duration = Duration::from_secs(5);
/// Nor later.
const LONGEST: Duration = Duration::from_mins(10);
/// First wait after a failure; doubled with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest wait after a failure.
const LAST_WAIT: Duration = Duration::from_mins(1);
/// How long callers may take a list for fresh while an upstream is away.
const WHILE_AWAY: Duration = Duration::from_secs(5);

const TOOLS: List = List {
    method: "tools/list",
    member: "tools",
};

/// What is needed to read and judge a list, besides the source itself.
pub(super) struct Reading<'a> {
    pub(super) sanitizer: &'a Sanitizer,
    pub(super) credentials: Option<Arc<Credentials>>,
    pub(super) rules: &'a ArcSwap<Vec<ToolRule>>,
    pub(super) uris: ResourceUris,
}

#[derive(Debug, Default)]
struct State {
    tools: Arc<[Arc<Tool>]>,
    items: Items,
    abilities: Abilities,
    left_out: Arc<[LeftOut]>,
    items_left_out: Vec<LeftOut>,
    read_at: Option<Instant>,
    tried_at: Option<Instant>,
    fresh_for: Duration,
    failures: u32,
    failure: Option<&'static str>,
    credential: Option<Credential>,
}

/// What a view takes of a source.
pub(super) struct Snapshot {
    pub(super) tools: Arc<[Arc<Tool>]>,
    pub(super) items: Items,
    pub(super) abilities: Abilities,
    pub(super) ttl: Duration,
    /// It cannot be reached, and what it offered last is too old to be shown.
    pub(super) away: bool,
}

/// An upstream in the catalogue.
pub(super) struct Source {
    pub(super) id: UpstreamId,
    pub(super) upstream: Arc<dyn Upstream>,
    pub(super) settings: ArcSwap<config::Upstream>,
    /// Asks for another reading soon.
    pub(super) wake: Notify,
    /// Ends the source's upkeep.
    pub(super) stop: CancellationToken,
    /// The upstream's announcements, heard from before the first reading on.
    pub(super) announced: watch::Receiver<u64>,
    /// The resources of which somebody wants to hear.
    pub(super) watched: Watched,
    /// Whether somebody does the upkeep.
    pub(super) tended: AtomicBool,
    state: Mutex<State>,
    /// Readings asked for, and how many of them are satisfied.
    asked: AtomicU64,
    done: AtomicU64,
    turn: tokio::sync::Mutex<()>,
}

impl Source {
    pub(super) fn new(upstream: Arc<dyn Upstream>, settings: config::Upstream) -> Arc<Self> {
        Arc::new(Self {
            id: upstream.id().clone(),
            settings: ArcSwap::from_pointee(settings),
            wake: Notify::new(),
            stop: CancellationToken::new(),
            announced: upstream.list_changed(),
            upstream,
            watched: Watched::default(),
            tended: AtomicBool::new(false),
            state: Mutex::default(),
            asked: AtomicU64::new(0),
            done: AtomicU64::new(0),
            turn: tokio::sync::Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the list again, or waits for a reading that begins after this was
    /// asked: one reading satisfies all who ask before it begins. Afterwards the
    /// caller has views made anew.
    pub(super) async fn refresh(&self, reading: &Reading<'_>) {
        let mine = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let _turn = self.turn.lock().await;
        if self.done.load(Ordering::SeqCst) >= mine {
            return;
        }
        let satisfies = self.asked.load(Ordering::SeqCst);
        self.read(reading).await;
        self.done.store(satisfies, Ordering::SeqCst);
    }

    async fn read(&self, reading: &Reading<'_>) {
        let settings = self.settings.load_full();
        let rules = reading.rules.load_full();
        let credential = match self.credential(reading.credentials.as_deref()) {
            Ok(credential) => credential,
            Err(reason) => return self.failed(reason),
        };
        self.state().credential.clone_from(&credential);
        let bench = Bench {
            upstream: &self.id,
            prefix: &settings.prefix,
            suspicious: settings.suspicious,
            rules: &rules,
            uris: reading.uris,
        };
        let deadline = Instant::now() + settings.timeout.connect.0 + settings.timeout.call.0;
        let reader = Reader {
            upstream: &*self.upstream,
            credential: credential.as_ref(),
            deadline,
        };
        let judge = |item| {
            let tool = bench.judge(&reading.sanitizer.definition(item))?;
            Ok((tool.own_name.to_string(), tool))
        };
        match reader.list(TOOLS, judge).await {
            Ok(offer) => {
                let fresh_for = offer.fresh_for.unwrap_or(settings.refresh.0);
                let items = self.read_items(&reader, &bench, reading).await;
                let fresh_for = items
                    .fresh_for
                    .map_or(fresh_for, |time| time.min(fresh_for));
                self.keep(offer, items, fresh_for.clamp(SHORTEST, LONGEST));
                // The rules may have become others meanwhile.
                let now = reading.rules.load_full();
                if !Arc::ptr_eq(&now, &rules) {
                    self.put_under(&now);
                }
            }
            Err(error) => self.failed(word(&error)),
        }
    }

    /// Reads what the upstream offers besides tools. A list that cannot be read
    /// stays what it was: it harms no other.
    async fn read_items(
        &self,
        reader: &Reader<'_>,
        bench: &Bench<'_>,
        reading: &Reading<'_>,
    ) -> Others {
        let abilities = self.upstream.abilities();
        let mut others = Others {
            items: self.state().items.clone(),
            abilities,
            ..Others::default()
        };
        for family in Family::ALL {
            let offered = match family {
                Family::Resources | Family::Templates => abilities.resources,
                Family::Prompts => abilities.prompts,
            };
            if !offered {
                others.items.set(family, Vec::new());
                continue;
            }
            let judge = |item| {
                let item = bench.judge_item(family, &reading.sanitizer.definition(item))?;
                Ok((item.own.clone(), item))
            };
            let list = List {
                method: family.method(),
                member: family.list(),
            };
            match reader.list(list, judge).await {
                Ok(offer) => others.add(family, offer, &self.id),
                Err(fault) => others.failed(family, &fault, &self.id, SHORTEST),
            }
        }
        others
    }

    pub(super) fn credential(
        &self,
        of: Option<&Credentials>,
    ) -> Result<Option<Credential>, &'static str> {
        let Some(credentials) = of else {
            return Ok(None);
        };
        let found = credentials.for_upstream(&self.id);
        let found = found.map_err(|_| "its credential cannot be read")?;
        Ok(found.map(|header| Credential {
            name: header.name,
            value: header.value,
        }))
    }

    /// Whether the upstream would now be asked with another credential than last time.
    pub(super) fn credential_changed(&self, credentials: Option<&Credentials>) -> bool {
        let Ok(now) = self.credential(credentials) else {
            return false;
        };
        let state = self.state();
        if state.tried_at.is_none() {
            return false;
        }
        match (&now, &state.credential) {
            (None, None) => false,
            (Some(a), Some(b)) => a.name != b.name || a.value != b.value,
            _ => true,
        }
    }

    fn keep(&self, offer: Offer<Tool>, others: Others, fresh_for: Duration) {
        let mut state = self.state();
        for left_out in &others.left_out {
            if !state.items_left_out.contains(left_out) {
                tracing::warn!(
                    upstream.id = %self.id,
                    item = %left_out.name,
                    reason = %left_out.reason,
                    "A resource or a prompt is left out of the catalogue"
                );
            }
        }
        for left_out in &offer.left_out {
            if !state.left_out.contains(left_out) {
                tracing::warn!(
                    upstream.id = %self.id,
                    gen_ai.tool.name = %left_out.name,
                    reason = %left_out.reason,
                    "A tool is left out of the catalogue"
                );
            }
        }
        if offer.cut {
            tracing::warn!(upstream.id = %self.id, "An upstream has more tools than are read; the rest is left out");
        }
        if state.failure.is_some() {
            tracing::info!(upstream.id = %self.id, "An upstream's list of tools can be read again");
        }
        let now = Instant::now();
        state.tools = offer.items.into_iter().map(Arc::new).collect();
        state.items = others.items;
        state.abilities = others.abilities;
        state.items_left_out = others.left_out;
        state.left_out = offer.left_out.into();
        state.fresh_for = fresh_for;
        state.read_at = Some(now);
        state.tried_at = Some(now);
        state.failures = 0;
        state.failure = None;
    }

    fn failed(&self, reason: &'static str) {
        let mut state = self.state();
        if state.failure != Some(reason) {
            tracing::warn!(
                upstream.id = %self.id,
                reason,
                "An upstream's list of tools cannot be read; what it offered last stays for a while"
            );
        }
        state.failure = Some(reason);
        state.failures = state.failures.saturating_add(1);
        state.tried_at = Some(Instant::now());
    }

    /// Applies other rules of the operator to the tools as they are.
    pub(super) fn put_under(&self, rules: &[ToolRule]) {
        let mut state = self.state();
        let tools = state.tools.iter().map(|tool| Arc::new(tool.under(rules)));
        state.tools = tools.collect();
    }

    /// The tools to show, and for how long.
    pub(super) fn snapshot(&self) -> Snapshot {
        let stale_for = self.settings.load().stale_for.0;
        let state = self.state();
        let gone = state.failure.is_some() && !state.recent(stale_for);
        Snapshot {
            tools: if gone {
                Arc::default()
            } else {
                Arc::clone(&state.tools)
            },
            items: if gone {
                Items::default()
            } else {
                state.items.clone()
            },
            abilities: state.abilities,
            away: gone,
            ttl: if state.failure.is_some() || state.read_at.is_none() {
                WHILE_AWAY
            } else {
                state.fresh_for
            },
        }
    }

    /// How it fares.
    pub(super) fn health(&self) -> Health {
        let settings = self.settings.load();
        let state = self.state();
        let condition = match (state.failure, state.read_at) {
            (None, None) => Condition::Starting,
            (None, Some(_)) => Condition::Up,
            (Some(_), _) if state.recent(settings.stale_for.0) => Condition::Stale,
            (Some(_), _) => Condition::Down,
        };
        Health {
            state: condition,
            reason: state.failure,
            tools: state.tools.len(),
            left_out: Arc::clone(&state.left_out),
            required: settings.required,
        }
    }

    /// When the list is to be read again.
    pub(super) fn read_due(&self) -> Instant {
        let state = self.state();
        state
            .tried_at
            .map_or_else(Instant::now, |at| at + state.wait())
    }

    /// When what the upstream offered last becomes too old to be shown, where it is
    /// away and that is still to come.
    pub(super) fn drop_due(&self) -> Option<Instant> {
        let stale_for = self.settings.load().stale_for.0;
        let state = self.state();
        let too_old = state.failure.and(state.read_at)? + stale_for;
        (too_old > Instant::now()).then_some(too_old)
    }

    /// How long ago the list was last asked for.
    pub(super) fn age(&self) -> Option<Duration> {
        self.state().tried_at.map(|at| at.elapsed())
    }
}

impl State {
    /// Time between the last reading and the next.
    fn wait(&self) -> Duration {
        if self.failure.is_none() {
            return self.fresh_for;
        }
        let doubled = FIRST_WAIT.saturating_mul(1 << self.failures.saturating_sub(1).min(10));
        doubled.min(LAST_WAIT)
    }

    /// Whether the last good reading is not older than `limit`.
    fn recent(&self, limit: Duration) -> bool {
        self.read_at.is_some_and(|at| at.elapsed() < limit)
    }
}
