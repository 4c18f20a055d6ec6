//! What the rules need of the configuration, with its secrets read.

use std::collections::BTreeSet;
use std::path::Path;

use indexmap::{IndexMap, IndexSet};
use thiserror::Error;

use super::IdTokens;
use crate::config::{self, Config, SecretFileFault};
use crate::ids::{ClientId, ProviderId, Scope, TenantId};
use crate::jose::{KeySet, KeySetFault};
use crate::secret::Secret;

/// The scope that every endpoint has.
pub const BASE_SCOPE: &str = "mcp";
/// What clients ask for who want to stay signed in (`OpenID` Connect Core §11). They
/// get a refresh token anyway.
pub const OFFLINE_ACCESS: &str = "offline_access";

/// One configuration's view of the authorization server.
#[derive(Debug)]
pub struct Settings {
    /// `authorization_server`
    pub server: config::AuthorizationServer,
    /// `clients`
    pub clients: IndexMap<ClientId, ConfiguredClient>,
    /// `identity_providers`
    pub providers: IndexMap<ProviderId, config::IdentityProvider>,
    /// `users`
    pub users: IndexMap<String, config::User>,
    /// `admins`
    pub admins: Vec<config::Admin>,
    /// The tenants that exist.
    pub tenants: BTreeSet<TenantId>,
    /// How the ID tokens of providers are read.
    pub id_tokens: Option<IdTokens>,
    /// Every scope that can be asked for, the base one first; without `offline_access`.
    pub scopes: Vec<Scope>,
}

/// A client of the configuration, ready to be checked against.
#[derive(Debug)]
pub struct ConfiguredClient {
    /// As configured.
    pub config: config::Client,
    /// Its secret.
    pub secret: Option<Secret<String>>,
    /// Its keys, where they are in a file.
    pub keys: Option<KeySet>,
}

/// Why a configuration cannot be put to use.
#[derive(Debug, Error)]
pub enum SettingsFault {
    /// A secret cannot be read.
    #[error("`clients.{client}.secret_file`: {fault}")]
    Secret {
        /// Whose.
        client: ClientId,
        /// Why.
        fault: SecretFileFault,
    },
    /// A keys file cannot be read.
    #[error("`clients.{client}.jwks_file`: {fault}")]
    KeysFile {
        /// Whose.
        client: ClientId,
        /// Why.
        fault: SecretFileFault,
    },
    /// A keys file is none.
    #[error("`clients.{client}.jwks_file`: {fault}")]
    Keys {
        /// Whose.
        client: ClientId,
        /// Why.
        fault: KeySetFault,
    },
}

impl Settings {
    /// Takes a configuration, and reads its clients' secrets and keys.
    ///
    /// # Errors
    /// [`SettingsFault`]
    pub fn new(config: &Config) -> Result<Self, SettingsFault> {
        let clients = config
            .clients
            .iter()
            .map(|(id, client)| Ok((id.clone(), ConfiguredClient::new(id, client)?)))
            .collect::<Result<_, _>>()?;
        let mut scopes: IndexSet<Scope> = IndexSet::from([Scope::from(BASE_SCOPE)]);
        for rule in &config.tools {
            scopes.extend(rule.scopes.iter().flatten().cloned());
        }
        for (broader, implied) in &config.authorization_server.implied_scopes {
            scopes.insert(broader.clone());
            scopes.extend(implied.iter().cloned());
        }
        Ok(Self {
            server: config.authorization_server.clone(),
            clients,
            providers: config.identity_providers.clone(),
            users: config.users.clone(),
            admins: config.admins.clone(),
            id_tokens: None,
            tenants: config.tenants.keys().cloned().collect(),
            scopes: scopes.into_iter().collect(),
        })
    }

    /// Reads ID tokens so: when a person's standing is asked for.
    #[must_use]
    pub fn reading(mut self, id_tokens: IdTokens) -> Self {
        self.id_tokens = Some(id_tokens);
        self
    }

    /// What scopes stand for: they, and all that they imply.
    pub fn implied_by<S: AsRef<str>>(&self, scopes: &[S]) -> BTreeSet<Scope> {
        let each = scopes.iter().map(|scope| Scope::from(scope.as_ref()));
        each.flat_map(|scope| self.server.implied_by(&scope))
            .collect()
    }

    /// Whether a scope can be granted.
    pub fn knows_scope(&self, scope: &str) -> bool {
        scope == OFFLINE_ACCESS || self.scopes.iter().any(|known| known.as_str() == scope)
    }
}

impl ConfiguredClient {
    fn new(id: &ClientId, client: &config::Client) -> Result<Self, SettingsFault> {
        let secret = client
            .secret_file
            .as_deref()
            .map(config::read_secret_file)
            .transpose()
            .map_err(|fault| SettingsFault::Secret {
                client: id.clone(),
                fault,
            })?;
        let keys = client
            .jwks_file
            .as_deref()
            .map(|path| keys(id, path))
            .transpose()?;
        Ok(Self {
            config: client.clone(),
            secret,
            keys,
        })
    }
}

fn keys(id: &ClientId, path: &Path) -> Result<KeySet, SettingsFault> {
    let text = config::read_secret_file(path).map_err(|fault| SettingsFault::KeysFile {
        client: id.clone(),
        fault,
    })?;
    KeySet::parse(text.expose()).map_err(|fault| SettingsFault::Keys {
        client: id.clone(),
        fault,
    })
}
