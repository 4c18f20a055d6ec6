//! What one tenant's upstreams offer. A view never changes; when the offer does,
//! another takes its place. Who may see what of it is not decided here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::digest::sha256;
use super::item::{Family, Item};
use super::shelf::{SelectionKey, Shelf};
use super::tool::Tool;
use super::uris::{Place, unprefixed};
use crate::config::ResourceUris;
use crate::ids::UpstreamId;
use crate::upstream::Abilities;

/// The offer of a tenant's upstreams.
pub struct View {
    tools: Shelf<Tool>,
    items: [Shelf<Item>; 3],
    /// The upstreams, and what each says that it can do, in the order of the configuration.
    upstreams: Vec<(UpstreamId, Abilities)>,
    uris: ResourceUris,
    version: u64,
    digest: [u8; 32],
    ttl: Duration,
    all_away: bool,
}

/// What a view is made of; nothing need be in order, and of several with one key
/// the first stays.
#[derive(Default)]
pub(super) struct Stock {
    pub(super) tools: Vec<Arc<Tool>>,
    pub(super) items: [Vec<Arc<Item>>; 3],
    pub(super) upstreams: Vec<(UpstreamId, Abilities)>,
    pub(super) uris: ResourceUris,
    /// Until when upstreams that have never been read are to be waited for.
    /// How many upstreams have nothing to show because they cannot be reached.
    pub(super) away: usize,
}

impl View {
    pub(super) fn new(stock: Stock, version: u64, ttl: Duration) -> Self {
        let tools = Shelf::new(stock.tools);
        let items = stock.items.map(Shelf::new);
        let mut bytes = tools.digest().to_vec();
        for shelf in &items {
            bytes.extend(shelf.digest());
        }
        let all_away = stock.away > 0 && stock.away == stock.upstreams.len();
        bytes.extend(format!("{:?}{:?}", stock.upstreams, stock.uris).into_bytes());
        Self {
            tools,
            items,
            upstreams: stock.upstreams,
            uris: stock.uris,
            version,
            digest: sha256(&bytes),
            ttl,
            all_away,
        }
    }

    /// Whether there are upstreams and none of them has anything to show because none
    /// can be reached.
    pub fn all_away(&self) -> bool {
        self.all_away
    }

    /// Whether the other may stay in this one's place.
    pub(super) fn stands_like(&self, other: &Self) -> bool {
        self.digest == other.digest && self.ttl == other.ttl && self.all_away == other.all_away
    }

    /// The view of a tenant that has none.
    pub(super) fn empty() -> Self {
        Self::new(Stock::default(), 0, Duration::ZERO)
    }

    /// Whether nothing is offered.
    pub(super) fn is_empty(&self) -> bool {
        self.tools.items().is_empty() && self.items.iter().all(|shelf| shelf.items().is_empty())
    }

    /// A tool by its exposed name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// All tools in order.
    pub fn tools(&self) -> &[Arc<Tool>] {
        self.tools.items()
    }

    /// The things of a family.
    pub fn shelf(&self, family: Family) -> &Shelf<Item> {
        let [resources, templates, prompts] = &self.items;
        match family {
            Family::Resources => resources,
            Family::Templates => templates,
            Family::Prompts => prompts,
        }
    }

    /// Where a URI is read: as its prefix says; or where it is listed, then where
    /// `remembered` says, then where the one upstream is whose templates stand for it.
    pub fn place(&self, uri: &str, remembered: Option<&UpstreamId>) -> Option<Place> {
        if self.uris == ResourceUris::Prefix {
            let (upstream, own) = unprefixed(uri)?;
            return self.place_at(uri, own, &UpstreamId::new(upstream));
        }
        if let Some(listed) = self.shelf(Family::Resources).get(uri) {
            return self.place_at(uri, listed.own.clone(), &listed.upstream);
        }
        let place = |upstream: &UpstreamId| self.place_at(uri, uri.to_owned(), upstream);
        if let Some(place) = remembered.and_then(place) {
            return Some(place);
        }
        let templates = self.shelf(Family::Templates).items().iter();
        let mut owners: Vec<&UpstreamId> = templates
            .filter(|template| template.stands_for(uri))
            .map(|template| &template.upstream)
            .collect();
        owners.dedup();
        match owners.as_slice() {
            [owner, others @ ..] if others.iter().all(|other| other == owner) => place(owner),
            _ => None,
        }
    }

    fn place_at(&self, exposed: &str, own: String, upstream: &UpstreamId) -> Option<Place> {
        let serves = self.upstreams.iter().any(|(id, _)| id == upstream);
        serves.then(|| Place {
            exposed: exposed.to_owned(),
            own,
            upstream: upstream.clone(),
        })
    }

    /// How URIs are exposed.
    pub fn uris(&self) -> ResourceUris {
        self.uris
    }

    /// What an upstream says that it can do.
    pub fn abilities_of(&self, upstream: &UpstreamId) -> Abilities {
        let found = self.upstreams.iter().find(|(id, _)| id == upstream);
        found.map(|(_, abilities)| *abilities).unwrap_or_default()
    }

    /// What any of the upstreams says that it can do.
    pub fn abilities(&self) -> Abilities {
        let all = self.upstreams.iter().map(|(_, abilities)| *abilities);
        all.fold(Abilities::default(), Abilities::or)
    }

    /// Another number means another offer, or other rules of the operator for it.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A digest of all that a caller can notice of the offer.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// How long a caller may take a list for fresh: short while an upstream is away.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// A selection of the tools, made once and remembered with the view.
    pub fn selection(&self, key: SelectionKey, select: impl Fn(&Tool) -> bool) -> Arc<[Arc<Tool>]> {
        self.tools.selection(key, select)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools.items().len();
        write!(f, "View({tools} tools, version {})", self.version)
    }
}
