//! A request of either era that an upstream answers: run in a task of its own, answered as one JSON
//! reply or as a stream, whichever the call's first sign of life asks for
//! (`rules.md` §1.5).

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use crate::pipeline::{Attempt, Call, CallEvent, event_channel};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, LogLevel, Request, RequestMeta, UpstreamEvent};

use super::answers::{self, Manner, Reply};
use super::inflight::Entry;
use super::{Answer, Inbound, Messages, Server, era};

/// How long a recorded call may be silent before headers leave.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the eras differ in.
pub(super) struct Caller {
    /// What the record says of the request.
    pub(super) attempt: Attempt,
    /// The session and request id that a cancellation names.
    pub(super) inflight: Option<(crate::ids::SessionId, String)>,
    /// Whether closing the connection cancels (modern) or not (legacy).
    pub(super) cancel_on_hang_up: bool,
    /// The least severe log message wanted.
    pub(super) log_level: Option<LogLevel>,
}

/// Runs the call and waits for the form of its answer.
pub(super) async fn post(
    server: &Arc<Server>,
    inbound: Inbound,
    request: Request,
    meta: RequestMeta,
    caller: Caller,
    manner: Manner,
) -> Answer {
    let stream = inbound.accept.stream;
    match start(server, inbound, request, meta, caller, manner) {
        Ok(running) => running.answer(stream).await,
        Err(refused) => refused.await.into(),
    }
}

/// A call that runs.
pub(super) struct Running {
    events: mpsc::Receiver<CallEvent>,
    done: oneshot::Receiver<Reply>,
    progress_token: Option<Json>,
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
) -> Result<Running, Refused> {
    let ask = match era::ask(&request) {
        Ok(ask) => ask,
        Err(refusal) => {
            let server = Arc::clone(server);
            return Err(Box::pin(async move {
                let refusal = if request.method == "tools/call" {
                    let name = era::called_name(&request);
                    let name = name.as_deref();
                    let pipeline = &server.pipeline;
                    pipeline
                        .refuse_unread(&caller.attempt, &inbound.context, name, refusal)
                        .await
                } else {
                    refusal
                };
                answers::of_refusal(Some(&request.id), refusal, manner)
            }));
        }
    };
    meta.log_level = caller.log_level;
    let traces = [meta.traceparent.take(), inbound.headers.traceparent];
    let mut traces = traces.into_iter().flatten();
    meta.traceparent = traces.find(|trace| era::trace_id(trace).is_some());
    let trace_id = meta.traceparent.as_deref().and_then(era::trace_id);
    let progress_token = meta.progress_token.clone();
    let (sink, events) = event_channel();
    let cancel = CancellationToken::new();
    let entry = caller
        .inflight
        .map(|(session, id)| server.inflight.enter(session, id, cancel.clone()));
    let hang_up = caller
        .cancel_on_hang_up
        .then(|| cancel.clone().drop_guard());
    let call = Call {
        context: inbound.context,
        ask,
        meta,
        param_headers: caller.cancel_on_hang_up.then_some(inbound.headers.params),
        attempt: Attempt {
            trace_id,
            ..caller.attempt
        },
        credentials: inbound.credentials,
        events: sink,
        cancel,
    };
    let (finished, done) = oneshot::channel();
    let task = run(Arc::clone(server), call, request, manner, entry, finished);
    // What it logs is still about this request.
    server.tasks.spawn(task.in_current_span());
    Ok(Running {
        events,
        done,
        progress_token,
        _hang_up: hang_up,
    })
}

/// The task that outlives the caller's connection.
async fn run(
    server: Arc<Server>,
    call: Call,
    request: Request,
    manner: Manner,
    entry: Option<Entry>,
    finished: oneshot::Sender<Reply>,
) {
    let answered = server.pipeline.call(call).await;
    drop(entry);
    // A caller that hung up does not hear it; the record has it.
    let _ = finished.send(answers::of_call(&request.id, answered, manner));
}

/// What a running call says next.
enum Next {
    Message(Json),
    Started,
    Done(Reply),
}

impl Running {
    /// One reply if it comes first or nothing else may come; else a stream.
    async fn answer(mut self, may_stream: bool) -> Answer {
        let mut patience: Option<tokio::time::Instant> = None;
        loop {
            let next = tokio::select! {
                next = self.next() => next,
                () = sleep_until(patience) => return Answer::Stream(self.messages(None)),
            };
            match next {
                Next::Done(reply) => return reply.into(),
                Next::Started if may_stream => {
                    patience = Some(tokio::time::Instant::now() + PATIENCE);
                }
                Next::Message(message) if may_stream => {
                    return Answer::Stream(self.messages(Some(message)));
                }
                Next::Started | Next::Message(_) => {}
            }
        }
    }

    /// The final reply alone, for a batch.
    pub(super) async fn reply(mut self) -> Reply {
        loop {
            if let Next::Done(reply) = self.next().await {
                return reply;
            }
        }
    }

    async fn next(&mut self) -> Next {
        loop {
            let event = tokio::select! {
                biased;
                Some(event) = self.events.recv() => event,
                done = &mut self.done => return Next::Done(done.unwrap_or_else(|_| lost())),
            };
            match event {
                CallEvent::Started => return Next::Started,
                CallEvent::Message(clean) => {
                    if let Some(message) =
                        notification(clean.into_event(), self.progress_token.as_ref())
                    {
                        return Next::Message(message);
                    }
                }
            }
        }
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
                        Next::Started => {}
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

/// An upstream's event as the caller's notification.
fn notification(event: UpstreamEvent, progress_token: Option<&Json>) -> Option<Json> {
    let (method, params) = match event {
        UpstreamEvent::Progress(params) => (
            "notifications/progress",
            params.with_member("progressToken", progress_token?),
        ),
        UpstreamEvent::Log(_, params) => ("notifications/message", params),
    };
    Some(
        ObjectBuilder::new()
            .text("jsonrpc", "2.0")
            .text("method", method)
            .json("params", &params)
            .build(),
    )
}
