//! Caps on open streams (listen and GET): of one user, and of the replica.
//! A stream spends no bucket: it is open, not repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::counters::{Counters, Permit};
use super::meter::Keyer;
use crate::config::Streams;
use crate::tenancy::TenantContext;

/// The caps and what is open.
#[derive(Debug)]
pub struct StreamCaps {
    per_user: AtomicU32,
    total: AtomicU32,
    open: Arc<AtomicU32>,
    counters: Arc<Counters>,
    keyer: Keyer,
}

/// No room for another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamsFull {
    /// The user has too many open.
    #[error("this user has {cap} streams open, which is the most; close one first")]
    User {
        /// The cap.
        cap: u32,
    },
    /// The replica has too many open.
    #[error("too many streams are open; try again later")]
    Total {
        /// The cap.
        cap: u32,
    },
}

impl StreamCaps {
    /// Nothing is open yet.
    pub fn new(caps: Streams) -> Self {
        Self {
            per_user: AtomicU32::new(caps.per_user),
            total: AtomicU32::new(caps.total),
            open: Arc::default(),
            counters: Counters::new(),
            keyer: Keyer::default(),
        }
    }

    /// Other caps from now on; what is open stays open.
    pub fn reconfigure(&self, caps: Streams) {
        self.per_user.store(caps.per_user, Ordering::Relaxed);
        self.total.store(caps.total, Ordering::Relaxed);
    }

    /// How many streams are open.
    pub fn open_streams(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    /// Opens a stream of a caller, until the permit is dropped.
    pub fn open(&self, caller: &TenantContext) -> Result<StreamPermit, StreamsFull> {
        let principal = caller.principal();
        let user = (caller.tenant_id(), principal.issuer(), principal.subject());
        let cap = self.per_user.load(Ordering::Relaxed);
        let user = self.counters.take(self.keyer.key(user), cap);
        let user = user.ok_or(StreamsFull::User { cap })?;
        let cap = self.total.load(Ordering::Relaxed);
        let room = |open: u32| (open < cap).then_some(open + 1);
        self.open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .map_err(|_| StreamsFull::Total { cap })?;
        Ok(StreamPermit {
            _user: user,
            open: Arc::clone(&self.open),
        })
    }
}

/// An open stream's place; dropping it makes room.
#[derive(Debug)]
pub struct StreamPermit {
    _user: Permit,
    open: Arc<AtomicU32>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
