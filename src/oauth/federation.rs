//! Sign-in through a company's identity provider: the gateway as an `OpenID` Connect
//! client (code, PKCE, nonce). Nothing of a client's request goes to the provider:
//! it sees our own client id, redirect, state, nonce, challenge and the configured
//! scopes, and no parameter that it might not know.
//!
//! Whether a signature is right is for `identity`, which has the keys; what the
//! claims of an ID token must say is judged here ([`judge`]).

mod exchange;
mod id_token;
mod metadata;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moka::sync::Cache;
use oauth2::{CsrfToken, PkceCodeChallenge, PkceCodeVerifier, Scope};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::clock::{self, SharedClock};
use crate::config::{IdentityProvider, Login, SecretFileFault};
use crate::outgoing::{Outgoing, OutgoingFault};

pub use exchange::{RenewFault, Tokens};
pub use id_token::{Expected, IdTokenFault, judge};
use metadata::{Known, Metadata};

/// How long an answer of a provider may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Providers' sides of a sign-in. Cheap to share; knows their metadata.
#[derive(Debug)]
pub struct Federation {
    outgoing: Arc<Outgoing>,
    clock: Clocked,
    known: Cache<String, Arc<Known>>,
}

/// A clock that needs no `Debug`.
struct Clocked(SharedClock);

impl std::fmt::Debug for Clocked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// What a browser takes with it to the provider, and what only we know of it.
#[derive(Debug)]
pub struct Departure {
    /// Where the browser goes.
    pub url: String,
    /// What must come back, and what proves that it was us.
    pub secrets: Secrets,
}

/// What ties the provider's answer to the question. Kept sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// `state`
    pub state: String,
    /// `nonce`
    pub nonce: String,
    /// The PKCE verifier.
    verifier: String,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(…)")
    }
}

/// What a browser brings back from the provider.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Return {
    /// The code.
    pub code: Option<String>,
    /// `state`
    pub state: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
    /// `iss` (RFC 9207).
    pub iss: Option<String>,
}

/// Why somebody cannot sign in through a provider. For the log; a page says less.
#[derive(Debug, Error)]
pub enum FederationFault {
    /// Its metadata cannot be had, or one of its endpoints.
    #[error("{0}")]
    Outgoing(#[from] OutgoingFault),
    /// Its metadata is not usable.
    #[error("the provider's metadata {0}")]
    Metadata(&'static str),
    /// Our secret cannot be read.
    #[error("`login.client_secret_file`: {0}")]
    SecretFile(#[from] SecretFileFault),
    /// The answer is of another provider than the one asked (RFC 9207 §2.4).
    #[error("the answer names another issuer than the provider that was asked")]
    MixedUp,
    /// It refused: an error code of RFC 6749, cleaned.
    #[error("the provider refused: {0}")]
    Refused(String),
    /// Its token endpoint answered with something else than tokens.
    #[error("the provider's token endpoint answered with {0}")]
    Answer(&'static str),
}

impl Federation {
    /// With nothing known yet.
    pub fn new(outgoing: Arc<Outgoing>, clock: SharedClock) -> Self {
        Self {
            outgoing,
            clock: Clocked(clock),
            known: Cache::new(256),
        }
    }

    /// Where the browser goes to sign in. `anew`: also where the provider knows it.
    ///
    /// # Errors
    /// [`FederationFault`]
    pub async fn depart(
        &self,
        provider: &IdentityProvider,
        login: &Login,
        redirect_uri: &str,
        asking: Asking,
    ) -> Result<Departure, FederationFault> {
        let metadata = self.metadata(provider).await?;
        let client = exchange::client(&metadata, login, redirect_uri, None)?;
        let secrets = Secrets {
            state: random_text(),
            nonce: random_text(),
            verifier: random_text(),
        };
        let verifier = PkceCodeVerifier::new(secrets.verifier.clone());
        let state = secrets.state.clone();
        let mut request = client
            .authorize_url(|| CsrfToken::new(state))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .add_extra_param("nonce", secrets.nonce.clone());
        for scope in &login.scopes {
            request = request.add_scope(Scope::new(scope.clone()));
        }
        if let Some(prompt) = asking.prompt() {
            request = request.add_extra_param("prompt", prompt);
        }
        let (url, _) = request.url();
        Ok(Departure {
            url: url.into(),
            secrets,
        })
    }

    /// Whether what came back is the answer of the provider that was asked.
    ///
    /// # Errors
    /// `MixedUp` where it is not; `Refused` with what the provider said.
    pub async fn arrive(
        &self,
        provider: &IdentityProvider,
        back: &Return,
    ) -> Result<String, FederationFault> {
        let metadata = self.metadata(provider).await?;
        match &back.iss {
            Some(iss) if *iss != provider.issuer => return Err(FederationFault::MixedUp),
            None if metadata.sends_iss => return Err(FederationFault::MixedUp),
            _ => {}
        }
        if let Some(error) = &back.error {
            let word = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
            let error = error.chars().filter(word).take(40).collect();
            return Err(FederationFault::Refused(error));
        }
        back.code
            .clone()
            .filter(|code| !code.is_empty())
            .ok_or(FederationFault::Answer("no code"))
    }

    /// The provider's usable metadata, an hour old at most; a day while it is away.
    async fn metadata(
        &self,
        provider: &IdentityProvider,
    ) -> Result<Arc<Metadata>, FederationFault> {
        let now = self.clock.0.unix_seconds();
        let known = self.known.get(&provider.issuer);
        if let Some(known) = known.as_ref().filter(|known| known.is_fresh(now)) {
            return Ok(Arc::clone(&known.metadata));
        }
        match metadata::fetch(&self.outgoing, &provider.issuer).await {
            Ok(metadata) => {
                let metadata = Arc::new(metadata);
                let known = Known::new(Arc::clone(&metadata), now);
                self.known.insert(provider.issuer.clone(), Arc::new(known));
                Ok(metadata)
            }
            Err(fault) => match known.filter(|known| known.will_do(now)) {
                Some(known) => Ok(Arc::clone(&known.metadata)),
                None => Err(fault),
            },
        }
    }
}

/// How the provider shall treat a person that it knows already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    /// Nobody may be asked anything.
    pub none: bool,
    /// The person shall prove again who they are.
    pub login: bool,
    /// The person shall choose an account.
    pub select_account: bool,
}

impl Asking {
    fn prompt(self) -> Option<&'static str> {
        match self {
            Self { none: true, .. } => Some("none"),
            Self { login: true, .. } => Some("login"),
            Self {
                select_account: true,
                ..
            } => Some("select_account"),
            _ => None,
        }
    }
}

/// 256 random bits as text: 43 characters, as RFC 7636 §4.1 wants of a verifier.
fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(clock::random::<32>())
}
