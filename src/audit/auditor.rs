//! The door to the audit: what a call passes on its way to a tool and back.

mod acts;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::checkpoint::Signer;
use super::event::Event;
use super::facts::{ArgumentsRecord, CallFacts, Finish};
use super::job::{Answer, AuditObserver, Fallback, Job, LaneName};
use super::knocks::Knocks;
use super::lane::{BUDGET, Lane};
use super::refusals::Refusals;
use crate::clock::SharedClock;
use crate::config::Durability;
use crate::ids::{CallId, ReplicaId, TenantId};
use crate::seal::{Keys, Label, Sealer};
use crate::store::Store;
use crate::store::audit_orphans::Orphan;

/// Why an event is not on record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditFault {
    /// The database did not take it in time, or too many wait already. Asking again later may help.
    #[error("the audit cannot be written at the moment")]
    Unavailable,
    /// The database will never take these values.
    #[error("the audit cannot hold this call")]
    Rejected,
    /// The service is shutting down.
    #[error("the audit is closed")]
    Closed,
}

/// Proof that `started` is on record, or, with `overlapped`, on its way there.
/// Dropped without [`Auditor::finish`] it leaves a call that reads `unknown`.
#[derive(Debug)]
#[must_use = "a call that is dispatched has to be finished"]
pub struct Recorded {
    call_id: CallId,
    tenant: TenantId,
    pending: Option<Submitted>,
    /// Whether the operator wants a record of it.
    kept: bool,
}

impl Recorded {
    /// The call.
    pub fn call_id(&self) -> CallId {
        self.call_id
    }
}

/// Proof that a call's outcome may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "without a receipt there is no answer"]
pub struct AuditReceipt(ReceiptKind);

/// What a receipt stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptKind {
    /// The record is durable.
    Committed,
    /// A refusal beyond the cap: counted, and written with its second's count.
    Counted,
    /// What is answered is not a call.
    NotRequired,
}

impl AuditReceipt {
    /// What it stands for.
    pub fn kind(self) -> ReceiptKind {
        self.0
    }
}

/// An event that was handed over and whose answer is to come.
#[derive(Debug)]
struct Submitted(oneshot::Receiver<Answer>);

impl Submitted {
    /// Waits until `until` and no longer. Closing before the last look makes it
    /// certain: either the answer is here, or the lane learns that nobody waited.
    async fn wait(mut self, until: Instant) -> Answer {
        match timeout_at(until, &mut self.0).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(AuditFault::Closed),
            Err(_) => {
                self.0.close();
                self.0.try_recv().unwrap_or(Err(AuditFault::Unavailable))
            }
        }
    }
}

/// What an auditor is made of.
pub struct AuditSettings {
    /// Where to.
    pub store: Store,
    /// Time and ids.
    pub clock: SharedClock,
    /// This process.
    pub replica: ReplicaId,
    /// Told what the lanes do.
    pub observer: Arc<dyn AuditObserver>,
    /// How many events may wait in each lane before callers are refused at once.
    pub queue: usize,
    /// Signs checkpoints and seals arguments; without it nothing is signed, and
    /// `full` arguments are kept as a digest.
    pub keys: Option<Keys>,
}

struct Door {
    inbox: mpsc::Sender<Job>,
    healthy: Arc<AtomicBool>,
}

impl Door {
    /// Hands an event over, or says at once that there is no room.
    fn submit(&self, event: Event, fallback: Fallback) -> Result<Submitted, AuditFault> {
        let (waiter, answer) = oneshot::channel();
        let job = Job {
            event,
            waiter: Some(waiter),
            fallback,
            since: Instant::now(),
        };
        match self.inbox.try_send(job) {
            Ok(()) => Ok(Submitted(answer)),
            Err(mpsc::error::TrySendError::Full(_)) => Err(AuditFault::Unavailable),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(AuditFault::Closed),
        }
    }

    fn queued(&self) -> usize {
        self.inbox.max_capacity() - self.inbox.capacity()
    }
}

impl Door {
    /// Hands over what nobody waits for.
    fn hand_over(&self, event: Event) -> Result<(), AuditFault> {
        match self.inbox.try_send(Job::unwaited(event)) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(AuditFault::Unavailable),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(AuditFault::Closed),
        }
    }
}

struct Doors {
    started: Door,
    finished: Door,
    refused: Door,
}

/// Writes the record. One for the process.
pub struct Auditor {
    // Taken away by `close`: lanes end when nobody can hand them anything.
    doors: ArcSwapOption<Doors>,
    lanes: Mutex<Vec<JoinHandle<()>>>,
    refusals: Arc<Refusals>,
    knocks: Arc<Knocks>,
    bodies: Option<Sealer>,
    clock: SharedClock,
}

impl Auditor {
    /// Starts the lanes. The database need not be there yet.
    pub fn spawn(settings: AuditSettings) -> Self {
        let refusals = Arc::new(Refusals::default());
        let mut lanes = Vec::new();
        let signer = settings.keys.as_ref().and_then(signer);
        let mut open = |name: LaneName, refusals: Option<Arc<Refusals>>| {
            let lane = Lane::new(
                name,
                &settings.store,
                settings.replica,
                Arc::clone(&settings.clock),
                Arc::clone(&settings.observer),
                refusals,
                signer.clone(),
            );
            let (inbox, outbox) = mpsc::channel(settings.queue.max(1));
            let healthy = Arc::clone(&lane.healthy);
            lanes.push(tokio::spawn(lane.run(outbox)));
            Door { inbox, healthy }
        };
        let doors = Doors {
            started: open(LaneName::Started, None),
            finished: open(LaneName::Finished, None),
            refused: open(LaneName::Refused, Some(Arc::clone(&refusals))),
        };
        Self {
            doors: ArcSwapOption::from_pointee(doors),
            lanes: Mutex::new(lanes),
            refusals,
            knocks: Arc::default(),
            bodies: settings
                .keys
                .as_ref()
                .map(|keys| keys.sealer(Label::AuditBody)),
            clock: settings.clock,
        }
    }

    /// Puts a call on record before it is dispatched. `strict`: durable when
    /// this returns. `overlapped`: on its way when this returns, and waited for
    /// by [`Auditor::finish`]; while the database is known to be away it is
    /// waited for here, so that both refuse.
    pub async fn start(
        &self,
        facts: &CallFacts,
        durability: Durability,
    ) -> Result<Recorded, AuditFault> {
        let recorded = |pending| Recorded {
            call_id: facts.call_id,
            tenant: facts.tenant.clone(),
            pending,
            kept: true,
        };
        let event = Event::started(facts);
        let overlapped = durability == Durability::Overlapped
            && self.at(|doors| Ok(doors.started.healthy.load(Ordering::Relaxed)))?;
        if overlapped {
            // Dispatched whatever comes, so written whenever it can be.
            let pending = self.at(|doors| doors.started.submit(event, Fallback::Keep))?;
            return Ok(recorded(Some(pending)));
        }
        let fallback = Fallback::Correct("refused:audit");
        self.at(|doors| doors.started.submit(event, fallback))?
            .wait(Instant::now() + BUDGET)
            .await?;
        Ok(recorded(None))
    }

    /// Stands for the record of a request that the operator wants no record of:
    /// never a `tools/call`.
    pub fn waive(facts: &CallFacts) -> Recorded {
        Recorded {
            call_id: facts.call_id,
            tenant: facts.tenant.clone(),
            pending: None,
            kept: false,
        }
    }

    /// Puts a call's outcome on record. Without the receipt the result must not
    /// leave: the call reads `unknown`, or `withheld` where the outcome turns out to have been written.
    pub async fn finish(
        &self,
        recorded: Recorded,
        finish: Finish,
    ) -> Result<AuditReceipt, AuditFault> {
        if !recorded.kept {
            return Ok(Self::not_required());
        }
        let until = Instant::now() + BUDGET;
        if let Some(pending) = recorded.pending {
            pending.wait(until).await?;
        }
        let at = self.clock.now();
        let event = Event::finished(recorded.call_id, &recorded.tenant, at, &finish);
        self.at(|doors| doors.finished.submit(event, Fallback::Correct("withheld")))?
            .wait(until)
            .await?;
        Ok(AuditReceipt(ReceiptKind::Committed))
    }

    /// Puts a call on record that was refused before dispatch. Beyond ten a
    /// second and client it is counted, and returns at once.
    pub async fn refuse(
        &self,
        facts: &CallFacts,
        finish: Finish,
    ) -> Result<AuditReceipt, AuditFault> {
        if !self.refusals.admit(facts, &finish, self.clock.now()) {
            return self.at(|_| Ok(AuditReceipt(ReceiptKind::Counted)));
        }
        let event = Event::refused(facts, &finish);
        self.at(|doors| doors.refused.submit(event, Fallback::Drop))?
            .wait(Instant::now() + BUDGET)
            .await?;
        Ok(AuditReceipt(ReceiptKind::Committed))
    }

    /// Arguments whole and sealed, for auditors who hold the keys. Without keys no
    /// more than their digest.
    pub fn full_arguments(&self, call: CallId, original: &[u8]) -> ArgumentsRecord {
        match &self.bodies {
            Some(bodies) => ArgumentsRecord::full(bodies, call, original),
            None => ArgumentsRecord::digest(original),
        }
    }

    /// Puts on record that these calls will not be finished, as far as anybody
    /// knows. What cannot be written now is given up: they are found again.
    pub(crate) async fn close_calls(
        &self,
        orphans: &[Orphan],
        why: &str,
    ) -> Result<(), AuditFault> {
        let until = Instant::now() + BUDGET;
        let mut submitted = Vec::with_capacity(orphans.len());
        for orphan in orphans {
            let event = Event::closed(orphan.call_id, &orphan.tenant, self.clock.now(), why);
            submitted.push(self.at(|doors| doors.refused.submit(event, Fallback::Drop))?);
        }
        for submitted in submitted {
            submitted.wait(until).await?;
        }
        Ok(())
    }

    /// How many events wait in each lane.
    pub fn queued(&self) -> [(LaneName, usize); 3] {
        let count = |pick: fn(&Doors) -> &Door| {
            let doors = self.doors.load();
            doors.as_ref().map_or(0, |doors| pick(doors).queued())
        };
        [
            (LaneName::Started, count(|doors| &doors.started)),
            (LaneName::Finished, count(|doors| &doors.finished)),
            (LaneName::Refused, count(|doors| &doors.refused)),
        ]
    }

    /// The receipt of an answer that is no call's: lists, pings, discovery.
    pub fn not_required() -> AuditReceipt {
        AuditReceipt(ReceiptKind::NotRequired)
    }

    /// Takes no more, writes what waits, and ends. What is asked of it
    /// afterwards is [`AuditFault::Closed`].
    pub async fn close(&self) {
        self.hand_over_counts(true);
        drop(self.doors.swap(None));
        let lanes = std::mem::take(
            &mut *self
                .lanes
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        let until = Instant::now() + CLOSING;
        for lane in lanes {
            if timeout_at(until, lane).await.is_err() {
                tracing::error!("The audit did not close in time.");
            }
        }
    }

    fn at<T>(&self, enter: impl FnOnce(&Doors) -> Result<T, AuditFault>) -> Result<T, AuditFault> {
        match &*self.doors.load() {
            Some(doors) => enter(doors),
            None => Err(AuditFault::Closed),
        }
    }
}

impl fmt::Debug for Auditor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auditor").finish_non_exhaustive()
    }
}

/// How long the lanes, side by side, may take to write what waits: three batches that are given up.
const CLOSING: Duration = Duration::from_secs(8);

fn signer(keys: &Keys) -> Option<Arc<Signer>> {
    match Signer::new(keys) {
        Ok(signer) => Some(Arc::new(signer)),
        Err(error) => {
            tracing::error!(%error, "The audit's chains cannot be signed.");
            None
        }
    }
}
