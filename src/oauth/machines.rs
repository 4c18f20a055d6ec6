//! Callers without a browser: machines that act for themselves (RFC 6749 §4.4; MCP
//! extension `io.modelcontextprotocol/oauth-client-credentials`), and clients that
//! bring an assertion of the company's identity provider (ID-JAG; MCP extension
//! `io.modelcontextprotocol/enterprise-managed-authorization`).

use serde_json::Value;

use super::authenticate::{lasting, names_audience};
use super::authorize::{Parameters, only};
use super::clients::Client;
use super::exchange::REPEATED;
use super::person::own_subject;
use super::request::Resource;
use super::settings::BASE_SCOPE;
use super::tokens::{AccessClaims, Tokens};
use super::{Event, Ledger, OFFLINE_ACCESS, Site, TokenFault};
use crate::config::IdentityProvider;
use crate::ids::{Issuer, ProviderId, Role, Subject, TenantId};
use crate::jose::{Claims, claim_at};

/// The grant type of assertions (RFC 7523 §2.1).
pub const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// `typ` of an identity assertion for a client.
const ID_JAG: &str = "oauth-id-jag+jwt";

/// An assertion whose signature is that of a configured provider.
#[derive(Debug)]
pub struct Assertion {
    /// The provider.
    pub provider: ProviderId,
    /// `typ` of its header.
    pub typ: Option<String>,
    /// Its claims; nothing of them is judged yet.
    pub claims: Claims,
}

impl Site<'_> {
    pub(super) async fn client_credentials(
        &self,
        client: &Client,
        parameters: &Parameters,
        ledger: &dyn Ledger,
    ) -> Result<Tokens, TokenFault> {
        let allowed = client.grants.credentials && client.is_confidential();
        let (Some((tenant, roles)), true) = (&client.machine, allowed) else {
            return Err(TokenFault::UnauthorizedClient);
        };
        let resource = self.asked_resource(parameters, tenant)?;
        let scopes =
            self.machine_scopes(client, only(parameters, "scope").map_err(|()| REPEATED)?)?;
        let roles: Vec<String> = roles.iter().map(ToString::to_string).collect();
        self.issue(
            client,
            client.id.as_str(),
            tenant,
            &roles,
            &scopes,
            &resource,
            "client_credentials",
            ledger,
        )
        .await
    }

    /// Exchanges an ID-JAG. Its signature was checked with the keys of the provider
    /// that its `iss` names; everything else is judged here (`rules.md` §4.8).
    ///
    /// # Errors
    /// [`TokenFault`]
    pub async fn assertion(
        &self,
        client: &Client,
        assertion: &Assertion,
        parameters: &Parameters,
        ledger: &dyn Ledger,
    ) -> Result<Tokens, TokenFault> {
        const WRONG: TokenFault = TokenFault::InvalidGrant("the assertion is not accepted");
        if !(client.grants.assertion && client.is_confidential()) {
            return Err(TokenFault::UnauthorizedClient);
        }
        let provider = self
            .settings
            .providers
            .get(&assertion.provider)
            .filter(|provider| provider.id_jag)
            .ok_or(WRONG)?;
        let claims = &assertion.claims;
        let now = self.server.clock.unix_seconds();
        let until = judge(assertion, client.id.as_str(), self.issuer, now)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let subject = text("sub").filter(|sub| !sub.is_empty()).ok_or(WRONG)?;
        let tenant = tenant(provider, claims).ok_or(TokenFault::InvalidGrant(
            "the assertion does not say which tenant it is for, or one that its issuer is not trusted for",
        ))?;
        if !self.settings.tenants.contains(&tenant) {
            return Err(WRONG);
        }
        let resource = self.asserted_resource(parameters, claims, &tenant)?;
        let asked = only(parameters, "scope").map_err(|()| REPEATED)?;
        let scopes = self.asserted_scopes(client, text("scope"), asked)?;
        let roles = roles(provider, claims);
        let jti = text("jti").filter(|jti| !jti.is_empty()).ok_or(WRONG)?;
        self.use_once("id-jag", &provider.issuer, jti, until)
            .await?;
        let own = own_subject(
            &Issuer::from(provider.issuer.as_str()),
            &Subject::from(subject),
        );
        self.issue(
            client,
            own.as_str(),
            &tenant,
            &roles,
            &scopes,
            &resource,
            "jwt-bearer",
            ledger,
        )
        .await
    }

    #[expect(clippy::too_many_arguments, reason = "each is a claim of the token")]
    async fn issue(
        &self,
        client: &Client,
        subject: &str,
        tenant: &TenantId,
        roles: &[String],
        scopes: &[String],
        resource: &Resource,
        by: &'static str,
        ledger: &dyn Ledger,
    ) -> Result<Tokens, TokenFault> {
        let (access_token, expires_in) = self
            .access_token(&AccessClaims {
                subject,
                client: client.id.as_str(),
                audience: &resource.url,
                tenant: tenant.as_str(),
                roles,
                scopes,
                of: None,
            })
            .await?;
        ledger
            .record(Event::Issued {
                tenant: tenant.clone(),
                subject: Subject::from(subject),
                client: client.id.clone(),
                grant: None,
                by,
            })
            .await?;
        Ok(Tokens {
            access_token,
            expires_in,
            refresh_token: None,
            scope: scopes.join(" "),
        })
    }

    /// The endpoint that a machine asks for: `/mcp`, or one of its own tenant.
    fn asked_resource(
        &self,
        parameters: &Parameters,
        tenant: &TenantId,
    ) -> Result<Resource, TokenFault> {
        let resource = match only(parameters, "resource") {
            Ok(None) => Resource::root(self.issuer),
            Ok(Some(text)) => {
                Resource::named(self.issuer, text).ok_or(TokenFault::InvalidTarget)?
            }
            Err(()) => return Err(TokenFault::InvalidTarget),
        };
        let fits = resource.tenant.as_ref().is_none_or(|fixed| fixed == tenant);
        fits.then_some(resource).ok_or(TokenFault::InvalidTarget)
    }

    /// The endpoint that an assertion is for, which the request may repeat.
    fn asserted_resource(
        &self,
        parameters: &Parameters,
        claims: &Claims,
        tenant: &TenantId,
    ) -> Result<Resource, TokenFault> {
        let asserted = match claims.get("resource") {
            Some(Value::String(text)) => text.as_str(),
            Some(Value::Array(all)) => match all.as_slice() {
                [Value::String(text)] => text,
                _ => return Err(TokenFault::InvalidTarget),
            },
            _ => return Err(TokenFault::InvalidGrant("the assertion has no resource")),
        };
        let resource = Resource::named(self.issuer, asserted).ok_or(TokenFault::InvalidTarget)?;
        let asked = self.asked_resource(parameters, tenant)?;
        let repeated = only(parameters, "resource") == Ok(None) || asked == resource;
        let fits = resource.tenant.as_ref().is_none_or(|fixed| fixed == tenant);
        (repeated && fits)
            .then_some(resource)
            .ok_or(TokenFault::InvalidTarget)
    }

    /// The scopes of a machine: those of its configuration, or some of them.
    fn machine_scopes(
        &self,
        client: &Client,
        asked: Option<&str>,
    ) -> Result<Vec<String>, TokenFault> {
        let own: Vec<String> = if client.scopes.is_empty() {
            vec![BASE_SCOPE.to_owned()]
        } else {
            client.scopes.iter().map(ToString::to_string).collect()
        };
        self.chosen(&own, asked)
    }

    /// The scopes of an assertion: those that it has, as far as they are known and the
    /// client may have them; the request may narrow them.
    fn asserted_scopes(
        &self,
        client: &Client,
        asserted: Option<&str>,
        asked: Option<&str>,
    ) -> Result<Vec<String>, TokenFault> {
        let allowed = |scope: &&str| {
            self.settings.knows_scope(scope)
                && *scope != OFFLINE_ACCESS
                && (client.scopes.is_empty()
                    || client.scopes.iter().any(|one| one.as_str() == *scope))
        };
        let asserted = asserted
            .filter(|text| !text.trim().is_empty())
            .unwrap_or(BASE_SCOPE);
        let own: Vec<String> = asserted
            .split_ascii_whitespace()
            .filter(allowed)
            .map(str::to_owned)
            .collect();
        if own.is_empty() {
            return Err(TokenFault::InvalidScope);
        }
        self.chosen(&own, asked)
    }

    fn chosen(&self, own: &[String], asked: Option<&str>) -> Result<Vec<String>, TokenFault> {
        let implied = self.settings.implied_by(own);
        let mut scopes: Vec<String> = Vec::new();
        for scope in asked.unwrap_or_default().split_ascii_whitespace() {
            let is_own = implied.contains(scope);
            if !is_own && self.settings.knows_scope(scope) && scope != OFFLINE_ACCESS {
                return Err(TokenFault::InvalidScope);
            }
            if is_own && !scopes.iter().any(|one| one == scope) {
                scopes.push(scope.to_owned());
            }
        }
        Ok(if scopes.is_empty() {
            own.to_vec()
        } else {
            scopes
        })
    }
}

/// Kind, audience, client and times. Returns until when it is good.
fn judge(assertion: &Assertion, client: &str, issuer: &str, now: i64) -> Result<i64, TokenFault> {
    let wrong = TokenFault::InvalidGrant;
    let typ = assertion
        .typ
        .as_deref()
        .unwrap_or_default()
        .to_ascii_lowercase();
    if typ.strip_prefix("application/").unwrap_or(&typ) != ID_JAG {
        return Err(wrong("the assertion's typ must be oauth-id-jag+jwt"));
    }
    let claims = &assertion.claims;
    if !names_audience(claims, &[issuer]) {
        return Err(wrong(
            "the assertion's aud must be the issuer of this server",
        ));
    }
    if claims.get("client_id").and_then(Value::as_str) != Some(client) {
        return Err(wrong("the assertion is for another client"));
    }
    lasting(claims, now).ok_or(wrong("the assertion has expired, or is good for too long"))
}

/// The tenant that claims of a provider name, if the provider is trusted for it.
fn tenant(provider: &IdentityProvider, claims: &Claims) -> Option<TenantId> {
    let claimed = match claim_at(claims, &provider.claims.tenant) {
        Some(Value::Array(all)) => match all.as_slice() {
            [one] => Some(one),
            [] => None,
            _ => return None,
        },
        other => other,
    };
    match claimed.filter(|value| !value.is_null()) {
        None => match provider.tenants.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        },
        Some(value) => {
            let tenant = TenantId::from(value.as_str()?);
            let trusted = provider.tenants.is_empty() || provider.tenants.contains(&tenant);
            trusted.then_some(tenant)
        }
    }
}

fn roles(provider: &IdentityProvider, claims: &Claims) -> Vec<String> {
    let roles: Vec<Role> = match claim_at(claims, &provider.claims.roles) {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(Value::as_str)
            .map(Role::from)
            .collect(),
        Some(Value::String(text)) => text.split_ascii_whitespace().map(Role::from).collect(),
        _ => Vec::new(),
    };
    roles.iter().map(ToString::to_string).collect()
}
