//! Streams that wait for changes: `subscriptions/listen` of the modern era and a
//! legacy session's GET stream. Both hear of a change only when what their own
//! caller sees has changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::identity::Principal;
use crate::ids::SessionId;
use crate::limits::{StreamPermit, StreamsFull};
use crate::pipeline::Refusal;
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{ClientCapabilities, Era, Json, Request, RequestId, RequestMeta, codes};
use crate::telemetry::metrics::Counted;
use crate::tenancy::TenantContext;
use crate::visibility::{self, Fingerprints};

use super::answers::{self, Manner, Reply};
use super::listeners::Open;
use super::notifications::{cancelled, ended, notification, subscription_meta};
use super::session::Session;
use super::task_news::TaskNews;
use super::watching::{Wanted, Watching};
use super::{Answer, Inbound, Messages, Resolver, Server, capabilities};

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

/// A session whose subscriptions are watched.
struct OfSession {
    id: SessionId,
    poked: Arc<Notify>,
}

/// Watches what one caller sees.
struct Watch {
    server: Arc<Server>,
    principal: Arc<Principal>,
    resolver: Resolver,
    context: TenantContext,
    changes: watch::Receiver<u64>,
    epoch: watch::Receiver<u64>,
    seen: Fingerprints,
    wanted: Wanted,
    resources: Watching,
    tasks: Option<TaskNews>,
    session: Option<OfSession>,
    due: Vec<Told>,
    ended: CancellationToken,
    expires: tokio::time::Instant,
    _permit: Arc<StreamPermit>,
    _counted: Counted,
}

/// What a watch tells.
enum Told {
    ToolsChanged,
    ResourcesChanged,
    PromptsChanged,
    Updated(String),
    Task(Json),
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
        let view = server.pipeline.catalog.view(inbound.context.tenant_id());
        Self {
            server: Arc::clone(server),
            principal: Arc::clone(inbound.context.principal()),
            resolver: inbound.resolver,
            changes,
            epoch: inbound.epoch,
            seen: visibility::fingerprints(&inbound.context, &view),
            wanted: Wanted::default(),
            resources: Watching::default(),
            tasks: None,
            session: None,
            due: Vec::new(),
            context: inbound.context,
            ended,
            expires: tokio::time::Instant::now() + Duration::from_secs(left),
            _permit: permit,
            _counted: server.pipeline.metrics.open_stream(),
        }
    }

    /// Watches these resources and no others, as far as the caller may read them.
    fn watch(&mut self, uris: &BTreeSet<String>) {
        let catalog = &self.server.pipeline.catalog;
        let context = &self.context;
        let view = catalog.view(context.tenant_id());
        self.resources.set(uris, |uri| {
            let place = visibility::see_resource(context, catalog, &view, uri).ok()?;
            catalog.watch(&place)
        });
    }

    /// Looks again at what the session has subscribed to.
    async fn look_at_session(&mut self) {
        if let Some(session) = &self.session {
            let tenant = self.context.tenant_id();
            let uris = self.server.sessions.subscriptions(tenant, session.id).await;
            self.watch(&uris);
        }
    }

    /// Whether the caller may still read what it watches.
    fn may_read(&self, uri: &str) -> bool {
        let catalog = &self.server.pipeline.catalog;
        let view = catalog.view(self.context.tenant_id());
        visibility::see_resource(&self.context, catalog, &view, uri).is_ok()
    }

    /// Compares what the caller sees with what it saw.
    fn look(&mut self) {
        let view = self.server.pipeline.catalog.view(self.context.tenant_id());
        let now = visibility::fingerprints(&self.context, &view);
        let wanted = &self.wanted;
        for (wanted, changed, told) in [
            (
                wanted.tools,
                now.tools != self.seen.tools,
                Told::ToolsChanged,
            ),
            (
                wanted.resources,
                now.resources != self.seen.resources,
                Told::ResourcesChanged,
            ),
            (
                wanted.prompts,
                now.prompts != self.seen.prompts,
                Told::PromptsChanged,
            ),
        ] {
            if wanted && changed {
                self.due.push(told);
            }
        }
        self.seen = now;
    }

    /// Waits until there is something to tell.
    async fn next(&mut self) -> Told {
        loop {
            if let Some(told) = self.due.pop() {
                return told;
            }
            let poked = async {
                match &self.session {
                    Some(session) => session.poked.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.ended.cancelled() => return Told::End,
                () = self.server.closing.cancelled() => return Told::End,
                () = tokio::time::sleep_until(self.expires) => return Told::End,
                changed = self.changes.changed() => if changed.is_err() { return Told::End },
                () = poked => {
                    self.look_at_session().await;
                    continue;
                }
                task = async {
                    match &mut self.tasks {
                        Some(tasks) => tasks.next().await,
                        None => std::future::pending().await,
                    }
                } => return Told::Task(task),
                uri = self.resources.next() => {
                    if self.may_read(&uri) {
                        return Told::Updated(uri);
                    }
                    continue;
                }
                changed = self.epoch.changed() => {
                    if changed.is_err() { return Told::End }
                    match (self.resolver)(&self.principal) {
                        Some(context) => self.context = context,
                        None => return Told::End,
                    }
                }
            }
            self.look();
        }
    }
}

/// Opens a modern subscription (MCP 2026-07-28 subscriptions).
pub(super) fn subscribe(
    server: &Arc<Server>,
    inbound: Inbound,
    request: &Request,
    meta: &RequestMeta,
) -> Answer {
    let filter = request
        .params
        .as_ref()
        .and_then(|params| params.get("notifications"));
    let Some(filter) = filter.filter(Json::is_object) else {
        let words = "`params.notifications` must be an object such as {\"toolsListChanged\": true}";
        return Reply::error(200, Some(&request.id), codes::INVALID_PARAMS, words, None).into();
    };
    let mut wanted = match Wanted::of(&filter) {
        Ok(wanted) => wanted,
        Err(words) => {
            return Reply::error(200, Some(&request.id), codes::INVALID_PARAMS, words, None).into();
        }
    };
    let capabilities = meta.client_capabilities.clone();
    let capabilities = capabilities.map_or_else(ClientCapabilities::none, ClientCapabilities::new);
    if !wanted.tasks.is_empty() && !capabilities.has_tasks() {
        let needed = ClientCapabilities::tasks();
        let refusal = Refusal::MissingCapability { needed };
        return answers::of_refusal(Some(&request.id), refusal, Manner::plain(Era::Modern)).into();
    }
    let pipeline = &server.pipeline;
    wanted
        .tasks
        .retain(|id| pipeline.may_hear_of_task(&inbound.context, id));
    let permit = match server.streams.open(&inbound.context) {
        Ok(permit) => Arc::new(permit),
        Err(full) => return answers::streams_full(Some(&request.id), full).into(),
    };
    let tasks =
        (!wanted.tasks.is_empty()).then(|| TaskNews::of(server, &inbound, meta, &wanted.tasks));
    let wanted = wanted.of_what_is(capabilities::offered(server, &inbound.context));
    let until = inbound.context.principal().expires_at();
    let mut watch = Watch::begin(server, inbound, CancellationToken::new(), permit, until);
    watch.watch(&wanted.uris);
    watch.wanted = wanted;
    watch.tasks = tasks;
    Answer::Stream(subscription(watch, request.id.clone()))
}

/// The stages of a subscription's stream.
enum Stage {
    Acknowledge,
    Wait,
    Result,
}

fn subscription(watch: Watch, id: RequestId) -> Messages {
    Box::pin(stream::unfold(
        Some((watch, Stage::Acknowledge)),
        move |state| {
            let id = id.clone();
            async move {
                let (mut watch, stage) = state?;
                match stage {
                    Stage::Acknowledge => {
                        let message = acknowledged(&id, &watch);
                        Some((message, Some((watch, Stage::Wait))))
                    }
                    Stage::Wait => match told(watch.next().await, Some(&id)) {
                        Some(message) => Some((message, Some((watch, Stage::Wait)))),
                        None => Some((cancelled(&id), Some((watch, Stage::Result)))),
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
    let poked = Arc::clone(&open.poked);
    let mut watch = Watch::begin(server, inbound, open.ended, open.permit, until);
    watch.wanted = Wanted::all_lists();
    watch.watch(&session.subscriptions);
    watch.session = Some(OfSession {
        id: session.id,
        poked,
    });
    Ok(Box::pin(stream::unfold(
        (watch, stream),
        |(mut watch, stream)| async move {
            let message = told(watch.next().await, None)?;
            Some((message, (watch, stream)))
        },
    )))
}

/// The first message: which of the asked-for notifications will come.
/// Hidden and unknown resources are left out alike.
fn acknowledged(id: &RequestId, watch: &Watch) -> Json {
    let mut honoured = ObjectBuilder::new();
    let wanted = &watch.wanted;
    for (wanted, name) in [
        (wanted.tools, "toolsListChanged"),
        (wanted.resources, "resourcesListChanged"),
        (wanted.prompts, "promptsListChanged"),
    ] {
        if wanted {
            honoured = honoured.boolean(name, true);
        }
    }
    let list = |names: Vec<Json>| names.iter().collect::<ArrayBuilder>().build();
    if !wanted.uris.is_empty() {
        let uris = watch.resources.uris().map(Json::from_text).collect();
        honoured = honoured.json("resourceSubscriptions", &list(uris));
    }
    if !wanted.tasks.is_empty() {
        let ids = wanted.tasks.iter().map(|id| Json::from_text(id)).collect();
        honoured = honoured.json("taskIds", &list(ids));
    }
    let params = ObjectBuilder::new()
        .json("_meta", &subscription_meta(id))
        .json("notifications", &honoured.build())
        .build();
    notification("notifications/subscriptions/acknowledged", &params)
}

/// What is told as a notification; `None` at the end.
fn told(told: Told, subscription: Option<&RequestId>) -> Option<Json> {
    let meta = subscription.map(subscription_meta);
    let params = ObjectBuilder::new().maybe("_meta", meta.as_ref());
    let (method, params) = match told {
        Told::ToolsChanged => ("notifications/tools/list_changed", params),
        Told::ResourcesChanged => ("notifications/resources/list_changed", params),
        Told::PromptsChanged => ("notifications/prompts/list_changed", params),
        Told::Updated(uri) => ("notifications/resources/updated", params.text("uri", &uri)),
        Told::Task(task) => {
            let params = params.and_members_of(&task, "_meta");
            return Some(notification("notifications/tasks", &params));
        }
        Told::End => return None,
    };
    Some(notification(method, &params.build()))
}
