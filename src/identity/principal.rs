//! A verified caller.

use std::collections::BTreeSet;
use std::fmt;

use aws_lc_rs::digest::{Context, SHA256};

use crate::ids::{ClientId, Issuer, ProviderId, Role, Scope, Subject, TenantId};

/// A caller whose token was verified. Made by [`super::Identity`] alone.
#[derive(Debug)]
pub struct Principal {
    pub(super) provider: ProviderId,
    pub(super) issuer: Issuer,
    pub(super) subject: Subject,
    pub(super) client: ClientId,
    pub(super) tenant: TenantId,
    pub(super) roles: Vec<Role>,
    pub(super) scopes: BTreeSet<Scope>,
    pub(super) grant: Option<String>,
    pub(super) family: Option<String>,
    pub(super) token_id: Option<String>,
    pub(super) expires_at: i64,
    pub(super) key: PrincipalKey,
}

/// What holds one principal's things apart from another's: caches, sessions,
/// sealed values. A digest of issuer, subject, client and tenant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalKey([u8; 32]);

impl PrincipalKey {
    pub(super) fn of(
        issuer: &Issuer,
        subject: &Subject,
        client: &ClientId,
        tenant: &TenantId,
    ) -> Self {
        Self(digest([
            issuer.as_str(),
            subject.as_str(),
            client.as_str(),
            tenant.as_str(),
        ]))
    }

    /// The digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for PrincipalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrincipalKey(…)")
    }
}

impl Principal {
    /// The provider that vouches for the caller.
    pub fn provider(&self) -> &ProviderId {
        &self.provider
    }

    /// `iss`
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// `sub`
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The OAuth client; `unknown` where the token does not say.
    pub fn client(&self) -> &ClientId {
        &self.client
    }

    /// The tenant that the token is for. Whether it exists is for `tenancy` to say.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The roles, as the token has them.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The scopes.
    pub fn scopes(&self) -> &BTreeSet<Scope> {
        &self.scopes
    }

    /// Whether a scope is among them.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.contains(scope)
    }

    /// `grant_id`, which tokens of the built-in authorization server have.
    pub fn grant(&self) -> Option<&str> {
        self.grant.as_deref()
    }

    /// `jti`
    pub fn token_id(&self) -> Option<&str> {
        self.token_id.as_deref()
    }

    /// `exp`, in seconds since the Unix epoch.
    pub fn expires_at(&self) -> i64 {
        self.expires_at
    }

    /// What holds this principal's things apart from another's.
    pub fn key(&self) -> PrincipalKey {
        self.key
    }

    /// A principal without a token, for the tests of later steps.
    #[cfg(test)]
    pub(crate) fn sample(tenant: &str, subject: &str, roles: &[&str], scopes: &[&str]) -> Self {
        let issuer = Issuer::from("https://idp.example.com");
        let (subject, client) = (Subject::from(subject), ClientId::from("test-client"));
        let tenant = TenantId::from(tenant);
        Self {
            key: PrincipalKey::of(&issuer, &subject, &client, &tenant),
            provider: ProviderId::from("corporate"),
            issuer,
            subject,
            client,
            tenant,
            roles: roles.iter().map(|role| Role::from(*role)).collect(),
            scopes: scopes.iter().map(|scope| Scope::from(*scope)).collect(),
            grant: None,
            family: None,
            token_id: Some("test-token".to_owned()),
            expires_at: i64::MAX,
        }
    }

    /// The same principal through another client.
    #[cfg(test)]
    pub(crate) fn through(mut self, client: &str) -> Self {
        self.client = ClientId::from(client);
        self.key = PrincipalKey::of(&self.issuer, &self.subject, &self.client, &self.tenant);
        self
    }
}

/// SHA-256 over texts, each with its length before it, so that no two lists of
/// texts are the same bytes.
pub(super) fn digest<const N: usize>(texts: [&str; N]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for text in texts {
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
    }
    let mut out = [0; 32];
    out.copy_from_slice(context.finish().as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_principal_depends_on_each_part_and_its_borders() {
        let key = |issuer: &str, subject: &str, client: &str, tenant: &str| {
            PrincipalKey::of(
                &issuer.into(),
                &subject.into(),
                &client.into(),
                &tenant.into(),
            )
        };
        let one = key("i", "s", "c", "t");
        assert_eq!(one, key("i", "s", "c", "t"));
        for other in [
            key("i2", "s", "c", "t"),
            key("i", "s2", "c", "t"),
            key("i", "s", "c2", "t"),
            key("i", "s", "c", "t2"),
            key("is", "", "c", "t"),
            key("i", "sc", "", "t"),
        ] {
            assert_ne!(one, other);
        }
    }
}
