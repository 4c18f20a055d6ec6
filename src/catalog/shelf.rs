//! One list of a view: in order, looked up by name, with the selections that were
//! made of it. Tools, resources, templates and prompts lie on shelves alike.

use std::sync::Arc;

use moka::sync::Cache;

use super::digest::sha256;
use crate::ids::{Role, Scope, UpstreamId};

/// Most selections that a shelf remembers.
const MOST_SELECTIONS: u64 = 1_024;

/// What a selection depends on besides the shelf: the tenant's rules by their
/// stamp, and the roles that they know, sorted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectionKey {
    /// The stamp of the tenant's rules.
    pub rules: u64,
    /// The roles.
    pub roles: Vec<Role>,
}

/// What lies on a shelf.
pub trait Listed {
    /// What callers name it by.
    fn key(&self) -> &str;

    /// Of its definition.
    fn digest(&self) -> &[u8; 32];

    /// Where it comes from.
    fn upstream(&self) -> &UpstreamId;

    /// Scopes that its use needs.
    fn scopes(&self) -> &[Scope];
}

/// Things of one kind, ordered by their keys: the same however an upstream happens
/// to order its list, and unmoved by a new upstream before others.
pub struct Shelf<T> {
    items: Vec<Arc<T>>,
    digest: [u8; 32],
    selections: Cache<SelectionKey, Arc<[Arc<T>]>>,
}

impl<T: Listed + Send + Sync + 'static> Shelf<T> {
    /// `items` need not be in order; of several with one key the first stays.
    pub(super) fn new(mut items: Vec<Arc<T>>) -> Self {
        items.sort_by(|a, b| a.key().cmp(b.key()));
        items.dedup_by(|later, earlier| later.key() == earlier.key());
        Self {
            digest: fingerprint(&items),
            items,
            selections: Cache::new(MOST_SELECTIONS),
        }
    }

    /// The thing of that key.
    pub fn get(&self, key: &str) -> Option<&Arc<T>> {
        let at = self.items.binary_search_by(|item| item.key().cmp(key));
        self.items.get(at.ok()?)
    }

    /// All of them in order.
    pub fn items(&self) -> &[Arc<T>] {
        &self.items
    }

    /// A digest of all that a caller can notice of them.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// A selection, made once and remembered. The key must hold everything that the
    /// selection depends on.
    pub fn selection(&self, key: SelectionKey, select: impl Fn(&T) -> bool) -> Arc<[Arc<T>]> {
        self.selections.get_with(key, || {
            let chosen = self.items.iter().filter(|item| select(item));
            chosen.cloned().collect()
        })
    }
}

/// A digest of all that a caller who sees these can notice of them.
pub fn fingerprint<T: Listed>(items: &[Arc<T>]) -> [u8; 32] {
    let mut bytes = Vec::with_capacity(items.len() * 64);
    for item in items {
        bytes.extend(item.digest());
        bytes.extend(item.upstream().as_str().as_bytes());
        for scope in item.scopes() {
            bytes.push(b' ');
            bytes.extend(scope.as_str().as_bytes());
        }
        bytes.push(b'\n');
    }
    sha256(&bytes)
}
