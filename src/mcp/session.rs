//! Legacy sessions. The id is the session: a sealed token of its immutable
//! facts, bound to the principal, that any replica opens. What changes is rows,
//! kept here for a while after they were read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest;
use moka::sync::Cache;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use time::OffsetDateTime;
use tokio::time::{Instant, timeout};

use crate::clock::{SharedClock, new_session_id};
use crate::identity::Principal;
use crate::ids::{SessionId, TenantId};
use crate::protocol::{ClientCapabilities, Json, LogLevel, Version};
use crate::seal::Sealer;
use crate::store::{Store, StoreError};

use super::declared;

/// How long a session's row is believed without asking again. Changes are
/// announced between replicas; this bounds a lost announcement.
const BELIEVED: Duration = Duration::from_mins(1);
/// How long a request waits for its session's row, which is there or is not.
const READ_PATIENCE: Duration = Duration::from_millis(500);
/// How long the database is left alone after it did not give a row.
const LEFT_ALONE: Duration = Duration::from_secs(2);
/// Rows that are kept at most.
const KEPT: u64 = 100_000;
/// Longest client name that is sealed in.
const CLIENT_KEPT: usize = 96;

/// Why a session cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SessionFault {
    /// No `Mcp-Session-Id` where one is needed.
    #[error("no session id")]
    Missing,
    /// Not ours, ended, expired, or another principal's: all look alike.
    #[error("session not found")]
    Unknown,
}

/// A session that was found.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Its id in rows.
    pub(super) id: SessionId,
    /// The revision that `initialize` settled on.
    pub(super) version: Version,
    /// When it ends by itself.
    pub(super) expires: OffsetDateTime,
    /// The client's own word for itself.
    pub(super) client: Option<String>,
    /// The least severe log message that the client wants.
    pub(super) log_level: LogLevel,
    /// What the client declared that it can do.
    pub(super) capabilities: ClientCapabilities,
    /// The URIs of resources that the client wants to hear of.
    pub(super) subscriptions: Arc<BTreeSet<String>>,
}

impl Session {
    /// Keys this session's upstream sessions: principal and session together.
    pub(super) fn caller_key(&self, principal: &[u8; 32]) -> [u8; 32] {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(principal);
        context.update(self.id.0.as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(context.finish().as_ref());
        key
    }
}

/// The sealed facts. Short names: the id may have 512 bytes at most.
#[derive(Serialize, Deserialize)]
struct Facts {
    #[serde(rename = "i")]
    id: SessionId,
    #[serde(rename = "v")]
    version: String,
    #[serde(rename = "e")]
    expires: i64,
    /// Which capabilities the client declared, as a row of bits.
    #[serde(rename = "c")]
    capabilities: u16,
    #[serde(rename = "n", skip_serializing_if = "Option::is_none", default)]
    client: Option<String>,
}

/// What changes of a session, as it was read last.
#[derive(Clone, Debug, Default)]
struct State {
    ended: bool,
    log_level: Option<LogLevel>,
    subscriptions: Arc<BTreeSet<String>>,
}

/// A state, and since when it is known.
#[derive(Clone, Debug)]
struct Known {
    state: State,
    since: Instant,
}

/// Opens, finds and ends sessions.
pub struct Sessions {
    sealer: Sealer,
    store: Store,
    clock: SharedClock,
    lifetime: Duration,
    states: Cache<SessionId, Known>,
    /// Until when the database is left alone.
    away_until: Mutex<Option<Instant>>,
}

impl Sessions {
    /// Sessions sealed by `sealer` that live for `lifetime`.
    pub fn new(sealer: Sealer, store: Store, clock: SharedClock, lifetime: Duration) -> Self {
        let states = Cache::builder()
            .max_capacity(KEPT)
            .time_to_live(lifetime)
            .build();
        Self {
            sealer,
            store,
            clock,
            lifetime,
            states,
            away_until: Mutex::default(),
        }
    }

    /// How long a session has lasted.
    pub(super) fn lasted(&self, session: &Session) -> Duration {
        let opened = session.expires - self.lifetime;
        (self.clock.now() - opened).unsigned_abs()
    }

    fn remember(&self, id: SessionId, state: State) {
        let since = Instant::now();
        self.states.insert(id, Known { state, since });
    }

    /// A new session's id for `Mcp-Session-Id`.
    pub(super) fn open(
        &self,
        principal: &Principal,
        version: Version,
        capabilities: Option<&Json>,
        client: Option<&str>,
    ) -> String {
        let facts = Facts {
            id: new_session_id(&*self.clock),
            version: version.as_str().to_owned(),
            expires: (self.clock.now() + self.lifetime).unix_timestamp(),
            capabilities: capabilities.map_or(0, declared::row),
            client: client.map(|client| client.chars().take(CLIENT_KEPT).collect()),
        };
        self.remember(facts.id, State::default());
        let plain = serde_json::to_vec(&facts).unwrap_or_default();
        self.sealer.seal(&plain, principal.key().as_bytes())
    }

    /// The session behind an id.
    ///
    /// # Errors
    /// [`SessionFault::Unknown`] where it is not this principal's, or no more.
    pub(super) async fn find(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<Session, SessionFault> {
        let plain = self
            .sealer
            .open(id, principal.key().as_bytes())
            .map_err(|_| SessionFault::Unknown)?;
        let facts: Facts = serde_json::from_slice(&plain).map_err(|_| SessionFault::Unknown)?;
        let version = Version::parse(&facts.version).ok_or(SessionFault::Unknown)?;
        let expires = OffsetDateTime::from_unix_timestamp(facts.expires)
            .map_err(|_| SessionFault::Unknown)?;
        let state = self.state(principal.tenant(), facts.id).await;
        if state.ended || self.clock.now() >= expires {
            return Err(SessionFault::Unknown);
        }
        let log_level = state.log_level.unwrap_or(LogLevel::Info);
        Ok(Session {
            id: facts.id,
            version,
            expires,
            client: facts.client,
            log_level,
            capabilities: ClientCapabilities::new(declared::of_row(facts.capabilities)),
            subscriptions: state.subscriptions,
        })
    }

    /// What changed of the session, as far as it can be known now. While the
    /// database is away it is what was known last: the seal and the token vouch
    /// for the caller, and no request waits for the database again and again.
    async fn state(&self, tenant: &TenantId, id: SessionId) -> State {
        let known = self.states.get(&id);
        if let Some(known) = known
            .as_ref()
            .filter(|known| known.since.elapsed() < BELIEVED)
        {
            return known.state.clone();
        }
        let last = known.map(|known| known.state).unwrap_or_default();
        if self.is_left_alone() {
            return last;
        }
        // In a task: a read that is given up ends by itself, with its connection in order.
        let reading = tokio::spawn(read(self.store.clone(), tenant.clone(), id));
        let fault = match timeout(READ_PATIENCE, reading).await {
            Ok(Ok(Ok(state))) => {
                self.remember(id, state.clone());
                return state;
            }
            Ok(Ok(Err(fault))) => fault.to_string(),
            Ok(Err(fault)) => fault.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        self.leave_alone();
        tracing::warn!(error = %fault, "The state of a session could not be read; it is taken as it was known last.");
        last
    }

    fn is_left_alone(&self) -> bool {
        let until = *self
            .away_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn leave_alone(&self) {
        let mut until = self
            .away_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *until = Some(Instant::now() + LEFT_ALONE);
    }

    /// Remembers the session's log level.
    pub(super) async fn set_log_level(
        &self,
        tenant: &TenantId,
        session: &Session,
        level: LogLevel,
    ) {
        if let Err(error) = self
            .store
            .update_log_level(tenant, session.id, level, self.clock.now())
            .await
        {
            tracing::warn!(%error, "The log level of a session could not be stored; other replicas do not know it.");
        }
        self.remember(
            session.id,
            State {
                log_level: Some(level),
                ended: false,
                subscriptions: Arc::clone(&session.subscriptions),
            },
        );
    }

    /// Adds a subscription to the session's, or removes it.
    pub(super) async fn set_subscription(
        &self,
        tenant: &TenantId,
        session: &Session,
        uri: &str,
        subscribe: bool,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let kept = self
            .store
            .update_subscription(tenant, session.id, uri, subscribe, now)
            .await?;
        self.remember(
            session.id,
            State {
                log_level: Some(session.log_level),
                ended: false,
                subscriptions: Arc::new(kept.into_iter().collect()),
            },
        );
        Ok(())
    }

    /// What a session has subscribed to, as far as it can be known now.
    pub(super) async fn subscriptions(
        &self,
        tenant: &TenantId,
        id: SessionId,
    ) -> Arc<BTreeSet<String>> {
        self.state(tenant, id).await.subscriptions
    }

    /// Ends the session for every replica.
    pub(super) async fn end(&self, tenant: &TenantId, session: &Session) -> Result<(), StoreError> {
        self.store
            .insert_tombstone(tenant, session.id, session.expires)
            .await?;
        self.ended(session.id);
        Ok(())
    }

    /// Another replica ended the session.
    pub(super) fn ended(&self, id: SessionId) {
        let ended = State {
            ended: true,
            ..State::default()
        };
        self.remember(id, ended);
    }

    /// Another replica changed the session: ask again.
    pub(super) fn forget(&self, id: SessionId) {
        self.states.invalidate(&id);
    }
}

async fn read(store: Store, tenant: TenantId, id: SessionId) -> Result<State, StoreError> {
    let ended = store.find_tombstone(&tenant, id).await?.is_some();
    let row = store.find_session_state(&tenant, id).await?;
    let (log_level, subscriptions) = row
        .map(|row| (row.log_level, row.subscriptions))
        .unwrap_or_default();
    Ok(State {
        ended,
        log_level,
        subscriptions: Arc::new(subscriptions.into_iter().collect()),
    })
}
