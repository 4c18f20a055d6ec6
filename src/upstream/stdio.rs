//! MCP over a child's standard streams. The child is started at the first request,
//! restarted when it exits, and ended with the service.
//!
//! There is one child for all callers, and a legacy server's session is the child:
//! what it keeps of a session, all callers share. That is the nature of stdio. A
//! server that must keep callers apart is to be run over HTTP, or once per tenant
//! (`upstreams.<id>.tenants`).

use std::collections::BTreeSet;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::backoff::Backoff;
use super::child::{Process, log_errors};
use super::connection::Connection;
use super::gate::Gate;
use super::greeting::greet;
use super::hearing::{Changes, Line, News};
use super::leg::{Legs, Transport};
use super::listen::lock;
use super::patience::Patience;
use super::subscribing::{SUBSCRIBE, settled, subscription, subscription_steps};
use super::{
    Abilities, Credential, EventSender, Upstream, UpstreamError, UpstreamRequest, message,
};
use crate::config;
use crate::ids::UpstreamId;
use crate::protocol::{Era, Json, Untrusted, Version};
use crate::telemetry::metrics::Metrics;

/// How long a child may take to be greeted, whatever its callers wait for: the
/// first start of a package runner downloads.
const LONGEST_START: Duration = Duration::from_mins(1);
/// A child that lived so long is restarted at once.
const GOOD_LIFE: Duration = Duration::from_secs(30);
/// Pauses before restarts.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// How long ending the child may take when the service stops.
const FAREWELL: Duration = Duration::from_secs(6);

/// An MCP server as a child process.
pub struct StdioUpstream {
    shared: Arc<Shared>,
    _stop: DropGuard,
}

struct Shared {
    id: UpstreamId,
    kind: config::StdioUpstream,
    connect: Duration,
    max_answer: usize,
    gate: Gate,
    changes: Changes,
    legs: Arc<Legs>,
    /// Resources to be heard of (modern).
    wanted: watch::Sender<BTreeSet<String>>,
    /// Resources that the child was asked to tell of (legacy).
    subscribed: std::sync::Mutex<BTreeSet<String>>,
    state: watch::Sender<State>,
    supervised: AtomicBool,
    /// A child has been ready before.
    worked: AtomicBool,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The child as its callers see it.
#[derive(Clone)]
enum State {
    /// Being started, for the first time or again.
    Starting,
    /// Ready.
    Up(Arc<Connection>),
    /// Not running; it is tried again later, or the service stops.
    Down,
}

/// How a child's life ended.
enum Life {
    /// It could not be started.
    NotStarted(std::io::Error),
    /// It did not get through the greeting.
    NotGreeted(UpstreamError),
    /// It worked for so long.
    Over(Duration, Option<ExitStatus>),
    /// The service stops.
    Stopped,
}

impl StdioUpstream {
    pub(super) fn new(
        id: UpstreamId,
        kind: &config::StdioUpstream,
        config: &config::Upstream,
        metrics: Arc<Metrics>,
    ) -> Self {
        let legs = Arc::new(Legs {
            upstream: id.clone(),
            transport: Transport::Stdio,
            address: None,
            metrics,
        });
        let stop = CancellationToken::new();
        let shared = Shared {
            id,
            kind: kind.clone(),
            connect: config.timeout.connect.0,
            max_answer: config.max_answer.0,
            gate: Gate::new(config.concurrent),
            changes: Changes::new(),
            legs,
            wanted: watch::Sender::default(),
            subscribed: std::sync::Mutex::default(),
            state: watch::Sender::new(State::Starting),
            supervised: AtomicBool::new(false),
            worked: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
        };
        Self {
            shared: Arc::new(shared),
            _stop: stop.drop_guard(),
        }
    }
}

impl Upstream for StdioUpstream {
    fn id(&self) -> &UpstreamId {
        &self.shared.id
    }

    fn version(&self) -> Option<Version> {
        match &*self.shared.state.borrow() {
            State::Up(connection) => connection.profile().map(|profile| profile.version),
            State::Starting | State::Down => None,
        }
    }

    fn request(
        &self,
        request: UpstreamRequest,
        events: EventSender,
    ) -> BoxFuture<'_, Result<Untrusted<Json>, UpstreamError>> {
        Box::pin(async move {
            let shared = &self.shared;
            let place = shared.gate.enter(request.deadline).await?;
            let connection = shared.connection(request.deadline).await?;
            let line = Line::new(events, Patience::new(request.deadline, Some(place)));
            let answer = tokio::select! {
                biased;
                answer = connection.call(&request, &line) => answer,
                () = line.patience.over() => Err(UpstreamError::TimedOut),
            };
            answer.map(Untrusted::new)
        })
    }

    fn abilities(&self) -> Abilities {
        let profile = |connection: &Connection| connection.profile().map(|it| it.abilities);
        match &*self.shared.state.borrow() {
            State::Up(connection) => profile(connection).unwrap_or_default(),
            State::Starting | State::Down => Abilities::default(),
        }
    }

    fn list_changed(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    fn news(&self) -> Option<broadcast::Receiver<News>> {
        Some(self.shared.changes.news())
    }

    fn subscribe(
        &self,
        uris: BTreeSet<String>,
        _: Option<Credential>,
    ) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(async move {
            let shared = &self.shared;
            let version = self.version().ok_or(UpstreamError::Unreachable)?;
            if version.era() == Era::Modern {
                shared
                    .wanted
                    .send_if_modified(|wanted| std::mem::replace(wanted, uris.clone()) != uris);
                return Ok(());
            }
            let had = lock(&shared.subscribed).clone();
            for (method, uri) in subscription_steps(&had, &uris) {
                let request = subscription(method, uri);
                settled(self.request(request, mpsc::channel(1).0).await)?;
                let mut subscribed = lock(&shared.subscribed);
                if method == SUBSCRIBE {
                    subscribed.insert(uri.clone());
                } else {
                    subscribed.remove(uri);
                }
            }
            Ok(())
        })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.shared.stop.cancel();
            self.shared.tasks.close();
            let _ = timeout(FAREWELL, self.shared.tasks.wait()).await;
        })
    }
}

impl Shared {
    /// The running child, waited for while it starts.
    async fn connection(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<Arc<Connection>, UpstreamError> {
        if self.stop.is_cancelled() {
            return Err(UpstreamError::Unreachable);
        }
        if !self.supervised.swap(true, Ordering::Relaxed) {
            self.tasks.spawn(Arc::clone(self).supervise());
        }
        let mut state = self.state.subscribe();
        let until = deadline.min(Instant::now() + self.connect);
        let settled = state.wait_for(|state| !matches!(state, State::Starting));
        match timeout_at(until, settled).await {
            Ok(Ok(state)) => match &*state {
                State::Up(connection) => Ok(Arc::clone(connection)),
                State::Starting | State::Down => Err(UpstreamError::Unreachable),
            },
            Ok(Err(_)) | Err(_) => Err(UpstreamError::Unreachable),
        }
    }

    /// Keeps a child running until the service stops.
    async fn supervise(self: Arc<Self>) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut probe = true;
        loop {
            let id = &self.id;
            let mut at_once = false;
            match self.live(probe).await {
                Life::Stopped => break,
                Life::NotStarted(error) => {
                    tracing::warn!(upstream.id = %id, %error, "the upstream cannot be started");
                }
                // Some legacy servers exit at anything before `initialize`.
                Life::NotGreeted(UpstreamError::Broken) if probe => {
                    probe = false;
                    at_once = true;
                }
                Life::NotGreeted(fault) => {
                    tracing::warn!(
                        upstream.id = %id, error = %fault, "the upstream does not speak MCP"
                    );
                    probe = true;
                }
                Life::Over(lived, status) => {
                    let status = status.map(|status| status.to_string());
                    let status = status.as_deref().unwrap_or("unknown");
                    tracing::warn!(
                        upstream.id = %id, status, "the upstream has exited and is restarted"
                    );
                    if lived >= GOOD_LIFE {
                        backoff.reset();
                        at_once = true;
                    }
                }
            }
            if !at_once {
                self.state.send_replace(State::Down);
                let pause = timeout(backoff.pause(), self.stop.cancelled());
                if pause.await.is_ok() {
                    break;
                }
            }
            self.state.send_replace(State::Starting);
        }
        self.state.send_replace(State::Down);
    }

    /// One child, from its start to its end.
    async fn live(&self, probe: bool) -> Life {
        if self.stop.is_cancelled() {
            return Life::Stopped;
        }
        let (mut process, pipes) = match Process::start(&self.kind) {
            Ok(started) => started,
            Err(error) => return Life::NotStarted(error),
        };
        let started = Arc::new(AtomicBool::new(false));
        let errors = log_errors(self.id.clone(), pipes.errors, Arc::clone(&started));
        self.tasks.spawn(errors);
        let connection = Connection::open(
            self.id.clone(),
            pipes.output,
            pipes.input,
            self.max_answer,
            (self.changes.clone(), Arc::clone(&self.legs)),
        );
        let patience = LONGEST_START.max(self.connect);
        let greeted = tokio::select! {
            greeted = timeout(patience, greet(&connection, probe)) => {
                greeted.unwrap_or(Err(UpstreamError::TimedOut))
            }
            () = self.stop.cancelled() => Err(UpstreamError::Unreachable),
        };
        let life = match greeted {
            Ok(profile) => {
                tracing::info!(
                    upstream.id = %self.id,
                    mcp.protocol.version = %profile.version,
                    "the upstream speaks MCP"
                );
                let abilities = profile.abilities;
                let listens = profile.era() == Era::Modern && abilities.announces();
                let listens = listens.then_some(abilities);
                connection.greeted(profile);
                started.store(true, Ordering::Relaxed);
                self.work(&connection, &mut process, listens).await
            }
            Err(_) if self.stop.is_cancelled() => Life::Stopped,
            Err(fault) => Life::NotGreeted(fault),
        };
        // Closing the connection closes the child's input.
        connection.close();
        let status = process.end().await;
        if let (Life::Over(lived, _), Some(profile)) = (&life, connection.profile()) {
            self.legs.session_over(profile.version, *lived);
        }
        match life {
            Life::Over(lived, None) => Life::Over(lived, status),
            life => life,
        }
    }

    /// Lets callers at a child that is ready, until it ends.
    async fn work(
        &self,
        connection: &Arc<Connection>,
        process: &mut Process,
        listens: Option<Abilities>,
    ) -> Life {
        let began = Instant::now();
        self.state.send_replace(State::Up(Arc::clone(connection)));
        if self.worked.swap(true, Ordering::Relaxed) {
            // A server that was started again may have other tools.
            self.changes.bump();
        }
        lock(&self.subscribed).clear();
        self.changes.tell(News::Forgotten);
        let listening = async {
            if let Some(abilities) = listens {
                self.listen(connection, abilities).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.stop.cancelled() => Life::Stopped,
            () = connection.over.cancelled() => Life::Over(began.elapsed(), None),
            status = process.exited() => Life::Over(began.elapsed(), status),
            () = listening => Life::Stopped,
        }
    }

    /// Hears a modern child's announcements, with another stream whenever other
    /// resources are to be heard of.
    async fn listen(&self, connection: &Arc<Connection>, abilities: Abilities) {
        let mut wanted = self.wanted.subscribe();
        loop {
            let filter = abilities.filter(&*wanted.borrow_and_update());
            let id = connection.next_id();
            tokio::select! {
                // Answered when the server ends it; its notifications come like all others.
                _ = connection.ask(id, message::listen(id, &filter)) => return,
                Ok(()) = wanted.changed() => connection.tell(message::cancelled(id)).await,
            }
        }
    }
}
