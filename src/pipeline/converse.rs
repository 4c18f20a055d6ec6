//! The conversation with an upstream about one request: its events cleaned and
//! handed on, its questions brought to the caller in the way the caller can be
//! asked, until it has answered or the caller has to come back with input.

use tokio::time::{Instant, timeout_at};

use crate::audit::Recorded;
use crate::config;
use crate::dispatch::{DispatchFault, Errand, Origin};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{
    Era, Json, Method, ReplySlot, ServerRequest, Untrusted, UpstreamEvent, codes, error_object,
};
use crate::sanitize::{CleanEvent, CleanResult, Stream, Unclean};
use crate::upstream::UpstreamError;

use super::events::CallEvent;
use super::exchange::{Exchange, Turn};
use super::parking::Parked;
use super::record::Record;
use super::rounds::Round;
use super::{Asking, Call, Pipeline, Ready, Refusal, input, reading, result};

/// So often may an upstream ask for input before one answer, where the gateway
/// brings the input back itself.
const MOST_ROUNDS: u32 = 10;

/// One conversation.
pub(super) struct Talk<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) call: &'a Call,
    pub(super) ready: &'a Ready,
    pub(super) record: &'a mut Record,
    rules: &'a config::Sanitize,
    recorded: &'a Recorded,
    /// Messages whose end could begin a secret.
    held: Stream,
    /// Whether tasks are taken in the place of the client.
    pub(super) takes_tasks: bool,
    /// What was sent last for a client that takes none.
    sent: Option<Errand>,
}

/// What the upstream said at last.
pub(super) enum Said {
    /// It needs this of a caller who is asked by an answer.
    Asked(Vec<ServerRequest>),
    /// It is over.
    Over(Result<Untrusted<Json>, DispatchFault>),
}

/// What the upstream asks of a caller who is asked by an answer.
enum Question {
    /// This.
    This(ServerRequest),
    /// Nothing more for now.
    NoMore,
}

/// What follows from a result that asks for input.
pub(super) enum Flow {
    /// This is told.
    Answer(Result<CleanResult, Refusal>),
    /// It is asked again, with this.
    Again(Box<Errand>),
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        pipeline: &'a Pipeline,
        call: &'a Call,
        ready: &'a Ready,
        rules: &'a config::Sanitize,
        recorded: &'a Recorded,
        record: &'a mut Record,
    ) -> Self {
        Self {
            pipeline,
            call,
            ready,
            record,
            rules,
            recorded,
            held: Stream::new(),
            takes_tasks: false,
            sent: None,
        }
    }

    pub(super) fn rules(&self) -> &'a config::Sanitize {
        self.rules
    }

    /// Goes on from there until there is something to tell.
    pub(super) async fn hold(mut self, round: Round) -> Result<CleanResult, Refusal> {
        let errand = &self.ready.errand;
        let mut exchange = match round {
            Round::First { responses: None } => self.begin(errand.clone()),
            Round::First { responses } => self.begin(errand.answering(responses.as_ref(), None)),
            Round::Again {
                responses, state, ..
            } => self.begin(errand.answering(responses.as_ref(), state.as_deref())),
            Round::Parked {
                parked, responses, ..
            } => {
                let (exchange, missing) = answered(*parked, responses.as_ref());
                if !missing.is_empty() {
                    return self.park(exchange, missing).await;
                }
                exchange
            }
            Round::Lost { .. } => return self.lost(),
        };
        for _ in 0..MOST_ROUNDS {
            let said = self.listen(&mut exchange).await;
            self.record.upstream_took(exchange.elapsed());
            let outcome = match said {
                Said::Asked(asked) => return self.park(exchange, input::keyed(asked)).await,
                Said::Over(outcome) => outcome,
            };
            match self.follow(outcome).await {
                Flow::Answer(answer) => return answer,
                Flow::Again(errand) => exchange = self.begin(*errand),
            }
        }
        self.record.upstream_failed("asked for input without end");
        result::say(
            self.call.ask.method,
            "The server asks for more input again and again and was given up. Do not retry.",
        )
    }

    /// What follows from what the upstream said at last.
    async fn follow(&mut self, outcome: Result<Untrusted<Json>, DispatchFault>) -> Flow {
        let method = self.call.ask.method;
        match outcome {
            Ok(told) if told.is_input_required() && !method.is_of_tasks() => {
                self.input_required(told).await
            }
            Ok(told) if method == Method::CallTool && told.is_task() => {
                Flow::Answer(self.task_made(told).await)
            }
            Ok(told) if method == Method::GetTask => Flow::Answer(self.task_told(told).await),
            Ok(told) if method.is_of_tasks() => Flow::Answer(self.task_acknowledged(told)),
            Err(DispatchFault::Upstream(UpstreamError::Rpc {
                code: codes::MISSING_CLIENT_CAPABILITY,
                data: Some(data),
                ..
            })) if self.call.attempt.era == Era::Legacy
                && !self.takes_tasks
                && data.requires_tasks() =>
            {
                // A legacy client cannot take tasks: the gateway does in its place.
                self.takes_tasks = true;
                let errand = self.sent.clone();
                Flow::Again(Box::new(
                    errand.unwrap_or_else(|| self.ready.errand.clone()),
                ))
            }
            outcome => Flow::Answer(self.over(outcome).await),
        }
    }

    pub(super) fn begin(&mut self, errand: Errand) -> Exchange {
        let call = self.call;
        let mut capabilities = match call.asking {
            Asking::Not => call.capabilities.without_asking(),
            Asking::Beside | Asking::Rounds => call.capabilities.clone(),
        };
        if self.takes_tasks {
            capabilities = capabilities.with_tasks();
        } else if call.attempt.era == Era::Legacy {
            self.sent = Some(errand.clone());
        }
        let origin = Origin {
            tenant: call.context.tenant_id().clone(),
            caller: call.attempt.caller,
            meta: call.meta.others.clone(),
            progress: call.meta.progress_token.is_some(),
            log_level: call.meta.log_level,
            trace: call.meta.traceparent.clone(),
            capabilities,
            pooled: call.asking == Asking::Rounds,
            patience: self.pipeline.rounds.patience(),
        };
        let dispatcher = &self.pipeline.dispatcher;
        Exchange::begin(dispatcher, errand, self.recorded, origin, call)
    }

    /// Hears the upstream until it is over or asks one who is asked by an answer.
    pub(super) async fn listen(&mut self, exchange: &mut Exchange) -> Said {
        let mut asked: Vec<ServerRequest> = Vec::new();
        loop {
            let release = self.held.deadline().map(Instant::from_std);
            let next = async {
                match release {
                    None => Some(exchange.next().await),
                    Some(release) => timeout_at(release, exchange.next()).await.ok(),
                }
            };
            let turn = tokio::select! {
                biased;
                () = self.call.cancel.cancelled() => return Said::Over(Err(DispatchFault::Cancelled)),
                turn = next => turn,
            };
            let asks = match turn {
                Some(Turn::Event(event)) => self.heard(event).await,
                Some(Turn::Done(outcome)) => {
                    self.release().await;
                    return Said::Over(outcome);
                }
                None => self.release().await,
            };
            for ask in asks {
                match ask {
                    Question::This(request) => asked.push(request),
                    // All may have been dropped that was asked.
                    Question::NoMore if asked.is_empty() => {}
                    Question::NoMore => return Said::Asked(asked),
                }
            }
        }
    }

    /// Takes an event in; what may leave is handed on, and what the answer has to ask
    /// comes back.
    async fn heard(&mut self, event: Untrusted<UpstreamEvent>) -> Vec<Question> {
        let now = Instant::now().into_std();
        let sanitizer = &self.pipeline.sanitizer;
        let ready = sanitizer.next_event(&mut self.held, event, now, self.rules);
        self.handed_on(ready).await
    }

    /// Lets go of what was held back: the time is over, or the exchange is.
    async fn release(&mut self) -> Vec<Question> {
        let ready = self.pipeline.sanitizer.release(&mut self.held, self.rules);
        self.handed_on(ready).await
    }

    async fn handed_on(&mut self, ready: Vec<Result<CleanEvent, Unclean>>) -> Vec<Question> {
        let mut asks = Vec::new();
        for event in ready {
            match event {
                Ok(clean) => asks.extend(self.clean(clean).await),
                // What may not pass is dropped: the answer is what counts. A question
                // is answered as unanswered.
                Err(Unclean::Blocked { findings, .. }) => self.record.found(findings),
                Err(Unclean::TooLarge { .. }) => {}
            }
        }
        asks
    }

    async fn clean(&mut self, clean: CleanEvent) -> Option<Question> {
        self.record.found(clean.findings().clone());
        let event = match clean.into_event() {
            UpstreamEvent::Progress(params) => CallEvent::Progress(params),
            UpstreamEvent::Log(level, params) => CallEvent::Log(level, params),
            UpstreamEvent::ElicitationComplete(params) => CallEvent::ElicitationComplete(params),
            UpstreamEvent::Pausing(time) => CallEvent::Pausing(time),
            UpstreamEvent::Request(request) => {
                return self.asked(request).await.map(Question::This);
            }
            UpstreamEvent::AskedAll => return Some(Question::NoMore),
        };
        self.tell(event).await;
        None
    }

    async fn asked(&mut self, mut request: ServerRequest) -> Option<ServerRequest> {
        let destination = request.destination.take();
        match self.with_link(request.params.clone(), destination).await {
            Ok(params) => request.params = params,
            Err(_) => {
                let why = "the page cannot be opened for this caller";
                request.reply.answer(request.method.unanswered(why));
                return None;
            }
        }
        match self.call.asking {
            Asking::Beside => self.tell(CallEvent::Asked(request)).await,
            Asking::Rounds if !self.call.ask.method.may_ask() => unsupported(request),
            Asking::Rounds if self.pipeline.rounds.has_room(self.call) => return Some(request),
            Asking::Rounds => {
                let why = "too many calls of this caller wait for input";
                request.reply.answer(request.method.unanswered(why));
            }
            Asking::Not => unsupported(request),
        }
        None
    }

    /// Hands an event on, unless the caller cancels while there is no room for it.
    pub(super) async fn tell(&self, event: CallEvent) {
        tokio::select! {
            () = self.call.events.send(event) => {}
            () = self.call.cancel.cancelled() => {}
        }
    }

    /// Lets the exchange wait and asks by the answer.
    async fn park(
        &mut self,
        exchange: Exchange,
        asked: Vec<(String, ServerRequest)>,
    ) -> Result<CleanResult, Refusal> {
        let mut requests = ObjectBuilder::new();
        for (key, request) in &asked {
            requests = requests.json(key, &input::request_object(request.method, &request.params));
        }
        let (call, errand) = (self.call, &self.ready.errand);
        let first = self.record.first_call();
        let rounds = &self.pipeline.rounds;
        let state = rounds.park(call, errand, first, exchange, asked).await;
        self.ask(Some(&requests.build()), state, None)
    }

    /// The answer that asks.
    pub(super) fn ask(
        &mut self,
        requests: Option<&Json>,
        state: Option<String>,
        rest: Option<CleanResult>,
    ) -> Result<CleanResult, Refusal> {
        let Some(state) = state else {
            self.record.upstream_failed("its state could not be kept");
            return result::say(
                self.call.ask.method,
                "What the server needs to go on could not be kept. The call may have run; retry shortly.",
            );
        };
        self.record.asked();
        Ok(input::required(requests, &state, rest))
    }

    /// The exchange that the retry is for is gone.
    fn lost(&mut self) -> Result<CleanResult, Refusal> {
        self.record.interrupted();
        result::say(
            self.call.ask.method,
            "The call was interrupted while it waited for input, and may have run in part. Check before repeating it.",
        )
    }

    /// The upstream's last word.
    pub(super) async fn over(
        &mut self,
        outcome: Result<Untrusted<Json>, DispatchFault>,
    ) -> Result<CleanResult, Refusal> {
        let fault = match outcome {
            Ok(untrusted) => return result::clean(self, untrusted),
            Err(fault) => fault,
        };
        if fault.casts_doubt() {
            self.pipeline.catalog.suspect(self.ready.errand.upstream());
        }
        match fault {
            DispatchFault::Upstream(UpstreamError::Rpc {
                code: codes::LEGACY_URL_ELICITATION_REQUIRED,
                message,
                data,
            }) => self.url_required(message, data).await,
            DispatchFault::Upstream(UpstreamError::Rpc { code, .. })
                if code == codes::MISSING_CLIENT_CAPABILITY =>
            {
                result::failed(self, fault)
            }
            fault if self.ready.tool.is_some() => result::failed(self, fault),
            fault => reading::failed(self, fault),
        }
    }
}

/// Gives the slots what came for them. What is still missing is left.
fn answered(parked: Parked, responses: Option<&Json>) -> (Exchange, Vec<(String, ServerRequest)>) {
    let mut missing = Vec::new();
    for (key, request) in parked.asked {
        let given = responses.and_then(|all| all.get(&key));
        match given.filter(|given| request.method.is_answered_by(given)) {
            Some(given) => request.reply.answer(Ok(given)),
            None if request.reply.is_taken_back() => {}
            None => missing.push((key, request)),
        }
    }
    (parked.exchange, missing)
}

/// Answers a server that this caller cannot be asked.
fn unsupported(request: ServerRequest) {
    let words = "this client cannot be asked while it waits";
    let error = error_object(codes::METHOD_NOT_FOUND, words, None);
    ReplySlot::answer(request.reply, Err(error));
}
