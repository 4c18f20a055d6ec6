//! Verified claims to a principal: pure rules, in the order in which they refuse.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{IdentityFault, Principal, PrincipalKey};
use crate::config::{self, IdentityProvider};
use crate::ids::{ClientId, Issuer, ProviderId, Role, Scope, Subject, TenantId};
use crate::jose::{Claims, claim_at};

/// How far the clocks of issuer and service may differ, in seconds.
pub(super) const LEEWAY: i64 = 30;
/// Longest identifier that a claim may be.
const MAX_IDENTIFIER: usize = 512;
/// The client of a token that does not say.
const UNKNOWN_CLIENT: &str = "unknown";

/// What is known of a provider when its token's claims are judged.
pub(super) struct ProviderRules {
    pub(super) id: ProviderId,
    pub(super) issuer: Issuer,
    tenants: Vec<TenantId>,
    audiences: Vec<String>,
    claims: config::Claims,
}

impl ProviderRules {
    pub(super) fn new(id: &ProviderId, config: &IdentityProvider) -> Self {
        Self {
            id: id.clone(),
            issuer: Issuer::new(config.issuer.as_str()),
            tenants: config.tenants.clone(),
            audiences: config.audiences.clone(),
            claims: config.claims.clone(),
        }
    }

    /// The principal that these claims of a verified token are about.
    pub(super) fn principal(
        &self,
        typ: Option<&str>,
        claims: &Claims,
        resource: &str,
        now: i64,
    ) -> Result<Principal, IdentityFault> {
        check_kind(typ, claims)?;
        let expires_at = check_times(claims, now)?;
        self.check_audience(claims, resource)?;
        let subject = subject(claims)?;
        let tenant = self.tenant(claims, &subject)?;
        let client = self.client(claims)?;
        Ok(Principal {
            key: PrincipalKey::of(&self.issuer, &subject, &client, &tenant),
            provider: self.id.clone(),
            issuer: self.issuer.clone(),
            subject,
            client,
            tenant,
            roles: self.roles(claims),
            scopes: scopes(claims),
            grant: identifier(claims.get("grant_id"), "grant_id")?.map(str::to_owned),
            family: None,
            token_id: identifier(claims.get("jti"), "jti")?.map(str::to_owned),
            expires_at,
        })
    }

    fn check_audience(&self, claims: &Claims, resource: &str) -> Result<(), IdentityFault> {
        // Exact strings: a URL with a slash more is another audience.
        let ours = |audience: &str| {
            audience == resource || self.audiences.iter().any(|known| known == audience)
        };
        let found = match claims.get("aud") {
            Some(Value::String(audience)) => ours(audience),
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(ours),
            _ => false,
        };
        found.then_some(()).ok_or(IdentityFault::WrongAudience)
    }

    fn tenant(&self, claims: &Claims, subject: &Subject) -> Result<TenantId, IdentityFault> {
        const BAD: IdentityFault = IdentityFault::BadClaim {
            claim: "of the tenant",
        };
        let value = claim_at(claims, &self.claims.tenant);
        let claimed = match value {
            Some(Value::Array(all)) => match all.as_slice() {
                [] => None,
                [one] => Some(one),
                _ => return Err(IdentityFault::SeveralTenants),
            },
            other => other,
        };
        let Some(claimed) = claimed.filter(|value| !value.is_null()) else {
            return match self.tenants.as_slice() {
                [only] => Ok(only.clone()),
                _ => Err(IdentityFault::NoTenant),
            };
        };
        let claimed = identifier(Some(claimed), "of the tenant")?.ok_or(BAD)?;
        // Without a list any tenant may be claimed; whether it exists is judged later.
        if self.tenants.is_empty() {
            return Ok(TenantId::new(claimed));
        }
        self.tenants
            .iter()
            .find(|tenant| tenant.as_str() == claimed)
            .cloned()
            .ok_or_else(|| IdentityFault::TenantNotTrusted {
                provider: self.id.clone(),
                subject: subject.clone(),
                tenant: TenantId::new(claimed),
            })
    }

    fn client(&self, claims: &Claims) -> Result<ClientId, IdentityFault> {
        let places = [
            claim_at(claims, &self.claims.client),
            claims.get("azp"),
            claims.get("client_id"),
        ];
        for place in places {
            if let Some(client) = identifier(place, "of the client")? {
                return Ok(ClientId::new(client));
            }
        }
        Ok(ClientId::from(UNKNOWN_CLIENT))
    }

    /// Every tenant that is claimed: those that the provider may speak for, then
    /// the others. Without a claim the provider's only tenant.
    pub(super) fn tenants_of_person(
        &self,
        claims: &Claims,
    ) -> Result<(Vec<TenantId>, Vec<TenantId>), IdentityFault> {
        let value = claim_at(claims, &self.claims.tenant);
        let values = match value {
            Some(Value::Array(all)) => all.as_slice(),
            other => other.map_or(&[][..], std::slice::from_ref),
        };
        let mut claimed: Vec<TenantId> = Vec::new();
        for value in values {
            if let Some(tenant) = identifier(Some(value), "of the tenant")?
                && !claimed.iter().any(|known| known.as_str() == tenant)
            {
                claimed.push(TenantId::from(tenant));
            }
        }
        if claimed.is_empty()
            && let [only] = self.tenants.as_slice()
        {
            claimed.push(only.clone());
        }
        Ok(claimed
            .into_iter()
            .partition(|tenant| self.tenants.is_empty() || self.tenants.contains(tenant)))
    }

    pub(super) fn roles(&self, claims: &Claims) -> Vec<Role> {
        words(claim_at(claims, &self.claims.roles))
            .map(Role::from)
            .collect()
    }
}

/// `sub`
pub(super) fn subject(claims: &Claims) -> Result<Subject, IdentityFault> {
    identifier(claims.get("sub"), "sub")?
        .map(Subject::from)
        .ok_or(IdentityFault::BadClaim { claim: "sub" })
}

/// Whether it may be an access token at all (RFC 8725 §3.11, §3.12). Many issuers
/// set `JWT` or nothing, so that alone is no reason.
fn check_kind(typ: Option<&str>, claims: &Claims) -> Result<(), IdentityFault> {
    if let Some(typ) = typ {
        let typ = typ.to_ascii_lowercase();
        // RFC 7515 §4.1.9: the prefix may be left out.
        let short = typ.strip_prefix("application/").unwrap_or(&typ);
        if !matches!(short, "at+jwt" | "jwt") {
            return Err(IdentityFault::WrongType);
        }
    }
    let of_an_id_token = ["nonce", "at_hash", "c_hash"];
    if of_an_id_token.iter().any(|name| claims.contains_key(*name)) {
        return Err(IdentityFault::IdToken);
    }
    Ok(())
}

/// Checks the times and gives `exp`.
fn check_times(claims: &Claims, now: i64) -> Result<i64, IdentityFault> {
    let expires_at = date(claims, "exp")?.ok_or(IdentityFault::BadClaim { claim: "exp" })?;
    if expires_at.saturating_add(LEEWAY) <= now {
        return Err(IdentityFault::Expired);
    }
    for name in ["nbf", "iat"] {
        if date(claims, name)?.is_some_and(|at| at > now.saturating_add(LEEWAY)) {
            return Err(IdentityFault::NotYetValid);
        }
    }
    Ok(expires_at)
}

/// A `NumericDate`, which may have a fraction (RFC 7519 §2).
fn date(claims: &Claims, claim: &'static str) -> Result<Option<i64>, IdentityFault> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole seconds are wanted, and the cast keeps to the bounds of i64"
    )]
    let whole = value
        .as_i64()
        .or_else(|| value.as_f64().map(|seconds| seconds as i64));
    whole.map(Some).ok_or(IdentityFault::BadClaim { claim })
}

fn scopes(claims: &Claims) -> BTreeSet<Scope> {
    let value = claims.get("scope").or_else(|| claims.get("scp"));
    words(value).map(Scope::from).collect()
}

/// The elements of a list of strings as they are, or the words of one string.
fn words(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let (list, text) = match value {
        Some(Value::Array(list)) => (list.as_slice(), ""),
        Some(Value::String(text)) => (&[][..], text.as_str()),
        _ => (&[][..], ""),
    };
    list.iter()
        .filter_map(Value::as_str)
        .filter(|element| !element.is_empty())
        .chain(text.split_ascii_whitespace())
}

/// A text that will stand in records and keys: not empty, not long, no control
/// characters. `None` where there is none.
fn identifier<'a>(
    value: Option<&'a Value>,
    claim: &'static str,
) -> Result<Option<&'a str>, IdentityFault> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text))
            if !text.is_empty()
                && text.len() <= MAX_IDENTIFIER
                && !text.chars().any(char::is_control) =>
        {
            Ok(Some(text))
        }
        Some(_) => Err(IdentityFault::BadClaim { claim }),
    }
}

#[cfg(test)]
mod tests;
