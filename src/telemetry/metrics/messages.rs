//! Messages to upstreams, sessions on both sides, and calls by tenant.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

use super::Metrics;
use super::durations::{Durations, durations, observe};
use super::labels::{Bounded, ClientLabels, ClientSessionLabels, SessionLabels, TenantLabels};
use super::tools::CallOutcome;
use crate::ids::{TenantId, UpstreamId};
use crate::telemetry::names::metric;

#[derive(Debug)]
pub(super) struct Messages {
    sent: Durations<ClientLabels>,
    tools: Bounded,
    sessions: Durations<SessionLabels>,
    client_sessions: Durations<ClientSessionLabels>,
    tenants: Option<(Bounded, Family<TenantLabels, Counter>)>,
}

/// A message to an upstream that was answered, or was not.
#[derive(Clone, Copy, Debug)]
pub struct SentMessage<'a> {
    /// The upstream.
    pub upstream: &'a UpstreamId,
    /// `tcp` or `pipe`.
    pub transport: &'static str,
    /// The method: a word of the program.
    pub method: &'static str,
    /// The upstream's own name of the tool, where it is about one.
    pub tool: Option<&'a str>,
    /// The word for its failure; none is empty.
    pub error_type: &'static str,
}

impl Messages {
    pub(super) fn new(by_tenant: bool) -> Self {
        Self {
            sent: Family::new_with_constructor(durations),
            tools: Bounded::default(),
            sessions: Family::new_with_constructor(durations),
            client_sessions: Family::new_with_constructor(durations),
            tenants: by_tenant.then(Default::default),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            metric::CLIENT_OPERATION_DURATION,
            "How long messages to upstreams took, their answers included",
            Unit::Seconds,
            self.sent.clone(),
        );
        registry.register_with_unit(
            metric::SESSION_DURATION,
            "How long sessions of callers lasted that were ended by them",
            Unit::Seconds,
            self.sessions.clone(),
        );
        registry.register_with_unit(
            metric::CLIENT_SESSION_DURATION,
            "How long sessions at upstreams lasted",
            Unit::Seconds,
            self.client_sessions.clone(),
        );
        if let Some((_, calls)) = &self.tenants {
            registry.register(metric::TENANT_CALLS, "Calls by tenant", calls.clone());
        }
    }
}

impl Metrics {
    /// A message to an upstream is over.
    pub fn sent(&self, message: SentMessage<'_>, took: Duration) {
        let tool = message.tool.map(|tool| self.messages.tools.label(tool));
        let labels = ClientLabels {
            method: message.method,
            upstream: message.upstream.as_str().into(),
            tool: tool.unwrap_or_else(|| Arc::from("")),
            transport: message.transport,
            error_type: message.error_type,
        };
        observe(&self.messages.sent.get_or_create(&labels), took);
    }

    /// A caller has ended its session, which was of this revision.
    pub fn session_ended(&self, version: &'static str, lasted: Duration) {
        let sessions = &self.messages.sessions;
        observe(&sessions.get_or_create(&SessionLabels { version }), lasted);
    }

    /// A session at an upstream is over.
    pub fn upstream_session_ended(
        &self,
        upstream: &UpstreamId,
        version: &'static str,
        transport: &'static str,
        lasted: Duration,
    ) {
        let labels = ClientSessionLabels {
            upstream: upstream.as_str().into(),
            version,
            transport,
        };
        observe(
            &self.messages.client_sessions.get_or_create(&labels),
            lasted,
        );
    }

    /// A tenant's call ended; counted where the operator wants it.
    pub fn tenant_call(&self, tenant: &TenantId, outcome: CallOutcome) {
        if let Some((names, calls)) = &self.messages.tenants {
            let labels = TenantLabels {
                tenant: names.label(tenant.as_str()),
                outcome: outcome.as_str(),
            };
            calls.get_or_create(&labels).inc();
        }
    }
}
