//! What another replica holds is done there: the retry of a call that is parked on
//! it, and a stream of it that is taken up.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use futures_util::{StreamExt as _, stream};
use moka::sync::Cache;
use tokio::time::timeout;

use crate::ids::{ReplicaId, SessionId};
use crate::pipeline::{Ask, Owner};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, Method, Request, RequestMeta, Version, codes};
use crate::telemetry::TraceContext;

use super::answers::Reply;
use super::handling::Handling;
use super::journal::Position;
use super::lines::{Beginning, End, Lines, said};
use super::relay::Relay;
use super::{Answer, Event, Events, Inbound, Messages, Server, call, modern};

/// How long a taken-up stream's first sign is waited for.
const FIRST_SIGN: Duration = Duration::from_secs(20);
/// Callers that are kept for their retry.
const KEPT: u64 = 10_000;

/// The surroundings of requests that were answered by a question: a retry that
/// comes by another replica goes on in them.
pub(super) struct Waiting(Cache<[u8; 32], Arc<Inbound>>);

impl Waiting {
    pub(super) fn new(patience: Duration) -> Self {
        let cache = Cache::builder().max_capacity(KEPT);
        Self(cache.time_to_live(patience).build())
    }

    /// Keeps a caller's surroundings under the state that it was given.
    pub(super) fn keep(&self, result: &Json, inbound: Inbound) {
        if let Some(state) = result.get("requestState") {
            self.0.insert(key(&state), Arc::new(inbound));
        }
    }
}

fn key(state: &Json) -> [u8; 32] {
    let hash = digest(&SHA256, state.as_str().as_bytes());
    hash.as_ref().try_into().unwrap_or_default()
}

/// Sends a retry to the replica that holds its call; the request comes back where
/// it is to be answered here, because it is of no other replica or that one is gone.
pub(super) async fn retry(
    server: &Arc<Server>,
    inbound: &Inbound,
    ask: &Ask,
    request: &Request,
) -> Option<Answer> {
    let principal = inbound.context.principal().key();
    let (pipeline, tenant) = (&server.pipeline, inbound.context.tenant_id());
    let owner = pipeline
        .rounds
        .owner(principal.as_bytes(), tenant, ask)
        .await;
    let Owner::Elsewhere(owner) = owner else {
        return None;
    };
    // What the caller may not do is refused here, and a replica that is gone is told
    // of by the steps themselves: both are on record that way.
    if !pipeline.allows(&inbound.context, ask) || !server.relay.lives(owner).await {
        return None;
    }
    let mut line = Lines::from(server, owner);
    let message = Relay::about_line("call", line.id())
        .text("from", &server.relay.own().to_string())
        .json("id", request.id.json())
        .text("method", &request.method)
        .json("params", &ask.params)
        .text(
            "trace",
            inbound.trace.as_ref().map_or("", TraceContext::parent),
        )
        .build();
    server.relay.send(owner, &message).await;
    let first = timeout(FIRST_SIGN, line.next()).await.ok().flatten()?;
    // It took the call: from here on it is that replica's to record.
    first.get("taken")?;
    loop {
        let Some(say) = line.next().await else {
            return Some(interrupted(request).into());
        };
        if let Some(reply) = say.get("reply") {
            return Some(reply_of(&reply).into());
        }
        if inbound.accept.stream {
            return Some(Answer::Stream(messages(line, say, interrupted(request))));
        }
    }
}

fn interrupted(request: &Request) -> Reply {
    Reply::error(
        200,
        Some(&request.id),
        codes::INTERNAL_ERROR,
        "The call was interrupted: the replica that ran it is gone. It may have run; check before repeating it.",
        None,
    )
}

/// The messages that a line carries; `broken` where it breaks off.
fn messages(line: End, first: Json, broken: Reply) -> Messages {
    let begin = Some((line, Some(first), broken));
    let messages = stream::unfold(begin, |state| async move {
        let (mut line, first, broken) = state?;
        let say = match first {
            Some(say) => Some(say),
            None => line.next().await,
        };
        let Some(say) = say else {
            return Some((broken.body, None));
        };
        match say.get("message") {
            Some(message) => Some((Some(message), Some((line, None, broken)))),
            None => Some((say.get("reply").and_then(|reply| reply.get("body")), None)),
        }
    });
    Box::pin(messages.filter_map(async |message| message))
}

fn reply_of(json: &Json) -> Reply {
    let status = json.get("status").and_then(|status| status.integer());
    let millis = json.get("retry").and_then(|millis| millis.integer());
    Reply {
        status: status
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(200),
        body: json.get("body"),
        retry_after: millis
            .and_then(|millis| u64::try_from(millis).ok())
            .map(Duration::from_millis),
        ..Reply::default()
    }
}

fn reply_json(reply: &Reply) -> Json {
    let mut out = ObjectBuilder::new()
        .integer("status", i64::from(reply.status))
        .maybe("body", reply.body.as_ref());
    if let Some(after) = reply.retry_after {
        out = out.integer(
            "retry",
            i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        );
    }
    out.build()
}

/// Goes on with a call that is parked here, for another replica.
pub(super) fn go_on(
    server: &Arc<Server>,
    mut line: Beginning,
    request: Request,
    trace: Option<TraceContext>,
) {
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let params = request.params.as_ref();
        let state = params.and_then(|params| params.get("requestState"));
        let inbound = state.and_then(|state| server.waiting.0.get(&key(&state)));
        let method = Method::parse(&request.method);
        let (Some(inbound), Some(method)) = (inbound, method) else {
            line.say(&said("gone", &Json::empty_object())).await;
            return;
        };
        line.say(&said("taken", &Json::empty_object())).await;
        let mut meta = RequestMeta::of(request.params.as_ref());
        // It has been taken in once already, at the place that the other replica says.
        meta.traceparent = None;
        let mut inbound = inbound.again();
        inbound.trace = trace;
        let id = Some(&request.id);
        let handling = Handling::begin(&mut inbound, &request.method, id, &meta);
        handling.speaks(Version::MODERN);
        let bytes = request
            .params
            .as_ref()
            .map_or(0, |params| params.as_str().len());
        let caller = modern::caller(modern::attempt(&inbound, &meta, bytes), &meta);
        let manner = modern::manner(method);
        let started = handling
            .within_it(|| call::start(&server, inbound, request, meta, caller, manner, &handling));
        let reply = match started {
            Ok(mut running) => loop {
                let next = tokio::select! {
                    next = running.next() => next,
                    // Dropped, the call is cancelled.
                    () = line.hung_up.cancelled() => return,
                };
                match next {
                    call::Next::Message(message) => line.say(&said("message", &message)).await,
                    call::Next::Started | call::Next::Pausing(_) => {}
                    call::Next::Done(reply) => break reply,
                }
            },
            Err(refused) => refused.await,
        };
        line.say(&said("reply", &reply_json(&reply))).await;
    });
}

/// Takes up a stream that another replica holds; `None` where it does not any more.
pub(super) async fn follow(
    server: &Arc<Server>,
    session: SessionId,
    position: Position,
    id: &str,
    version: Version,
) -> Option<Events> {
    if !server.relay.lives(position.replica).await {
        return None;
    }
    let mut line = Lines::from(server, position.replica);
    let message = Relay::about_line("follow", line.id())
        .text("from", &server.relay.own().to_string())
        .text("session", &session.to_string())
        .text("behind", id)
        .text("version", version.as_str())
        .build();
    server.relay.send(position.replica, &message).await;
    let first = timeout(FIRST_SIGN, line.next()).await.ok().flatten()?;
    first.get("taken")?;
    Some(Box::pin(stream::unfold(line, |mut line| async move {
        let event = line.next().await?.get("event")?;
        let text = |key: &str| {
            let value = event.get(key)?;
            value.string().map(String::from)
        };
        let millis = event.get("retry").and_then(|millis| millis.integer());
        let retry = millis.and_then(|millis| u64::try_from(millis).ok());
        let event = Event {
            message: event.get("message"),
            id: text("id"),
            retry: retry.map(Duration::from_millis),
        };
        Some((event, line))
    })))
}

/// Tells another replica what a stream here says.
pub(super) fn tell(
    server: &Arc<Server>,
    mut line: Beginning,
    session: SessionId,
    behind: &str,
    version: Version,
) {
    let found = Position::parse(behind).and_then(|position| {
        let journal = server.journals.find(session, position)?;
        Some(journal.read(Some(position), version))
    });
    tokio::spawn(async move {
        let Some(mut events) = found else {
            line.say(&said("gone", &Json::empty_object())).await;
            return;
        };
        line.say(&said("taken", &Json::empty_object())).await;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = line.hung_up.cancelled() => return,
            };
            let Some(event) = event else { break };
            let id = event.id.as_deref().map(Json::from_text);
            let retry = event.retry.map(|time| {
                Json::from_integer(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
            });
            let event = ObjectBuilder::new()
                .maybe("message", event.message.as_ref())
                .maybe("id", id.as_ref())
                .maybe("retry", retry.as_ref())
                .build();
            line.say(&said("event", &event)).await;
        }
        line.say(&said("over", &Json::empty_object())).await;
    });
}

/// The sending end of what another replica asked for; `None` where it does not say who it is.
pub(super) fn line_of(server: &Arc<Server>, message: &Json) -> Option<Beginning> {
    let text = |key: &str| {
        let value = message.get(key)?;
        value.string().map(String::from)
    };
    let line = text("line")?.parse().ok()?;
    let from = ReplicaId(text("from")?.parse().ok()?);
    Some(Lines::to(server, line, from))
}
