//! JSON-RPC over a pair of streams, many requests at a time, told apart by id
//! (MCP stdio transport). Knows no process.
//!
//! One slow caller must not hold up the others: events that find no room are
//! dropped here, where the HTTP kind would wait.

mod waiting;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(super) use self::waiting::Outcome;
use self::waiting::{Waiter, Waiting, id_of_cut};
use super::asking::{self, Taken};
use super::hearing::{Changes, Ear, Line, Said, outcome};
use super::lines::{Line as Text, Lines};
use super::profile::Profile;
use super::{CallerKey, UpstreamError, UpstreamRequest, message};
use crate::ids::UpstreamId;
use crate::protocol::json::Kind;
use crate::protocol::{Era, Json, JsonLimits, LogLevel, Message, Request, Response};

/// Messages that wait to be written.
const OUTBOX: usize = 64;
/// So many lines of garbage in a row are a server that speaks something else.
const FLOOD: u32 = 1000;
/// How long a notification may wait to be written.
const ERRAND: Duration = Duration::from_secs(5);

/// One server on the other end of the streams.
pub(super) struct Connection {
    upstream: UpstreamId,
    outbox: mpsc::Sender<Bytes>,
    waiting: Mutex<Waiting>,
    ids: AtomicI64,
    changes: Changes,
    profile: OnceLock<Profile>,
    level: tokio::sync::Mutex<Option<LogLevel>>,
    /// The streams are closed, or are to be.
    pub(super) over: CancellationToken,
}

impl Connection {
    /// Takes the streams; reads and writes in the background until either ends.
    pub(super) fn open<R, W>(
        upstream: UpstreamId,
        output: R,
        input: W,
        max_answer: usize,
        changes: Changes,
    ) -> Arc<Self>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outbox, letters) = mpsc::channel(OUTBOX);
        let connection = Arc::new(Self {
            upstream,
            outbox,
            waiting: Mutex::default(),
            ids: AtomicI64::new(1),
            changes,
            profile: OnceLock::new(),
            level: tokio::sync::Mutex::default(),
            over: CancellationToken::new(),
        });
        tokio::spawn(write(input, letters, connection.over.clone()));
        let reader = Arc::clone(&connection);
        tokio::spawn(async move {
            let over = reader.over.clone();
            tokio::select! {
                () = over.cancelled() => {}
                () = reader.read(Lines::new(output, max_answer), max_answer) => {}
            }
            reader.close();
        });
        connection
    }

    /// Gives up all that is in flight and lets go of the streams.
    pub(super) fn close(&self) {
        self.over.cancel();
        let mut waiting = self.lock();
        waiting.closed = true;
        // A dropped sender reads as broken.
        waiting.requests.clear();
    }

    /// What the server said of itself, once the greeting is over.
    pub(super) fn profile(&self) -> Option<&Profile> {
        self.profile.get()
    }

    /// Notes what the server is.
    pub(super) fn greeted(&self, profile: Profile) {
        let _ = self.profile.set(profile);
    }

    pub(super) fn next_id(&self) -> i64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A caller's request and its result.
    pub(super) async fn call(
        self: &Arc<Self>,
        request: &UpstreamRequest,
        line: &Line,
    ) -> Result<Json, UpstreamError> {
        let era = self.profile().map_or(Era::Legacy, Profile::era);
        if let Some(level) = request.log_level
            && era == Era::Legacy
        {
            self.lower_level(level).await;
        }
        let id = self.next_id();
        let ear = Ear::new(id, request, line);
        let body = message::call(id, request, era);
        let answered = self.exchange(request.caller, ear, body, true).await?;
        outcome(answered)
    }

    /// A request of the gateway's own; not cancelled when it is dropped.
    pub(super) async fn ask(
        self: &Arc<Self>,
        id: i64,
        body: Bytes,
    ) -> Result<Outcome, UpstreamError> {
        self.exchange(CallerKey::GATEWAY, Ear::deaf(id), body, false)
            .await
    }

    async fn exchange(
        self: &Arc<Self>,
        caller: CallerKey,
        ear: Ear,
        body: Bytes,
        cancels: bool,
    ) -> Result<Outcome, UpstreamError> {
        let id = ear.id();
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if waiting.closed {
                return Err(UpstreamError::Unreachable);
            }
            waiting.note(caller);
            let waiter = Waiter {
                caller,
                ear,
                answer,
            };
            waiting.requests.insert(id, waiter);
        }
        let mut flight = Flight {
            connection: self,
            id,
            sent: false,
            cancels,
        };
        if self.outbox.send(body).await.is_err() {
            return Err(UpstreamError::Broken);
        }
        flight.sent = true;
        answered.await.unwrap_or(Err(UpstreamError::Broken))
    }

    /// Sends a notification.
    pub(super) async fn tell(&self, body: Bytes) {
        let _ = timeout(ERRAND, self.outbox.send(body)).await;
    }

    /// Tells a legacy server the least severe level that anybody wants. It has one
    /// session for all callers; each hears only what it asked for.
    async fn lower_level(self: &Arc<Self>, level: LogLevel) {
        let mut told = self.level.lock().await;
        if !self.profile().is_some_and(|profile| profile.logs)
            || told.is_some_and(|told| told <= level)
        {
            return;
        }
        let id = self.next_id();
        let asked = self.ask(id, message::set_level(id, level.as_str()));
        if let Ok(Ok(Ok(_))) = timeout(ERRAND, asked).await {
            *told = Some(level);
        }
    }

    async fn read<R: AsyncRead + Unpin>(self: &Arc<Self>, mut lines: Lines<R>, max_answer: usize) {
        let mut garbage = 0;
        while let Ok(Some(line)) = lines.next().await {
            if self.line(line, max_answer) {
                garbage = 0;
                continue;
            }
            garbage += 1;
            if garbage == 1 {
                tracing::warn!(
                    upstream.id = %self.upstream,
                    "the upstream writes lines to its standard output that are no MCP messages"
                );
            }
            if garbage >= FLOOD {
                tracing::warn!(upstream.id = %self.upstream, "the upstream writes nothing else");
                return;
            }
        }
    }

    /// Takes a line; false where it is garbage.
    fn line(self: &Arc<Self>, line: Text, max_answer: usize) -> bool {
        match line {
            Text::Whole(text) if text.trim_ascii().is_empty() => true,
            Text::Whole(text) => match Json::parse(text, &JsonLimits::UPSTREAM) {
                Ok(json) if json.kind() == Kind::Array => {
                    json.elements().all(|member| self.message(&member))
                }
                Ok(json) => self.message(&json),
                Err(_) => false,
            },
            Text::Cut { head, tail } => {
                let waiter = id_of_cut(&head, &tail).and_then(|id| self.lock().take(id));
                let Some(waiter) = waiter else { return false };
                let fault = UpstreamError::TooLarge { limit: max_answer };
                let _ = waiter.answer.send(Err(fault));
                true
            }
        }
    }

    fn message(self: &Arc<Self>, json: &Json) -> bool {
        match Message::read(json) {
            Ok(Message::Response(response)) => self.response(response),
            Ok(Message::Notification(notification)) => {
                self.said(&Said::of(&notification));
                true
            }
            Ok(Message::Request(request)) => {
                self.asked(&request);
                true
            }
            Ok(Message::Batch(_)) | Err(_) => false,
        }
    }

    fn response(&self, response: Response) -> bool {
        let Some(id) = response.id.as_ref().and_then(|id| id.json().integer()) else {
            return false;
        };
        if let Some(waiter) = self.lock().take(id) {
            let _ = waiter.answer.send(Ok(response.outcome));
            return true;
        }
        // One that came too late is no garbage; one that was never asked for is.
        id > 0 && id < self.ids.load(Ordering::Relaxed)
    }

    fn said(&self, said: &Said) {
        let waiting = self.lock();
        let ears = match said {
            Said::ListChanged | Said::Updated(_) => {
                self.changes.take(said);
                return;
            }
            Said::Progress {
                token: Some(token), ..
            } => {
                let waiter = waiting.requests.get(token);
                waiter.map(|waiter| &waiter.ear).into_iter().collect()
            }
            Said::Log { .. } | Said::ElicitationComplete(_) => waiting.audience(),
            Said::TakenBack(id) => {
                for waiter in waiting.requests.values() {
                    waiter.ear.take_back(id);
                }
                return;
            }
            Said::Progress { token: None, .. } | Said::Other => return,
        };
        for ear in ears {
            if let Some(event) = ear.event(said)
                && !ear.try_send(event)
            {
                tracing::debug!(
                    upstream.id = %self.upstream,
                    "an event of the upstream is dropped: its caller does not keep up"
                );
            }
        }
    }

    fn asked(self: &Arc<Self>, request: &Request) {
        // A modern server may not ask, and must not be answered (stdio, Sending Messages).
        if self
            .profile()
            .is_some_and(|profile| profile.era() == Era::Modern)
        {
            return;
        }
        let waiting = self.lock();
        let ears = waiting.askable();
        let (ear, taken) = asking::take(ears, request);
        match (ear, taken) {
            // A server that asks more than it reads answers to goes without.
            (_, Taken::Answered(body)) => drop(self.outbox.try_send(body)),
            (ear, Taken::Asks(event, mut question)) => {
                // A caller who does not keep up leaves the question unanswered.
                let _ = ear.map(|ear| ear.try_send(event));
                let (connection, id) = (Arc::clone(self), self.next_id());
                let pinged = async move { drop(connection.ask(id, message::ping(id)).await) };
                if let Some(gathering) = ear.and_then(|ear| ear.gathering(pinged)) {
                    self.unless_over(gathering);
                }
                let connection = Arc::clone(self);
                self.unless_over(async move {
                    while let Some(body) = question.next().await {
                        connection.tell(body).await;
                    }
                });
            }
        }
    }

    /// Runs beside everything else, until the streams are closed.
    fn unless_over(&self, work: impl Future<Output = ()> + Send + 'static) {
        let over = self.over.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                () = over.cancelled() => {}
            }
        });
    }
}

/// A request that is under way; when it is dropped the server is told to stop
/// (MCP stdio, Cancellation).
struct Flight<'a> {
    connection: &'a Arc<Connection>,
    id: i64,
    sent: bool,
    cancels: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let answered = self.connection.lock().take(self.id).is_none();
        if answered || !self.sent || !self.cancels {
            return;
        }
        let body = message::cancelled(self.id);
        let Err(mpsc::error::TrySendError::Full(body)) = self.connection.outbox.try_send(body)
        else {
            return;
        };
        if let Ok(runtime) = Handle::try_current() {
            let connection = Arc::clone(self.connection);
            runtime.spawn(async move { connection.tell(body).await });
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut input: W,
    mut letters: mpsc::Receiver<Bytes>,
    over: CancellationToken,
) {
    let writing = async {
        while let Some(letter) = letters.recv().await {
            input.write_all(&letter).await?;
            input.write_all(b"\n").await?;
            input.flush().await?;
        }
        std::io::Result::Ok(())
    };
    // A server that does not read any more is seen by its output's end.
    tokio::select! {
        () = over.cancelled() => {}
        _ = writing => {}
    }
}

#[cfg(test)]
mod tests;
