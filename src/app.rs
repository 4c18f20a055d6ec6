//! Wiring: from a configuration to a running service, and from a changed file to
//! the next configuration. No rule lives here.

mod audit;
mod audit_command;
mod authorize;
mod background;
mod database;
mod explain;
mod exports;
mod health;
mod replicas;
mod rewrap;
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

use crate::audit::{Act, ActKind, AuditSettings, Auditor};
use crate::catalog::Catalog;
use crate::clock::{SharedClock, SystemClock, new_replica_id};
use crate::config::{Config, ListenerTls, Loaded};
use crate::dispatch::Dispatcher;
use crate::http::{self, Edge, Listening, Snapshot, Tls};
use crate::identity::OwnTokens;
use crate::ids::ReplicaId;
use crate::lifecycle::{Lifecycle, Signals, Stop};
use crate::limits::{Limits, StreamCaps};
use crate::mcp::{self, Relay, Sessions};
use crate::oauth::continuations::Continuations;
use crate::oauth::{self, AuthorizationServer};
use crate::outgoing::Outgoing;
use crate::pipeline::{InputSettings, Pipeline, Rounds};
use crate::sanitize::Sanitizer;
use crate::seal::{Keys, Label};
use crate::secret::Secret;
use crate::store::Store;
use crate::telemetry::{Telemetry, metrics::Metrics};

pub(crate) use audit_command::{auditor, operator, record, upkeep};
pub(crate) use authorize::Authorization;
pub use database::migrate;
pub(crate) use database::{maintain, patient_reader, reader, ways};
pub(crate) use explain::{explain, upstreams};
pub(crate) use exports::collector;
pub(crate) use replicas::redis;
pub(crate) use rewrap::{reading_keys, rewrap};

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
    pub(crate) keys: Keys,
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
    let mut telemetry = exports::init(&loaded.config.telemetry)?;
    for warning in &loaded.warnings {
        tracing::warn!(warning = %warning, "The configuration has something odd.");
    }
    let database = Database::open(&loaded.config).await?;
    let outcome = serve(loaded, &database, &mut telemetry, announce).await;
    database.close().await;
    telemetry.close().await;
    outcome
}

async fn serve(
    loaded: Loaded,
    database: &Database,
    telemetry: &mut Telemetry,
    announce: impl FnOnce(&Listeners),
) -> anyhow::Result<()> {
    // From here on a signal is an orderly end, also in the middle of the start.
    let mut signals = Signals::listen()?;
    let server = loaded.config.server.clone();
    let public = bind("server.tls", server.listen, server.tls.as_ref()).await?;
    let admin = bind(
        "server.admin_tls",
        server.admin_listen,
        server.admin_tls.as_ref(),
    )
    .await?;
    let listening = Listeners {
        public: public.address,
        admin: admin.address,
    };
    let app = Arc::new(App::build(loaded, database, listening.public, telemetry)?);
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
            app.auditor.note(&app.of_service("start"));
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
            auditor: Arc::clone(&app.auditor),
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
        app.auditor.note(&app.of_service("stop"));
        app.auditor.close().await;
        app.catalog.shutdown().await;
        app.lifecycle.background.cancel();
        self.background.wait().await;
        if let Err(error) = app.store.update_replica_stopped(app.id).await {
            tracing::debug!(%error, "The others will notice by themselves that this replica is gone.");
        }
        // It has nothing to tell but that it ended.
        let _ = self.probing.await;
        app.store.close().await;
        tracing::info!("Stopped.");
    }
}

async fn bind(
    key: &'static str,
    address: SocketAddr,
    tls: Option<&ListenerTls>,
) -> anyhow::Result<Listening> {
    let tls = tls.map(Tls::load).transpose().context(key)?;
    Listening::bind(address, tls)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

impl App {
    #[expect(
        clippy::too_many_lines,
        reason = "the parts, each made once and handed on"
    )]
    fn build(
        loaded: Loaded,
        database: &Database,
        public: SocketAddr,
        telemetry: &mut Telemetry,
    ) -> anyhow::Result<Self> {
        let clock: SharedClock = Arc::new(SystemClock);
        let config = &loaded.config;
        let id = new_replica_id(&*clock);
        let keys = keys(config)?;
        let store = database.connect(config)?;
        let metrics = exports::metrics(config, &*clock, telemetry);
        let outgoing = Arc::new(Outgoing::new(&config.outgoing)?);
        exports::begin(telemetry, config, id, &outgoing, &metrics);
        let sanitizer = Arc::new(Sanitizer::new());
        let auditor = Arc::new(spawn_auditor(&store, &clock, id, &metrics, &keys));
        let own_tokens = Arc::new(own_tokens(&store, &keys, &clock));
        let limits = Arc::new(replicas::limits(config, &metrics)?);
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
                dispatcher: Arc::new(Dispatcher::new(Arc::clone(&catalog))),
                rounds: rounds(config, &keys, &store, &clock, id),
                continuations: Continuations::new(store.clone(), &keys, Arc::clone(&clock)),
                clock: Arc::clone(&clock),
                metrics: Arc::clone(&metrics),
            }),
            sessions: sessions(config, &keys, &store, &clock),
            relay: Relay::new(store.clone(), id, keys.sealer(Label::Relay)),
            cursors: keys.sealer(Label::Cursor),
            streams: Arc::clone(&streams),
            clock: Arc::clone(&clock),
            page_size: config.server.page_size,
            closing: lifecycle.streams.clone(),
        });
        let oauth = Arc::new(AuthorizationServer::new(oauth::Parts {
            store: store.clone(),
            outgoing: Arc::clone(&outgoing),
            clock: Arc::clone(&clock),
            replica: id,
            keys: keys.clone(),
        }));
        Ok(Self {
            id,
            loaded,
            clock,
            store,
            outgoing,
            auditor,
            keys,
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
        self.fill(&snapshot.config, &snapshot.credentials).await?;
        self.lifecycle.started();
        Ok(())
    }

    /// That this replica started or stopped, and what it is.
    fn of_service(&self, action: &'static str) -> Act {
        Act::new(ActKind::SERVICE, action)
            .configuration(self.current.load().digest)
            .detail("replica", self.id.to_string())
            .detail("version", env!("CARGO_PKG_VERSION"))
    }

    /// How long calls in flight may take when the service stops.
    fn patience(&self) -> Duration {
        self.current.load().config.server.drain_timeout.0
    }
}

fn spawn_auditor(
    store: &Store,
    clock: &SharedClock,
    replica: ReplicaId,
    metrics: &Arc<Metrics>,
    keys: &Keys,
) -> Auditor {
    Auditor::spawn(AuditSettings {
        store: store.clone(),
        clock: Arc::clone(clock),
        replica,
        observer: audit::observer(metrics),
        queue: AUDIT_QUEUE,
        keys: Some(keys.clone()),
    })
}

fn own_tokens(store: &Store, keys: &Keys, clock: &SharedClock) -> OwnTokens {
    let sealer = keys.sealer(Label::SigningKey);
    OwnTokens::new(store.clone(), sealer, Arc::clone(clock))
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

fn rounds(
    config: &Config,
    keys: &Keys,
    store: &Store,
    clock: &SharedClock,
    id: ReplicaId,
) -> Rounds {
    let sealer = keys.sealer(Label::RequestState);
    let input = &config.streams.input;
    let settings = InputSettings {
        timeout: input.timeout.0,
        per_caller: input.per_user as usize,
        total: input.total as usize,
    };
    Rounds::new(sealer, store.clone(), Arc::clone(clock), id, settings)
}

/// The deployment's keys. `config` has made sure that they are named unless the
/// database is embedded: then they lie beside it, since what they signed and sealed
/// there has to be readable after a restart.
pub(crate) fn keys(config: &Config) -> anyhow::Result<Keys> {
    Keys::parse(keys_text(config)?.expose()).context("keys_file")
}

fn keys_text(config: &Config) -> anyhow::Result<Secret<String>> {
    Ok(match (&config.keys_file, &config.database.embedded) {
        (Some(file), _) => crate::config::read_secret_file(file)?,
        (None, Some(embedded)) => {
            let file = embedded.data_dir.join("keys");
            if !file.exists() {
                write_keys(&file).with_context(|| file.display().to_string())?;
            }
            crate::config::read_secret_file(&file)?
        }
        (None, None) => anyhow::bail!("keys_file is missing"),
    })
}

fn write_keys(file: &std::path::Path) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    writeln!(file, "{}", Keys::generate_line())
}
