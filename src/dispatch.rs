//! The step that lets an upstream work: deadline, retry where that is safe, breaker.
//! It takes the proof that the call is on record and gives back what the
//! upstream said, unopened. It knows nothing of sessions, eras or HTTP.

mod breaker;
mod errand;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::audit::Recorded;
use crate::catalog::Catalog;
use crate::credentials::{CredentialFault, Credentials};
use crate::ids::{TenantId, UpstreamId};
use crate::protocol::{ClientCapabilities, Json, LogLevel, Untrusted, codes};
use crate::telemetry::TraceContext;
use crate::upstream::{CallerKey, EventSender, Upstream, UpstreamError, UpstreamRequest};

use breaker::{Breaker, Sign};

pub use errand::Errand;

/// How long to wait before the one retry.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What dispatch is told of the caller besides the call itself.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Whose call it is: keys the breaker.
    pub tenant: TenantId,
    /// Keys upstream sessions.
    pub caller: CallerKey,
    /// The caller's own `_meta` members.
    pub meta: Vec<(String, Json)>,
    /// Whether the caller wants progress.
    pub progress: bool,
    /// The least severe log message that the caller wants.
    pub log_level: Option<LogLevel>,
    /// The place in a trace that the call is at.
    pub trace: Option<TraceContext>,
    /// What the caller can do for the upstream while it works.
    pub capabilities: ClientCapabilities,
    /// Whether the caller has no session of its own, so that what belongs to a
    /// session upstream is lent to one call at a time.
    pub pooled: bool,
    /// How long the upstream may wait for what it asks of the caller.
    pub patience: Duration,
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum DispatchFault {
    /// The upstream is not configured any more.
    #[error("the upstream is gone")]
    Gone,
    /// The upstream failed too often; nothing was sent.
    #[error("the upstream's circuit is open")]
    CircuitOpen {
        /// When a call may try again.
        retry_after: Duration,
    },
    /// The upstream's credential cannot be had.
    #[error(transparent)]
    Credential(#[from] CredentialFault),
    /// The caller went away or cancelled.
    #[error("cancelled by the caller")]
    Cancelled,
    /// The upstream failed.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

impl DispatchFault {
    /// Whether what is known of the upstream may be out of date: it is away, or
    /// does not know the tool that it listed (or the request was malformed: from
    /// outside the two look alike).
    pub fn casts_doubt(&self) -> bool {
        match self {
            Self::Upstream(UpstreamError::Rpc { code, .. }) => *code == codes::INVALID_PARAMS,
            Self::Upstream(UpstreamError::Unreachable) => true,
            _ => false,
        }
    }
}

/// Runs calls on upstreams.
pub struct Dispatcher {
    catalog: Arc<Catalog>,
    breakers: Mutex<HashMap<(TenantId, UpstreamId), Arc<Breaker>>>,
}

impl Dispatcher {
    /// Dispatches to the upstreams that `catalog` holds.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            breakers: Mutex::default(),
        }
    }

    /// Runs one recorded request until its answer, its deadline or `cancel`. The
    /// future owns all that it needs: it may outlive the caller's request.
    ///
    /// # Errors
    /// [`DispatchFault`]; nothing was sent for `Gone`, `CircuitOpen` and `Credential`.
    pub fn call(
        self: &Arc<Self>,
        errand: Errand,
        _recorded: &Recorded,
        origin: Origin,
        credentials: Arc<Credentials>,
        events: EventSender,
        cancel: CancellationToken,
    ) -> impl Future<Output = Result<Untrusted<Json>, DispatchFault>> + Send + use<> {
        let dispatcher = Arc::clone(self);
        async move {
            let running = dispatcher.run(&errand, &origin, &credentials, events);
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(DispatchFault::Cancelled),
                outcome = running => outcome,
            }
        }
    }

    async fn run(
        &self,
        errand: &Errand,
        origin: &Origin,
        credentials: &Credentials,
        events: EventSender,
    ) -> Result<Untrusted<Json>, DispatchFault> {
        let found = self.catalog.upstream(&errand.upstream);
        let upstream = found.ok_or(DispatchFault::Gone)?;
        let settings = self.catalog.settings(&errand.upstream);
        let settings = settings.ok_or(DispatchFault::Gone)?;
        let breaker = self.breaker(&origin.tenant, &errand.upstream);
        breaker
            .admit(Instant::now(), settings.breaker)
            .map_err(|retry_after| DispatchFault::CircuitOpen { retry_after })?;
        let credential = credentials.for_upstream(&errand.upstream)?;
        let deadline = Instant::now() + errand.timeout.unwrap_or(settings.timeout.call.0);
        let request = || UpstreamRequest {
            method: errand.method.as_str(),
            name: errand.name.clone(),
            params: errand.params.clone(),
            meta: origin.meta.clone(),
            progress: origin.progress,
            log_level: origin.log_level,
            capabilities: origin.capabilities.clone(),
            pooled: origin.pooled,
            patience: origin.patience,
            caller: origin.caller,
            credential: credential.clone(),
            param_headers: errand.param_headers.clone(),
            trace: origin.trace.clone(),
            deadline,
        };
        let outcome = attempts(&*upstream, request, events, errand.may_repeat).await;
        let sign = outcome.as_ref().err().map_or(Sign::Well, sign_of);
        breaker.settle(Instant::now(), settings.breaker, sign);
        Ok(outcome?)
    }

    fn breaker(&self, tenant: &TenantId, upstream: &UpstreamId) -> Arc<Breaker> {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (tenant.clone(), upstream.clone());
        Arc::clone(breakers.entry(key).or_default())
    }
}

/// One attempt, and a second where the first certainly did not run the tool or
/// where the operator vouches that running it twice does no harm.
async fn attempts(
    upstream: &dyn Upstream,
    request: impl Fn() -> UpstreamRequest,
    events: EventSender,
    may_repeat: bool,
) -> Result<Untrusted<Json>, UpstreamError> {
    let first = upstream.request(request(), events.clone()).await;
    let again = match &first {
        Err(UpstreamError::Unreachable) => true,
        Err(UpstreamError::Broken) => may_repeat,
        _ => false,
    };
    if !again {
        return first;
    }
    tokio::time::sleep(RETRY_AFTER).await;
    upstream.request(request(), events).await
}

/// What a fault says of the upstream, rather than of this one call.
fn sign_of(fault: &UpstreamError) -> Sign {
    match fault {
        UpstreamError::Unreachable
        | UpstreamError::TimedOut
        | UpstreamError::Broken
        | UpstreamError::Garbage { .. }
        | UpstreamError::Status { status: 500.., .. } => Sign::Ill,
        UpstreamError::Status { .. }
        | UpstreamError::TooLarge { .. }
        | UpstreamError::Rpc { .. } => Sign::Well,
        UpstreamError::Blocked | UpstreamError::Busy => Sign::None,
    }
}
