//! A request from the caller's words to an answer that may leave: the steps
//! in order and nothing else. Each step has its own module and its own error;
//! each takes the proof of the step before.
//!
//! `call` opens the record, runs the steps, commits and answers. It is run in a
//! task that outlives the caller's connection: a client that hangs up loses its
//! answer, not its record.

mod converse;
mod events;
mod exchange;
mod input;
mod parking;
mod reading;
mod record;
mod refusal;
mod result;
mod rounds;
mod state;
mod tasks;
mod visits;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::arguments::{self, ValidCall};
use crate::audit::{AuditReceipt, Auditor, Finish, Outcome, Recorded};
use crate::catalog::{Catalog, Tool, View};
use crate::clock::SharedClock;
use crate::credentials::Credentials;
use crate::dispatch::{Dispatcher, Errand};
use crate::limits::{Admission, Cost, Limits};
use crate::oauth::continuations::{Continuations, Visitor};
use crate::protocol::{ClientCapabilities, Json, Method, RequestMeta};
use crate::sanitize::{CleanResult, Sanitizer};
use crate::telemetry::metrics::Metrics;
use crate::tenancy::TenantContext;
use crate::visibility::{self, Visible};

pub use events::{CallEvent, EventSink, event_channel};
pub use record::Attempt;
pub use refusal::Refusal;
pub use rounds::{InputSettings, Owner, Rounds};

use record::Record;
use rounds::Round;

/// What the steps need; one for the whole process.
pub struct Pipeline {
    /// Tools per tenant.
    pub catalog: Arc<Catalog>,
    /// Quotas.
    pub limits: Arc<Limits>,
    /// The record of every call.
    pub auditor: Arc<Auditor>,
    /// The only opener of what upstreams say.
    pub sanitizer: Arc<Sanitizer>,
    /// Sends to upstreams.
    pub dispatcher: Arc<Dispatcher>,
    /// Requests that wait for input of their caller.
    pub rounds: Rounds,
    /// Pages that people are asked to open.
    pub continuations: Continuations,
    /// Time.
    pub clock: SharedClock,
    /// Counters.
    pub metrics: Arc<Metrics>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The method.
    pub method: Method,
    /// What it is about: the exposed name of a tool or a prompt, the URI of a resource.
    pub name: String,
    /// The parameters, as they came.
    pub params: Json,
}

impl Ask {
    /// A member of the parameters; `null` is as good as none.
    pub fn param(&self, name: &str) -> Option<Json> {
        self.params.get(name).filter(|value| !value.is_null())
    }
}

/// How the caller is asked for what an upstream needs to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Not at all: there is no way to it while it waits for its answer.
    Not,
    /// By requests beside the answer, in the events (legacy).
    Beside,
    /// By an answer that asks, and a retry that brings the input (modern).
    Rounds,
}

/// One request of a known caller that an upstream answers.
pub struct Call {
    /// Who calls, and as which tenant.
    pub context: TenantContext,
    /// What is asked for.
    pub ask: Ask,
    /// The request's `_meta`.
    pub meta: RequestMeta,
    /// `Mcp-Param-*` headers, where the caller's era has them.
    pub param_headers: Option<Vec<(String, String)>>,
    /// What the caller can do for an upstream.
    pub capabilities: ClientCapabilities,
    /// How it is asked to.
    pub asking: Asking,
    /// Whom a link of ours is for, where the caller is a person who can sign in here.
    pub visitor: Option<Visitor>,
    /// What the record says of the request itself.
    pub attempt: Attempt,
    /// The configuration's credentials for upstreams.
    pub credentials: Arc<Credentials>,
    /// Where progress, log messages and questions go.
    pub events: EventSink,
    /// Fires when the caller cancels.
    pub cancel: CancellationToken,
}

/// A request that nothing stands against any more.
struct Ready {
    errand: Errand,
    tool: Option<Visible<Tool>>,
    _admission: Admission,
}

/// How a call ended.
pub enum Answered {
    /// On record, and so it may be told.
    Recorded {
        /// The clean result, or why there is none.
        outcome: Result<CleanResult, Refusal>,
        /// The proof that the record is durable.
        receipt: AuditReceipt,
    },
    /// Not on record; that is all that may be told.
    Unrecorded(Refusal),
}

impl Answered {
    /// The clean result, or why there is none.
    pub fn outcome(&self) -> Result<&CleanResult, &Refusal> {
        match self {
            Self::Recorded { outcome, .. } => outcome.as_ref(),
            Self::Unrecorded(refusal) => Err(refusal),
        }
    }
}

impl Pipeline {
    /// Runs one call to its end. Always answers, always records, or says that it could not.
    pub async fn call(&self, call: Call) -> Answered {
        let _running = self.metrics.inflight_call();
        let mut record = Record::open(&call, &*self.clock);
        let answered = match self.steps(&call, &mut record).await {
            Ok(finished) => finished,
            Err(refusal) => {
                if !matches!(refusal, Refusal::AuditUnavailable(_)) {
                    record.keep_refused(&call, &self.sanitizer, &self.auditor);
                }
                match self.refuse(&record, refusal).await {
                    (refusal, Some(receipt)) => Answered::Recorded {
                        outcome: Err(refusal),
                        receipt,
                    },
                    (refusal, None) => Answered::Unrecorded(refusal),
                }
            }
        };
        record.observe(&self.metrics, answered.outcome());
        answered
    }

    /// Records a request that never became a call: malformed, or not readable at
    /// all, and says what to tell. `name` is the tool that it asks for, where that
    /// much can be read.
    pub async fn refuse_unread(
        &self,
        attempt: &Attempt,
        context: &TenantContext,
        name: Option<&str>,
        refusal: Refusal,
    ) -> Refusal {
        let record = Record::of_unread(attempt, context, name, &*self.clock);
        self.refuse(&record, refusal).await.0
    }

    /// Whether the caller may ask for this at all: the decision of visibility and
    /// scopes, without charging or recording anything.
    pub fn allows(&self, context: &TenantContext, ask: &Ask) -> bool {
        let view = self.catalog.view(context.tenant_id());
        match ask.method {
            Method::CallTool => visibility::see(context, &view, &ask.name)
                .is_ok_and(|tool| visibility::missing_scopes(context, &tool).is_empty()),
            Method::ReadResource => {
                visibility::see_resource(context, &self.catalog, &view, &ask.name).is_ok()
            }
            Method::GetPrompt => visibility::see_prompt(context, &view, &ask.name).is_ok(),
            // These ask for nothing and so have no retry.
            _ => false,
        }
    }

    /// The steps. What comes back is recorded; what is refused here is not yet.
    async fn steps(&self, call: &Call, record: &mut Record) -> Result<Answered, Refusal> {
        let ready = self.admitted(call, record).await?;
        let round = self.rounds.open(call, &ready.errand).await?;
        record.continues(round.first_call());
        let recorded = self.recorded(record).await?;
        call.events.started();
        let cleaned = self
            .conversed(call, &ready, round, &recorded, record)
            .await
            .map(|clean| self.with_our_uris(call, ready.errand.upstream(), clean));
        let recorded = if record.is_kept_late() {
            let started = self.auditor.start(record.facts(), record.durability());
            started.await.map_err(Refusal::AuditUnavailable)?
        } else {
            recorded
        };
        Ok(self.finished(recorded, record, cleaned).await)
    }

    /// Puts the request on record, where the operator wants it there.
    async fn recorded(&self, record: &Record) -> Result<Recorded, Refusal> {
        if !record.is_kept() {
            return Ok(Auditor::waive(record.facts()));
        }
        self.auditor
            .start(record.facts(), record.durability())
            .await
            .map_err(Refusal::AuditUnavailable)
    }

    /// Everything that can refuse before anything is dispatched.
    async fn admitted(&self, call: &Call, record: &mut Record) -> Result<Ready, Refusal> {
        let cost = match call.ask.method {
            // Looking how a task stands is no work.
            Method::GetTask => Cost::Browse,
            _ => Cost::Call,
        };
        let admission = self.limits.admit(&call.context, cost).await?;
        match call.ask.method {
            Method::CallTool => self.admitted_tool(call, admission, record).await,
            method if method.is_of_tasks() => self.admitted_task(call, admission, record),
            _ => self.admitted_reading(call, admission, record),
        }
    }

    async fn admitted_tool(
        &self,
        call: &Call,
        admission: Admission,
        record: &mut Record,
    ) -> Result<Ready, Refusal> {
        let context = &call.context;
        let view = self.catalog.view(context.tenant_id());
        let tool = seen(context, &view, &call.ask.name)?;
        record.name_tool(&tool);
        let missing = visibility::missing_scopes(context, &tool);
        if !missing.is_empty() {
            return Err(Refusal::MissingScopes {
                needed: tool.rule.scopes.clone(),
                held: context.principal().scopes().iter().cloned().collect(),
            });
        }
        let admission = match &tool.rule.class {
            Some(class) => admission.merge(self.limits.admit_tool(context, class).await?),
            None => admission,
        };
        let arguments = call.ask.param("arguments");
        if let Some(headers) = &call.param_headers {
            arguments::check_headers(&tool, arguments.as_ref(), headers)?;
        }
        let valid: ValidCall = arguments::check(&tool, arguments)?;
        record.keep_arguments(
            valid.arguments(),
            &self.sanitizer,
            context.rules(),
            &self.auditor,
        );
        Ok(Ready {
            errand: Errand::of_tool(&valid),
            tool: Some(tool),
            _admission: admission,
        })
    }

    /// Lets the upstream work, or go on, until it has answered or asks its caller.
    async fn conversed(
        &self,
        call: &Call,
        ready: &Ready,
        round: Round,
        recorded: &Recorded,
        record: &mut Record,
    ) -> Result<CleanResult, Refusal> {
        let tool = ready.tool.as_ref().map_or("", |tool| tool.exposed.as_str());
        let rules = call.context.rules().sanitize().for_tool(tool);
        let talk = converse::Talk::new(self, call, ready, &rules, recorded, record);
        talk.hold(round).await
    }

    /// Makes the outcome durable, or withholds it.
    async fn finished(
        &self,
        recorded: Recorded,
        record: &Record,
        cleaned: Result<CleanResult, Refusal>,
    ) -> Answered {
        match self.auditor.finish(recorded, record.finish(&cleaned)).await {
            Ok(receipt) => Answered::Recorded {
                outcome: cleaned,
                receipt,
            },
            Err(fault) => {
                tracing::error!(call.id = %record.call_id(), error = %fault, "The outcome of a call could not be recorded; its result is withheld.");
                Answered::Unrecorded(Refusal::Withheld)
            }
        }
    }

    /// Records a refusal, and says what to tell: one that cannot be recorded reads
    /// as unavailable, and comes without a receipt.
    async fn refuse(&self, record: &Record, refusal: Refusal) -> (Refusal, Option<AuditReceipt>) {
        if matches!(refusal, Refusal::AuditUnavailable(_)) {
            return (refusal, None);
        }
        if !record.is_kept() {
            return (refusal, Some(Auditor::not_required()));
        }
        let finish = Finish {
            outcome: Outcome::Refused(refusal.step()),
            reason: Some(refusal.reason()),
            ..record.empty_finish()
        };
        match self.auditor.refuse(record.facts(), finish).await {
            Ok(receipt) => (refusal, Some(receipt)),
            Err(fault) => (Refusal::AuditUnavailable(fault), None),
        }
    }
}

fn seen(context: &TenantContext, view: &View, name: &str) -> Result<Visible<Tool>, Refusal> {
    visibility::see(context, view, name).map_err(|_| Refusal::UnknownTool {
        name: record::shortened(name),
    })
}
