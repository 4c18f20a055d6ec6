//! The rules of the whole: the sections in turn, and what lies between them.

use super::check::Check;
use super::{Config, clients, identity_providers, users};

/// Reports everything that types could not refuse.
pub(super) fn validate(config: &Config, check: &mut Check<'_>) {
    check.within("server", |check| config.server.validate(check));
    check.within("database", |check| config.database.validate(check));
    check.within("audit", |check| config.audit.validate(check));
    validate_keys_file(config, check);
    check.within("redis", |check| config.redis.validate(check));
    check.within("streams", |check| config.streams.validate(check));
    check.within("edge", |check| config.edge.validate(check));
    check.within("identity_providers", |check| {
        for (id, provider) in &config.identity_providers {
            check.within(id.as_str(), |check| {
                check.id(id.as_str());
                provider.validate(check);
            });
        }
        let others = config.authorization_server.enabled
            && !(config.users.is_empty() && config.clients.is_empty());
        identity_providers::validate_together(&config.identity_providers, others, check);
    });
    check.within("authorization_server", |check| {
        config.authorization_server.validate(check);
    });
    check.within("clients", |check| {
        clients::validate(&config.clients, check);
    });
    check.within("users", |check| {
        users::validate_users(&config.users, check);
    });
    users::validate_admins(&config.admins, check);
    check.within("tenants", |check| {
        if config.tenants.is_empty() {
            check.fault("has no tenant", "add at least one");
        }
        for (id, tenant) in &config.tenants {
            check.within(id.as_str(), |check| {
                check.id(id.as_str());
                tenant.validate(check);
            });
        }
    });
    check.each("tools", &config.tools, |rule, check| rule.validate(check));
    check.within("upstreams", |check| {
        for (id, upstream) in &config.upstreams {
            check.within(id.as_str(), |check| {
                check.id(id.as_str());
                upstream.validate(check);
            });
        }
    });
    check.within("outgoing", |check| config.outgoing.validate(check));
    check.within("telemetry", |check| config.telemetry.validate(check));
}

/// Without keys of its own a replica cannot read what another one sealed.
fn validate_keys_file(config: &Config, check: &mut Check<'_>) {
    if config.keys_file.is_none() && config.database.embedded.is_none() {
        check.within("keys_file", |check| {
            check.fault(
                "is missing",
                "name a file with 64 hexadecimal digits a line, such as `openssl rand -hex 32` prints",
            );
        });
    }
}
