//! Results that ask for input (MCP 2026-07-28 multi round-trip requests): made for
//! callers who are asked by an answer, and turned into requests for those who are
//! asked beside it.

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{
    Era, InputRequest, InputRequired, Json, PendingReply, ReplySlot, ServerMethod, ServerRequest,
    Untrusted, codes,
};
use crate::sanitize::{CleanResult, Findings};

use super::converse::{Flow, Talk};
use super::events::CallEvent;
use super::{Asking, Refusal, result};

/// Longest key of a request for input.
const LONGEST_KEY: usize = 256;
/// Longest id of a legacy server that becomes a key.
const LONGEST_NAME: usize = 32;
/// Longest words of an upstream that are kept of an error.
const EXCERPT: usize = 300;

/// The questions of a legacy server, each under a key. A legacy id does the work of a
/// modern key, so a server's own id is the key where it reads like a name; the others
/// are numbered.
pub(super) fn keyed(asked: Vec<ServerRequest>) -> Vec<(String, ServerRequest)> {
    let mut keyed: Vec<(String, ServerRequest)> = Vec::with_capacity(asked.len());
    for (at, request) in asked.into_iter().enumerate() {
        let word = match request.method {
            ServerMethod::Sample => "sampling",
            ServerMethod::Elicit => "elicitation",
            ServerMethod::ListRoots => "roots",
        };
        let own = request.id.as_deref().filter(|id| is_name(id));
        let own = own.filter(|id| keyed.iter().all(|(key, _)| key != id));
        let key = own.map_or_else(|| format!("{word}-{}", at + 1), str::to_owned);
        keyed.push((key, request));
    }
    keyed
}

/// Whether a server's id is a word that may stand as a key: nothing in it can be
/// prose, or hold a secret that cleaning would look for.
fn is_name(id: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c == '_';
    (1..=LONGEST_NAME).contains(&id.len()) && id.chars().all(word)
}

/// A member of `inputRequests`.
pub(super) fn request_object(method: ServerMethod, params: &Json) -> Json {
    ObjectBuilder::with_capacity(params.as_str().len() + 64)
        .text("method", method.as_str())
        .json("params", params)
        .build()
}

/// The result that asks. `rest`: the upstream's other members of it.
pub(super) fn required(
    requests: Option<&Json>,
    state: &str,
    rest: Option<CleanResult>,
) -> CleanResult {
    let (rest, findings) = rest.map_or_else(
        || (Json::empty_object(), Findings::default()),
        |rest| {
            let findings = rest.findings().clone();
            (rest.into_json(), findings)
        },
    );
    let json = ObjectBuilder::with_capacity(state.len() + 512)
        .text("resultType", "input_required")
        .maybe("inputRequests", requests)
        .text("requestState", state)
        .and_members_of(&rest, "resultType");
    CleanResult::ours(json, findings)
}

/// A cleaned member of `inputRequests`.
pub(super) struct Wanted {
    pub(super) key: String,
    pub(super) method: ServerMethod,
    pub(super) params: Json,
}

impl Talk<'_> {
    /// What follows from a result of the upstream that asks for input.
    pub(super) async fn input_required(&mut self, result: Untrusted<Json>) -> Flow {
        let method = self.call.ask.method;
        let asks_nobody = self.call.asking == Asking::Not || !method.may_ask();
        let required = result.into_input_required(&self.call.capabilities);
        let Some(mut required) = required else {
            self.record
                .upstream_failed("asked for input in a form that is not known");
            return Flow::Answer(result::say(
                method,
                "The server asks for input in a form that is not known. Do not retry; tell the operator.",
            ));
        };
        let mut asked = required.requests.iter();
        let page = |one: &InputRequest| asks_nobody && one.destination.is_some();
        if let Some(at) = asked.position(|one| one.lacking.is_some() || page(one)) {
            let one = required.requests.swap_remove(at);
            let needed = one.lacking.unwrap_or_else(Json::empty_object);
            return Flow::Answer(self.cannot_ask(needed, one.destination).await);
        }
        if asks_nobody {
            self.record.upstream_failed("asked for input");
            return Flow::Answer(result::say(
                method,
                "The server asks for input, and this client cannot be asked while it waits (it takes no event streams). Do not retry.",
            ));
        }
        let InputRequired {
            requests,
            state,
            rest,
        } = required;
        let wanted = match self.wanted(requests).await {
            Ok(wanted) => wanted,
            Err(answer) => return Flow::Answer(answer),
        };
        match self.call.asking {
            Asking::Rounds => Flow::Answer(self.pass_on(&wanted, state, rest).await),
            Asking::Beside | Asking::Not => self.collect(wanted, state).await,
        }
    }

    /// The requests, cleaned, with our links. Their keys come back with the responses, so
    /// a key that would have to be changed is refused.
    pub(super) async fn wanted(
        &mut self,
        requests: Vec<InputRequest>,
    ) -> Result<Vec<Wanted>, Result<CleanResult, Refusal>> {
        let sanitizer = &self.pipeline.sanitizer;
        let mut wanted = Vec::with_capacity(requests.len());
        for request in requests {
            let key = sanitizer.line(Untrusted::new(request.key.clone()), LONGEST_KEY);
            if key.as_str() != request.key {
                self.record
                    .upstream_failed("asked for input under a key that is none");
                return Err(result::say(
                    self.call.ask.method,
                    "The server asks for input under a name that may not pass. Do not retry; tell the operator.",
                ));
            }
            let params = match sanitizer.result(request.params, self.rules()) {
                Ok(params) => params,
                Err(unclean) => return Err(result::kept_back(self, unclean)),
            };
            self.record.found(params.findings().clone());
            let params = self
                .with_link(params.into_json(), request.destination)
                .await?;
            wanted.push(Wanted {
                key: request.key,
                method: request.method,
                params,
            });
        }
        Ok(wanted)
    }

    /// Asks a caller of the same era.
    async fn pass_on(
        &mut self,
        wanted: &[Wanted],
        state: Option<String>,
        rest: Untrusted<Json>,
    ) -> Result<CleanResult, Refusal> {
        let rest = match self.pipeline.sanitizer.result(rest, self.rules()) {
            Ok(rest) => rest,
            Err(unclean) => return result::kept_back(self, unclean),
        };
        let mut requests = ObjectBuilder::new();
        for one in wanted {
            requests = requests.json(&one.key, &request_object(one.method, &one.params));
        }
        let requests = (!wanted.is_empty()).then(|| requests.build());
        let first = self.record.first_call();
        let (call, errand) = (self.call, &self.ready.errand);
        let state = self.pipeline.rounds.carry(call, errand, first, state).await;
        self.ask(requests.as_ref(), state, Some(rest))
    }

    /// Asks a legacy caller, and brings the answers back.
    async fn collect(&mut self, wanted: Vec<Wanted>, state: Option<String>) -> Flow {
        let responses = match self.answers(wanted).await {
            Ok(responses) => responses,
            Err(answer) => return Flow::Answer(answer),
        };
        let errand = self
            .ready
            .errand
            .answering(Some(&responses), state.as_deref());
        Flow::Again(Box::new(errand))
    }

    /// What a caller says who is asked beside the answer; or what is told instead.
    pub(super) async fn answers(
        &mut self,
        wanted: Vec<Wanted>,
    ) -> Result<Json, Result<CleanResult, Refusal>> {
        let mut pending: Vec<(String, ServerMethod, PendingReply)> = Vec::new();
        for one in wanted {
            let (reply, slot) = ReplySlot::new(false);
            let request = ServerRequest {
                method: one.method,
                id: None,
                params: one.params,
                destination: None,
                reply,
            };
            self.tell(CallEvent::Asked(request)).await;
            pending.push((one.key, one.method, slot));
        }
        let patience = self.pipeline.rounds.patience();
        let replies = join_all(pending.into_iter().map(async |(key, method, slot)| {
            let reply = timeout(patience, slot.reply()).await.ok().flatten();
            (key, method, reply)
        }));
        let replies = tokio::select! {
            replies = replies => replies,
            () = self.call.cancel.cancelled() => {
                self.record.cancelled();
                return Err(Err(Refusal::Cancelled));
            }
        };
        let mut responses = ObjectBuilder::new();
        for (key, method, reply) in replies {
            match usable(method, reply) {
                Some(result) => responses = responses.json(&key, &result),
                None => return Err(self.refused(method)),
            }
        }
        Ok(responses.build())
    }

    fn refused(&mut self, method: ServerMethod) -> Result<CleanResult, Refusal> {
        self.record.upstream_failed("its question was not answered");
        let words = format!(
            "The server needs an answer to its {} request, and the client gave none. Do not retry unless the user agrees.",
            method.as_str()
        );
        result::say(self.call.ask.method, &words)
    }

    /// The caller lacks a capability that the upstream needs.
    pub(super) fn lacks(&mut self, needed: Json) -> Result<CleanResult, Refusal> {
        self.record
            .upstream_failed("needs a capability of the client");
        match self.call.attempt.era {
            Era::Modern => Err(Refusal::MissingCapability { needed }),
            Era::Legacy => {
                let words = format!(
                    "The server needs something that this client did not declare: {}. Do not retry with this client.",
                    needed.as_str()
                );
                result::say(self.call.ask.method, &words)
            }
        }
    }

    /// A legacy server wants the user to visit URLs first (2025-11-25, -32042).
    pub(super) async fn url_required(
        &mut self,
        message: Untrusted<String>,
        data: Option<Untrusted<Json>>,
    ) -> Result<CleanResult, Refusal> {
        self.record.upstream_failed("JSON-RPC error");
        let mut pages = data
            .as_ref()
            .map(Untrusted::destinations)
            .unwrap_or_default();
        let cleaned = self
            .pipeline
            .sanitizer
            .error(message, data, self.rules(), EXCERPT);
        let error = match cleaned {
            Ok(error) => error,
            Err(unclean) => return result::kept_back(self, unclean),
        };
        self.record.found(error.findings.clone());
        let wanted = elicitations(error.data.as_ref());
        if wanted.is_empty() {
            return result::rpc(self, codes::INTERNAL_ERROR, error);
        }
        let lacking = wanted
            .iter()
            .find_map(|one| self.call.capabilities.lacking(one.method, &one.params));
        if let Some(needed) = lacking {
            let first = (!pages.is_empty()).then(|| pages.swap_remove(0));
            return self.cannot_ask(needed, first).await;
        }
        let data = match self
            .with_links(error.data.unwrap_or_else(Json::empty_object), pages)
            .await
        {
            Ok(data) => data,
            Err(told) => return told,
        };
        match self.call.asking {
            Asking::Rounds => {
                let none = Untrusted::new(Json::empty_object());
                self.pass_on(&elicitations(Some(&data)), None, none).await
            }
            Asking::Beside | Asking::Not => Err(Refusal::Upstream {
                code: codes::LEGACY_URL_ELICITATION_REQUIRED,
                message: error.message,
                data: Some(data),
            }),
        }
    }
}

/// A reply that an upstream of the modern era can be told: it takes results alone.
fn usable(method: ServerMethod, reply: Option<Result<Json, Json>>) -> Option<Json> {
    match reply {
        Some(Ok(result)) => method.is_answered_by(&result).then_some(result),
        Some(Err(_)) | None => method.unanswered("").ok(),
    }
}

/// The elicitations of a -32042, in the form of requests.
fn elicitations(data: Option<&Json>) -> Vec<Wanted> {
    let given = data.and_then(|data| data.get("elicitations"));
    let given = given.unwrap_or_else(|| ArrayBuilder::new().build());
    let url = |params: &Json| {
        let mode = params.get("mode");
        mode.as_ref().and_then(Json::string).as_deref() == Some("url")
    };
    let wanted = |(at, params): (usize, Json)| Wanted {
        key: format!("elicitation-{}", at + 1),
        method: ServerMethod::Elicit,
        params,
    };
    let found = given.elements().filter(url).enumerate();
    found.map(wanted).collect()
}
