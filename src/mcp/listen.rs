//! Streams that wait for changes: `subscriptions/listen` of the modern era and a
//! legacy session's GET stream. Both hear of a change only when what their own
//! caller sees has changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::identity::Principal;
use crate::ids::SessionId;
use crate::limits::{StreamPermit, StreamsFull};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, Request, RequestId, codes, meta, result_message};
use crate::telemetry::metrics::Counted;
use crate::tenancy::TenantContext;
use crate::visibility;

use super::answers::{self, Reply};
use super::session::Session;
use super::{Answer, Inbound, Messages, Resolver, Server};

/// The GET streams that are open here, one a session.
#[derive(Default)]
pub(super) struct Listeners(Mutex<HashMap<SessionId, Open>>);

/// An open stream: what closes it, and its place under the caps.
#[derive(Clone)]
struct Open {
    /// Milliseconds of the Unix epoch.
    at: i64,
    ended: CancellationToken,
    permit: Arc<StreamPermit>,
}

impl Listeners {
    /// A new stream; the session's older stream here is closed and leaves its
    /// place under the caps to the new one.
    fn open(
        &self,
        session: SessionId,
        at: i64,
        permit: impl FnOnce() -> Result<StreamPermit, StreamsFull>,
    ) -> Result<Open, StreamsFull> {
        let mut streams = self.lock();
        let permit = match streams.get(&session) {
            Some(older) => Arc::clone(&older.permit),
            None => Arc::new(permit()?),
        };
        let open = Open {
            at,
            ended: CancellationToken::new(),
            permit,
        };
        if let Some(older) = streams.insert(session, open.clone()) {
            older.ended.cancel();
        }
        Ok(open)
    }

    /// Closes the session's stream, if it is here.
    pub(super) fn close(&self, session: SessionId) {
        self.close_older(session, i64::MAX);
    }

    /// Closes the session's stream, if it is here and was opened before `at`.
    pub(super) fn close_older(&self, session: SessionId, at: i64) {
        let mut streams = self.lock();
        if streams.get(&session).is_some_and(|open| open.at < at)
            && let Some(open) = streams.remove(&session)
        {
            open.ended.cancel();
        }
    }

    /// A stream is over: it is forgotten, unless a newer one has its place.
    fn over(&self, session: SessionId, stream: &Open) {
        stream.ended.cancel();
        let mut streams = self.lock();
        if streams
            .get(&session)
            .is_some_and(|open| open.ended.is_cancelled())
        {
            streams.remove(&session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's stream while it is open here.
struct SessionStream {
    server: Arc<Server>,
    session: SessionId,
    open: Open,
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        self.server.listeners.over(self.session, &self.open);
    }
}

/// Watches what one caller sees.
struct Watch {
    server: Arc<Server>,
    principal: Arc<Principal>,
    resolver: Resolver,
    context: TenantContext,
    changes: watch::Receiver<u64>,
    epoch: watch::Receiver<u64>,
    seen: [u8; 32],
    ended: CancellationToken,
    expires: tokio::time::Instant,
    _permit: Arc<StreamPermit>,
    _counted: Counted,
}

/// What a watch tells.
enum Told {
    ToolsChanged,
    End,
}

impl Watch {
    fn begin(
        server: &Arc<Server>,
        inbound: Inbound,
        ended: CancellationToken,
        permit: Arc<StreamPermit>,
        until: i64,
    ) -> Self {
        let changes = server.pipeline.catalog.changes(inbound.context.tenant_id());
        let left = u64::try_from(until - server.clock.unix_seconds()).unwrap_or(0);
        let mut watch = Self {
            server: Arc::clone(server),
            principal: Arc::clone(inbound.context.principal()),
            resolver: inbound.resolver,
            context: inbound.context,
            changes,
            epoch: inbound.epoch,
            seen: [0; 32],
            ended,
            expires: tokio::time::Instant::now() + Duration::from_secs(left),
            _permit: permit,
            _counted: server.pipeline.metrics.open_stream(),
        };
        watch.seen = watch.fingerprint();
        watch
    }

    /// A digest that changes when what this caller sees changes.
    fn fingerprint(&self) -> [u8; 32] {
        let view = self.server.pipeline.catalog.view(self.context.tenant_id());
        visibility::fingerprint(&self.context, &view)
    }

    /// Waits until there is something to tell.
    async fn next(&mut self) -> Told {
        loop {
            tokio::select! {
                () = self.ended.cancelled() => return Told::End,
                () = self.server.closing.cancelled() => return Told::End,
                () = tokio::time::sleep_until(self.expires) => return Told::End,
                changed = self.changes.changed() => if changed.is_err() { return Told::End },
                changed = self.epoch.changed() => {
                    if changed.is_err() { return Told::End }
                    match (self.resolver)(&self.principal) {
                        Some(context) => self.context = context,
                        None => return Told::End,
                    }
                }
            }
            let now = self.fingerprint();
            if now != self.seen {
                self.seen = now;
                return Told::ToolsChanged;
            }
        }
    }
}

/// Opens a modern subscription (MCP 2026-07-28 subscriptions).
pub(super) fn subscribe(server: &Arc<Server>, inbound: Inbound, request: &Request) -> Answer {
    let filter = request
        .params
        .as_ref()
        .and_then(|params| params.get("notifications"));
    let Some(filter) = filter.filter(Json::is_object) else {
        let words = "`params.notifications` must be an object such as {\"toolsListChanged\": true}";
        return Reply::error(200, Some(&request.id), codes::INVALID_PARAMS, words, None).into();
    };
    let tools = filter
        .get("toolsListChanged")
        .and_then(|wanted| wanted.boolean())
        == Some(true);
    let permit = match server.streams.open(&inbound.context) {
        Ok(permit) => Arc::new(permit),
        Err(full) => return answers::streams_full(Some(&request.id), full).into(),
    };
    let until = inbound.context.principal().expires_at();
    let watch = Watch::begin(server, inbound, CancellationToken::new(), permit, until);
    Answer::Stream(subscription(watch, request.id.clone(), tools))
}

/// The stages of a subscription's stream.
enum Stage {
    Acknowledge,
    Wait,
    Result,
}

fn subscription(watch: Watch, id: RequestId, tools: bool) -> Messages {
    Box::pin(stream::unfold(
        Some((watch, Stage::Acknowledge)),
        move |state| {
            let id = id.clone();
            async move {
                let (mut watch, stage) = state?;
                match stage {
                    Stage::Acknowledge => {
                        Some((acknowledged(&id, tools), Some((watch, Stage::Wait))))
                    }
                    Stage::Wait => loop {
                        match watch.next().await {
                            Told::ToolsChanged if tools => {
                                return Some((
                                    tools_changed(Some(&id)),
                                    Some((watch, Stage::Wait)),
                                ));
                            }
                            Told::ToolsChanged => {}
                            Told::End => {
                                return Some((cancelled(&id), Some((watch, Stage::Result))));
                            }
                        }
                    },
                    Stage::Result => Some((ended(&id), None)),
                }
            }
        },
    ))
}

/// Opens a legacy session's GET stream at this time (milliseconds of the Unix epoch).
pub(super) fn session_stream(
    server: &Arc<Server>,
    inbound: Inbound,
    session: &Session,
    at: i64,
) -> Result<Messages, StreamsFull> {
    let permit = || server.streams.open(&inbound.context);
    let open = server.listeners.open(session.id, at, permit)?;
    let stream = SessionStream {
        server: Arc::clone(server),
        session: session.id,
        open: open.clone(),
    };
    let until = inbound
        .context
        .principal()
        .expires_at()
        .min(session.expires.unix_timestamp());
    let watch = Watch::begin(server, inbound, open.ended, open.permit, until);
    Ok(Box::pin(stream::unfold(
        (watch, stream),
        |(mut watch, stream)| async move {
            match watch.next().await {
                Told::ToolsChanged => Some((tools_changed(None), (watch, stream))),
                Told::End => None,
            }
        },
    )))
}

fn subscription_meta(id: &RequestId) -> Json {
    ObjectBuilder::new()
        .json(meta::SUBSCRIPTION_ID, id.json())
        .build()
}

fn notification(method: &str, params: &Json) -> Json {
    ObjectBuilder::new()
        .text("jsonrpc", "2.0")
        .text("method", method)
        .json("params", params)
        .build()
}

/// The first message: which of the asked-for notifications will come.
fn acknowledged(id: &RequestId, tools: bool) -> Json {
    let mut honoured = ObjectBuilder::new();
    if tools {
        honoured = honoured.boolean("toolsListChanged", true);
    }
    let params = ObjectBuilder::new()
        .json("_meta", &subscription_meta(id))
        .json("notifications", &honoured.build())
        .build();
    notification("notifications/subscriptions/acknowledged", &params)
}

fn tools_changed(subscription: Option<&RequestId>) -> Json {
    let meta = subscription.map(subscription_meta);
    notification(
        "notifications/tools/list_changed",
        &ObjectBuilder::new().maybe("_meta", meta.as_ref()).build(),
    )
}

/// The end, as one page of the specification has it (cancellation) …
fn cancelled(id: &RequestId) -> Json {
    let params = ObjectBuilder::new()
        .json("_meta", &subscription_meta(id))
        .json("requestId", id.json())
        .build();
    notification("notifications/cancelled", &params)
}

/// … and as the other has it (subscriptions, Graceful Closure).
fn ended(id: &RequestId) -> Json {
    let result = ObjectBuilder::new()
        .text("resultType", "complete")
        .json("_meta", &subscription_meta(id))
        .build();
    result_message(id, &result)
}
