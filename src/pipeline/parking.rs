//! Exchanges whose caller has been asked and has still to come back. Each waits
//! for so long and no longer, and there are only so many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::protocol::ServerRequest;

use super::exchange::Exchange;

/// An exchange that waits, and what it has asked, each under its key.
pub(super) struct Parked {
    pub(super) exchange: Exchange,
    pub(super) asked: Vec<(String, ServerRequest)>,
}

struct Place {
    owner: [u8; 32],
    parked: Parked,
}

/// The places.
#[derive(Clone)]
pub(super) struct Parking {
    places: Arc<Mutex<HashMap<Uuid, Place>>>,
    per_caller: usize,
    total: usize,
    patience: Duration,
}

impl Parking {
    pub(super) fn new(per_caller: usize, total: usize, patience: Duration) -> Self {
        Self {
            places: Arc::default(),
            per_caller,
            total,
            patience,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a caller has room for another.
    pub(super) fn has_room(&self, owner: &[u8; 32]) -> bool {
        let places = self.lock();
        let own = places.values().filter(|place| place.owner == *owner);
        places.len() < self.total && own.count() < self.per_caller
    }

    /// Lets an exchange wait under that id.
    pub(super) fn park(&self, id: Uuid, owner: [u8; 32], parked: Parked) {
        self.lock().insert(id, Place { owner, parked });
        let parking = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(parking.patience).await;
            // Dropping it tells the upstream to stop.
            let late = parking.lock().remove(&id);
            drop(late);
        });
    }

    /// Takes an exchange back. Only one who comes gets it.
    pub(super) fn take(&self, id: Uuid, owner: &[u8; 32]) -> Option<Parked> {
        let mut places = self.lock();
        places.get(&id).filter(|place| place.owner == *owner)?;
        places.remove(&id).map(|place| place.parked)
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().len()
    }

    /// Gives up all that wait.
    pub(super) fn clear(&self) {
        let all: Vec<Place> = self.lock().drain().map(|(_, place)| place).collect();
        drop(all);
    }
}
