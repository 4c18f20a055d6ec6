//! `clients`: OAuth clients that are known beforehand, machines among them.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Deserialize;

use super::check::Check;
use crate::ids::{ClientId, Role, Scope, TenantId};

/// One entry of `clients`. Its key is the `client_id`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Client {
    /// What people are shown. Without it the id.
    pub name: Option<String>,
    /// File with its secret.
    pub secret_file: Option<PathBuf>,
    /// File with its public keys as a key set, for `private_key_jwt` (RFC 7523).
    pub jwks_file: Option<PathBuf>,
    /// URL of its public keys, for `private_key_jwt`.
    pub jwks_url: Option<String>,
    /// Where people are sent back to. A loopback one fits with any port (RFC 8252 §7.3).
    pub redirect_uris: Vec<String>,
    /// What it may use.
    pub grants: Vec<ClientGrant>,
    /// The tenant that it acts in as a machine.
    pub tenant: Option<TenantId>,
    /// The roles that it has there as a machine.
    pub roles: Vec<Role>,
    /// The scopes that it may be granted. Without any: `mcp` as a machine, all for people.
    pub scopes: Vec<Scope>,
    /// Whether it is a resource server that may ask about tokens (RFC 7662).
    pub introspection: bool,
}

/// An element of `clients.*.grants`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum ClientGrant {
    /// People sign in through it; with refresh tokens.
    #[serde(rename = "authorization_code")]
    AuthorizationCode,
    /// It acts for itself.
    #[serde(rename = "client_credentials")]
    ClientCredentials,
    /// It brings assertions of the company's identity provider (ID-JAG).
    #[serde(
        rename = "urn:ietf:params:oauth:grant-type:jwt-bearer",
        alias = "jwt-bearer"
    )]
    JwtBearer,
}

impl Client {
    /// Whether it may use a grant. Without a list: what its redirects suggest.
    pub fn may(&self, grant: ClientGrant) -> bool {
        if self.grants.is_empty() {
            return grant == ClientGrant::AuthorizationCode && !self.redirect_uris.is_empty();
        }
        self.grants.contains(&grant)
    }

    /// Whether it can prove who it is.
    pub fn is_confidential(&self) -> bool {
        self.secret_file.is_some() || self.jwks_file.is_some() || self.jwks_url.is_some()
    }

    fn validate(&self, check: &mut Check<'_>) {
        check.within("jwks_url", |check| self.validate_jwks_url(check));
        check.each("redirect_uris", &self.redirect_uris, |uri, check| {
            if uri.contains('#') || uri.contains(char::is_whitespace) || !uri.contains(':') {
                check.fault(
                    "is no redirect URI",
                    "write an absolute URI without a fragment, such as `http://127.0.0.1/callback`",
                );
            }
        });
        if let Some(tenant) = &self.tenant {
            check.within("tenant", |check| check.refers("tenants", tenant.as_str()));
        }
        if self.may(ClientGrant::AuthorizationCode) && self.redirect_uris.is_empty() {
            check.within("grants", |check| {
                check.fault(
                    "has `authorization_code`, and there are no `redirect_uris`",
                    "add them",
                );
            });
        }
        if self.may(ClientGrant::ClientCredentials) && self.tenant.is_none() {
            check.within("grants", |check| {
                check.fault(
                    "has `client_credentials`, and there is no `tenant`",
                    "name the tenant that this machine acts in",
                );
            });
        }
        let machine = self.may(ClientGrant::ClientCredentials) || self.may(ClientGrant::JwtBearer);
        if (machine || self.introspection) && !self.is_confidential() {
            check.fault(
                "cannot prove who it is",
                "add `secret_file`, `jwks_file` or `jwks_url`",
            );
        }
    }

    fn validate_jwks_url(&self, check: &mut Check<'_>) {
        let Some(text) = &self.jwks_url else { return };
        if self.jwks_file.is_some() {
            check.key_fault("stands beside `jwks_file`", "keep one of them");
        }
        if let Some(url) = check.url(text, "https://app.example.com/keys") {
            check.secure(url);
        }
    }
}

/// All of them.
pub(super) fn validate(clients: &IndexMap<ClientId, Client>, check: &mut Check<'_>) {
    for (id, client) in clients {
        check.within(id.as_str(), |check| {
            // RFC 6749 §A.1: visible ASCII; a colon would end it in Basic credentials.
            let possible = |c: char| c.is_ascii_graphic() && c != ':';
            if id.as_str().is_empty() || !id.as_str().chars().all(possible) {
                check.key_fault("is no client id", "use letters, digits, `.`, `_` and `-`");
            }
            client.validate(check);
        });
    }
}
