//! The limits by identity. Per request: the places among those at the same time
//! first, then the buckets from narrow to wide, and all or nothing: a refusal by
//! one leaves the others as they were.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::admission::{Admission, Limited, Standing, ToolClass};
use super::counters::{Counters, Permit};
use super::meter::{Key, Keyer, Meter, Settings, Taken};
use super::ticks::Ticks;
use crate::config::Bucket;
use crate::tenancy::TenantContext;

/// When to come back if there are too many at the same time: nobody knows when
/// one of them ends, so this is a guess that does not hammer.
const WHEN_FULL: Duration = Duration::from_secs(1);

/// What a request spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Work for an upstream: `tools/call`, `resources/read`, `prompts/get`,
    /// `completion/complete`, refused ones too.
    Call,
    /// Finding out where one stands: lists, `initialize`, `server/discover`, `ping`.
    Browse,
}

/// One bucket that a request spends.
struct Charge<'a> {
    policy: &'static str,
    bucket: &'a Bucket,
    key: Key,
}

/// The limits of this replica.
#[derive(Debug)]
pub struct Limits {
    meters: ArcSwap<HashMap<Settings, Arc<Meter>>>,
    counters: Arc<Counters>,
    keyer: Keyer,
    ticks: Ticks,
}

impl Limits {
    /// No state yet: everybody's buckets are full.
    pub fn new(ticks: Ticks) -> Self {
        Self {
            meters: ArcSwap::default(),
            counters: Counters::new(),
            keyer: Keyer::default(),
            ticks,
        }
    }

    /// Lets a request of a known caller in.
    pub fn admit(&self, caller: &TenantContext, cost: Cost) -> Result<Admission, Limited> {
        let limits = caller.rules().limits();
        let tenant = caller.tenant_id();
        let principal = caller.principal();
        let user = |policy, bucket| Charge {
            policy,
            bucket,
            key: self
                .keyer
                .key((policy, tenant, principal.issuer(), principal.subject())),
        };
        if cost == Cost::Browse {
            return self.charge(caller, &[user("browse", &limits.browse)]);
        }
        let mut charges = Vec::with_capacity(3);
        charges.push(user("user", &limits.per_user));
        charges.extend(limits.per_client.as_ref().map(|bucket| Charge {
            policy: "client",
            bucket,
            key: self.keyer.key(("client", tenant, principal.client())),
        }));
        charges.extend(limits.per_tenant.as_ref().map(|bucket| Charge {
            policy: "tenant",
            bucket,
            key: self.keyer.key(("tenant", tenant)),
        }));
        self.charge(caller, &charges)
    }

    /// Lets a call of a tool of a limited class in, after [`Limits::admit`].
    pub fn admit_tool(
        &self,
        caller: &TenantContext,
        class: &ToolClass,
    ) -> Result<Admission, Limited> {
        let charge = Charge {
            policy: "tool",
            bucket: &class.bucket,
            key: self.keyer.key(("tool", caller.tenant_id(), &class.rule)),
        };
        self.charge(caller, &[charge])
    }

    /// Forgets what need not be known any more. To be called every few seconds;
    /// meters also sweep on their own when they grow.
    pub fn tidy(&self) {
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

    /// How many buckets are kept, for the metrics.
    pub fn keys(&self) -> usize {
        self.meters.load().values().map(|meter| meter.len()).sum()
    }

    fn charge(&self, caller: &TenantContext, charges: &[Charge<'_>]) -> Result<Admission, Limited> {
        let permits = self.enter(charges)?;
        let spill = self.keyer.key(("others", caller.tenant_id()));
        let mut spent: Vec<(Arc<Meter>, Taken)> = Vec::with_capacity(charges.len());
        let mut standings = Vec::with_capacity(charges.len());
        for charge in charges {
            let settings = Settings::of(charge.bucket);
            let meter = self.meter(settings);
            match meter.take(charge.key, spill) {
                Ok(taken) => {
                    standings.push(standing(charge.policy, settings, taken.remaining));
                    spent.push((meter, taken));
                }
                Err(retry_after) => {
                    for (meter, taken) in spent {
                        meter.give_back(taken);
                    }
                    return Err(Limited {
                        policy: charge.policy,
                        quota: settings.burst,
                        window: settings.window(),
                        retry_after,
                        concurrent: false,
                    });
                }
            }
        }
        Ok(Admission::new(permits, standings))
    }

    /// Takes a place under every cap; on a refusal those already taken are
    /// dropped, and so given back.
    fn enter(&self, charges: &[Charge<'_>]) -> Result<Vec<Permit>, Limited> {
        let mut permits = Vec::new();
        for charge in charges {
            let Some(cap) = charge.bucket.concurrent else {
                continue;
            };
            let permit = self.counters.take(charge.key, cap).ok_or_else(|| Limited {
                policy: charge.policy,
                quota: cap,
                window: Settings::of(charge.bucket).window(),
                retry_after: WHEN_FULL,
                concurrent: true,
            })?;
            permits.push(permit);
        }
        Ok(permits)
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

fn standing(policy: &'static str, settings: Settings, remaining: u32) -> Standing {
    let spent = settings.burst.saturating_sub(remaining);
    Standing {
        policy,
        quota: settings.burst,
        window: settings.window(),
        remaining,
        reset: settings.one.saturating_mul(spent),
    }
}
