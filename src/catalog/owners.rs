//! Which upstream a caller heard of a URI from, for URIs that no list has
//! (`rules.md` §3.6). Each caller's own: what one upstream says to one caller leads
//! no other caller anywhere. Kept on this replica, for a while; what has been
//! forgotten is found by a template, or not.

use std::time::Duration;

use moka::sync::Cache;

use crate::ids::{TenantId, UpstreamId};

const MOST: u64 = 100_000;
const KEPT_FOR: Duration = Duration::from_hours(1);
/// Longest URI that is remembered.
const LONGEST: usize = 2_048;

/// Tenant, caller and exposed URI.
type Key = (TenantId, [u8; 32], Box<str>);

/// Remembers owners.
pub(super) struct Owners(Cache<Key, UpstreamId>);

impl Owners {
    pub(super) fn new() -> Self {
        let cache = Cache::builder().max_capacity(MOST).time_to_idle(KEPT_FOR);
        Self(cache.build())
    }

    pub(super) fn remember(
        &self,
        tenant: &TenantId,
        caller: &[u8; 32],
        uri: &str,
        owner: &UpstreamId,
    ) {
        if uri.len() <= LONGEST {
            self.0
                .insert((tenant.clone(), *caller, uri.into()), owner.clone());
        }
    }

    pub(super) fn of(&self, tenant: &TenantId, caller: &[u8; 32], uri: &str) -> Option<UpstreamId> {
        self.0.get(&(tenant.clone(), *caller, uri.into()))
    }
}
