//! The rounds of a request whose caller is asked by an answer: what a retry goes
//! on with, and what the next answer gives the client to bring back.

use std::time::Duration;

use crate::clock::{SharedClock, new_call_id};
use crate::dispatch::Errand;
use crate::identity::Principal;
use crate::ids::{CallId, ReplicaId};
use crate::protocol::{Json, ServerRequest};
use crate::seal::Sealer;
use crate::store::Store;

use super::exchange::Exchange;
use super::parking::{Parked, Parking};
use super::state::{self, Handle, Kept, LONGEST, State, Token};
use super::{Ask, Asking, Call, Refusal};

/// How long callers may take, and how many of their calls may wait meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct InputSettings {
    /// How long an upstream's question waits for its answer.
    pub timeout: Duration,
    /// Calls of one caller that wait for input.
    pub per_caller: usize,
    /// Calls of the whole process that wait for input.
    pub total: usize,
}

/// Keeps what lies between two rounds.
pub struct Rounds {
    sealer: Sealer,
    store: Store,
    clock: SharedClock,
    own: ReplicaId,
    settings: InputSettings,
    parking: Parking,
}

/// What a request goes on with.
pub(super) enum Round {
    /// Nothing: it is the first.
    First {
        /// Input that came with it unasked, for the upstream to judge.
        responses: Option<Json>,
    },
    /// The upstream's own state, and the input that it asked for.
    Again {
        first_call: CallId,
        responses: Option<Json>,
        state: Option<String>,
    },
    /// An exchange that has waited for the input.
    Parked {
        first_call: CallId,
        parked: Box<Parked>,
        responses: Option<Json>,
    },
    /// An exchange that is gone.
    Lost { first_call: CallId },
}

impl Round {
    /// The first of the calls that this is one of.
    pub(super) fn first_call(&self) -> Option<CallId> {
        match self {
            Self::First { .. } => None,
            Self::Again { first_call, .. }
            | Self::Parked { first_call, .. }
            | Self::Lost { first_call } => Some(*first_call),
        }
    }
}

/// Which replica has to go on with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This one, or any.
    Here,
    /// That one holds the call.
    Elsewhere(ReplicaId),
}

impl Rounds {
    /// Rounds of the replica `own`.
    pub fn new(
        sealer: Sealer,
        store: Store,
        clock: SharedClock,
        own: ReplicaId,
        settings: InputSettings,
    ) -> Self {
        Self {
            sealer,
            store,
            clock,
            own,
            settings,
            parking: Parking::new(settings.per_caller, settings.total, settings.timeout),
        }
    }

    /// How long an upstream's question waits for its answer.
    pub fn patience(&self) -> Duration {
        self.settings.timeout
    }

    /// How many calls wait for input.
    pub fn waiting(&self) -> usize {
        self.parking.waiting()
    }

    /// Gives up the calls that wait: the process ends.
    pub fn give_up(&self) {
        self.parking.clear();
    }

    /// Which replica a retry belongs to.
    pub async fn owner(
        &self,
        caller: &[u8; 32],
        tenant: &crate::ids::TenantId,
        ask: &Ask,
    ) -> Owner {
        let given = ask.param("requestState");
        let Some(text) = given.as_ref().and_then(Json::string) else {
            return Owner::Here;
        };
        match self.opened(&text, caller, tenant).await {
            Some(State {
                kept: Kept::Parked(replica, _),
                ..
            }) if replica != self.own => Owner::Elsewhere(replica),
            _ => Owner::Here,
        }
    }

    /// The id under which a caller has a task.
    pub(super) fn task_id(&self, call: &Call, handle: &Handle) -> String {
        handle.seal(&self.sealer, call.context.principal().key().as_bytes())
    }

    /// The task that a caller means.
    pub(super) fn task(&self, caller: &Principal, id: &str) -> Option<Handle> {
        Handle::open(&self.sealer, id, caller.key().as_bytes())
    }

    async fn opened(
        &self,
        text: &str,
        caller: &[u8; 32],
        tenant: &crate::ids::TenantId,
    ) -> Option<State> {
        let id = match state::open(&self.sealer, text, caller)? {
            Token::Inline(state) => return Some(*state),
            Token::Stored(id) => id,
        };
        let owner = state::owner_of(caller);
        let found = self.store.find_request_state(tenant, id, &owner).await;
        let sealed = match found {
            Ok(found) => found?,
            Err(error) => {
                tracing::warn!(%error, "A stored request state could not be read.");
                return None;
            }
        };
        let sealed = String::from_utf8(sealed).ok()?;
        match state::open(&self.sealer, &sealed, caller)? {
            Token::Inline(state) => Some(*state),
            Token::Stored(_) => None,
        }
    }

    /// What the request goes on with.
    ///
    /// # Errors
    /// [`Refusal::MalformedParams`] where `requestState` is not of this caller and
    /// request, or `inputResponses` are none.
    pub(super) async fn open(&self, call: &Call, errand: &Errand) -> Result<Round, Refusal> {
        if call.asking != Asking::Rounds || !call.ask.method.may_ask() {
            return Ok(Round::First { responses: None });
        }
        let responses = call.ask.param("inputResponses");
        let formed =
            |json: &Json| json.is_object() && json.members().all(|(_, one)| one.is_object());
        if responses.as_ref().is_some_and(|json| !formed(json)) {
            return Err(malformed(
                "`params.inputResponses` must be an object of objects, each under the key of its request",
            ));
        }
        let Some(given) = call.ask.param("requestState") else {
            return Ok(Round::First { responses });
        };
        let foreign = || {
            malformed(
                "`params.requestState` does not belong to this request, or its time is over: begin anew without it",
            )
        };
        let caller = call.context.principal().key();
        let text = given.string().ok_or_else(foreign)?;
        let opened = self.opened(&text, caller.as_bytes(), call.context.tenant_id());
        let state = opened.await.ok_or_else(foreign)?;
        let now = self.clock.unix_seconds();
        if !state.fits(&call.ask, errand.upstream().as_str(), now) {
            return Err(foreign());
        }
        Ok(match state.kept {
            Kept::Upstream(own) => Round::Again {
                first_call: state.first_call,
                responses,
                state: own,
            },
            Kept::Parked(replica, id) => {
                let here = replica == self.own;
                let parked = here
                    .then(|| self.parking.take(id, caller.as_bytes()))
                    .flatten();
                match parked {
                    Some(parked) => Round::Parked {
                        first_call: state.first_call,
                        parked: Box::new(parked),
                        responses,
                    },
                    None => Round::Lost {
                        first_call: state.first_call,
                    },
                }
            }
        })
    }

    /// Whether the caller may let another exchange wait.
    pub(super) fn has_room(&self, call: &Call) -> bool {
        let caller = call.context.principal().key();
        self.parking.has_room(caller.as_bytes())
    }

    /// Lets an exchange wait for what it asked. Gives what the client brings back.
    pub(super) async fn park(
        &self,
        call: &Call,
        errand: &Errand,
        first_call: CallId,
        exchange: Exchange,
        asked: Vec<(String, ServerRequest)>,
    ) -> Option<String> {
        let caller = *call.context.principal().key().as_bytes();
        let id = new_call_id(&*self.clock).0;
        let kept = Kept::Parked(self.own, id);
        let state = self.sealed(call, errand, first_call, kept).await?;
        self.parking.park(id, caller, Parked { exchange, asked });
        Some(state)
    }

    /// What the client brings back of an upstream that keeps nothing itself.
    pub(super) async fn carry(
        &self,
        call: &Call,
        errand: &Errand,
        first_call: CallId,
        state: Option<String>,
    ) -> Option<String> {
        self.sealed(call, errand, first_call, Kept::Upstream(state))
            .await
    }

    async fn sealed(
        &self,
        call: &Call,
        errand: &Errand,
        first_call: CallId,
        kept: Kept,
    ) -> Option<String> {
        let caller = call.context.principal().key();
        let lifetime = i64::try_from(self.settings.timeout.as_secs()).unwrap_or(i64::MAX);
        let state = State {
            method: call.ask.method.as_str().to_owned(),
            name: call.ask.name.clone(),
            digest: state::digest_of(&call.ask),
            upstream: errand.upstream().to_string(),
            expires: self.clock.unix_seconds().saturating_add(lifetime),
            first_call,
            kept,
        };
        let token = Token::Inline(Box::new(state));
        let text = state::seal(&self.sealer, &token, caller.as_bytes());
        if text.len() <= LONGEST {
            return Some(text);
        }
        let id = new_call_id(&*self.clock).0;
        let owner = state::owner_of(caller.as_bytes());
        let until = self.clock.now() + self.settings.timeout;
        let tenant = call.context.tenant_id();
        let stored = self
            .store
            .insert_request_state(tenant, id, &owner, text.as_bytes(), until);
        match stored.await {
            Ok(()) => Some(state::seal(
                &self.sealer,
                &Token::Stored(id),
                caller.as_bytes(),
            )),
            Err(error) => {
                tracing::warn!(%error, "A request state is too long to travel and could not be stored.");
                None
            }
        }
    }
}

fn malformed(words: &str) -> Refusal {
    Refusal::MalformedParams(words.to_owned())
}
