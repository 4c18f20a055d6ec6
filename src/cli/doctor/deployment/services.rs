//! What stands beside the database: the store of shared limits, the collector.

use crate::app;
use crate::cli::doctor::report::{Level, Report, Trouble};
use crate::config::Config;

/// Whether limits are counted together, and by a store that does not forget.
pub(super) async fn redis(config: &Config, report: &mut Report) {
    const STEP: &str = "redis";
    let condition = match app::redis(config).await {
        Ok(Some(condition)) => condition,
        Ok(None) => {
            return report.note(
                STEP,
                "not configured: each replica counts its share of every limit",
            );
        }
        Err(why) => {
            let what = format!("limits cannot be counted there: {why}");
            return report.trouble(
                Level::Failure,
                STEP,
                Trouble { what: &what, why: "limits are counted by each replica alone, or refused, as `when_away` says", change: "check redis.url, its password and TLS" },
            );
        }
    };
    report.ok(STEP, format!("{} counts", condition.version));
    let troubles = [
        (
            condition.is_replica,
            Level::Failure,
            Trouble {
                what: "it is a replica: nothing can be counted there",
                why: "every count fails, as if it were away",
                change: "let redis.url lead to the primary",
            },
        ),
        (
            condition.is_cluster,
            Level::Failure,
            Trouble {
                what: "it is a node of a cluster",
                why: "a script counts keys of several slots at once, which a cluster refuses",
                change: "use one primary with replicas for the limits",
            },
        ),
        (
            condition.evicts,
            Level::Warning,
            Trouble {
                what: "it forgets keys when it is full (maxmemory-policy)",
                why: "a forgotten count is a limit that starts anew",
                change: "set maxmemory-policy noeviction, and memory enough",
            },
        ),
    ];
    for (_, level, trouble) in troubles.into_iter().filter(|(holds, ..)| *holds) {
        report.trouble(level, STEP, trouble);
    }
}

/// Whether the collector takes what is exported.
pub(super) async fn collector(config: &Config, report: &mut Report) {
    const STEP: &str = "telemetry";
    match app::collector(config).await {
        Ok(None) => report.note(STEP, "no collector: metrics are on the admin listener alone"),
        Ok(Some(signals)) => report.ok(STEP, format!("the collector takes {signals} signal(s)")),
        Err(why) => report.trouble(
            Level::Warning,
            STEP,
            Trouble {
                what: &format!("the collector takes nothing: {why}"),
                why: "traces, metrics and logs are lost; calls are not affected",
                change: "check telemetry.otlp_endpoint (OTLP over HTTP, mostly port 4318) and telemetry.otlp_headers_file",
            },
        ),
    }
}
