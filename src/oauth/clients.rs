//! Clients: how they are known, and what is known of them.

use super::documents::DocumentFault;
use super::redirect::{self, RedirectKind};
use super::request::{ClientFacts, ClientKind};
use super::settings::ConfiguredClient;
use super::tokens::digest_of;
use super::{Site, text};
use crate::config::ClientGrant;
use crate::ids::{ClientId, Role, Scope, TenantId};
use crate::jose::KeySet;
use crate::store::StoreError;
use crate::store::oauth_clients::RegisteredClient;

/// Longest client id that is looked at.
const MAX_ID: usize = 1024;

/// A client that exists.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its id.
    pub id: ClientId,
    /// What it calls itself, cleaned.
    pub name: String,
    /// How it is known.
    pub kind: ClientKind,
    /// Where it may send people back to.
    pub redirect_uris: Vec<String>,
    /// How it proves who it is.
    pub(super) proof: Proof,
    /// What it may be granted; all of it where empty.
    pub(super) scopes: Vec<Scope>,
    pub(super) grants: Grants,
    /// Whether it may ask about tokens; of this tenant alone, where it has one.
    pub(super) introspection: bool,
    /// The tenant and the roles that it has as a machine.
    pub(super) machine: Option<(TenantId, Vec<Role>)>,
}

/// How a client proves who it is.
#[derive(Clone, Debug)]
pub(super) enum Proof {
    /// It cannot (RFC 6749 §2.1, public).
    None,
    /// By a secret, of which this is the digest.
    Secret(Vec<u8>),
    /// By signed assertions (RFC 7523 §2.2).
    Keys(ClientKeys),
    /// By either.
    SecretOrKeys(Vec<u8>, ClientKeys),
}

/// Where a client's keys are.
#[derive(Clone, Debug)]
pub(super) enum ClientKeys {
    Known(KeySet),
    At(String),
}

/// What a client may use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grants {
    pub(super) code: bool,
    pub(super) credentials: bool,
    pub(super) assertion: bool,
}

/// Why there is no client.
#[derive(Debug)]
pub enum ClientFault {
    /// Nobody knows it.
    Unknown,
    /// Its metadata document says no.
    Document(DocumentFault),
    /// The database could not be asked.
    Store(StoreError),
}

impl From<StoreError> for ClientFault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Client {
    /// Whether it can prove who it is.
    pub fn is_confidential(&self) -> bool {
        !matches!(self.proof, Proof::None)
    }

    /// The facts that a person is shown, for a redirect of this client's.
    pub(super) fn facts(&self, redirect_uri: &str, kind: RedirectKind) -> ClientFacts {
        ClientFacts {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: self.kind,
            document_host: (self.kind == ClientKind::Document)
                .then(|| redirect::shown_host(self.id.as_str())),
            redirect_host: redirect::shown_host(redirect_uri),
            redirect: kind,
            proven: self.is_confidential() || kind == RedirectKind::Https,
        }
    }
}

impl Site<'_> {
    /// The client of an id.
    ///
    /// # Errors
    /// [`ClientFault`]
    pub async fn client(&self, id: &str) -> Result<Client, ClientFault> {
        if id.is_empty() || id.len() > MAX_ID || !id.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(ClientFault::Unknown);
        }
        if let Some((id, client)) = self.settings.clients.get_key_value(id) {
            return Ok(configured(id, client));
        }
        let registration = &self.settings.server.registration;
        if id.contains("://") {
            if !registration.metadata_documents {
                return Err(ClientFault::Unknown);
            }
            return self
                .document_client(id)
                .await
                .map_err(ClientFault::Document);
        }
        let row = self.server.store.find_oauth_client(id).await?;
        row.map(registered).ok_or(ClientFault::Unknown)
    }
}

fn configured(id: &ClientId, client: &ConfiguredClient) -> Client {
    let config = &client.config;
    let keys = client
        .keys
        .clone()
        .map(ClientKeys::Known)
        .or_else(|| config.jwks_url.clone().map(ClientKeys::At));
    let secret = client
        .secret
        .as_ref()
        .map(|secret| digest_of(secret.expose()));
    Client {
        id: id.clone(),
        name: text::label(config.name.as_deref().unwrap_or(id.as_str())),
        kind: ClientKind::Configured,
        redirect_uris: config.redirect_uris.clone(),
        proof: match (secret, keys) {
            (None, None) => Proof::None,
            (Some(secret), None) => Proof::Secret(secret),
            (None, Some(keys)) => Proof::Keys(keys),
            (Some(secret), Some(keys)) => Proof::SecretOrKeys(secret, keys),
        },
        scopes: config.scopes.clone(),
        grants: Grants {
            code: config.may(ClientGrant::AuthorizationCode),
            credentials: config.may(ClientGrant::ClientCredentials),
            assertion: config.may(ClientGrant::JwtBearer),
        },
        introspection: config.introspection,
        machine: config
            .tenant
            .clone()
            .map(|tenant| (tenant, config.roles.clone())),
    }
}

fn registered(row: RegisteredClient) -> Client {
    // A row that lacks what its method needs proves nothing: it never becomes public.
    let proof = match row.auth_method.as_str() {
        "none" => Proof::None,
        "private_key_jwt" => Proof::Keys(match (row.jwks, row.jwks_uri) {
            (Some(jwks), _) => ClientKeys::Known(KeySet::parse(&jwks).unwrap_or_default()),
            (None, uri) => ClientKeys::At(uri.unwrap_or_default()),
        }),
        _ => Proof::Secret(row.secret_digest.unwrap_or_default()),
    };
    Client {
        id: ClientId::new(row.client_id),
        name: row.name,
        kind: ClientKind::Registered,
        redirect_uris: row.redirect_uris,
        proof,
        scopes: Vec::new(),
        grants: Grants {
            code: true,
            ..Grants::default()
        },
        introspection: false,
        machine: None,
    }
}
