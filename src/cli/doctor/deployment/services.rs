//! What stands beside the database: the store of shared limits, the collector.

use std::time::Duration;

use crate::cli::doctor::report::{Level, Report, Trouble};
use crate::cli::doctor::web::Web;
use crate::config::Config;
use crate::limits::redis_condition;

/// Whether limits are counted together, and by a store that does not forget.
pub(super) async fn redis(config: &Config, patience: Duration, report: &mut Report) {
    const STEP: &str = "redis";
    let Some(url) = &config.redis.url else {
        return report.note(STEP, "not configured: each replica counts its share of every limit");
    };
    let asked = tokio::time::timeout(patience, redis_condition(url)).await;
    let condition = match asked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
        Ok(condition) => condition,
        Err(why) => {
            let what = format!("it is not to be had: {why}");
            return report.trouble(
                Level::Failure,
                STEP,
                Trouble { what: &what, why: "limits are counted by each replica alone, or refused, as `when_away` says", change: "check redis.url, its password and TLS" },
            );
        }
    };
    report.ok(STEP, format!("{} answers", condition.version));
    let troubles = [
        (
            condition.is_replica,
            Level::Failure,
            Trouble { what: "it is a replica: nothing can be counted there", why: "every count fails, as if it were away", change: "let redis.url lead to the primary" },
        ),
        (
            condition.is_cluster,
            Level::Failure,
            Trouble { what: "it is a node of a cluster", why: "a script counts keys of several slots at once, which a cluster refuses", change: "use one primary with replicas for the limits" },
        ),
        (
            condition.evicts,
            Level::Warning,
            Trouble { what: "it forgets keys when it is full (maxmemory-policy)", why: "a forgotten count is a limit that starts anew", change: "set maxmemory-policy noeviction, and memory enough" },
        ),
    ];
    for (_, level, trouble) in troubles.into_iter().filter(|(holds, ..)| *holds) {
        report.trouble(level, STEP, trouble);
    }
}
