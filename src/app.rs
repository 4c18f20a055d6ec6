//! Wiring: from a configuration to a running service, and from a changed file to
//! the next configuration. No rule lives here.

mod authorize;
mod background;
mod database;
mod explain;
mod health;
mod snapshot;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::audit::{AuditSettings, Auditor};
use crate::catalog::Catalog;
use crate::clock::{SharedClock, SystemClock, new_replica_id};
use crate::config::{Config, Loaded};
use crate::dispatch::Dispatcher;
use crate::http::{self, Edge, Listening, Snapshot};
use crate::identity::OwnTokens;
use crate::ids::ReplicaId;
use crate::lifecycle::{Lifecycle, Signals, Stop};
use crate::limits::{Limits, StreamCaps, Ticks};
use crate::mcp::{self, Relay, Sessions};
use crate::oauth::{self, AuthorizationServer};
use crate::outgoing::Outgoing;
use crate::pipeline::Pipeline;
use crate::sanitize::Sanitizer;
use crate::seal::{Keys, Label};
use crate::store::Store;
use crate::telemetry::{self, metrics::Metrics};

pub use database::migrate;
pub(crate) use database::reader;
pub use explain::explain;

use database::Database;

/// Events that may wait in each lane of the audit before callers are refused.
const AUDIT_QUEUE: usize = 4096;

/// The addresses that are served.
#[derive(Clone, Copy, Debug)]
pub struct Listeners {
    /// The public listener's.
    pub public: SocketAddr,
    /// The admin listener's.
    pub admin: SocketAddr,
}

/// Everything that lives as long as the process.
pub(crate) struct App {
    pub(crate) id: ReplicaId,
    pub(crate) loaded: Loaded,
    pub(crate) clock: SharedClock,
    pub(crate) store: Store,
    pub(crate) outgoing: Arc<Outgoing>,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) streams: Arc<StreamCaps>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) server: Arc<mcp::Server>,
    pub(crate) oauth: Arc<AuthorizationServer>,
    pub(crate) own_tokens: Arc<OwnTokens>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) current: Arc<ArcSwap<Snapshot>>,
    pub(crate) epoch: watch::Sender<u64>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    /// Whether the database has had this release's schema in front of this process.
    pub(crate) schema_met: AtomicBool,
}

/// Runs the service until it is told to stop. `announce` is called once it listens.
///
/// # Errors
/// When something that no retry mends is missing at the start: a port, a key, a schema that is too new.
pub async fn run(loaded: Loaded, announce: impl FnOnce(&Listeners)) -> anyhow::Result<()> {
    let telemetry = &loaded.config.telemetry;
    telemetry::init(
        &telemetry.log_filter,
        telemetry.log_format == crate::config::LogFormat::Json,
    )?;
    for warning in &loaded.warnings {
        tracing::warn!(warning = %warning, "The configuration has something odd.");
    }
    let database = Database::open(&loaded.config).await?;
    let outcome = serve(loaded, &database, announce).await;
    database.close().await;
    outcome
}

async fn serve(
    loaded: Loaded,
    database: &Database,
    announce: impl FnOnce(&Listeners),
) -> anyhow::Result<()> {
    // From here on a signal is an orderly end, also in the middle of the start.
    let mut signals = Signals::listen()?;
    let server = loaded.config.server.clone();
    let (public, admin) = (bind(server.listen).await?, bind(server.admin_listen).await?);
    let listening = Listeners {
        public: public.address,
        admin: admin.address,
    };
    let app = Arc::new(App::build(loaded, database, listening.public)?);
    let met = database.accept_schema(&app.store).await?;
    app.schema_met.store(met, Ordering::Relaxed);
    let running = Running::start(&app, public, admin);
    let opened = tokio::select! {
        opened = app.begin() => opened.map(|()| None),
        stop = signals.next() => Ok(Some(stop)),
    };
    let (stop, outcome) = match opened {
        Ok(None) => {
            announce(&listening);
            tracing::info!(listen = %listening.public, admin.listen = %listening.admin, replica.id = %app.id, "Serving.");
            tokio::select! {
                stop = signals.next() => (stop, Ok(())),
                () = app.newer_schema() => (Stop::Now, Err(anyhow!(database::NEWER))),
            }
        }
        Ok(Some(stop)) => (stop, Ok(())),
        Err(fault) => (Stop::Now, Err(fault)),
    };
    running.end(&app, stop).await;
    outcome
}

/// What runs while the service does.
struct Running {
    serving: JoinHandle<()>,
    probing: JoinHandle<()>,
    background: TaskTracker,
}

impl Running {
    fn start(app: &Arc<App>, public: Listening, admin: Listening) -> Self {
        let edge = Edge {
            current: Arc::clone(&app.current),
            epoch: app.epoch.subscribe(),
            server: Arc::clone(&app.server),
            catalog: Arc::clone(&app.catalog),
            oauth: Arc::clone(&app.oauth),
            own_tokens: Arc::clone(&app.own_tokens),
            metrics: Arc::clone(&app.metrics),
        };
        let closing = app.lifecycle.listeners.clone();
        let serving = http::serve(public, http::public_router(edge), closing, app.patience());
        let probes = http::admin_router(health::check(app), Arc::clone(&app.metrics));
        let ending = app.lifecycle.background.clone();
        Self {
            serving: tokio::spawn(serving),
            probing: tokio::spawn(http::serve(admin, probes, ending, Duration::ZERO)),
            background: background::start(app),
        }
    }

    /// The drain, then everything in the order in which it is needed no more.
    async fn end(self, app: &App, stop: Stop) {
        let delay = app.current.load().config.server.drain_delay.0;
        app.lifecycle.drain(stop, delay).await;
        // Connections and calls end side by side: an answer needs both.
        let ended = async { tokio::join!(self.serving, app.server.finish_calls()) };
        if tokio::time::timeout(app.patience(), ended).await.is_err() {
            tracing::warn!(
                "Calls were still running at the end of the drain; their records read `unknown`."
            );
        }
        app.auditor.close().await;
        app.catalog.shutdown().await;
        app.lifecycle.background.cancel();
        self.background.wait().await;
        // It has nothing to tell but that it ended.
        let _ = self.probing.await;
        app.store.close().await;
        tracing::info!("Stopped.");
    }
}

async fn bind(address: SocketAddr) -> anyhow::Result<Listening> {
    Listening::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

impl App {
    fn build(loaded: Loaded, database: &Database, public: SocketAddr) -> anyhow::Result<Self> {
        let clock: SharedClock = Arc::new(SystemClock);
        let config = &loaded.config;
        let id = new_replica_id(&*clock);
        let keys = keys(config)?;
        let store = database.connect(config)?;
        let metrics = Arc::new(Metrics::new(clock.unix_seconds()));
        let outgoing = Arc::new(Outgoing::new(&config.outgoing)?);
        let sanitizer = Arc::new(Sanitizer::new());
        let auditor = Arc::new(Auditor::spawn(AuditSettings {
            store: store.clone(),
            clock: Arc::clone(&clock),
            replica: id,
            observer: background::audit_observer(&metrics),
            queue: AUDIT_QUEUE,
        }));
        let limits = Arc::new(Limits::new(Ticks::machine()));
        let streams = Arc::new(StreamCaps::new(config.streams));
        let lifecycle = Arc::new(Lifecycle::default());
        let snapshot = snapshot::make(&loaded, public, &outgoing, &clock, None)?;
        let catalog = Catalog::new(Arc::clone(&sanitizer));
        let server = mcp::Server::new(mcp::Parts {
            pipeline: Arc::new(Pipeline {
                catalog: Arc::clone(&catalog),
                limits: Arc::clone(&limits),
                auditor: Arc::clone(&auditor),
                sanitizer,
                dispatcher: Dispatcher::new(Arc::clone(&catalog)),
                clock: Arc::clone(&clock),
                metrics: Arc::clone(&metrics),
            }),
            sessions: sessions(config, &keys, &store, &clock),
            relay: Relay::new(store.clone(), id),
            cursors: keys.sealer(Label::Cursor),
            streams: Arc::clone(&streams),
            clock: Arc::clone(&clock),
            page_size: config.server.page_size,
            closing: lifecycle.streams.clone(),
        });
        let own_tokens = Arc::new(OwnTokens::new(
            store.clone(),
            keys.sealer(Label::SigningKey),
            Arc::clone(&clock),
        ));
        let oauth = Arc::new(AuthorizationServer::new(oauth::Parts {
            store: store.clone(),
            outgoing: Arc::clone(&outgoing),
            clock: Arc::clone(&clock),
            replica: id,
            keys,
        }));
        Ok(Self {
            id,
            loaded,
            clock,
            store,
            outgoing,
            auditor,
            limits,
            streams,
            catalog,
            server: Arc::new(server),
            oauth,
            own_tokens,
            metrics,
            current: Arc::new(ArcSwap::from_pointee(snapshot)),
            epoch: watch::channel(0).0,
            lifecycle,
            schema_met: AtomicBool::new(false),
        })
    }

    /// Reads what the upstreams offer; then traffic may come.
    async fn begin(&self) -> anyhow::Result<()> {
        let snapshot = self.current.load_full();
        snapshot::fill(
            &self.catalog,
            &snapshot.config,
            &self.outgoing,
            &snapshot.credentials,
            &self.clock,
        )
        .await?;
        self.lifecycle.started();
        Ok(())
    }

    /// How long calls in flight may take when the service stops.
    fn patience(&self) -> Duration {
        self.current.load().config.server.drain_timeout.0
    }
}

fn sessions(config: &Config, keys: &Keys, store: &Store, clock: &SharedClock) -> Sessions {
    let lifetime = config.server.session_lifetime.0;
    Sessions::new(
        keys.sealer(Label::Session),
        store.clone(),
        Arc::clone(clock),
        lifetime,
    )
}

/// The deployment's keys. `config` has made sure that they are named unless the
/// database is embedded, for which fresh ones do: nobody else has to open them.
fn keys(config: &Config) -> anyhow::Result<Keys> {
    let text = match &config.keys_file {
        Some(file) => crate::config::read_secret_file(file)?,
        None => crate::secret::Secret::new(Keys::generate_line()),
    };
    Keys::parse(text.expose()).context("keys_file")
}
