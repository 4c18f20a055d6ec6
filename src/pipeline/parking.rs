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

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: [u8; 32] = [1; 32];
    const BOB: [u8; 32] = [2; 32];

    fn parked() -> (Parked, tokio_util::sync::CancellationToken) {
        let (exchange, dropped) = Exchange::idle();
        let asked = Vec::new();
        (Parked { exchange, asked }, dropped)
    }

    #[tokio::test(start_paused = true)]
    async fn an_exchange_is_taken_once_and_by_its_owner_alone() {
        let parking = Parking::new(8, 8, Duration::from_mins(1));
        let (id, (exchange, dropped)) = (Uuid::from_u128(1), parked());
        parking.park(id, ALICE, exchange);
        assert!(parking.take(id, &BOB).is_none());
        assert!(parking.take(Uuid::from_u128(2), &ALICE).is_none());
        let taken = parking.take(id, &ALICE).unwrap();
        assert!(parking.take(id, &ALICE).is_none() && parking.waiting() == 0);
        // Its time does not run on.
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert!(!dropped.is_cancelled());
        drop(taken);
        assert!(dropped.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn an_exchange_that_nobody_comes_for_is_called_off() {
        let parking = Parking::new(8, 8, Duration::from_secs(30));
        let (exchange, dropped) = parked();
        parking.park(Uuid::from_u128(1), ALICE, exchange);
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert!(!dropped.is_cancelled());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(dropped.is_cancelled() && parking.waiting() == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_up_to_the_caps_of_a_caller_and_of_all() {
        let parking = Parking::new(2, 3, Duration::from_mins(1));
        for (at, owner) in [(1, ALICE), (2, ALICE)] {
            assert!(parking.has_room(&owner));
            parking.park(Uuid::from_u128(at), owner, parked().0);
        }
        assert!(!parking.has_room(&ALICE), "its own cap");
        assert!(parking.has_room(&BOB));
        parking.park(Uuid::from_u128(3), BOB, parked().0);
        assert!(!parking.has_room(&BOB), "the cap of all");
        parking.clear();
        assert!(parking.has_room(&ALICE) && parking.waiting() == 0);
    }
}
