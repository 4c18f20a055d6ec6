//! A client's request for authorization, validated: what a consent page shows and
//! what a code is made from. It can be sealed into a cookie, so that nothing is
//! stored before somebody has signed in.

use serde::{Deserialize, Serialize};

use super::Refusal;
use super::redirect::{RedirectKind, with_parameters};
use crate::ids::{ClientId, Scope, TenantId};

/// A valid request. Its redirect may be used: it is the client's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationRequest {
    /// Who asks.
    pub client: ClientFacts,
    /// Where the answer goes, as the client wrote it.
    pub redirect_uri: String,
    /// What it asks for; never empty.
    pub scopes: Vec<Scope>,
    /// What the token shall be for.
    pub resource: Resource,
    /// Handed back unchanged.
    pub state: Option<String>,
    /// The S256 challenge (RFC 7636 §4.2).
    pub code_challenge: String,
    /// What the person shall be asked.
    pub prompt: Prompt,
    /// Whom the client expects to sign in.
    pub login_hint: Option<String>,
    /// The issuer that the answer names (RFC 9207).
    pub issuer: String,
}

/// What can be said of a client. None of it but the id is more than its own word,
/// unless it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFacts {
    /// Its id.
    pub id: ClientId,
    /// What it calls itself; cleaned, at most 100 characters.
    pub name: String,
    /// How it is known.
    pub kind: ClientKind,
    /// The host of its metadata document, which vouches for it.
    pub document_host: Option<String>,
    /// Where a browser would be sent: host, or the scheme of a private-use one.
    pub redirect_host: String,
    /// What kind of redirect that is.
    pub redirect: RedirectKind,
    /// Whether nobody else can answer under this id: an https redirect, or a client
    /// that proves itself. Consent is remembered only then.
    pub proven: bool,
}

/// How a client is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    /// In `clients`.
    Configured,
    /// By its metadata document.
    Document,
    /// It registered itself.
    Registered,
}

/// An MCP endpoint (RFC 8707).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Its URL: the `aud` of tokens.
    pub url: String,
    /// The tenant that its path fixes.
    pub tenant: Option<TenantId>,
}

/// `prompt` (`OpenID` Connect Core §3.1.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the four values of the parameter, any of which may be together"
)]
pub struct Prompt {
    /// Nobody may be asked anything.
    pub none: bool,
    /// Sign in anew.
    pub login: bool,
    /// Ask for consent even where it is remembered.
    pub consent: bool,
    /// Choose the account.
    pub select_account: bool,
}

impl AuthorizationRequest {
    /// Where the browser goes with a code.
    pub fn granted(&self, code: &str) -> String {
        self.answer(&[("code", code)])
    }

    /// Where the browser goes without one. `iss` and `state` are in every answer.
    pub fn refused(&self, refusal: Refusal) -> String {
        self.answer(&[
            ("error", refusal.code()),
            ("error_description", refusal.description()),
        ])
    }

    fn answer(&self, parameters: &[(&str, &str)]) -> String {
        let mut all = parameters.to_vec();
        if let Some(state) = &self.state {
            all.push(("state", state));
        }
        all.push(("iss", &self.issuer));
        with_parameters(&self.redirect_uri, &all)
    }
}
