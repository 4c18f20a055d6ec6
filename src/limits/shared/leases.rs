//! Places that are held in the store, and the task that keeps them: it renews those that
//! last, ends those that were given back, and makes the connection anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Away, Shared};

/// How long the places of a replica that was killed stay taken.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// Between renewals of what lasts.
const RENEW: Duration = Duration::from_secs(10);
/// Between attempts to connect.
const RETRY: Duration = Duration::from_secs(1);
/// Between log lines while the store is away.
const SAY: Duration = Duration::from_secs(30);
/// Leases that are ended in one go.
const BATCH: usize = 512;

/// What requests tell the keeper.
#[derive(Debug)]
pub(super) enum Word {
    Held(Held),
    Ended(Held),
    Lost(String),
}

/// A lease as the store knows it.
#[derive(Clone, Debug)]
pub(super) struct Held {
    id: Arc<str>,
    places: Arc<[String]>,
}

/// A lease of the places that one admission needs. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Lease {
    held: Option<Held>,
    tell: UnboundedSender<Word>,
}

impl Lease {
    pub(super) fn new(id: String, places: Vec<String>, tell: UnboundedSender<Word>) -> Self {
        Self {
            held: Some(Held {
                id: id.into(),
                places: places.into(),
            }),
            tell,
        }
    }

    pub(super) fn id(&self) -> &str {
        self.held.as_ref().map_or("", |held| &held.id)
    }

    /// The store has not given the places: there is nothing to give back.
    pub(super) fn forget(mut self) {
        self.held = None;
    }

    /// The store has given the places: they are renewed from now on. None where there
    /// are none.
    pub(super) fn hold(mut self) -> Option<Self> {
        let held = self.held.clone()?;
        if held.places.is_empty() {
            self.held = None;
            return None;
        }
        // Only a process that ends hears no more.
        let _ = self.tell.send(Word::Held(held));
        Some(self)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take().filter(|held| !held.places.is_empty()) {
            let _ = self.tell.send(Word::Ended(held));
        }
    }
}

/// What the keeper knows.
#[derive(Default)]
struct Kept {
    lasting: HashMap<Arc<str>, Arc<[String]>>,
    ended: Vec<Held>,
    lost: Option<String>,
}

impl Kept {
    fn hear(&mut self, words: &mut Vec<Word>) {
        for word in words.drain(..) {
            match word {
                Word::Held(held) => {
                    self.lasting.insert(held.id, held.places);
                }
                Word::Ended(held) => {
                    self.lasting.remove(&held.id);
                    self.ended.push(held);
                }
                Word::Lost(why) => self.lost = Some(why),
            }
        }
    }

    /// The leases that last, by their places.
    fn by_place(&self) -> HashMap<&str, Vec<&str>> {
        let mut places: HashMap<&str, Vec<&str>> = HashMap::new();
        for (id, held) in &self.lasting {
            for place in held.iter() {
                places.entry(place).or_default().push(id);
            }
        }
        places
    }
}

/// Says that the store is away, and that it is back: once in a while, however often
/// that changes.
#[derive(Default)]
struct Voice {
    said: Option<Instant>,
    is_away: bool,
}

impl Voice {
    fn away(&mut self, why: &str) {
        if self.said.is_none_or(|said| said.elapsed() >= SAY) {
            self.said = Some(Instant::now());
            self.is_away = true;
            tracing::warn!(
                reason = why,
                "Redis is away: limits are counted by each replica alone, or requests refused, as `when_away` says."
            );
        }
    }

    fn back(&mut self) {
        if std::mem::take(&mut self.is_away) {
            tracing::info!("Redis is back: replicas count limits together.");
        }
    }
}

impl Shared {
    /// Keeps the connection and the leases until `ending`.
    pub(in super::super) async fn keep(&self, ending: CancellationToken) {
        let mut told = self.told.lock().await;
        let mut kept = Kept::default();
        ending
            .run_until_cancelled(self.keep_on(&mut told, &mut kept))
            .await;
        // What the last calls held is given back before the process ends.
        let mut words = Vec::new();
        while let Ok(word) = told.try_recv() {
            words.push(word);
        }
        kept.hear(&mut words);
        // Without it the leases end by themselves.
        let _ = self.end_leases(&mut kept).await;
    }

    async fn keep_on(&self, told: &mut UnboundedReceiver<Word>, kept: &mut Kept) {
        let mut voice = Voice::default();
        loop {
            match self.connect().await {
                Ok(line) => {
                    self.connection.store(Some(Arc::new(line)));
                    self.metrics.limits_store_up(true);
                    voice.back();
                    let why = self.serve(told, kept).await;
                    voice.away(&why);
                }
                Err(why) => voice.away(&why),
            }
            sleep(RETRY).await;
        }
    }

    /// Serves one connection until it is lost; says why it was.
    async fn serve(&self, told: &mut UnboundedReceiver<Word>, kept: &mut Kept) -> String {
        let mut renewals = interval(RENEW);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut words = Vec::with_capacity(BATCH);
        loop {
            // What fails here has given the connection up, and that is told as well.
            tokio::select! {
                _ = told.recv_many(&mut words, BATCH) => {
                    kept.hear(&mut words);
                    let _ = self.end_leases(kept).await;
                }
                _ = renewals.tick() => {
                    let _ = self.renew_leases(kept).await;
                }
            }
            if let Some(why) = kept.lost.take() {
                return why;
            }
        }
    }

    async fn renew_leases(&self, kept: &Kept) -> Result<(), Away> {
        for (place, leases) in kept.by_place() {
            let mut question = self.renew.key(place);
            question.arg(LEASE.as_micros()).arg(leases);
            let _: i64 = self.ask(&question).await?;
        }
        Ok(())
    }

    /// Gives back what was ended; what cannot be is kept for the next connection.
    async fn end_leases(&self, kept: &mut Kept) -> Result<(), Away> {
        if kept.ended.is_empty() {
            return Ok(());
        }
        let connection = self.connection.load_full().ok_or(Away)?;
        let mut line = MultiplexedConnection::clone(&connection);
        let mut ending = redis::pipe();
        for held in &kept.ended {
            for place in held.places.iter() {
                ending.zrem(place, &*held.id).ignore();
            }
        }
        let why = match timeout(self.timeout, ending.query_async::<()>(&mut line)).await {
            Ok(Ok(())) => {
                kept.ended.clear();
                return Ok(());
            }
            Ok(Err(error)) => super::connection::reason(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        self.give_up(&connection, why);
        Err(Away)
    }
}
