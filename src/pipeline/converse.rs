//! The conversation with an upstream about one request: its events cleaned and
//! handed on, its questions brought to the caller in the way the caller can be
//! asked, until it has answered or the caller has to come back with input.

use std::time::Duration;

use tokio::time::timeout;

use crate::audit::Recorded;
use crate::config;
use crate::dispatch::{DispatchFault, Errand, Origin};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{
    Json, ReplySlot, ServerRequest, Untrusted, UpstreamEvent, codes, error_object,
};
use crate::sanitize::{CleanResult, Unclean};
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
/// Questions that come so shortly after each other are asked together.
const TOGETHER: Duration = Duration::from_millis(25);

/// One conversation.
pub(super) struct Talk<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) call: &'a Call,
    pub(super) ready: &'a Ready,
    pub(super) record: &'a mut Record,
    recorded: &'a Recorded,
}

/// What the upstream said at last.
enum Said {
    /// It needs this of a caller who is asked by an answer.
    Asked(Vec<ServerRequest>),
    /// It is over.
    Over(Result<Untrusted<Json>, DispatchFault>),
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
        recorded: &'a Recorded,
        record: &'a mut Record,
    ) -> Self {
        Self {
            pipeline,
            call,
            ready,
            record,
            recorded,
        }
    }

    pub(super) fn rules(&self) -> &'a config::Sanitize {
        self.call.context.rules().sanitize()
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
            match outcome {
                Ok(untrusted) if untrusted.is_input_required() => {
                    match self.input_required(untrusted).await {
                        Flow::Answer(answer) => return answer,
                        Flow::Again(errand) => exchange = self.begin(*errand),
                    }
                }
                outcome => return self.over(outcome).await,
            }
        }
        self.record.upstream_failed("asked for input without end");
        result::say(
            self.call.ask.method,
            "The server asks for more input again and again and was given up. Do not retry.",
        )
    }

    fn begin(&self, errand: Errand) -> Exchange {
        let call = self.call;
        let capabilities = match call.asking {
            Asking::Not => call.capabilities.without_asking(),
            Asking::Beside | Asking::Rounds => call.capabilities.clone(),
        };
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
    async fn listen(&mut self, exchange: &mut Exchange) -> Said {
        let mut asked: Vec<ServerRequest> = Vec::new();
        loop {
            let next = async {
                if asked.is_empty() {
                    return Some(exchange.next().await);
                }
                timeout(TOGETHER, exchange.next()).await.ok()
            };
            let turn = tokio::select! {
                biased;
                () = self.call.cancel.cancelled() => return Said::Over(Err(DispatchFault::Cancelled)),
                turn = next => turn,
            };
            match turn {
                None => return Said::Asked(asked),
                Some(Turn::Done(outcome)) => return Said::Over(outcome),
                Some(Turn::Event(event)) => asked.extend(self.heard(event).await),
            }
        }
    }

    /// Cleans an event and hands it on; a question that the answer has to ask comes back.
    async fn heard(&mut self, event: Untrusted<UpstreamEvent>) -> Option<ServerRequest> {
        let clean = match self.pipeline.sanitizer.event(event, self.rules()) {
            Ok(clean) => clean,
            // What may not pass is dropped: the answer is what counts. A question is
            // answered as unanswered.
            Err(Unclean::Blocked { findings, .. }) => {
                self.record.found(findings);
                return None;
            }
            Err(Unclean::TooLarge { .. }) => return None,
        };
        self.record.found(clean.findings().clone());
        let event = match clean.into_event() {
            UpstreamEvent::Progress(params) => CallEvent::Progress(params),
            UpstreamEvent::Log(level, params) => CallEvent::Log(level, params),
            UpstreamEvent::ElicitationComplete(params) => CallEvent::ElicitationComplete(params),
            UpstreamEvent::Pausing(time) => CallEvent::Pausing(time),
            UpstreamEvent::Request(request) => return self.asked(request).await,
        };
        self.tell(event).await;
        None
    }

    async fn asked(&mut self, request: ServerRequest) -> Option<ServerRequest> {
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
    async fn over(
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
