//! People who sign in: what a provider's verified claims say of a person, by the
//! same rules as for its access tokens (`rules.md` §4.7).

use super::claims::{ProviderRules, subject};
use super::{Identity, IdentityFault};
use crate::ids::{ProviderId, Role, Subject, TenantId};
use crate::jose::{Claims, Token};

/// A person as a provider describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonClaims {
    /// The provider's `sub`.
    pub subject: Subject,
    /// What the person is called; somebody else's text.
    pub name: Option<String>,
    /// The person's address; somebody else's text.
    pub email: Option<String>,
    /// The tenants that the provider may and does put the person in.
    pub tenants: Vec<TenantId>,
    /// Tenants that it names and may not speak for.
    pub untrusted: Vec<TenantId>,
    /// The roles.
    pub roles: Vec<Role>,
}

impl Identity {
    /// The claims of an ID token whose signature is the provider's. Whether it is
    /// meant for us, now, is for the caller to judge (`OpenID` Connect Core §3.1.3.7).
    ///
    /// # Errors
    /// [`IdentityFault`]; `UnknownIssuer` where there is no such provider.
    pub async fn signed_claims(
        &self,
        provider: &ProviderId,
        token: &str,
    ) -> Result<Claims, IdentityFault> {
        let provider = self.provider(provider)?;
        let token = Token::parse(token)?;
        let now = self.now();
        let (claims, _) = provider.check_signature(&token, now).await?;
        Ok(claims.clone())
    }

    /// What verified claims say of a person.
    ///
    /// # Errors
    /// `BadClaim` where they are not usable.
    pub fn person(
        &self,
        provider: &ProviderId,
        claims: &Claims,
    ) -> Result<PersonClaims, IdentityFault> {
        self.provider(provider)?.rules.person(claims)
    }
}

impl ProviderRules {
    pub(super) fn person(&self, claims: &Claims) -> Result<PersonClaims, IdentityFault> {
        let (tenants, untrusted) = self.tenants_of_person(claims)?;
        let text = |name: &str| {
            let text = claims.get(name).and_then(serde_json::Value::as_str);
            text.filter(|text| !text.trim().is_empty() && text.len() <= 320)
                .map(str::to_owned)
        };
        Ok(PersonClaims {
            subject: subject(claims)?,
            name: text("name").or_else(|| text("preferred_username")),
            email: text("email"),
            tenants,
            untrusted,
            roles: self.roles(claims),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::IdentityProvider;

    fn person(tenants: &[&str], claims: &serde_json::Value) -> Result<PersonClaims, IdentityFault> {
        let config: IdentityProvider = serde_json::from_value(json!({
            "issuer": "https://idp.example.com", "tenants": tenants,
            "claims": {"tenant": "org", "roles": "groups"},
        }))
        .unwrap();
        let rules = ProviderRules::new(&ProviderId::from("corporate"), &config);
        rules.person(claims.as_object().unwrap())
    }

    fn ids(names: &[&str]) -> Vec<TenantId> {
        names.iter().map(|name| TenantId::from(*name)).collect()
    }

    #[test]
    fn tenants_are_those_that_are_claimed_and_trusted() {
        let table = [
            (&["acme"][..], json!("acme"), &["acme"][..], &[][..]),
            (&["acme"], json!(null), &["acme"], &[]),
            (&["acme"], json!("globex"), &[], &["globex"]),
            (&["acme", "globex"], json!(null), &[], &[]),
            (
                &["acme", "globex"],
                json!(["globex", "acme"]),
                &["globex", "acme"],
                &[],
            ),
            (
                &["acme"],
                json!(["acme", "evil", "acme"]),
                &["acme"],
                &["evil"],
            ),
            (&[], json!(["one", "two"]), &["one", "two"], &[]),
        ];
        for (trusted, claimed, right, outside) in table {
            let person = person(trusted, &json!({"sub": "1", "org": claimed})).unwrap();
            assert_eq!(person.tenants, ids(right), "{claimed}");
            assert_eq!(person.untrusted, ids(outside), "{claimed}");
        }
    }

    #[test]
    fn a_person_needs_a_subject_and_brings_roles() {
        assert!(person(&["acme"], &json!({"org": "acme"})).is_err());
        assert!(person(&["acme"], &json!({"sub": "1", "org": {"a": 1}})).is_err());
        let alice = json!({"sub": "1", "groups": ["a", "b"], "name": "Alice", "email": " "});
        let alice = person(&["acme"], &alice).unwrap();
        assert_eq!(alice.roles, [Role::from("a"), Role::from("b")]);
        assert_eq!((alice.name.as_deref(), alice.email), (Some("Alice"), None));
    }
}
