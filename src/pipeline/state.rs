//! `requestState` of ours: what a retry has to be a retry of, sealed and bound to
//! its caller (MCP 2026-07-28 multi round-trip requests, Server Requirements).

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::canonical_digest;
use crate::ids::{CallId, ReplicaId};
use crate::protocol::Json;
use crate::seal::Sealer;

use super::Ask;

/// Longest state that travels with the client; a longer one is stored.
pub(super) const LONGEST: usize = 16 << 10;

/// What is sealed. Short names: it travels.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct State {
    /// Method.
    #[serde(rename = "m")]
    pub(super) method: String,
    /// What it is about.
    #[serde(rename = "n")]
    pub(super) name: String,
    /// Digest of the parameters.
    #[serde(rename = "d")]
    pub(super) digest: [u8; 32],
    /// The upstream.
    #[serde(rename = "u")]
    pub(super) upstream: String,
    /// Seconds of the Unix epoch at which it ends.
    #[serde(rename = "x")]
    pub(super) expires: i64,
    /// The first of the calls.
    #[serde(rename = "f")]
    pub(super) first_call: CallId,
    #[serde(rename = "k")]
    pub(super) kept: Kept,
}

/// Where the conversation with the upstream is kept.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) enum Kept {
    /// Here: the upstream's own state, verbatim, where it gave one.
    #[serde(rename = "u")]
    Upstream(Option<String>),
    /// In a parked exchange of a replica.
    #[serde(rename = "p")]
    Parked(ReplicaId, Uuid),
}

/// What the client holds.
#[derive(Serialize, Deserialize)]
pub(super) enum Token {
    #[serde(rename = "i")]
    Inline(Box<State>),
    /// In the table, sealed.
    #[serde(rename = "s")]
    Stored(Uuid),
}

impl State {
    /// Whether a retry at this time is a retry of what the state is for.
    pub(super) fn fits(&self, ask: &Ask, upstream: &str, now: i64) -> bool {
        self.method == ask.method.as_str()
            && self.name == ask.name
            && self.upstream == upstream
            && self.expires > now
            && self.digest == digest_of(ask)
    }
}

/// What a client holds of a task: the id that it is given, sealed for it alone.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Handle {
    /// The upstream.
    #[serde(rename = "u")]
    pub(super) upstream: String,
    /// The upstream's own id of the task.
    #[serde(rename = "t")]
    pub(super) task: String,
    /// The tool whose call became the task, as callers name it.
    #[serde(rename = "n")]
    pub(super) tool: String,
    /// That call, or the first of its rounds.
    #[serde(rename = "f")]
    pub(super) first_call: CallId,
}

impl Handle {
    pub(super) fn seal(&self, sealer: &Sealer, caller: &[u8; 32]) -> String {
        let plain = serde_json::to_vec(self).unwrap_or_default();
        sealer.seal(&plain, &Self::bound(caller))
    }

    /// `None` where it is not this caller's, or not ours.
    pub(super) fn open(sealer: &Sealer, text: &str, caller: &[u8; 32]) -> Option<Self> {
        let plain = sealer.open(text, &Self::bound(caller)).ok()?;
        serde_json::from_slice(&plain).ok()
    }

    /// A state of a request is no handle, whatever is in it.
    fn bound(caller: &[u8; 32]) -> Vec<u8> {
        [caller.as_slice(), b"task".as_slice()].concat()
    }
}

/// Seals what a client is to bring back.
pub(super) fn seal(sealer: &Sealer, token: &Token, caller: &[u8; 32]) -> String {
    let plain = serde_json::to_vec(token).unwrap_or_default();
    sealer.seal(&plain, caller)
}

/// Opens what a client has brought; `None` where it is not this caller's, or not ours.
pub(super) fn open(sealer: &Sealer, text: &str, caller: &[u8; 32]) -> Option<Token> {
    let plain = sealer.open(text, caller).ok()?;
    serde_json::from_slice(&plain).ok()
}

/// A digest of all parameters that a retry repeats.
pub(super) fn digest_of(ask: &Ask) -> [u8; 32] {
    let changes = |name: &str| matches!(name, "_meta" | "inputResponses" | "requestState");
    let repeated: Json = ask.params.without_members(changes);
    canonical_digest(&repeated)
}

/// A place in the table that tells nothing of the caller.
pub(super) fn owner_of(caller: &[u8; 32]) -> Vec<u8> {
    digest(&SHA256, caller).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Method;
    use crate::seal::{Keys, Label};

    const ALICE: [u8; 32] = [1; 32];
    const MALLORY: [u8; 32] = [2; 32];

    fn sealer() -> Sealer {
        let keys = Keys::parse(&Keys::generate_line()).unwrap();
        keys.sealer(Label::RequestState)
    }

    fn ask(params: &serde_json::Value) -> Ask {
        Ask {
            method: Method::CallTool,
            name: "tool".to_owned(),
            params: Json::from_value(params),
        }
    }

    fn state() -> State {
        State {
            method: "tools/call".to_owned(),
            name: "tool".to_owned(),
            digest: digest_of(&ask(
                &serde_json::json!({"name": "tool", "arguments": {"a": 1}}),
            )),
            upstream: "up".to_owned(),
            expires: 100,
            first_call: CallId(Uuid::nil()),
            kept: Kept::Upstream(Some("own".to_owned())),
        }
    }

    #[test]
    fn a_state_opens_for_its_caller_alone_and_only_as_it_was_sealed() {
        let sealer = sealer();
        let text = seal(&sealer, &Token::Inline(Box::new(state())), &ALICE);
        let opened = open(&sealer, &text, &ALICE).unwrap();
        assert!(matches!(opened, Token::Inline(own) if *own == state()));
        assert!(open(&sealer, &text, &MALLORY).is_none(), "a foreign one");
        for at in [0, text.len() / 2, text.len() - 2] {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert!(open(&sealer, &forged, &ALICE).is_none(), "forged at {at}");
        }
        assert!(open(&self::sealer(), &text, &ALICE).is_none(), "other keys");
        assert!(open(&sealer, "", &ALICE).is_none());
    }

    #[test]
    fn a_state_fits_its_own_request_in_its_time_and_no_other() {
        let same = serde_json::json!({
            "arguments": {"a": 1}, "name": "tool", "_meta": {"x": 1},
            "requestState": "s", "inputResponses": {},
        });
        let (ask, state) = (ask(&same), state());
        assert!(state.fits(&ask, "up", 99));
        assert!(!state.fits(&ask, "up", 100), "its time is over");
        assert!(!state.fits(&ask, "down", 99), "another upstream");
        let mut other = ask.clone();
        other.name = "another".to_owned();
        assert!(!state.fits(&other, "up", 99), "another tool");
        let mut other = ask.clone();
        other.method = Method::GetPrompt;
        assert!(!state.fits(&other, "up", 99), "another method");
        let changed = serde_json::json!({"name": "tool", "arguments": {"a": 2}});
        assert!(
            !state.fits(&self::ask(&changed), "up", 99),
            "other arguments"
        );
    }

    #[test]
    fn a_handle_is_its_callers_alone_and_no_state() {
        let sealer = sealer();
        let handle = Handle {
            upstream: "up".to_owned(),
            task: "task-1".to_owned(),
            tool: "tool".to_owned(),
            first_call: CallId(Uuid::nil()),
        };
        let text = handle.seal(&sealer, &ALICE);
        assert_eq!(Handle::open(&sealer, &text, &ALICE).unwrap(), handle);
        assert!(Handle::open(&sealer, &text, &MALLORY).is_none());
        assert!(open(&sealer, &text, &ALICE).is_none(), "no state");
        let state = seal(&sealer, &Token::Stored(Uuid::nil()), &ALICE);
        assert!(Handle::open(&sealer, &state, &ALICE).is_none(), "no handle");
    }
}
