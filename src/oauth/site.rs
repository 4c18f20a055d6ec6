//! What the rules work with: what lives as long as the process, and one request's view of it.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use super::Settings;
use super::bucket::Bucket;
use super::continuations::Continuations;
use super::documents::Documents;
use super::federation::Federation;
use super::keys::SigningKeys;
use super::local::Passwords;
use crate::clock::SharedClock;
use crate::ids::ReplicaId;
use crate::outgoing::Outgoing;
use crate::seal::{Keys, Label, Prf, Sealer};
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
    pub(super) refresh_tokens: Prf,
    pub(super) keys: SigningKeys,
    pub(super) documents: Documents,
    pub(super) strangers: Bucket,
    pub(super) revoked: Notify,
    cookies: Sealer,
    federation: Federation,
    passwords: Passwords,
    continuations: Continuations,
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
            provider_tokens: parts.keys.sealer(Label::ProviderToken),
            refresh_tokens: parts.keys.prf(Label::RefreshToken),
            keys: SigningKeys::new(parts.keys.sealer(Label::SigningKey)),
            documents: Documents::default(),
            strangers: Bucket::default(),
            revoked: Notify::new(),
            cookies: parts.keys.sealer(Label::Cookie),
            federation: Federation::new(Arc::clone(&parts.outgoing), Arc::clone(&parts.clock)),
            passwords: Passwords::new(Arc::clone(&parts.clock)),
            continuations: Continuations::new(
                parts.store.clone(),
                &parts.keys,
                Arc::clone(&parts.clock),
            ),
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

    /// What seals the refresh tokens that identity providers gave.
    pub(super) fn provider_tokens(&self) -> &Sealer {
        &self.provider_tokens
    }

    /// What seals cookies and what travels in forms.
    pub fn cookies(&self) -> &Sealer {
        &self.cookies
    }

    /// How people sign in through identity providers.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// How people sign in with a password.
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// Where links lead that callers were given.
    pub fn continuations(&self) -> &Continuations {
        &self.continuations
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
