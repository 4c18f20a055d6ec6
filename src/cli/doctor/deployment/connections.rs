//! Where the database's connection strings lead: there at all, past a pooler or
//! through one, to the same database; and whether there are connections enough.

use crate::app;
use crate::cli::doctor::report::{Level, Report, Trouble};
use crate::config::Config;
use crate::store::condition::{Condition, Way, try_way};

const STEP: &str = "database";

/// Beside both pools: `LISTEN`, a look at orphans or upkeep, and one to spare.
const BESIDE: i64 = 3;
/// The audit's lanes hold one each, whatever the configuration says.
const LANES: u32 = 3;

/// Tries each connection string. Whether the one for most statements works.
pub(super) async fn ways(config: &Config, report: &mut Report) -> bool {
    let ways = match app::ways(config) {
        Ok(ways) => ways,
        Err(fault) => {
            unreachable(&format!("{fault:#}"), report);
            return false;
        }
    };
    let mut tried = Vec::new();
    for (key, url) in &ways {
        match try_way(url, config.database.timeout.0).await {
            Ok(way) => tried.push((*key, way)),
            Err(fault) => unreachable(&format!("{key} leads nowhere: {fault}"), report),
        }
    }
    poolers(&tried, config, report);
    if let [(_, first), others @ ..] = tried.as_slice() {
        for (key, _) in others
            .iter()
            .filter(|(_, way)| way.database != first.database)
        {
            report.trouble(
                Level::Failure,
                STEP,
                Trouble {
                    what: &format!("{key} leads to another database than database.url"),
                    why: "the schema, the audit or wake-up calls go where nobody reads them",
                    change: "name the same server and database in both",
                },
            );
        }
    }
    tried
        .iter()
        .any(|(key, _)| *key == "database.url" || *key == "database.embedded")
}

fn unreachable(what: &str, report: &mut Report) {
    report.trouble(
        Level::Failure,
        STEP,
        Trouble {
            what,
            why: "without the database no call runs: nothing could be recorded",
            change: "check host, port, name, password, TLS and firewalls: `psql` with the same connection string has to work from here",
        },
    );
}

fn poolers(tried: &[(&str, Way)], config: &Config, report: &mut Report) {
    let direct = config.database.direct_url.is_some();
    for (key, way) in tried {
        let trouble = match (*key, way.is_pooled) {
            ("database.url", true) if !direct => Trouble {
                what: "database.url leads through a transaction pooler and database.direct_url is missing",
                why: "sessions are shared there: migrations lose their lock, wake-ups get lost, and the audit's role and time limits cannot be set",
                change: "give database.direct_url, which leads past the pooler",
            },
            ("database.direct_url", true) => Trouble {
                what: "database.direct_url leads through a transaction pooler",
                why: "migrations lose their lock there, and LISTEN is never answered",
                change: "let it lead to the database itself",
            },
            ("database.url", false) if direct => {
                report.note(STEP, "database.url leads through no transaction pooler (or it has sessions to spare now); database.direct_url would not be needed");
                continue;
            }
            (key, pooled) => {
                let by = if pooled {
                    ", through a transaction pooler"
                } else {
                    ""
                };
                report.ok(STEP, format!("{key} leads there{by}"));
                continue;
            }
        };
        report.trouble(Level::Failure, STEP, trouble);
    }
}

/// Whether every replica gets the connections that it may want.
pub(super) fn enough(condition: &Condition, config: &Config, report: &mut Report) {
    let database = &config.database;
    let pools = database.connections + database.audit_connections.max(LANES);
    let each = i64::from(pools) + BESIDE;
    let replicas = condition.live_replicas.max(1);
    let reserved = condition.number("superuser_reserved_connections")
        + condition.number("reserved_connections");
    let server = condition.number("max_connections") - reserved;
    let most = condition
        .connection_limit
        .map_or(server, |limit| server.min(i64::from(limit)));
    let wanted = each * replicas;
    let pooled = database.direct_url.is_some();
    if wanted <= most || pooled {
        let by = if pooled {
            " (a pooler may share them)"
        } else {
            ""
        };
        return report.ok(
            STEP,
            format!(
                "{replicas} replica(s) take up to {each} connections each, {wanted} of {most}{by}"
            ),
        );
    }
    report.trouble(
        Level::Warning,
        STEP,
        Trouble {
            what: &format!("{replicas} replica(s) take up to {each} connections each, {wanted} in all, and the database has {most} for them"),
            why: "under load replicas find no connection, and calls are refused",
            change: "raise max_connections, lower database.connections, or put a pooler in between",
        },
    );
}
