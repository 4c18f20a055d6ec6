//! Counting together: one store (Redis or Valkey) has every bucket and every place, and
//! decides one admission in one round trip by its own clock.
//!
//! A caller never waits long for it. There is one connection. An answer that fails or
//! comes late gives it up, and from then on nobody asks until [`Shared::keep`], beside
//! the requests, has made another one and seen it count.
//!
//! Places are leases: they end by themselves when nobody renews them, so that those of a
//! replica that was killed come back.

mod condition;
mod connection;
mod keys;
mod leases;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use redis::aio::MultiplexedConnection;
use redis::{Client, FromRedisValue, Script, ScriptInvocation};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

pub use condition::SharedCondition;
pub use connection::SharedFault;
pub(super) use leases::Lease;

use super::admission::{Admission, LimitFault, Limited, Place, Standing};
use super::charge::Charges;
use super::meter::Settings;
use crate::clock::random;
use crate::config::{Redis, WhenAway};
use crate::secret::Secret;
use crate::telemetry::metrics::Metrics;
use leases::{LEASE, Word};

/// What the store is reached with: the configuration's `redis` with its files read.
#[derive(Debug)]
pub struct SharedSettings<'a> {
    /// The section.
    pub redis: &'a Redis,
    /// The password of `password_file`.
    pub password: Option<Secret<String>>,
    /// The certificates of `ca_file`.
    pub ca: Option<Vec<u8>>,
    /// Where it is counted how the store does.
    pub metrics: Arc<Metrics>,
}

/// The limits that replicas count together.
pub struct Shared {
    client: Client,
    admit: Script,
    renew: Script,
    timeout: Duration,
    when_away: WhenAway,
    connection: ArcSwapOption<MultiplexedConnection>,
    metrics: Arc<Metrics>,
    /// Tells this process's leases from those of others.
    origin: u64,
    next: AtomicU64,
    tell: UnboundedSender<Word>,
    told: Mutex<UnboundedReceiver<Word>>,
}

/// The store cannot be asked now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Away;

impl Shared {
    /// Prepares the way to the store and connects nothing: until [`Shared::keep`] has,
    /// it is away.
    ///
    /// # Errors
    /// When the address or the certificates cannot be read.
    pub fn new(settings: SharedSettings<'_>) -> Result<Self, SharedFault> {
        let (tell, told) = mpsc::unbounded_channel();
        Ok(Self {
            client: connection::client(&settings)?,
            admit: Script::new(include_str!("shared/admit.lua")),
            renew: Script::new(include_str!("shared/renew.lua")),
            timeout: settings.redis.timeout.0,
            when_away: settings.redis.when_away,
            connection: ArcSwapOption::empty(),
            metrics: settings.metrics,
            origin: u64::from_ne_bytes(random()),
            next: AtomicU64::new(0),
            tell,
            told: Mutex::new(told),
        })
    }

    /// Whether the requests that spend these may be counted here while the store is away.
    pub(super) fn stand_in(&self, charges: Charges<'_>) -> Result<(), LimitFault> {
        let refused = charges
            .of
            .iter()
            .any(|charge| charge.bucket.when_away.unwrap_or(self.when_away) == WhenAway::Refuse);
        self.metrics.limits_away(refused);
        if refused {
            return Err(LimitFault::Away);
        }
        Ok(())
    }

    /// Decides one admission, all or nothing.
    pub(super) async fn charge(
        &self,
        charges: Charges<'_>,
    ) -> Result<Result<Admission, Limited>, Away> {
        let lease = self.lease(charges);
        let mut question = self.admit.arg(lease.id());
        question.arg(LEASE.as_micros());
        for charge in charges.of {
            let settings = Settings::of(charge.bucket);
            question
                .key(keys::bucket(charges.tenant, charge, settings))
                .key(keys::places(charges.tenant, charge))
                .arg(settings.one.as_secs_f64() * 1e6)
                .arg(settings.burst)
                .arg(charge.bucket.concurrent.unwrap_or(0));
        }
        let asked = Instant::now();
        // A question whose answer never came may have taken places: the lease is ended
        // then, as it is when the admission is.
        let answer: Vec<i64> = self.ask(&question).await?;
        self.metrics.limits_decided(asked.elapsed());
        let Some((verdict, rest)) = answer.split_first() else {
            return Err(Away);
        };
        let refusing = usize::try_from(*verdict).unwrap_or_default();
        if let Some(charge) = refusing.checked_sub(1).and_then(|at| charges.of.get(at)) {
            lease.forget();
            let wait = rest.first().copied().unwrap_or_default();
            return Ok(Err(match u64::try_from(wait) {
                Ok(micros) => Limited::of_rate(
                    charge.policy,
                    Settings::of(charge.bucket),
                    Duration::from_micros(micros),
                ),
                Err(_) => Limited::of_places(
                    charge.policy,
                    charge.bucket,
                    charge.bucket.concurrent.unwrap_or_default(),
                ),
            }));
        }
        let standings = charges.of.iter().zip(rest).map(|(charge, left)| {
            let left = u32::try_from(*left).unwrap_or_default();
            Standing::of(charge.policy, Settings::of(charge.bucket), left)
        });
        let places = lease.hold().map(Place::Shared);
        Ok(Ok(Admission::new(
            places.into_iter().collect(),
            standings.collect(),
        )))
    }

    /// A lease of the places that these need; of none where nothing is capped.
    fn lease(&self, charges: Charges<'_>) -> Lease {
        let capped = charges
            .of
            .iter()
            .filter(|charge| charge.bucket.concurrent.is_some());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Lease::new(
            format!("{:016x}-{number}", self.origin),
            capped
                .map(|charge| keys::places(charges.tenant, charge))
                .collect(),
            self.tell.clone(),
        )
    }

    /// Runs a script within the time that an answer may take. A failure gives the
    /// connection up.
    async fn ask<T: FromRedisValue>(&self, question: &ScriptInvocation<'_>) -> Result<T, Away> {
        let connection = self.connection.load_full().ok_or(Away)?;
        let mut line = MultiplexedConnection::clone(&connection);
        let why = match timeout(self.timeout, question.invoke_async(&mut line)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => connection::reason(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        self.give_up(&connection, why);
        Err(Away)
    }

    /// The connection is of no use. Of many that find out at once, one tells.
    fn give_up(&self, connection: &Arc<MultiplexedConnection>, why: String) {
        let before = self
            .connection
            .compare_and_swap(&Some(Arc::clone(connection)), None);
        if before
            .as_ref()
            .is_some_and(|before| Arc::ptr_eq(before, connection))
        {
            self.metrics.limits_store_up(false);
            // Only a process that ends hears no more.
            let _ = self.tell.send(Word::Lost(why));
        }
    }
}

// The address holds a password.
impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
