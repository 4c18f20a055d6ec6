//! MCP over Streamable HTTP, in whichever era the server speaks. The era is told
//! once by the first answer and believed until something contradicts it.
//!
//! Knows nothing of tools, tenants or limits; credentials come with each request.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, broadcast, mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::hearing::{Changes, Line, News};
use super::link::{Link, Reading, header_of};
use super::listen::{Listening, lock};
use super::patience::Patience;
use super::profile::Profile;
use super::sessions::Sessions;
use super::subscribing::{SUBSCRIBE, settled, subscription, subscription_steps};
use super::{
    Abilities, CallerKey, Credential, EventSender, Upstream, UpstreamError, UpstreamRequest,
    legacy, modern, probe,
};
use crate::clock::SharedClock;
use crate::config;
use crate::ids::UpstreamId;
use crate::outgoing::{Outgoing, OutgoingFault, Reach, Target};
use crate::protocol::{Era, Json, Untrusted, Version};

/// How long closing sessions may take when the service stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// An MCP server over Streamable HTTP.
pub struct HttpUpstream {
    pub(super) http: Arc<Http>,
    _stop: DropGuard,
}

/// What all requests to one server share.
pub(super) struct Http {
    pub(super) id: UpstreamId,
    pub(super) link: Arc<Link>,
    pub(super) changes: Changes,
    pub(super) sessions: Sessions,
    pub(super) listening: Listening,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
    /// Resources to be heard of (modern).
    pub(super) wanted: watch::Sender<BTreeSet<String>>,
    /// Resources that the gateway's own session has subscribed to (legacy).
    pub(super) subscribed: std::sync::Mutex<BTreeSet<String>>,
    gate: Gate,
    pub(super) profile: ArcSwapOption<Profile>,
    probing: Mutex<Option<Failure>>,
    pub(super) ids: Arc<AtomicI64>,
}

/// A probe that failed, for those who waited for it.
struct Failure {
    at: Instant,
    fault: UpstreamError,
}

/// Why an attempt gave no result.
pub(super) enum Miss {
    /// For good.
    Fault(UpstreamError),
    /// The server is not what we took it for, and said so before it ran anything:
    /// look at it again and retry once.
    Stale(UpstreamError),
}

impl From<UpstreamError> for Miss {
    fn from(fault: UpstreamError) -> Self {
        Self::Fault(fault)
    }
}

impl HttpUpstream {
    pub(super) fn new(
        id: UpstreamId,
        kind: &config::McpUpstream,
        config: &config::Upstream,
        outgoing: &Outgoing,
        clock: SharedClock,
    ) -> Result<Self, OutgoingFault> {
        let target = Target::try_from(&kind.url)?;
        let reach = if kind.allow_private {
            Reach::Private
        } else {
            Reach::Public
        };
        let stop = CancellationToken::new();
        let http = Http {
            id,
            link: Arc::new(Link {
                client: outgoing.client(reach, config.timeout.connect.0),
                target,
                max_answer: config.max_answer.0,
                clock,
            }),
            changes: Changes::new(),
            sessions: Sessions::new(),
            listening: Listening::default(),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
            wanted: watch::Sender::default(),
            subscribed: std::sync::Mutex::default(),
            gate: Gate::new(config.concurrent),
            profile: ArcSwapOption::empty(),
            probing: Mutex::new(None),
            ids: Arc::new(AtomicI64::new(1)),
        };
        Ok(Self {
            http: Arc::new(http),
            _stop: stop.drop_guard(),
        })
    }
}

impl Upstream for HttpUpstream {
    fn id(&self) -> &UpstreamId {
        &self.http.id
    }

    fn version(&self) -> Option<Version> {
        let profile = self.http.profile.load();
        profile.as_ref().map(|profile| profile.version)
    }

    fn request(
        &self,
        request: UpstreamRequest,
        events: EventSender,
    ) -> BoxFuture<'_, Result<Untrusted<Json>, UpstreamError>> {
        Box::pin(async move {
            let http = &self.http;
            let place = http.gate.enter(request.deadline).await?;
            let line = Line::new(events, Patience::new(request.deadline, Some(place)));
            let answer = tokio::select! {
                biased;
                answer = http.call(&request, &line) => answer,
                () = line.patience.over() => Err(UpstreamError::TimedOut),
            };
            answer.map(Untrusted::new)
        })
    }

    fn abilities(&self) -> Abilities {
        let profile = self.http.profile.load();
        profile
            .as_ref()
            .map(|profile| profile.abilities)
            .unwrap_or_default()
    }

    fn list_changed(&self) -> watch::Receiver<u64> {
        self.http.changes.subscribe()
    }

    fn news(&self) -> Option<broadcast::Receiver<News>> {
        Some(self.http.changes.news())
    }

    fn subscribe(
        &self,
        uris: BTreeSet<String>,
        credential: Option<Credential>,
    ) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(async move {
            let profile = self.http.profile.load_full();
            let profile = profile.ok_or(UpstreamError::Unreachable)?;
            if profile.era() == Era::Modern {
                self.http
                    .wanted
                    .send_if_modified(|wanted| std::mem::replace(wanted, uris.clone()) != uris);
                return Ok(());
            }
            let had = lock(&self.http.subscribed).clone();
            for (method, uri) in subscription_steps(&had, &uris) {
                let mut request = subscription(method, uri);
                request.credential.clone_from(&credential);
                let answer = self.request(request, mpsc::channel(1).0).await;
                settled(answer)?;
                let mut subscribed = lock(&self.http.subscribed);
                if method == SUBSCRIBE {
                    subscribed.insert(uri.clone());
                } else {
                    subscribed.remove(uri);
                }
            }
            Ok(())
        })
    }

    fn roots_changed(&self, caller: CallerKey) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for session in self.http.sessions.of(caller).await {
                session.face().roots_changed().await;
            }
        })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let http = &self.http;
            http.stop.cancel();
            http.listening.end();
            http.sessions.close();
            http.tasks.close();
            let _ = timeout(FAREWELL, http.tasks.wait()).await;
        })
    }
}

impl Http {
    pub(super) fn next_id(&self) -> i64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    async fn call(
        self: &Arc<Self>,
        request: &UpstreamRequest,
        line: &Line,
    ) -> Result<Json, UpstreamError> {
        let credential = request.credential.as_ref();
        if credential.is_some_and(|credential| header_of(credential).is_none()) {
            tracing::warn!(upstream.id = %self.id, "the upstream's credential is no HTTP header");
            return Err(UpstreamError::Unreachable);
        }
        if self.stop.is_cancelled() {
            return Err(UpstreamError::Unreachable);
        }
        let profile = self.profile(request).await?;
        let stale = match self.attempt(&profile, request, line).await {
            Ok(result) => return Ok(result),
            Err(Miss::Fault(fault)) => return Err(fault),
            Err(Miss::Stale(fault)) => fault,
        };
        tracing::debug!(upstream.id = %self.id, error = %stale, "looks at the upstream again");
        self.forget(&profile);
        if request.caller != CallerKey::GATEWAY {
            self.changes.bump();
        }
        let profile = self.profile(request).await?;
        match self.attempt(&profile, request, line).await {
            Ok(result) => Ok(result),
            Err(Miss::Fault(fault) | Miss::Stale(fault)) => Err(fault),
        }
    }

    async fn attempt(
        self: &Arc<Self>,
        profile: &Arc<Profile>,
        request: &UpstreamRequest,
        line: &Line,
    ) -> Result<Json, Miss> {
        match profile.era() {
            Era::Legacy => legacy::call(self, profile, request, line).await,
            Era::Modern => {
                let result = modern::call(self, request, line).await?;
                if request.caller == CallerKey::GATEWAY && profile.abilities.announces() {
                    self.listening.to_server(self, profile, request);
                }
                Ok(result)
            }
        }
    }

    /// What the server is; looked up once, by one request for all that wait.
    async fn profile(
        self: &Arc<Self>,
        request: &UpstreamRequest,
    ) -> Result<Arc<Profile>, UpstreamError> {
        if let Some(profile) = self.profile.load_full() {
            return Ok(profile);
        }
        let arrived = Instant::now();
        let mut last = self.probing.lock().await;
        if let Some(profile) = self.profile.load_full() {
            return Ok(profile);
        }
        // Whoever waited here while the server could not be reached knows enough.
        if let Some(failure) = last.as_ref().filter(|failure| failure.at > arrived) {
            return Err(failure.fault.echo());
        }
        match probe::probe(self, request).await {
            Ok(profile) => {
                tracing::info!(
                    upstream.id = %self.id,
                    mcp.protocol.version = %profile.version,
                    "the upstream speaks MCP"
                );
                let profile = Arc::new(profile);
                self.profile.store(Some(Arc::clone(&profile)));
                *last = None;
                Ok(profile)
            }
            Err(fault) => {
                // A refusal may be the first caller's own: only silence is shared.
                *last = matches!(
                    fault,
                    UpstreamError::Unreachable | UpstreamError::TimedOut | UpstreamError::Blocked
                )
                .then(|| Failure {
                    at: Instant::now(),
                    fault: fault.echo(),
                });
                Err(fault)
            }
        }
    }

    /// Drops what is known of the server, unless somebody has looked again already.
    fn forget(&self, known: &Arc<Profile>) {
        let current = self.profile.load();
        if current.as_ref().is_some_and(|now| Arc::ptr_eq(now, known)) {
            self.profile.compare_and_swap(&*current, None);
        }
    }

    /// Reads an answer's stream to its end in the background, for the connection's sake.
    pub(super) fn finish(&self, reading: Reading) {
        if reading.is_open() {
            self.tasks.spawn(reading.linger());
        }
    }
}
