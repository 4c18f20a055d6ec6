//! Who may look at what everybody does, and act on it: entries of `admins`, held against
//! what an identity provider says of a person (`rules.md` §4.6, §4.7).
//!
//! What is kept of a person is which of the wanted claims they have, never the role: that
//! is read from the configuration in force each time it is asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Person, Settings};
use crate::config::{AdminRole, LOCAL_PROVIDER, User};
use crate::ids::{ProviderId, Role, TenantId};
use crate::jose::{Claims, claim_at};

/// A claim that some entry of `admins` asks for and that a person has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminClaim {
    /// The claim's dotted path.
    claim: String,
    /// The value that it has or holds.
    value: String,
}

/// What a person may administer. Without anything: nobody special.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Administration {
    everywhere: Option<AdminRole>,
    tenants: BTreeMap<TenantId, AdminRole>,
}

impl Administration {
    /// By the configuration in force.
    pub fn of(settings: &Settings, person: &Person) -> Self {
        if person.provider.as_str() != LOCAL_PROVIDER {
            return Self::by(settings, &person.provider, &person.admin_claims);
        }
        let name = person.subject.as_str();
        let user = settings.users.get(name);
        let known = user.map(|user| claims_of(name, user)).unwrap_or_default();
        Self::by(
            settings,
            &person.provider,
            &wanted(settings, &person.provider, &known),
        )
    }

    /// By what is known of somebody whom this provider vouches for.
    pub(super) fn by(settings: &Settings, provider: &ProviderId, claims: &[AdminClaim]) -> Self {
        let mut all = Self::default();
        for entry in &settings.admins {
            let has = |one: &AdminClaim| one.claim == entry.claim && one.value == entry.value;
            if entry.provider == *provider && claims.iter().any(has) {
                all.add(entry.role, entry.tenant.as_ref());
            }
        }
        all
    }

    fn add(&mut self, role: AdminRole, tenant: Option<&TenantId>) {
        let place = match tenant {
            None => &mut self.everywhere,
            Some(tenant) => {
                let more = self.tenants.get(tenant).copied().max(Some(role));
                self.tenants.insert(tenant.clone(), more.unwrap_or(role));
                return;
            }
        };
        *place = (*place).max(Some(role));
    }

    /// The role in a tenant: the more powerful of the tenant's own and that in all.
    pub fn role_in(&self, tenant: &TenantId) -> Option<AdminRole> {
        self.everywhere.max(self.tenants.get(tenant).copied())
    }

    /// The role in all tenants.
    pub fn everywhere(&self) -> Option<AdminRole> {
        self.everywhere
    }

    /// Whether there is no role at all.
    pub fn is_empty(&self) -> bool {
        self.everywhere.is_none() && self.tenants.is_empty()
    }

    /// The places of each role, the widest first; `None` stands for all tenants. What a
    /// wider role covers is left out.
    pub fn places(&self) -> Vec<(AdminRole, Vec<Option<&TenantId>>)> {
        let mut all = Vec::new();
        for role in [AdminRole::Admin, AdminRole::Auditor] {
            let mut places: Vec<Option<&TenantId>> = Vec::new();
            if self.everywhere == Some(role) {
                places.push(None);
            }
            let own = self.tenants.iter();
            let own = own.filter(|(_, own)| **own == role && Some(role) > self.everywhere);
            places.extend(own.map(|(tenant, _)| Some(tenant)));
            if !places.is_empty() {
                all.push((role, places));
            }
        }
        all
    }

    /// For the record: `admin of *, auditor of acme`; empty where there is no role.
    pub fn in_words(&self) -> String {
        let places = self.places().into_iter().flat_map(|(role, places)| {
            let word = match role {
                AdminRole::Admin => "admin",
                AdminRole::Auditor => "auditor",
            };
            let place = |place: Option<&TenantId>| place.map_or("*", TenantId::as_str).to_owned();
            places
                .into_iter()
                .map(move |one| format!("{word} of {}", place(one)))
        });
        places.collect::<Vec<_>>().join(", ")
    }
}

/// Those of the wanted claims that are in verified claims of a provider.
pub fn wanted(settings: &Settings, provider: &ProviderId, claims: &Claims) -> Vec<AdminClaim> {
    let mut found: Vec<AdminClaim> = Vec::new();
    for entry in settings
        .admins
        .iter()
        .filter(|one| one.provider == *provider)
    {
        let has = match claim_at(claims, &entry.claim) {
            Some(Value::String(text)) => *text == entry.value,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(&entry.value)),
            Some(Value::Bool(is)) => is.to_string() == entry.value,
            _ => false,
        };
        let one = AdminClaim {
            claim: entry.claim.clone(),
            value: entry.value.clone(),
        };
        if has && !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// Whether claims leave out one that some entry asks for: then userinfo may have it.
pub fn lacks_wanted(settings: &Settings, provider: &ProviderId, claims: &Claims) -> bool {
    let mut asking = settings.admins.iter();
    asking.any(|entry| entry.provider == *provider && claim_at(claims, &entry.claim).is_none())
}

/// What stands for the claims of a local user: `sub` and `email` are the user name,
/// `roles` those of all tenants.
fn claims_of(name: &str, user: &User) -> Claims {
    let roles: Vec<&str> = user.tenants.values().flatten().map(Role::as_str).collect();
    let tenants: Vec<&str> = user.tenants.keys().map(TenantId::as_str).collect();
    let claims = json!({"sub": name, "email": name, "roles": roles, "tenant": tenants});
    claims.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::oauth::sign_ins;

    fn settings(admins: &Value) -> Settings {
        let text = json!({
            "database": {"embedded": {"data_dir": "/tmp/x"}},
            "tenants": {"acme": {}, "globex": {}},
            "users": {"root@acme.test": {"password_hash": "$argon2id$x", "tenants": {"acme": ["boss"]}}},
            "identity_providers": {"corporate": {"issuer": "https://idp.example.com", "tenants": ["acme"],
                "login": {"client_id": "x"}}},
            "admins": admins,
        });
        let config: Config = serde_json::from_value(text).unwrap();
        Settings::new(&config).unwrap()
    }

    fn person(provider: &str, subject: &str, admin_claims: Vec<AdminClaim>) -> Person {
        Person {
            provider: provider.into(),
            issuer: "https://idp.example.com".into(),
            subject: subject.into(),
            name: None,
            email: None,
            memberships: Vec::new(),
            admin_claims,
            refresh_token: None,
        }
    }

    #[test]
    fn a_role_needs_the_provider_the_claim_and_the_value() {
        let settings = settings(&json!([
            {"provider": "corporate", "claim": "groups", "value": "security", "role": "auditor"},
            {"provider": "corporate", "claim": "groups", "value": "ops", "role": "admin", "tenant": "acme"},
            {"provider": "corporate", "claim": "realm.staff", "value": "true", "role": "admin", "tenant": "globex"},
        ]));
        for (provider, claims, words) in [
            ("corporate", json!({"groups": ["x"]}), ""),
            ("corporate", json!({"groups": "security"}), "auditor of *"),
            (
                "corporate",
                json!({"groups": ["ops", "security"]}),
                "admin of acme, auditor of *",
            ),
            ("corporate", json!({"groups": "security ops"}), ""),
            ("corporate", json!({"groups": {"security": true}}), ""),
            (
                "corporate",
                json!({"realm": {"staff": true}}),
                "admin of globex",
            ),
            ("other", json!({"groups": ["ops"]}), ""),
            ("users", json!({"groups": ["ops"]}), ""),
        ] {
            let found = wanted(&settings, &provider.into(), claims.as_object().unwrap());
            let all = Administration::of(&settings, &person(provider, "alice", found));
            assert_eq!(all.in_words(), words, "{claims}");
        }
    }

    #[test]
    fn the_more_powerful_role_counts_and_a_role_ends_with_its_line() {
        let line = |role: &str, tenant: Value| json!({"provider": "corporate", "claim": "g", "value": "a", "role": role, "tenant": tenant});
        let lines = settings(&json!([
            line("auditor", Value::Null),
            line("admin", json!("acme")),
            line("auditor", json!("acme"))
        ]));
        let claims = json!({"g": "a"});
        let alice = person(
            "corporate",
            "alice",
            wanted(&lines, &"corporate".into(), claims.as_object().unwrap()),
        );
        let all = Administration::of(&lines, &alice);
        assert_eq!(all.role_in(&"acme".into()), Some(AdminRole::Admin));
        assert_eq!(all.role_in(&"globex".into()), Some(AdminRole::Auditor));
        let without = settings(&json!([]));
        assert!(Administration::of(&without, &alice).is_empty());
    }

    #[test]
    fn local_users_are_told_by_name_and_role() {
        let settings = settings(&json!([
            {"provider": "users", "claim": "email", "value": "root@acme.test", "role": "admin"},
            {"provider": "users", "claim": "roles", "value": "boss", "role": "auditor", "tenant": "globex"},
        ]));
        let root = Administration::of(&settings, &person("users", "root@acme.test", Vec::new()));
        assert_eq!(root.in_words(), "admin of *");
        assert!(Administration::of(&settings, &person("users", "nobody", Vec::new())).is_empty());
    }

    #[test]
    fn kept_claims_are_read_as_they_were_written() {
        let claims = vec![AdminClaim {
            claim: "a.b".into(),
            value: "odd \"value\"".into(),
        }];
        assert_eq!(
            sign_ins::read_claims(&sign_ins::write_claims(&claims)),
            Some(claims)
        );
    }
}
