//! All sources, and the views made of them. Reading a view takes no lock; whoever
//! changes something makes the views anew and swaps them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use indexmap::IndexMap;
use tokio::sync::{Notify, SetOnce, watch};

use super::health::{Health, State};
use super::item::{Family, Item};
use super::owners::Owners;
use super::source::{Reading, Source};
use super::uris::Place;
use super::view::{Stock, View};
use super::watched::Watch;
use crate::config::{self, ResourceUris, ToolRule};
use crate::credentials::Credentials;
use crate::ids::{TenantId, ToolName, UpstreamId};
use crate::sanitize::Sanitizer;
use crate::upstream::{CallerKey, Upstream};

/// How long a new upstream may take to be read before the rest goes on without it.
pub(super) const FIRST_READING: Duration = Duration::from_secs(10);
/// A doubt about a list is no reason to read it again sooner than this.
const DOUBT_AFTER: Duration = Duration::from_secs(2);

pub(super) type Sources = IndexMap<UpstreamId, Arc<Source>>;

/// What all upstreams offer, by tenant.
pub struct Catalog {
    pub(super) sources: ArcSwap<Sources>,
    pub(super) rules: ArcSwap<Vec<ToolRule>>,
    pub(super) uris: ArcSwap<ResourceUris>,
    pub(super) credentials: ArcSwapOption<Credentials>,
    /// Wakes the upkeep when there are other sources.
    pub(super) sources_changed: Notify,
    /// One configuration at a time.
    pub(super) configured: tokio::sync::Mutex<Option<config::Config>>,
    sanitizer: Arc<Sanitizer>,
    views: ArcSwap<HashMap<TenantId, Arc<View>>>,
    empty: Arc<View>,
    owners: Owners,
    board: Mutex<Board>,
    /// There are views.
    first: SetOnce<()>,
}

/// What is needed to make views anew, one at a time.
#[derive(Default)]
struct Board {
    announcers: HashMap<TenantId, watch::Sender<u64>>,
    /// Names that a later upstream has too, with that upstream: told once.
    collisions: HashSet<(ToolName, UpstreamId)>,
    version: u64,
}

impl Catalog {
    /// Without tenants and upstreams: [`Catalog::reconfigure`] brings them.
    pub fn new(sanitizer: Arc<Sanitizer>) -> Arc<Self> {
        Arc::new(Self {
            sources: ArcSwap::default(),
            rules: ArcSwap::default(),
            uris: ArcSwap::default(),
            credentials: ArcSwapOption::empty(),
            sources_changed: Notify::new(),
            configured: tokio::sync::Mutex::default(),
            sanitizer,
            views: ArcSwap::default(),
            empty: Arc::new(View::empty()),
            owners: Owners::new(),
            board: Mutex::default(),
            first: SetOnce::new(),
        })
    }

    /// Waits until the first configuration's upstreams have been read, or have had their
    /// time for it: many clients ask for lists once, and would take an empty one for all
    /// there is.
    pub async fn started(&self) {
        if !self.first.initialized() {
            // Who comes before the reading has begun waits for all of it.
            let _ = tokio::time::timeout(FIRST_READING * 2, self.first.wait()).await;
        }
    }

    /// The first configuration's upstreams have been read, or have had their time.
    pub(super) fn has_started(&self) {
        // Another configuration finds it said.
        let _ = self.first.set(());
    }

    /// A tenant's view as it is now.
    pub fn view(&self, tenant: &TenantId) -> Arc<View> {
        let views = self.views.load();
        Arc::clone(views.get(tenant).unwrap_or(&self.empty))
    }

    /// Where a caller's URI is read, if anywhere (`rules.md` §3.6).
    pub fn place(
        &self,
        view: &View,
        tenant: &TenantId,
        caller: &[u8; 32],
        uri: &str,
    ) -> Option<Place> {
        view.place(uri, self.owners.of(tenant, caller, uri).as_ref())
    }

    /// Remembers where a caller heard of a URI.
    pub fn remember(&self, tenant: &TenantId, caller: &[u8; 32], uri: &str, owner: &UpstreamId) {
        self.owners.remember(tenant, caller, uri, owner);
    }

    /// Watches a resource for somebody; the watch ends with the value. `None` where
    /// the upstream is gone or tells nothing of its resources.
    pub fn watch(&self, place: &Place) -> Option<Watch> {
        let sources = self.sources.load();
        let source = sources.get(&place.upstream)?;
        source
            .upstream
            .abilities()
            .subscribe
            .then(|| source.watched.watch(&place.own))
    }

    /// Changes whenever what callers of a tenant can see may have changed: its
    /// tools, or the rules about them. Closed when the tenant is no more. Who
    /// listens compares what his caller sees before and after.
    pub fn changes(&self, tenant: &TenantId) -> watch::Receiver<u64> {
        match self.board().announcers.get(tenant) {
            Some(announcer) => announcer.subscribe(),
            None => watch::channel(0).1,
        }
    }

    /// How the upstreams fare, in the order of the configuration.
    pub fn health(&self) -> Vec<(UpstreamId, Health)> {
        let sources = self.sources.load();
        let health = |source: &Arc<Source>| (source.id.clone(), source.health());
        sources.values().map(health).collect()
    }

    /// The upstreams without which the service is not ready.
    pub fn missing(&self) -> Vec<UpstreamId> {
        let away = |health: &Health| health.required && health.state != State::Up;
        let health = self.health().into_iter();
        health
            .filter(|(_, health)| away(health))
            .map(|(id, _)| id)
            .collect()
    }

    /// The upstream itself, for calls.
    pub fn upstream(&self, id: &UpstreamId) -> Option<Arc<dyn Upstream>> {
        let sources = self.sources.load();
        sources.get(id).map(|source| Arc::clone(&source.upstream))
    }

    /// Tells a tenant's upstreams that the roots of a caller's client are others now.
    pub async fn roots_changed(&self, tenant: &TenantId, caller: CallerKey) {
        let sources = self.sources.load_full();
        let serving = serving(&sources, tenant).into_iter();
        let told = serving
            .filter_map(|at| sources.get_index(at))
            .map(|(_, source)| source.upstream.roots_changed(caller));
        futures_util::future::join_all(told).await;
    }

    /// An upstream's settings.
    pub fn settings(&self, id: &UpstreamId) -> Option<Arc<config::Upstream>> {
        let sources = self.sources.load();
        sources.get(id).map(|source| source.settings.load_full())
    }

    /// Reads an upstream's list now. What it offers is in the views afterwards.
    pub async fn refresh(&self, id: &UpstreamId) {
        let source = self.sources.load().get(id).cloned();
        if let Some(source) = source {
            self.read(&source).await;
        }
    }

    /// Doubts an upstream's list, because it does not know a tool that the list
    /// has, or is away: it will be read again soon.
    pub fn suspect(&self, id: &UpstreamId) {
        let sources = self.sources.load();
        if let Some(source) = sources.get(id)
            && source.age().is_none_or(|age| age > DOUBT_AFTER)
        {
            source.wake.notify_one();
        }
    }

    pub(super) async fn read(&self, source: &Source) {
        self.read_only(source).await;
        self.rebuild();
    }

    pub(super) async fn read_only(&self, source: &Source) {
        let reading = Reading {
            sanitizer: &self.sanitizer,
            credentials: self.credentials.load_full(),
            rules: &self.rules,
            uris: **self.uris.load(),
        };
        source.refresh(&reading).await;
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tenants from now on; those of `touched` hear of a change even where
    /// their tools stay.
    pub(super) fn set_tenants(&self, tenants: &[TenantId], touched: &[TenantId]) {
        let mut board = self.board();
        board
            .announcers
            .retain(|tenant, _| tenants.contains(tenant));
        for tenant in tenants {
            board.announcers.entry(tenant.clone()).or_default();
        }
        self.rebuild_on(&mut board);
        for tenant in touched {
            board.announce(tenant);
        }
    }

    /// Makes all views anew and tells the tenants whose tools are others now.
    pub(super) fn rebuild(&self) {
        self.rebuild_on(&mut self.board());
    }

    fn rebuild_on(&self, board: &mut Board) {
        let sources = self.sources.load_full();
        let before = self.views.load_full();
        let mut shared: HashMap<Vec<usize>, Arc<View>> = HashMap::new();
        let mut collisions = HashSet::new();
        let mut views = HashMap::with_capacity(board.announcers.len());
        let mut changed = Vec::new();
        let tenants: Vec<TenantId> = board.announcers.keys().cloned().collect();
        for tenant in tenants {
            let serving = serving(&sources, &tenant);
            let fresh = shared.entry(serving).or_insert_with_key(|serving| {
                board.version += 1;
                make(
                    &sources,
                    serving,
                    **self.uris.load(),
                    board.version,
                    &mut collisions,
                )
            });
            let old = before.get(&tenant);
            let same_offer = old.is_some_and(|old| old.digest() == fresh.digest());
            let view = match old {
                Some(old) if old.stands_like(fresh) => old,
                _ => &*fresh,
            };
            views.insert(tenant.clone(), Arc::clone(view));
            if !same_offer && (old.is_some() || !fresh.is_empty()) {
                changed.push(tenant);
            }
        }
        self.views.store(Arc::new(views));
        board.tell_of(collisions);
        for tenant in changed {
            board.announce(&tenant);
        }
    }
}

impl Board {
    fn announce(&mut self, tenant: &TenantId) {
        if let Some(announcer) = self.announcers.get(tenant) {
            announcer.send_modify(|count| *count += 1);
        }
    }

    fn tell_of(&mut self, collisions: HashSet<(ToolName, UpstreamId)>) {
        for (name, upstream) in collisions.difference(&self.collisions) {
            tracing::warn!(
                upstream.id = %upstream,
                gen_ai.tool.name = %name,
                "A tool is left out where an earlier upstream has one of the same name; give one of them a prefix"
            );
        }
        self.collisions = collisions;
    }
}

/// The places of the sources that serve a tenant. Tenants with the same ones
/// share a view.
fn serving(sources: &Sources, tenant: &TenantId) -> Vec<usize> {
    let serves = |source: &Arc<Source>| source.settings.load().serves(tenant);
    let numbered = sources.values().enumerate();
    numbered
        .filter(|(_, source)| serves(source))
        .map(|(at, _)| at)
        .collect()
}

fn make(
    sources: &Sources,
    serving: &[usize],
    uris: ResourceUris,
    version: u64,
    collisions: &mut HashSet<(ToolName, UpstreamId)>,
) -> Arc<View> {
    let mut taken: HashSet<ToolName> = HashSet::new();
    let mut stock = Stock {
        uris,
        ..Stock::default()
    };
    let mut ttl = Duration::from_mins(1);
    for (_, source) in serving.iter().filter_map(|at| sources.get_index(*at)) {
        let snapshot = source.snapshot();
        ttl = ttl.min(snapshot.ttl);
        stock.away += usize::from(snapshot.away);
        for tool in snapshot.tools.iter() {
            if taken.insert(tool.exposed.clone()) {
                stock.tools.push(Arc::clone(tool));
            } else {
                collisions.insert((tool.exposed.clone(), source.id.clone()));
            }
        }
        for (family, items) in Family::ALL.into_iter().zip(&mut stock.items) {
            let offered: &[Arc<Item>] = snapshot.items.of(family);
            items.extend(offered.iter().cloned());
        }
        stock
            .upstreams
            .push((source.id.clone(), snapshot.abilities));
    }
    Arc::new(View::new(stock, version, ttl))
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sources, views) = (self.sources.load().len(), self.views.load().len());
        write!(f, "Catalog({sources} upstreams, {views} tenants)")
    }
}
