//! `users`, for development, and `admins`: who may look at what everybody does.

use indexmap::IndexMap;
use serde::Deserialize;

use super::check::Check;
use crate::ids::{ProviderId, Role, TenantId};

/// One entry of `users`: somebody who signs in with a password. Its key is the
/// user name, usually an e-mail address.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The password's argon2id hash in PHC form (`$argon2id$…`).
    pub password_hash: String,
    /// What the person is called.
    #[serde(default)]
    pub name: Option<String>,
    /// The tenants, each with the roles there.
    pub tenants: IndexMap<TenantId, Vec<Role>>,
}

/// One entry of `admins`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// The identity provider that says so; `users` stands for the local ones.
    pub provider: ProviderId,
    /// The claim, as a dotted path.
    pub claim: String,
    /// The value that the claim has or holds.
    pub value: String,
    /// What it makes of a person.
    pub role: AdminRole,
    /// For this tenant alone. Without it for all.
    #[serde(default)]
    pub tenant: Option<TenantId>,
}

/// `admins[].role`, the more powerful one last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminRole {
    /// Sees all and changes nothing.
    Auditor,
    /// Sees all and may act.
    Admin,
}

/// The provider that local users come from.
pub const LOCAL_PROVIDER: &str = "users";

/// All users.
pub(super) fn validate_users(users: &IndexMap<String, User>, check: &mut Check<'_>) {
    for (name, user) in users {
        check.within(name, |check| {
            if name.trim().is_empty() || name.chars().any(char::is_control) || name.len() > 254 {
                check.key_fault("is no user name", "write an e-mail address");
            }
            if !user.password_hash.starts_with("$argon2id$") {
                check.within("password_hash", |check| {
                    check.fault(
                        "is no argon2id hash",
                        "write the hash in PHC form, as `argon2 -id -e` prints it",
                    );
                });
            }
            check.within("tenants", |check| {
                for tenant in user.tenants.keys() {
                    check.within(tenant.as_str(), |check| {
                        check.refers("tenants", tenant.as_str());
                    });
                }
            });
        });
    }
}

/// All admins.
pub(super) fn validate_admins(admins: &[Admin], check: &mut Check<'_>) {
    check.each("admins", admins, |admin, check| {
        if admin.provider.as_str() != LOCAL_PROVIDER {
            check.within("provider", |check| {
                check.refers("identity_providers", admin.provider.as_str());
            });
        }
        if admin.claim.split('.').any(str::is_empty) {
            check.within("claim", |check| {
                check.fault("is no claim", "write one such as `groups`");
            });
        }
        if let Some(tenant) = &admin.tenant {
            check.within("tenant", |check| check.refers("tenants", tenant.as_str()));
        }
    });
}
