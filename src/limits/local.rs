//! Counting in this process: the places among those at the same time first, then the
//! buckets from narrow to wide, and all or nothing: a refusal by one leaves the others
//! as they were.
//!
//! Where other replicas count as well, each has its share. A call then spends as many
//! tokens as there are replicas, rather than buckets being made smaller: a replica that
//! comes or goes resets nobody's bucket, and what is left reads as it does for all.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwap;

use super::admission::{Admission, Limited, Place, Standing};
use super::charge::{Charge, Charges};
use super::counters::Counters;
use super::meter::{Key, Keyer, Meter, Settings, Taken};
use super::ticks::Ticks;

/// The limits of this replica.
#[derive(Debug)]
pub(super) struct Local {
    meters: ArcSwap<HashMap<Settings, Arc<Meter>>>,
    counters: Arc<Counters>,
    keyer: Keyer,
    ticks: Ticks,
    /// Among how many a limit is divided.
    replicas: AtomicU32,
}

impl Local {
    pub(super) fn new(ticks: Ticks) -> Self {
        Self {
            meters: ArcSwap::default(),
            counters: Counters::new(),
            keyer: Keyer::default(),
            ticks,
            replicas: AtomicU32::new(1),
        }
    }

    /// Divides limits among so many from now on. What it was before.
    pub(super) fn divide(&self, replicas: u32) -> u32 {
        self.replicas.swap(replicas.max(1), Ordering::Relaxed)
    }

    /// Forgets what need not be known any more.
    pub(super) fn tidy(&self) {
        let unused: Vec<Settings> = self
            .meters
            .load()
            .iter()
            .filter(|(_, meter)| meter.tidy())
            .map(|(settings, _)| *settings)
            .collect();
        if unused.is_empty() {
            return;
        }
        self.meters.rcu(|meters| {
            let mut meters = HashMap::clone(meters);
            meters.retain(|settings, _| !unused.contains(settings));
            meters
        });
    }

    /// How many buckets are kept.
    pub(super) fn keys(&self) -> usize {
        self.meters.load().values().map(|meter| meter.len()).sum()
    }

    pub(super) fn charge(&self, charges: Charges<'_>) -> Result<Admission, Limited> {
        let replicas = self.replicas.load(Ordering::Relaxed);
        let places = self.enter(charges, replicas)?;
        let spill = self.keyer.key(("others", charges.tenant));
        let mut spent: Vec<(Arc<Meter>, Taken)> = Vec::with_capacity(charges.of.len());
        let mut standings = Vec::with_capacity(charges.of.len());
        for charge in charges.of {
            let settings = Settings::of(charge.bucket);
            let meter = self.meter(settings);
            match meter.take(self.key(charges.tenant, charge), spill, replicas) {
                Ok(taken) => {
                    standings.push(Standing::of(charge.policy, settings, taken.remaining));
                    spent.push((meter, taken));
                }
                Err(retry_after) => {
                    for (meter, taken) in spent {
                        meter.give_back(taken);
                    }
                    return Err(Limited::of_rate(charge.policy, settings, retry_after));
                }
            }
        }
        Ok(Admission::new(places, standings))
    }

    /// Takes a place under every cap; on a refusal those already taken are
    /// dropped, and so given back.
    fn enter(&self, charges: Charges<'_>, replicas: u32) -> Result<Vec<Place>, Limited> {
        let mut places = Vec::new();
        for charge in charges.of {
            let Some(cap) = charge.bucket.concurrent else {
                continue;
            };
            let share = (cap / replicas).max(u32::from(cap > 0));
            let permit = self
                .counters
                .take(self.key(charges.tenant, charge), share)
                .ok_or_else(|| Limited::of_places(charge.policy, charge.bucket, cap))?;
            places.push(Place::Here(permit));
        }
        Ok(places)
    }

    fn key(&self, tenant: &crate::ids::TenantId, charge: &Charge<'_>) -> Key {
        self.keyer.key((tenant, charge.policy, charge.who))
    }

    /// The meter of some settings, made when they are first seen. There are as
    /// many as the configuration has different rates.
    fn meter(&self, settings: Settings) -> Arc<Meter> {
        if let Some(meter) = self.meters.load().get(&settings) {
            return Arc::clone(meter);
        }
        let fresh = Arc::new(Meter::new(settings, &self.ticks));
        self.meters.rcu(|meters| {
            let mut meters = HashMap::clone(meters);
            meters.entry(settings).or_insert_with(|| Arc::clone(&fresh));
            meters
        });
        let meters = self.meters.load();
        meters.get(&settings).map_or(fresh, Arc::clone)
    }
}
