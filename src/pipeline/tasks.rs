//! Calls that go on as tasks (the extension `io.modelcontextprotocol/tasks`). A client
//! that takes tasks gets a handle and asks by it, each time as itself; for one that
//! cannot, the gateway waits for the end in its place.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::audit::Outcome;
use crate::catalog::Tool;
use crate::dispatch::{DispatchFault, Errand};
use crate::limits::Admission;
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{
    ClientCapabilities, Era, InputRequest, Json, Method, Task, TaskError, TaskStatus, Untrusted,
};
use crate::sanitize::{CleanResult, Findings};
use crate::tenancy::TenantContext;
use crate::upstream::UpstreamError;
use crate::visibility::{self, Visible};

use super::converse::{Said, Talk};
use super::exchange::Turn;
use super::input::request_object;
use super::record::Record;
use super::state::Handle;
use super::{Asking, Call, Pipeline, Ready, Refusal, result, seen};

/// Longest id of an upstream that a handle may hold: it travels in a header.
const LONGEST_ID: usize = 2048;
/// Longest words of an upstream that are kept of an error.
const EXCERPT: usize = 300;
/// How long to wait between two looks at a task whose upstream does not say.
const POLL: Duration = Duration::from_secs(1);
/// No upstream is asked more often, or left alone for longer.
const POLL_AT_LEAST: Duration = Duration::from_millis(50);
const POLL_AT_MOST: Duration = Duration::from_secs(5);
/// How long the upstream may take to hear that a task is called off.
const CALLING_OFF: Duration = Duration::from_secs(2);

impl Pipeline {
    /// What can refuse a word about a task. Whoever may not call the tool any more may
    /// not hear of its tasks either.
    pub(super) fn admitted_task(
        &self,
        call: &Call,
        admission: Admission,
        record: &mut Record,
    ) -> Result<Ready, Refusal> {
        if !call.capabilities.has_tasks() {
            let needed = ClientCapabilities::tasks();
            return Err(Refusal::MissingCapability { needed });
        }
        let (context, method) = (&call.context, call.ask.method);
        let found = self.task_of(context, &call.ask.name);
        let (handle, tool) = found.ok_or(Refusal::UnknownTask)?;
        record.name_task(method, &tool, handle.first_call);
        if !visibility::missing_scopes(context, &tool).is_empty() {
            return Err(Refusal::MissingScopes {
                needed: tool.rule.scopes.clone(),
                held: context.principal().scopes().iter().cloned().collect(),
            });
        }
        let params = call.ask.params.without_members(|name| name == "_meta");
        record.keep_arguments(
            &params.without_members(|name| name == "taskId"),
            &self.sanitizer,
            context.rules(),
            &self.auditor,
        );
        Ok(Ready {
            errand: Errand::of_task(&tool, method, &handle.task, &params),
            tool: Some(tool),
            _admission: admission,
        })
    }
}

impl Pipeline {
    /// The task of this id, where it is this caller's and of a tool that it may see.
    fn task_of(&self, context: &TenantContext, id: &str) -> Option<(Handle, Visible<Tool>)> {
        let handle = self.rounds.task(context.principal(), id)?;
        let view = self.catalog.view(context.tenant_id());
        let tool = seen(context, &view, &handle.tool).ok()?;
        (tool.upstream.as_str() == handle.upstream).then_some((handle, tool))
    }

    /// Whether the caller may hear of the task with this id.
    pub fn may_hear_of_task(&self, context: &TenantContext, id: &str) -> bool {
        self.task_of(context, id)
            .is_some_and(|(_, tool)| visibility::missing_scopes(context, &tool).is_empty())
    }
}

impl Talk<'_> {
    /// The upstream has made a task of the call.
    pub(super) async fn task_made(
        &mut self,
        told: Untrusted<Json>,
    ) -> Result<CleanResult, Refusal> {
        let Some(task) = told.into_task(&self.call.capabilities) else {
            return self.no_task();
        };
        match self.call.attempt.era {
            Era::Modern if self.call.capabilities.has_tasks() => self.handed_out(task),
            // A modern server has made a task for a client that takes none: it may have
            // taken that from an earlier answer, and what it began is seen to its end.
            Era::Legacy | Era::Modern => self.seen_through(task).await,
        }
    }

    fn no_task(&mut self) -> Result<CleanResult, Refusal> {
        self.record
            .upstream_failed("told of a task in a form that is not known");
        result::say(
            self.call.ask.method,
            "The server tells of a task in a form that is not known. The call may run. Do not retry; tell the operator.",
        )
    }

    /// The task under an id that is its caller's alone.
    fn handed_out(&mut self, task: Task) -> Result<CleanResult, Refusal> {
        if task.id.len() > LONGEST_ID {
            return self.no_task();
        }
        let handle = Handle {
            upstream: self.ready.errand.upstream().to_string(),
            task: task.id,
            tool: self.call.ask.name.clone(),
            first_call: self.record.first_call(),
        };
        let rest = match self.pipeline.sanitizer.result(task.rest, self.rules()) {
            Ok(rest) => rest,
            Err(unclean) => return result::kept_back(self, unclean),
        };
        self.record.of_task(Outcome::Ok, "task");
        let id = self.pipeline.rounds.task_id(self.call, &handle);
        let json = ObjectBuilder::with_capacity(id.len() + 512)
            .text("resultType", "task")
            .text("taskId", &id)
            .and_members_of(rest.json(), "taskId");
        Ok(rest.with_json(json))
    }

    /// How the task stands, for `tasks/get`.
    pub(super) async fn task_told(
        &mut self,
        told: Untrusted<Json>,
    ) -> Result<CleanResult, Refusal> {
        let Some(task) = told.into_task(&self.call.capabilities) else {
            return self.no_task();
        };
        let rest = match self.pipeline.sanitizer.result(task.rest, self.rules()) {
            Ok(rest) => rest,
            Err(unclean) => return result::kept_back(self, unclean),
        };
        if task.status.is_terminal() {
            self.record.ends_task();
        }
        let json = ObjectBuilder::new().text("taskId", &self.call.ask.name);
        let (json, told) = match task.status {
            TaskStatus::Working => (json, None),
            TaskStatus::Cancelled => {
                self.record.of_task(Outcome::Cancelled, "as a task");
                (json, None)
            }
            TaskStatus::InputRequired => {
                let requests = self.task_requests(task.requests).await?;
                (json.json("inputRequests", &requests), None)
            }
            TaskStatus::Completed => {
                let result = self.task_result(task.result)?;
                (json.json("result", result.json()), Some(result))
            }
            TaskStatus::Failed => (json.json("error", &self.task_error(task.error)), None),
        };
        self.record.found(rest.findings().clone());
        let json = json.and_members_of(rest.json(), "taskId");
        Ok(told.map_or_else(
            || CleanResult::ours(json.clone(), Findings::default()),
            |told| told.with_json(json.clone()),
        ))
    }

    /// What a task waits for, where this client can be asked for it.
    async fn task_requests(&mut self, requests: Vec<InputRequest>) -> Result<Json, Refusal> {
        if let Some(needed) = requests.iter().find_map(|one| one.lacking.clone()) {
            self.record
                .upstream_failed("needs a capability of the client");
            return Err(Refusal::MissingCapability { needed });
        }
        let wanted = match self.wanted(requests).await {
            Ok(wanted) => wanted,
            Err(answer) => return Err(answer.err().unwrap_or(Refusal::UnknownTask)),
        };
        let mut all = ObjectBuilder::new();
        for one in &wanted {
            all = all.json(&one.key, &request_object(one.method, &one.params));
        }
        Ok(all.build())
    }

    /// The result of a task, which is the tool's: what may not leave is told in it.
    fn task_result(&mut self, result: Option<Untrusted<Json>>) -> Result<CleanResult, Refusal> {
        let cleaned = match result {
            Some(result) => result::clean(self, result),
            None => Ok(result::tool_error(
                "The task is over, and the server told no result.",
            )),
        };
        let cleaned = match cleaned {
            Err(Refusal::Failed { text }) => result::tool_error(&text),
            cleaned => cleaned?,
        };
        if cleaned.is_error() {
            self.record.task_erred();
        }
        Ok(cleaned)
    }

    fn task_error(&mut self, error: Option<TaskError>) -> Json {
        self.record.upstream_failed("JSON-RPC error");
        let code = error
            .as_ref()
            .map_or(crate::protocol::codes::INTERNAL_ERROR, |error| error.code);
        let cleaned = error.map(|error| {
            let sanitizer = &self.pipeline.sanitizer;
            sanitizer.error(error.message, error.data, self.rules(), EXCERPT)
        });
        let told = ObjectBuilder::new().integer("code", result::told(code));
        match cleaned {
            Some(Ok(error)) => {
                self.record.found(error.findings.clone());
                told.text("message", error.message.as_str())
                    .maybe("data", error.data.as_ref())
                    .build()
            }
            Some(Err(unclean)) => {
                self.record.withheld(&unclean.to_string());
                told.text("message", "The server's words may not leave.")
                    .build()
            }
            None => told.text("message", "The task failed.").build(),
        }
    }

    /// The upstream has taken a word about a task in.
    pub(super) fn task_acknowledged(
        &mut self,
        told: Untrusted<Json>,
    ) -> Result<CleanResult, Refusal> {
        match self.pipeline.sanitizer.result(told, self.rules()) {
            Ok(clean) => {
                let json = clean.json().without_members(|name| name == "taskId");
                Ok(clean.with_json(json))
            }
            Err(unclean) => result::kept_back(self, unclean),
        }
    }

    /// Waits for the end of a task in the place of a client that takes none, as long
    /// as the call may take; questions on the way go to the client.
    async fn seen_through(&mut self, mut task: Task) -> Result<CleanResult, Refusal> {
        self.takes_tasks = true;
        let own = task.id;
        let mut deadline = Instant::now() + self.call_may_take();
        loop {
            let poll = task.poll_after.unwrap_or(POLL);
            match task.status {
                TaskStatus::Working => {}
                TaskStatus::InputRequired => {
                    let asked = Instant::now();
                    let answers = self.task_answers(task.requests).await;
                    let answers = match answers {
                        Ok(answers) => answers,
                        Err(answer) => {
                            self.call_off(&own).await;
                            return answer;
                        }
                    };
                    deadline += asked.elapsed();
                    let params = ObjectBuilder::new().json("inputResponses", &answers);
                    let told = self.about(Method::UpdateTask, &own, &params.build()).await;
                    if let Err(fault) = told {
                        return self.over(Err(fault)).await;
                    }
                }
                _ => return self.ended(task.status, task.result, task.error),
            }
            let pause = poll.clamp(POLL_AT_LEAST, POLL_AT_MOST);
            if Instant::now() + pause > deadline {
                self.call_off(&own).await;
                self.record.timed_out();
                return result::say(
                    self.call.ask.method,
                    "The server works on this as a task, which was not done in time and was called off. It may have run in part: check before repeating it.",
                );
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.call.cancel.cancelled() => {
                    self.call_off(&own).await;
                    self.record.cancelled();
                    return Err(Refusal::Cancelled);
                }
            }
            let nothing = Json::empty_object();
            task = match self.about(Method::GetTask, &own, &nothing).await {
                Ok(told) => match told.into_task(&self.call.capabilities) {
                    Some(task) => task,
                    None => return self.no_task(),
                },
                Err(fault) => return self.over(Err(fault)).await,
            };
        }
    }

    fn ended(
        &mut self,
        status: TaskStatus,
        result: Option<Untrusted<Json>>,
        error: Option<TaskError>,
    ) -> Result<CleanResult, Refusal> {
        let method = self.call.ask.method;
        match (status, result, error) {
            (TaskStatus::Completed, Some(result), _) => result::clean(self, result),
            (TaskStatus::Failed, _, Some(error)) => {
                let fault = UpstreamError::Rpc {
                    code: error.code,
                    message: error.message,
                    data: error.data,
                };
                result::failed(self, DispatchFault::Upstream(fault))
            }
            (TaskStatus::Cancelled, ..) => {
                self.record.upstream_failed("cancelled the task");
                result::say(
                    method,
                    "The server called the task off that it had made of this call. It may have run in part: check before repeating it.",
                )
            }
            _ => self.no_task(),
        }
    }

    /// How long the call may take.
    fn call_may_take(&self) -> Duration {
        let settings = self.pipeline.catalog.settings(self.ready.errand.upstream());
        let own = self.ready.tool.as_ref().and_then(|tool| tool.rule.timeout);
        own.or_else(|| settings.map(|settings| settings.timeout.call.0))
            .unwrap_or(POLL_AT_MOST)
    }

    /// What the client says to what a task waits for.
    async fn task_answers(
        &mut self,
        requests: Vec<InputRequest>,
    ) -> Result<Json, Result<CleanResult, Refusal>> {
        if self.call.asking != Asking::Beside {
            self.record.upstream_failed("asked for input");
            return Err(result::say(
                self.call.ask.method,
                "The server works on this as a task that needs input, and this client cannot be asked while it waits: a modern client has to declare the extension of tasks, a legacy one to take event streams. The task was called off.",
            ));
        }
        if let Some(needed) = requests.iter().find_map(|one| one.lacking.clone()) {
            return Err(self.lacks(needed));
        }
        let wanted = self.wanted(requests).await?;
        self.answers(wanted).await
    }

    /// A word of the gateway's own about a task.
    async fn about(
        &mut self,
        method: Method,
        own: &str,
        params: &Json,
    ) -> Result<Untrusted<Json>, DispatchFault> {
        let broken = || DispatchFault::Upstream(UpstreamError::Broken);
        let tool = self.ready.tool.as_ref().ok_or_else(broken)?;
        let mut exchange = self.begin(Errand::of_task(tool, method, own, params));
        match self.listen(&mut exchange).await {
            Said::Over(outcome) => outcome,
            // Nobody is asked while there is no answer to ask by.
            Said::Asked(_) => Err(broken()),
        }
    }

    /// Tells the upstream that nobody waits for a task any more. It need not listen.
    async fn call_off(&mut self, own: &str) {
        let Some(tool) = &self.ready.tool else { return };
        let errand = Errand::of_task(tool, Method::CancelTask, own, &Json::empty_object());
        let mut exchange = self.begin(errand);
        let heard = async { while !matches!(exchange.next().await, Turn::Done(_)) {} };
        let _ = timeout(CALLING_OFF, heard).await;
    }
}
