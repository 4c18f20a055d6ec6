//! Streams of legacy sessions that can be taken up again (MCP 2025-11-25
//! Streamable HTTP, Resumability and Redelivery). What goes out on a stream is kept
//! for a while, under ids that say which stream of which replica it is of; a client
//! that lost its connection reads on behind the last that it saw.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use tokio::sync::watch;
use uuid::Uuid;

use crate::ids::{ReplicaId, SessionId};
use crate::protocol::{Json, Version};

use super::{Event, Events};

/// Events of one stream that are kept, the unread not counted.
const MOST: usize = 256;
/// Bytes of them.
const MOST_BYTES: usize = 1 << 20;
/// Events that may wait for a reader that is there; then the upstream waits.
const UNREAD: u64 = 32;
/// How long a stream can be taken up after its end.
const KEPT: Duration = Duration::from_mins(1);
/// What a client is told to wait before it connects again.
const RETRY: Duration = Duration::from_secs(1);
/// Streams of one session that are kept; a session that has more loses the oldest.
const MOST_STREAMS: usize = 64;

/// The streams that can be taken up here.
pub(super) struct Journals {
    own: ReplicaId,
    opened: AtomicU64,
    streams: Mutex<HashMap<SessionId, VecDeque<Arc<Journal>>>>,
}

/// One stream.
pub(super) struct Journal {
    prefix: String,
    number: u64,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Kept>,
    bytes: usize,
    written: u64,
    /// Read up to here by whoever reads now.
    read: u64,
    /// Counts the readers: the newest alone reads.
    reader: u64,
    connected: bool,
    /// Readers are sent away, to come back after that time.
    away: Option<Duration>,
    ended: bool,
}

struct Kept {
    number: u64,
    message: Json,
    /// Whether nothing waits for it.
    casual: bool,
}

/// A place in a stream, as an event id names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Whose stream.
    pub(super) replica: ReplicaId,
    stream: u64,
    event: u64,
}

impl Position {
    /// Reads an event id; `None` where it is none of ours.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let mut parts = id.split('.');
        let replica = Uuid::parse_str(parts.next()?).ok().map(ReplicaId)?;
        let stream = parts.next()?.parse().ok()?;
        let event = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self {
            replica,
            stream,
            event,
        })
    }
}

impl Journals {
    pub(super) fn new(own: ReplicaId) -> Arc<Self> {
        Arc::new(Self {
            own,
            opened: AtomicU64::new(1),
            streams: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, VecDeque<Arc<Journal>>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new stream of a session.
    pub(super) fn open(&self, session: SessionId) -> Arc<Journal> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let journal = Arc::new(Journal {
            prefix: format!("{}.{number}.", self.own.0.simple()),
            number,
            state: Mutex::default(),
            changed: watch::Sender::new(()),
        });
        let mut streams = self.lock();
        let own = streams.entry(session).or_default();
        if own.len() >= MOST_STREAMS {
            own.pop_front();
        }
        own.push_back(Arc::clone(&journal));
        journal
    }

    /// The stream of a position, where it can still be taken up.
    pub(super) fn find(&self, session: SessionId, position: Position) -> Option<Arc<Journal>> {
        let streams = self.lock();
        let mut own = streams.get(&session)?.iter();
        own.find(|journal| journal.number == position.stream)
            .cloned()
    }

    /// Forgets a stream that is over, after a while.
    pub(super) fn keep_for_a_while(self: &Arc<Self>, session: SessionId, journal: &Arc<Journal>) {
        let (journals, number) = (Arc::clone(self), journal.number);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            let mut streams = journals.lock();
            if let Some(own) = streams.get_mut(&session) {
                own.retain(|journal| journal.number != number);
                if own.is_empty() {
                    streams.remove(&session);
                }
            }
        });
    }

    /// Forgets all streams of a session that has ended.
    pub(super) fn close(&self, session: SessionId) {
        let gone = self.lock().remove(&session);
        for journal in gone.into_iter().flatten() {
            journal.end();
        }
    }
}

impl Journal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. Waits while a reader that is there has much to read.
    pub(super) async fn write(&self, message: Json) {
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            {
                let state = self.lock();
                if !state.connected || state.ended || state.written - state.read < UNREAD {
                    break;
                }
            }
            // The sender is in `self`.
            let _ = changes.changed().await;
        }
        let casual = message.get("id").is_none();
        self.put(message, casual);
    }

    /// Adds the answer and ends the stream. Waits for nobody.
    pub(super) fn finish(&self, answer: Option<Json>) {
        if let Some(answer) = answer {
            self.put(answer, false);
        }
        self.end();
    }

    fn put(&self, message: Json, casual: bool) {
        {
            let mut state = self.lock();
            state.written += 1;
            state.bytes += message.as_str().len();
            let number = state.written;
            state.events.push_back(Kept {
                number,
                message,
                casual,
            });
            state.trim();
        }
        self.changed.send_replace(());
    }

    /// Ends the stream.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.send_replace(());
    }

    /// Sends the reader away: what comes is kept until it is back.
    pub(super) fn pause(&self, time: Duration) {
        self.lock().away = Some(time);
        self.changed.send_replace(());
    }

    /// The stream behind a position, or from its beginning. An older reader of it is
    /// at its end. `version`: revisions before 2025-11-25 know no event without data.
    pub(super) fn read(self: &Arc<Self>, behind: Option<Position>, version: Version) -> Events {
        let after = behind.map_or(0, |position| position.event);
        let reader = {
            let mut state = self.lock();
            state.reader += 1;
            state.read = after;
            state.connected = true;
            state.away = None;
            state.reader
        };
        self.changed.send_replace(());
        let primes = version >= Version::V2025_11_25;
        let reading = Reading {
            journal: Arc::clone(self),
            changes: self.changed.subscribe(),
            reader,
            after,
            prime: primes && behind.is_none(),
            primes,
            over: false,
        };
        Box::pin(stream::unfold(reading, |mut reading| async move {
            let event = reading.next().await?;
            Some((event, reading))
        }))
    }
}

impl State {
    /// Drops the oldest that nothing waits for, the unread last.
    fn trim(&mut self) {
        while self.events.len() > MOST || self.bytes > MOST_BYTES {
            let Some(at) = self.events.iter().position(|kept| kept.casual) else {
                return;
            };
            if self.connected
                && self
                    .events
                    .get(at)
                    .is_some_and(|kept| kept.number > self.read)
            {
                return;
            }
            if let Some(dropped) = self.events.remove(at) {
                self.bytes -= dropped.message.as_str().len();
            }
        }
    }
}

/// One connection that reads a stream.
struct Reading {
    journal: Arc<Journal>,
    changes: watch::Receiver<()>,
    reader: u64,
    after: u64,
    prime: bool,
    primes: bool,
    over: bool,
}

/// What a reader finds when it looks.
enum Found {
    Message(u64, Json),
    Away(Duration),
    End,
    Nothing,
}

impl Reading {
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.prime) {
            return Some(self.marker(RETRY));
        }
        loop {
            self.changes.borrow_and_update();
            match self.look() {
                Found::Message(number, message) => {
                    self.after = number;
                    self.journal.changed.send_replace(());
                    return Some(Event {
                        message: Some(message),
                        id: Some(self.id()),
                        retry: None,
                    });
                }
                Found::Away(time) if self.primes => {
                    self.over = true;
                    return Some(self.marker(time));
                }
                Found::Away(_) | Found::Nothing => {}
                Found::End => return None,
            }
            // The sender is in the journal.
            let _ = self.changes.changed().await;
        }
    }

    /// An event that says where the reader is, and when to come back.
    fn marker(&self, retry: Duration) -> Event {
        Event {
            message: None,
            id: Some(self.id()),
            retry: Some(retry),
        }
    }

    fn id(&self) -> String {
        format!("{}{}", self.journal.prefix, self.after)
    }

    fn look(&self) -> Found {
        let mut state = self.journal.lock();
        if self.over || state.reader != self.reader {
            return Found::End;
        }
        state.read = self.after;
        let next = state.events.iter().find(|kept| kept.number > self.after);
        match next {
            Some(kept) => Found::Message(kept.number, kept.message.clone()),
            None if state.ended => Found::End,
            None => state.away.map_or(Found::Nothing, Found::Away),
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        {
            let mut state = self.journal.lock();
            if state.reader == self.reader {
                state.connected = false;
                state.trim();
            }
        }
        self.journal.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    fn journals() -> (Arc<Journals>, SessionId) {
        let nil = Uuid::nil();
        (Journals::new(ReplicaId(nil)), SessionId(nil))
    }

    fn note(number: usize) -> Json {
        Json::from_value(&serde_json::json!({"method": "n", "params": number}))
    }

    #[tokio::test]
    async fn a_stream_is_read_on_behind_the_last_event_that_was_seen() {
        let (journals, session) = journals();
        let journal = journals.open(session);
        for number in 0..3 {
            journal.write(note(number)).await;
        }
        let mut events = journal.read(None, Version::V2025_11_25);
        let first = events.next().await.unwrap();
        assert!(first.message.is_none() && first.retry.is_some());
        let second = events.next().await.unwrap();
        drop(events);
        let position = Position::parse(second.id.as_deref().unwrap()).unwrap();
        journal.finish(None);
        let found = journals.find(session, position).unwrap();
        let rest: Vec<_> = found
            .read(Some(position), Version::V2025_11_25)
            .collect()
            .await;
        let rest: Vec<_> = rest.into_iter().filter_map(|event| event.message).collect();
        assert_eq!(rest, [note(1), note(2)]);
        assert!(Position::parse("x.1.2").is_none());
        let other = SessionId(Uuid::max());
        assert!(journals.find(other, position).is_none());
    }

    #[tokio::test]
    async fn what_nobody_reads_is_bounded_and_the_answer_stays() {
        let (journals, session) = journals();
        let journal = journals.open(session);
        for number in 0..MOST * 2 {
            journal.write(note(number)).await;
        }
        let answer = Json::from_value(&serde_json::json!({"id": 1, "result": {}}));
        journal.finish(Some(answer.clone()));
        let all: Vec<_> = journal.read(None, Version::V2025_06_18).collect().await;
        assert!(all.len() <= MOST + 1);
        assert_eq!(all.last().unwrap().message, Some(answer));
    }

    #[tokio::test]
    async fn a_reader_that_is_slow_slows_the_writer_and_a_newer_one_replaces_it() {
        let (journals, session) = journals();
        let journal = journals.open(session);
        let mut slow = journal.read(None, Version::V2025_06_18);
        for number in 0..usize::try_from(UNREAD).unwrap() {
            journal.write(note(number)).await;
        }
        let stuck = tokio::time::timeout(Duration::from_millis(30), journal.write(note(99)));
        assert!(stuck.await.is_err());
        assert!(slow.next().await.is_some() && slow.next().await.is_some());
        journal.write(note(99)).await;
        let _newer = journal.read(None, Version::V2025_06_18);
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_is_sent_away_and_finds_the_rest_when_it_is_back() {
        let (journals, session) = journals();
        let journal = journals.open(session);
        let mut events = journal.read(None, Version::V2025_11_25);
        events.next().await.unwrap();
        journal.pause(Duration::from_millis(500));
        let bye = events.next().await.unwrap();
        assert_eq!(bye.retry, Some(Duration::from_millis(500)));
        assert!(events.next().await.is_none());
        drop(events);
        journal.write(note(1)).await;
        let position = Position::parse(bye.id.as_deref().unwrap()).unwrap();
        let mut back = journal.read(Some(position), Version::V2025_11_25);
        assert_eq!(back.next().await.unwrap().message, Some(note(1)));
    }
}
