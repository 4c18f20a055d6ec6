//! Writing batches: one connection, one chain per tenant, and the patience to
//! send a batch again until the database has said what became of it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use std::sync::Arc;

use super::checkpoint::{Signer, Signing};
use super::compose::{Composed, Ledger};
use super::event::Event;
use super::job::{Job, LaneName};
use crate::clock::SharedClock;
use crate::ids::ReplicaId;
use crate::store::StoreError;
use crate::store::audit_checkpoints::CheckpointRow;
use crate::store::audit_events::AuditConnection;

/// Between the first attempts; doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// How writing a batch ended, where it did not end well.
pub(super) enum Failed {
    /// Nothing was written.
    Away(StoreError),
    /// Something was sent and never answered.
    InDoubt(Composed),
    /// The database refuses these values.
    Poisoned(StoreError),
}

/// Whether what the writer remembers is what the database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    Kept,
    Lost,
}

/// What became of a batch that was in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    There,
    Missing,
}

/// A writer in the sense of the chain: one lane of one process.
pub(super) struct Writer {
    lane: LaneName,
    replica: ReplicaId,
    clock: SharedClock,
    connection: AuditConnection,
    // Known once the writer is registered, which takes a database.
    ledger: Option<Ledger>,
    generation: u64,
    signer: Option<Arc<Signer>>,
    signing: Signing,
    erasures: i64,
}

impl Writer {
    pub(super) fn new(
        lane: LaneName,
        replica: ReplicaId,
        clock: SharedClock,
        connection: AuditConnection,
        signer: Option<Arc<Signer>>,
    ) -> Self {
        Self {
            signer,
            signing: Signing::default(),
            erasures: 0,
            lane,
            replica,
            clock,
            connection,
            ledger: None,
            generation: 0,
        }
    }

    /// Writes one batch, again and again until `until` while it may still help.
    /// A batch in doubt is sent again as it is, under the same keys and the same
    /// places in the chain: what is there already is left alone.
    ///
    /// With `once`, what was certainly not written is not tried again: while the
    /// database is known to be away callers are refused at once rather than after
    /// two seconds.
    pub(super) async fn write(
        &mut self,
        jobs: &[Job],
        until: Instant,
        once: bool,
    ) -> Result<(), Failed> {
        let mut in_doubt: Option<Composed> = None;
        let mut pause = PAUSE;
        loop {
            let fault = match self.attempt(jobs, &mut in_doubt, until).await {
                Ok(()) => return Ok(()),
                Err(fault @ StoreError::Rejected { .. }) => return Err(Failed::Poisoned(fault)),
                Err(fault) => fault,
            };
            let hopeless = once && in_doubt.is_none();
            if hopeless || Instant::now() + pause >= until {
                return Err(match in_doubt {
                    Some(composed) => Failed::InDoubt(composed),
                    None => Failed::Away(fault),
                });
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// One attempt. `in_doubt` holds the batch as it was sent while nobody
    /// knows what became of it, before the attempt and after.
    async fn attempt(
        &mut self,
        jobs: &[Job],
        in_doubt: &mut Option<Composed>,
        until: Instant,
    ) -> Result<(), StoreError> {
        if let Some(composed) = in_doubt.as_ref()
            && !self.may_be_there(composed, jobs, until).await?
        {
            *in_doubt = None;
        }
        let again = in_doubt.is_some();
        let composed = match in_doubt.take() {
            Some(composed) => composed,
            None => self.compose(jobs, until).await?,
        };
        match self.connection.insert_events(&composed.batch, until).await {
            Ok(new) => {
                self.commit(composed, new, again);
                Ok(())
            }
            Err(fault) => {
                let answered = matches!(fault, StoreError::Rejected { .. });
                if !answered && (again || fault == StoreError::InDoubt) {
                    *in_doubt = Some(composed);
                }
                Err(fault)
            }
        }
    }

    /// Rows for `jobs`, once the ids of new names are known.
    async fn compose(&mut self, jobs: &[Job], until: Instant) -> Result<Composed, StoreError> {
        self.register(until).await.map_err(not_sent)?;
        self.learn(jobs, until).await.map_err(not_sent)?;
        self.ledger
            .as_ref()
            .and_then(|ledger| ledger.compose(events(jobs)))
            .ok_or(StoreError::Inconsistent("audit name"))
    }

    /// Whether a batch in doubt may be in this database. A server that took over
    /// may lack the last commits of the one before. Commits are lost from the end
    /// only: if the writer, its last event or a name that the batch uses is
    /// missing, the batch is missing too, and must be composed anew, since its
    /// ids could mean something else here.
    async fn may_be_there(
        &mut self,
        composed: &Composed,
        jobs: &[Job],
        until: Instant,
    ) -> Result<bool, StoreError> {
        if self.register(until).await.map_err(not_sent)? == Memory::Lost {
            return Ok(false);
        }
        self.learn(jobs, until).await.map_err(not_sent)?;
        Ok(self
            .ledger
            .as_ref()
            .is_some_and(|ledger| ledger.agrees(composed, events(jobs))))
    }

    /// Asks for the ids that are not known yet.
    async fn learn(&mut self, jobs: &[Job], until: Instant) -> Result<(), StoreError> {
        let Some(ledger) = &mut self.ledger else {
            return Err(StoreError::Inconsistent("audit writer"));
        };
        ledger.forget_excess();
        let unknown = ledger.unknown_names(events(jobs));
        if !unknown.is_empty() {
            ledger.learn(self.connection.insert_names(&unknown, until).await?);
        }
        Ok(())
    }

    /// Registers the writer, on every new connection again, and says whether
    /// what is remembered still holds there.
    async fn register(&mut self, until: Instant) -> Result<Memory, StoreError> {
        let generation = self.connection.ready(until).await?;
        if self.generation == generation {
            return Ok(Memory::Kept);
        }
        let (replica, lane) = (self.replica, self.lane as i16);
        let now = self.clock.now();
        let connection = &mut self.connection;
        let (id, is_new) = connection.insert_writer(replica, lane, now, until).await?;
        let memory = match &mut self.ledger {
            Some(ledger) if ledger.writer() == id => {
                let kept = match ledger.last() {
                    Some(last) => connection.has_event(last, until).await?,
                    None => !is_new,
                };
                ledger.forget_names();
                if kept {
                    Memory::Kept
                } else {
                    ledger.forget_callers();
                    Memory::Lost
                }
            }
            _ => {
                self.ledger = Some(Ledger::new(id));
                self.signing = Signing::default();
                Memory::Lost
            }
        };
        self.generation = generation;
        Ok(memory)
    }

    /// A batch is durable.
    fn commit(&mut self, composed: Composed, new: u64, again: bool) {
        let events = composed.batch.events.len();
        // All of it is new, or, sent again, none. Anything else means that
        // somebody used a call id twice, and verification will say so too.
        if new != events as u64 && !(again && new == 0) {
            tracing::error!(
                lane = self.lane.name(),
                events,
                new,
                "A call id was used twice; the audit's chain has a gap."
            );
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.advance(composed);
        }
    }

    /// Asks again about a batch that is in doubt. Gives it back while it still is.
    pub(super) async fn settle(
        &mut self,
        composed: Composed,
        jobs: &[Job],
        until: Instant,
    ) -> Result<Settled, Composed> {
        match self.may_be_there(&composed, jobs, until).await {
            Ok(true) => {}
            Ok(false) => return Ok(Settled::Missing),
            Err(_) => return Err(composed),
        }
        match self.connection.insert_events(&composed.batch, until).await {
            Ok(new) => {
                self.commit(composed, new, true);
                Ok(Settled::There)
            }
            // Refused for its values: so it was the first time.
            Err(StoreError::Rejected { .. }) => Ok(Settled::Missing),
            Err(_) => Err(composed),
        }
    }

    /// Events that are durable and that no checkpoint covers yet.
    pub(super) fn unsigned(&self) -> u64 {
        self.ledger.as_ref().map_or(0, Ledger::unsigned)
    }

    /// Signs where the chains stand, in as many checkpoints as it takes. With `last`
    /// the writer's final one is among them, whether or not anything moved.
    pub(super) async fn sign(&mut self, last: bool, until: Instant) -> Result<(), StoreError> {
        let Some(signer) = self.signer.clone() else {
            return Ok(());
        };
        if !self.has_to_sign(last) {
            return self.notice_erasures(until).await;
        }
        while !self.signing.ended && self.has_to_sign(last) {
            self.register(until).await?;
            let Some(ledger) = &self.ledger else {
                return Ok(());
            };
            let who = (ledger.writer(), self.replica.0, self.lane as i16);
            let now = self.clock.now();
            self.signing
                .compose(&signer, who, now, ledger.moved(), last)
                .map_err(|_| StoreError::Inconsistent("signing key"))?;
            self.store_checkpoint(until).await?;
        }
        Ok(())
    }

    fn has_to_sign(&self, last: bool) -> bool {
        let moved = |ledger: &Ledger| last || !ledger.moved().is_empty();
        self.signing.pending.is_some() || self.ledger.as_ref().is_some_and(moved)
    }

    async fn store_checkpoint(&mut self, until: Instant) -> Result<(), StoreError> {
        let Some((checkpoint, token)) = &self.signing.pending else {
            return Ok(());
        };
        let row = CheckpointRow {
            day: checkpoint.time().date(),
            writer: checkpoint.writer,
            number: checkpoint.number,
            at: checkpoint.time(),
            token: token.clone(),
        };
        let erasures = self.connection.insert_checkpoint(&row, until).await?;
        let Some((checkpoint, token)) = self.signing.advance() else {
            return Ok(());
        };
        // Whoever can rewrite the tables cannot rewrite the log as well.
        tracing::info!(
            checkpoint = %token,
            lane = self.lane.name(),
            "The audit's chains are signed."
        );
        if let Some(ledger) = &mut self.ledger {
            ledger.signed(&checkpoint.chains);
        }
        self.forget_erased(erasures);
        Ok(())
    }

    /// A writer that has nothing to sign learns of erasures all the same.
    async fn notice_erasures(&mut self, until: Instant) -> Result<(), StoreError> {
        if self.ledger.is_some() {
            let erasures = self.connection.count_erasures(until).await?;
            self.forget_erased(erasures);
        }
        Ok(())
    }

    /// A caller that was erased must not be referred to again.
    fn forget_erased(&mut self, erasures: i64) {
        if erasures != self.erasures {
            self.erasures = erasures;
            if let Some(ledger) = &mut self.ledger {
                ledger.forget_callers();
            }
        }
    }

    pub(super) async fn close(&mut self) {
        self.connection.close().await;
    }
}

fn events(jobs: &[Job]) -> impl Iterator<Item = &Event> {
    jobs.iter().map(|job| &job.event)
}

/// What was in doubt came before the batch: of that, nothing has been sent.
fn not_sent(fault: StoreError) -> StoreError {
    match fault {
        StoreError::InDoubt => StoreError::Unavailable("connection lost".to_owned()),
        other => other,
    }
}
