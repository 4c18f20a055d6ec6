//! What the rules work with: what lives as long as the process, and one request's view of it.

use std::fmt;
use std::sync::Arc;

use super::Settings;
use crate::clock::SharedClock;
use crate::ids::ReplicaId;
use crate::outgoing::Outgoing;
use crate::seal::{Keys, Label, Sealer};
use crate::store::Store;

/// What an authorization server is made of.
pub struct Parts {
    /// Where its state is.
    pub store: Store,
    /// How documents and keys are fetched.
    pub outgoing: Arc<Outgoing>,
    /// What time it is.
    pub clock: SharedClock,
    /// Which process this is.
    pub replica: ReplicaId,
    /// The deployment's keys.
    pub keys: Keys,
}

/// The authorization server, as far as it outlives a configuration.
pub struct AuthorizationServer {
    pub(super) store: Store,
    pub(super) outgoing: Arc<Outgoing>,
    pub(super) clock: SharedClock,
    pub(super) replica: ReplicaId,
    pub(super) provider_tokens: Sealer,
}

/// A request's view: the server, the configuration that it runs under, and the
/// issuer, which is what every URL of an answer begins with.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The server.
    pub server: &'a AuthorizationServer,
    /// The configuration.
    pub settings: &'a Settings,
    /// The issuer, byte for byte.
    pub issuer: &'a str,
}

impl AuthorizationServer {
    /// Puts it together. Nothing is read yet.
    pub fn new(parts: Parts) -> Self {
        Self {
            provider_tokens: parts.keys.sealer(Label::UpstreamCredential),
            store: parts.store,
            outgoing: parts.outgoing,
            clock: parts.clock,
            replica: parts.replica,
        }
    }

    /// Where its state is.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How documents are fetched.
    pub fn outgoing(&self) -> &Arc<Outgoing> {
        &self.outgoing
    }

    /// What time it is.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }
}

impl fmt::Debug for AuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationServer")
            .finish_non_exhaustive()
    }
}
