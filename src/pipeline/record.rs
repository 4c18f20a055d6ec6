//! What the audit will say of a call, filled in as the steps go.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::audit::{ArgumentsRecord, Auditor, CallFacts, Finish, Outcome};
use crate::catalog::Tool;
use crate::clock::{Clock, new_call_id};
use crate::config::{ArgumentsMode, Audit, Durability};
use crate::ids::{CallId, ToolName, UpstreamId};
use crate::protocol::{Json, Method};
use crate::sanitize::{CleanResult, Findings, Sanitizer};
use crate::telemetry::metrics::{CallOutcome, Metrics, ToolMetrics};
use crate::tenancy::{TenantContext, TenantRules};
use crate::visibility::Visible;

use super::attempt::Attempt;
use super::{Call, Refusal};

/// Bytes of an unresolved tool name that are kept (design: Audit).
const NAME_KEPT: usize = 128;

/// The record of one call.
pub(super) struct Record {
    facts: CallFacts,
    durability: Durability,
    arguments: ArgumentsMode,
    audit: Audit,
    begun: Instant,
    upstream_time: Option<Duration>,
    findings: Findings,
    /// The outcome where it is not told by the result itself.
    special: Option<(Outcome, String)>,
    tool: Option<(UpstreamId, ToolName)>,
    /// Whether it is a tool's, which is always on record and timed by itself.
    of_tool: bool,
    /// Whether the operator wants it on record.
    kept: bool,
    /// Whether the answer tells how a task ended.
    ends_task: bool,
}

impl Record {
    /// Opens the record of a readable call.
    pub(super) fn open(call: &Call, clock: &dyn Clock) -> Self {
        let ask = &call.ask;
        if ask.method == Method::CallTool {
            return Self::of_unread(&call.attempt, &call.context, Some(&ask.name), clock);
        }
        // No tool has a name with a slash and a space in it. A task's id tells nobody
        // anything.
        let name = if ask.method.is_of_tasks() {
            ask.method.as_str().to_owned()
        } else {
            format!("{} {}", ask.method.as_str(), ask.name)
        };
        let mut record = Self::of_unread(&call.attempt, &call.context, Some(&name), clock);
        let methods = call.context.rules().audit_methods();
        record.of_tool = false;
        record.kept = match ask.method {
            Method::ReadResource => methods.resources_read,
            Method::GetPrompt => methods.prompts_get,
            Method::Complete => methods.completion_complete,
            // Only how a task ends is told of; see `Record::ends_task`.
            Method::GetTask => false,
            Method::CallTool | Method::UpdateTask | Method::CancelTask => true,
        };
        record
    }

    /// Whether the operator wants it on record.
    pub(super) fn is_kept(&self) -> bool {
        self.kept
    }

    /// The upstream of something that is no tool is known now.
    pub(super) fn name_upstream(&mut self, upstream: &UpstreamId) {
        self.facts.upstream = Some(upstream.clone());
    }

    /// Opens the record of a request that names a tool, or none.
    pub(super) fn of_unread(
        attempt: &Attempt,
        context: &TenantContext,
        name: Option<&str>,
        clock: &dyn Clock,
    ) -> Self {
        let principal = context.principal();
        let audit = context.rules().audit();
        Self {
            facts: CallFacts {
                call_id: new_call_id(clock),
                at: clock.now(),
                tenant: context.tenant_id().clone(),
                issuer: principal.issuer().clone(),
                subject: principal.subject().clone(),
                client: principal.client().clone(),
                grant: principal.grant().map(str::to_owned),
                token_id: principal.token_id().map(str::to_owned),
                address: attempt.address,
                first_call: None,
                version: Some(attempt.version),
                upstream: None,
                tool: name.map(shortened).unwrap_or_default(),
                upstream_tool: None,
                definition_digest: None,
                config_digest: attempt.config_digest,
                arguments: attempt
                    .unread
                    .as_deref()
                    .map_or_else(|| ArgumentsRecord::none(b""), ArgumentsRecord::digest),
                client_info: attempt.client_info.clone(),
                trace_id: attempt.trace_id,
                request_bytes: attempt.request_bytes as u64,
            },
            durability: audit.durability.unwrap_or_default(),
            arguments: audit.arguments.unwrap_or_default(),
            audit: *audit,
            begun: Instant::now(),
            upstream_time: None,
            findings: Findings::default(),
            special: None,
            tool: None,
            of_tool: true,
            kept: true,
            ends_task: false,
        }
    }

    /// The tool is known now: the names of gateway and upstream, and its own rules.
    pub(super) fn name_tool(&mut self, tool: &Visible<Tool>) {
        self.facts.upstream = Some(tool.upstream.clone());
        self.facts.upstream_tool = Some(tool.own_name.to_string());
        self.facts.definition_digest = Some(tool.digest);
        self.durability = tool.rule.durability(&self.audit);
        self.arguments = tool.rule.arguments_mode(&self.audit);
        self.tool = Some((tool.upstream.clone(), tool.exposed.clone()));
    }

    /// It is about a task, which the call of this tool became.
    pub(super) fn name_task(&mut self, method: Method, tool: &Visible<Tool>, first: CallId) {
        self.facts.tool = shortened(&format!("{} {}", method.as_str(), tool.exposed));
        self.facts.upstream = Some(tool.upstream.clone());
        self.facts.upstream_tool = Some(tool.own_name.to_string());
        self.facts.definition_digest = Some(tool.digest);
        self.durability = tool.rule.durability(&self.audit);
        self.arguments = tool.rule.arguments_mode(&self.audit);
        self.facts.first_call = Some(first);
    }

    /// The answer tells how a task ended: that goes on record, whatever else does.
    pub(super) fn ends_task(&mut self) {
        self.ends_task = true;
    }

    /// Whether it goes on record because of what came of it.
    pub(super) fn is_kept_late(&self) -> bool {
        self.ends_task && !self.kept
    }

    /// The tool failed as a task; what is known already says more.
    pub(super) fn task_erred(&mut self) {
        let erred = || (Outcome::ToolError, "as a task".to_owned());
        self.special.get_or_insert_with(erred);
    }

    /// The outcome, where only a task could tell it.
    pub(super) fn of_task(&mut self, outcome: Outcome, reason: &str) {
        self.special = Some((outcome, reason.to_owned()));
    }

    /// The arguments as the operator wants them kept.
    pub(super) fn keep_arguments(
        &mut self,
        arguments: &Json,
        sanitizer: &Sanitizer,
        rules: &TenantRules,
        auditor: &Auditor,
    ) {
        if self.kept {
            self.facts.arguments =
                self.in_form(self.arguments, arguments, sanitizer, rules, auditor);
        }
    }

    /// The arguments of a call that was refused. Where the tool is not known, its
    /// rules are not either: no more than the digest is kept, and hidden and
    /// missing tools read alike.
    pub(super) fn keep_refused(&mut self, call: &Call, sanitizer: &Sanitizer, auditor: &Auditor) {
        let arguments = match call.ask.method {
            Method::CallTool => call.ask.param("arguments"),
            _ => Some(call.ask.params.clone()),
        };
        let Some(arguments) = arguments.filter(|_| self.kept) else {
            return;
        };
        let mode = match self.arguments {
            ArgumentsMode::Redacted if self.tool.is_none() => ArgumentsMode::Digest,
            mode => mode,
        };
        let rules = call.context.rules();
        self.facts.arguments = self.in_form(mode, &arguments, sanitizer, rules, auditor);
    }

    fn in_form(
        &self,
        mode: ArgumentsMode,
        arguments: &Json,
        sanitizer: &Sanitizer,
        rules: &TenantRules,
        auditor: &Auditor,
    ) -> ArgumentsRecord {
        let original = arguments.as_str().as_bytes();
        match mode {
            ArgumentsMode::Redacted => {
                let (clean, _) = sanitizer.arguments(arguments, rules.sanitize());
                ArgumentsRecord::redacted(clean.as_str(), original)
            }
            ArgumentsMode::Full => auditor.full_arguments(self.facts.call_id, original),
            ArgumentsMode::Digest => ArgumentsRecord::digest(original),
            ArgumentsMode::None => ArgumentsRecord::none(original),
        }
    }

    pub(super) fn facts(&self) -> &CallFacts {
        &self.facts
    }

    pub(super) fn call_id(&self) -> CallId {
        self.facts.call_id
    }

    pub(super) fn durability(&self) -> Durability {
        self.durability
    }

    /// The call goes on where an earlier one asked for input.
    pub(super) fn continues(&mut self, first: Option<CallId>) {
        self.facts.first_call = first.or(self.facts.first_call);
    }

    /// The first of the calls that this one belongs to; itself where it is the first.
    pub(super) fn first_call(&self) -> CallId {
        self.facts.first_call.unwrap_or(self.facts.call_id)
    }

    pub(super) fn upstream_took(&mut self, time: Duration) {
        self.upstream_time = Some(time);
    }

    /// Something was found in what is not the result itself.
    pub(super) fn found(&mut self, findings: Findings) {
        self.findings.merge(findings);
    }

    pub(super) fn upstream_failed(&mut self, reason: &str) {
        self.special = Some((Outcome::UpstreamError, reason.to_owned()));
    }

    /// The call is answered by a question.
    pub(super) fn asked(&mut self) {
        self.special = Some((Outcome::Ok, "input required".to_owned()));
    }

    /// What came of the call is not known here.
    pub(super) fn interrupted(&mut self) {
        self.special = Some((Outcome::Unknown, "interrupted".to_owned()));
    }

    pub(super) fn timed_out(&mut self) {
        self.special = Some((Outcome::Timeout, "deadline passed".to_owned()));
    }

    pub(super) fn cancelled(&mut self) {
        self.special = Some((Outcome::Cancelled, "by the caller".to_owned()));
    }

    pub(super) fn withheld(&mut self, reason: &str) {
        self.special = Some((Outcome::Withheld, reason.to_owned()));
    }

    /// What `finished` will say.
    pub(super) fn finish(&self, cleaned: &Result<CleanResult, Refusal>) -> Finish {
        let plain = match cleaned {
            Ok(result) if result.is_error() => Outcome::ToolError,
            Ok(_) => Outcome::Ok,
            Err(_) => Outcome::UpstreamError,
        };
        let (outcome, reason) = self
            .special
            .clone()
            .map_or((plain, None), |(outcome, reason)| (outcome, Some(reason)));
        Finish {
            outcome,
            reason,
            upstream_time: self.upstream_time,
            response_bytes: cleaned
                .as_ref()
                .map_or(0, |result| result.json().as_str().len() as u64),
            findings: self.all_findings(cleaned.as_ref()).summary(),
            ..self.empty_finish()
        }
    }

    fn all_findings(&self, outcome: Result<&CleanResult, &Refusal>) -> Findings {
        let mut findings = self.findings.clone();
        if let Ok(result) = outcome {
            findings.merge(result.findings().clone());
        }
        findings
    }

    /// A finish without outcome details.
    pub(super) fn empty_finish(&self) -> Finish {
        Finish {
            outcome: Outcome::Unknown,
            reason: None,
            upstream_time: None,
            total_time: self.begun.elapsed(),
            response_bytes: 0,
            findings: String::new(),
        }
    }

    /// The tool, once it is known.
    pub(super) fn tool(&self) -> Option<(&UpstreamId, &ToolName)> {
        self.tool.as_ref().map(|(upstream, tool)| (upstream, tool))
    }

    /// Counts the call, and says how it ended.
    pub(super) fn observe(
        &self,
        metrics: &Metrics,
        outcome: Result<&CleanResult, &Refusal>,
    ) -> Ending {
        if let (Err(refusal), None) = (outcome, &self.special) {
            metrics.refusal(refusal.step());
        }
        let word = match (outcome, &self.special) {
            (_, Some((special, _))) => counted(*special),
            (Ok(result), None) if result.is_error() => CallOutcome::ToolError,
            (Ok(_), None) => CallOutcome::Ok,
            (Err(Refusal::Withheld), None) => CallOutcome::Unknown,
            (Err(_), None) => CallOutcome::Refused,
        };
        let tool = match &self.tool {
            Some((upstream, tool)) => Some(metrics.tool(upstream, tool)),
            None if self.of_tool => Some(metrics.unresolved()),
            // The others are counted with all methods.
            None => None,
        };
        if let Some(tool) = &tool {
            tool.count(word);
            metrics.tenant_call(&self.facts.tenant, word);
        }
        for (label, finding) in self.all_findings(outcome).iter() {
            metrics.findings(label, finding.count);
        }
        let outcome = word;
        Ending { outcome, tool }
    }
}

/// How a call ended.
pub struct Ending {
    /// In a word.
    pub outcome: CallOutcome,
    /// The series of its tool, where it is a tool's.
    pub tool: Option<Arc<ToolMetrics>>,
}

fn counted(outcome: Outcome) -> CallOutcome {
    match outcome {
        Outcome::Ok => CallOutcome::Ok,
        Outcome::ToolError => CallOutcome::ToolError,
        Outcome::Refused(_) => CallOutcome::Refused,
        Outcome::Timeout => CallOutcome::Timeout,
        Outcome::Cancelled => CallOutcome::Cancelled,
        Outcome::UpstreamError => CallOutcome::UpstreamError,
        Outcome::Withheld => CallOutcome::Withheld,
        Outcome::Unknown => CallOutcome::Unknown,
    }
}

/// A caller's text, cut to what the record keeps of it.
pub(super) fn shortened(name: &str) -> String {
    let mut end = NAME_KEPT.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default().to_owned()
}
