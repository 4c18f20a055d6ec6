//! What waits to be exported. Whoever hands something over never waits: where the
//! queue is full it is dropped, and counted.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Most that wait, of each signal.
const ROOM: usize = 8192;
/// Most that are sent at once.
const BATCH: usize = 512;
/// How long a batch gathers.
const GATHERING: Duration = Duration::from_secs(1);

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }
}

/// Counts what was to be exported and was not.
#[derive(Clone, Debug, Default)]
pub struct Losses(Family<LossLabels, Counter>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct LossLabels {
    signal: &'static str,
    reason: &'static str,
}

impl Losses {
    /// There was no room for so many.
    fn crowd(&self, signal: Signal, count: u64) {
        self.add(signal, "queue_full", count);
    }

    /// The collector did not take so many.
    pub(super) fn not_taken(&self, signal: Signal, count: usize) {
        self.add(signal, "not_taken", count as u64);
    }

    fn add(&self, signal: Signal, reason: &'static str, count: u64) {
        let signal = signal.as_str();
        let labels = LossLabels { signal, reason };
        self.0.get_or_create(&labels).inc_by(count);
    }

    /// For the registry: all of them are shown from the start, so that a first loss is
    /// a rise.
    pub(super) fn family(&self) -> Family<LossLabels, Counter> {
        for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
            self.crowd(signal, 0);
            self.not_taken(signal, 0);
        }
        self.0.clone()
    }
}

/// The end that things are handed over at.
#[derive(Debug)]
pub(super) struct Queue<T> {
    signal: Signal,
    sender: mpsc::Sender<T>,
    losses: Losses,
}

impl<T> Queue<T> {
    pub(super) fn new(signal: Signal, losses: Losses) -> (Self, mpsc::Receiver<T>) {
        let (sender, receiver) = mpsc::channel(ROOM);
        let queue = Self {
            signal,
            sender,
            losses,
        };
        (queue, receiver)
    }

    pub(super) fn push(&self, one: T) {
        if self.sender.try_send(one).is_err() {
            self.losses.crowd(self.signal, 1);
        }
    }
}

/// The end that things are taken from, in batches.
pub(super) struct Batches<T> {
    waiting: mpsc::Receiver<T>,
    closing: CancellationToken,
}

impl<T> Batches<T> {
    /// After `closing` there is what waits, and then nothing.
    pub(super) fn new(waiting: mpsc::Receiver<T>, closing: CancellationToken) -> Self {
        Self { waiting, closing }
    }

    /// The next batch, once it has gathered.
    pub(super) async fn next(&mut self) -> Option<Vec<T>> {
        let mut batch = Vec::new();
        tokio::select! {
            taken = self.waiting.recv_many(&mut batch, BATCH) => if taken == 0 { return None },
            () = self.closing.cancelled() => {}
        }
        let gathered = sleep(GATHERING);
        tokio::pin!(gathered);
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            tokio::select! {
                biased;
                taken = self.waiting.recv_many(&mut batch, room) => if taken == 0 { break },
                () = &mut gathered => break,
                () = self.closing.cancelled() => {
                    // What still waits comes; nothing more is taken in.
                    self.waiting.close();
                    if self.waiting.is_empty() {
                        break;
                    }
                }
            }
        }
        (!batch.is_empty()).then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(losses: &Losses, reason: &'static str) -> u64 {
        let labels = LossLabels {
            signal: "traces",
            reason,
        };
        losses.0.get_or_create(&labels).get()
    }

    #[tokio::test]
    async fn who_hands_over_never_waits_and_what_finds_no_room_is_counted() {
        let losses = Losses::default();
        let (queue, _waiting) = Queue::new(Signal::Traces, losses.clone());
        for number in 0..ROOM + 7 {
            queue.push(number);
        }
        assert_eq!(lost(&losses, "queue_full"), 7);
        losses.not_taken(Signal::Traces, 3);
        assert_eq!(lost(&losses, "not_taken"), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn batches_are_bounded_and_the_rest_goes_out_at_the_end() {
        let (queue, waiting) = Queue::new(Signal::Traces, Losses::default());
        let closing = CancellationToken::new();
        let mut batches = Batches::new(waiting, closing.clone());
        for number in 0..BATCH + 10 {
            queue.push(number);
        }
        let mut size = async || batches.next().await.map(|batch| batch.len());
        assert_eq!(size().await, Some(BATCH));
        assert_eq!(size().await, Some(10), "after a while");
        for number in 0..=BATCH {
            queue.push(number);
        }
        closing.cancel();
        assert_eq!(size().await, Some(BATCH));
        assert_eq!(size().await, Some(1));
        assert_eq!(size().await, None);
        // What comes later is lost, and says so.
        queue.push(2);
        assert_eq!(lost(&queue.losses, "queue_full"), 1);
    }
}
