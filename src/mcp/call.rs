//! A request of either era that an upstream answers: run in a task of its own,
//! answered as one JSON reply or as a stream, whichever the first sign of life asks
//! for (`rules.md` §1.5). The stream of a legacy session is kept, so that a client
//! that lost it takes it up again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ids::SessionId;
use crate::pipeline::{Asking, Attempt, Call, CallEvent, Done, Refusal, event_channel};
use crate::protocol::{
    ClientCapabilities, Json, LogLevel, Request, RequestMeta, Version, notification_message,
};
use crate::telemetry::trace;

use super::answers::{self, Manner, Reply};
use super::handling::Handling;
use super::inflight::Entry;
use super::questions::Questions;
use super::{Answer, Inbound, Messages, Server, era, routed};

/// How long a recorded call may be silent before headers leave.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the eras differ in.
pub(super) struct Caller {
    /// What the record says of the request.
    pub(super) attempt: Attempt,
    /// The session that it is in (legacy).
    pub(super) within: Option<Within>,
    /// The least severe log message wanted.
    pub(super) log_level: Option<LogLevel>,
    /// What the client can do for an upstream.
    pub(super) capabilities: ClientCapabilities,
    /// How it is asked to.
    pub(super) asking: Asking,
}

/// The place of a request in a legacy session.
#[derive(Clone, Debug)]
pub(super) struct Within {
    pub(super) session: SessionId,
    pub(super) version: Version,
    /// The request's id, which a cancellation names.
    pub(super) request: String,
}

/// Runs the call and waits for the form of its answer.
pub(super) async fn post(
    server: &Arc<Server>,
    inbound: Inbound,
    request: Request,
    meta: RequestMeta,
    caller: Caller,
    manner: Manner,
    handling: &Arc<Handling>,
) -> Answer {
    let stream = inbound.accept.stream;
    if caller.asking == Asking::Rounds
        && let Ok(ask) = era::ask(&request)
        && let Some(answer) = routed::retry(server, &inbound, &ask, &request).await
    {
        return answer;
    }
    match start(server, inbound, request, meta, caller, manner, handling) {
        Ok(running) => running.answer(stream).await,
        Err(refused) => refused.await.into(),
    }
}

/// A call that runs.
pub(super) struct Running {
    server: Arc<Server>,
    events: mpsc::Receiver<CallEvent>,
    done: oneshot::Receiver<Reply>,
    progress_token: Option<Json>,
    within: Option<Within>,
    /// What is said of the client's questions behind their back.
    late: (mpsc::UnboundedSender<Json>, mpsc::UnboundedReceiver<Json>),
    _hang_up: Option<DropGuard>,
}

type Refused = std::pin::Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Starts a call, or refuses and records one whose parameters have no shape.
pub(super) fn start(
    server: &Arc<Server>,
    inbound: Inbound,
    request: Request,
    mut meta: RequestMeta,
    caller: Caller,
    manner: Manner,
    handling: &Arc<Handling>,
) -> Result<Running, Refused> {
    let ask = match era::ask(&request) {
        Ok(ask) => ask,
        Err(refusal) => {
            let server = Arc::clone(server);
            let id = request.id.clone();
            return Err(Box::pin(async move {
                let refusal = unread(&server, &inbound, &request, &caller, refusal).await;
                answers::of_refusal(Some(&id), refusal, manner)
            }));
        }
    };
    meta.log_level = caller.log_level;
    let progress_token = meta.progress_token.clone();
    let (sink, events) = event_channel();
    let cancel = CancellationToken::new();
    let within = caller.within;
    let entry = within.as_ref().map(|within| {
        let (session, id) = (within.session, within.request.clone());
        server.inflight.enter(session, id, cancel.clone())
    });
    // Closing the connection cancels in the modern era alone.
    let modern = within.is_none();
    let hang_up = modern.then(|| cancel.clone().drop_guard());
    let again = modern.then(|| inbound.again());
    let call = Call {
        context: inbound.context,
        ask,
        meta,
        param_headers: modern.then_some(inbound.headers.params),
        capabilities: caller.capabilities,
        asking: caller.asking,
        visitor: inbound.visitor,
        attempt: caller.attempt,
        trace: inbound.trace,
        credentials: inbound.credentials,
        events: sink,
        cancel,
    };
    let (finished, done) = oneshot::channel();
    let task = run(
        Arc::clone(server),
        call,
        request,
        manner,
        (entry, again),
        (Arc::clone(handling), finished),
    );
    // What it says is still about this request.
    server.tasks.spawn(trace::carried(task));
    Ok(Running {
        server: Arc::clone(server),
        events,
        done,
        progress_token,
        within,
        late: mpsc::unbounded_channel(),
        _hang_up: hang_up,
    })
}

/// Records a call whose parameters have no shape, and says what to tell.
async fn unread(
    server: &Server,
    inbound: &Inbound,
    request: &Request,
    caller: &Caller,
    refusal: Refusal,
) -> Refusal {
    if request.method != "tools/call" {
        return refusal;
    }
    let name = era::called_name(request);
    let (pipeline, context) = (&server.pipeline, &inbound.context);
    let recorded = pipeline.refuse_unread(&caller.attempt, context, name.as_deref(), refusal);
    recorded.await
}

/// The task that outlives the caller's connection.
async fn run(
    server: Arc<Server>,
    call: Call,
    request: Request,
    manner: Manner,
    (entry, again): (Option<Entry>, Option<Inbound>),
    (handling, finished): (Arc<Handling>, oneshot::Sender<Reply>),
) {
    let Done { answered, ending } = server.pipeline.call(call).await;
    drop(entry);
    if let (Some(again), Ok(result)) = (again, answered.outcome()) {
        server.waiting.keep(result.json(), again);
    }
    let reply = answers::of_call(&request.id, answered, manner);
    handling.called(&ending, &reply, &server.pipeline.metrics);
    drop(handling);
    // A caller that hung up does not hear it; the record has it.
    let _ = finished.send(reply);
}

/// What a running call says next.
pub(super) enum Next {
    Message(Json),
    Started,
    /// The upstream has sent the gateway away for that long.
    Pausing(Duration),
    Done(Reply),
}

impl Running {
    /// One reply if it comes first or nothing else may come; else a stream.
    async fn answer(mut self, may_stream: bool) -> Answer {
        let mut patience: Option<tokio::time::Instant> = None;
        loop {
            let next = tokio::select! {
                next = self.next() => next,
                () = sleep_until(patience) => return self.stream(None),
            };
            match next {
                Next::Done(reply) => return reply.into(),
                Next::Started if may_stream => {
                    patience = Some(tokio::time::Instant::now() + PATIENCE);
                }
                Next::Message(_) | Next::Pausing(_) if may_stream => {
                    return self.stream(Some(next));
                }
                Next::Started | Next::Message(_) | Next::Pausing(_) => {}
            }
        }
    }

    /// The rest as a stream; in a legacy session one that can be taken up again.
    fn stream(mut self, first: Option<Next>) -> Answer {
        let Some(within) = self.within.clone() else {
            let first = match first {
                Some(Next::Message(message)) => Some(message),
                _ => None,
            };
            return Answer::Stream(self.messages(first));
        };
        let journals = Arc::clone(&self.server.journals);
        let journal = journals.open(within.session);
        let events = journal.read(None, within.version);
        tokio::spawn(async move {
            let mut next = first;
            loop {
                let now = match next.take() {
                    Some(next) => next,
                    None => self.next().await,
                };
                match now {
                    Next::Started => {}
                    Next::Message(message) => journal.write(message).await,
                    Next::Pausing(time) => journal.pause(time),
                    Next::Done(reply) => {
                        journal.finish(reply.body);
                        break;
                    }
                }
            }
            journals.keep_for_a_while(within.session, &journal);
        });
        Answer::Events(events)
    }

    /// The final reply alone, for a batch.
    pub(super) async fn reply(mut self) -> Reply {
        loop {
            if let Next::Done(reply) = self.next().await {
                return reply;
            }
        }
    }

    /// The next that the call says. Safe to drop and call again.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            let event = tokio::select! {
                biased;
                Some(event) = self.events.recv() => event,
                Some(message) = self.late.1.recv() => return Next::Message(message),
                done = &mut self.done => return Next::Done(done.unwrap_or_else(|_| lost())),
            };
            let message = match event {
                CallEvent::Started => return Next::Started,
                CallEvent::Pausing(time) => return Next::Pausing(time),
                CallEvent::Progress(params) => self.progress_token.as_ref().map(|token| {
                    let params = params.with_member("progressToken", token);
                    notification_message("notifications/progress", &params)
                }),
                CallEvent::Log(_, params) => {
                    Some(notification_message("notifications/message", &params))
                }
                CallEvent::ElicitationComplete(params) => self.completed(&params),
                // Without a session nobody is asked beside the answer: the question is
                // dropped, and so unanswered.
                CallEvent::Asked(request) => self.within.as_ref().map(|within| {
                    let questions: &Arc<Questions> = &self.server.questions;
                    let late = self.late.0.clone();
                    questions.ask(within.session, within.version, request, late)
                }),
            };
            if let Some(message) = message {
                return Next::Message(message);
            }
        }
    }

    /// Only 2025-11-25 knows that a user is back from a URL.
    fn completed(&self, params: &Json) -> Option<Json> {
        let version = self.within.as_ref()?.version;
        let known = version >= Version::V2025_11_25;
        known.then(|| notification_message("notifications/elicitation/complete", params))
    }

    /// The rest of the call as messages: those before the answer, then the answer.
    fn messages(self, first: Option<Json>) -> Messages {
        Box::pin(stream::unfold(
            (Some(self), first),
            |(running, first)| async move {
                let mut running = running?;
                if let Some(first) = first {
                    return Some((first, (Some(running), None)));
                }
                loop {
                    match running.next().await {
                        Next::Started | Next::Pausing(_) => {}
                        Next::Message(message) => return Some((message, (Some(running), None))),
                        Next::Done(reply) => return reply.body.map(|body| (body, (None, None))),
                    }
                }
            },
        ))
    }
}

async fn sleep_until(instant: Option<tokio::time::Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// The task ended without an answer: it panicked. The record reads `unknown`.
fn lost() -> Reply {
    answers::unavailable(
        None,
        "The call may have run; its outcome is unknown. Do not retry.",
        None,
    )
}
