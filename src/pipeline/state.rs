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
