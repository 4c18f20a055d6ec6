//! The database: whether a commit lasts, who may change what, whether the tables are
//! those of this release and ready for the days to come.

use super::{clock, connections};
use crate::app;
use crate::cli::doctor::report::{Level, Report, Trouble};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, Loaded, Separation};
use crate::store::condition::Condition;
use crate::store::{SchemaState, Store, StoreError};

const STEP: &str = "database";
/// The oldest release that is tested.
const OLDEST: i64 = 15_00_00;
/// Days of partitions that give an operator time to notice.
const DAYS_AHEAD: usize = 3;

pub(super) async fn look(loaded: &Loaded, report: &mut Report) {
    let config = &loaded.config;
    if !connections::ways(config, report).await {
        return;
    }
    if let Err(fault) = examine(loaded, report).await {
        report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: &format!("it could not be looked at any further: {fault:#}"),
                why: "what the service needs of it may fail in the same way",
                change: "see what comes before this line, and the database's own log",
            },
        );
    }
}

async fn examine(loaded: &Loaded, report: &mut Report) -> anyhow::Result<()> {
    let config = &loaded.config;
    let store = app::reader(loaded).await?;
    store.ping().await?;
    let ahead = store.clock_skew_micros(SystemClock.now()).await?;
    clock::judge(
        STEP,
        "the database's",
        time::Duration::microseconds(ahead),
        report,
    );
    let condition = store.load_condition().await?;
    server(&condition, report);
    durability(&condition, report);
    privacy(&condition, report);
    connections::enough(&condition, config, report);
    schema(&store, report).await?;
    roles(&store, &condition, config, report).await?;
    if condition.owns_audit.is_some() {
        partitions(&store, report).await?;
    }
    store.close().await;
    Ok(())
}

fn server(condition: &Condition, report: &mut Report) {
    let version = condition.setting("server_version");
    if condition.number("server_version_num") >= OLDEST {
        report.ok(STEP, format!("PostgreSQL {version}"));
    } else {
        report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: &format!("PostgreSQL {version} is older than 15"),
                why: "Toolgate is not tested with it, and it is or soon will be without security fixes",
                change: "use PostgreSQL 15 or later",
            },
        );
    }
    if condition.is_standby {
        report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: "it is a standby: nothing can be written",
                why: "no call runs that cannot be recorded",
                change: "let the connection string find the primary (target_session_attrs, or a service name that follows it)",
            },
        );
    }
    if condition.setting("server_encoding") != "UTF8" {
        report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: &format!("its encoding is {}", condition.setting("server_encoding")),
                why: "texts that it cannot hold would lose their records",
                change: "make a database WITH ENCODING 'UTF8' and migrate there",
            },
        );
    }
    if condition.setting("autovacuum") == "off" {
        report.trouble(
            Level::Warning,
            STEP,
            Trouble {
                what: "autovacuum is off",
                why: "searches become slow, and in the end the database stops to protect itself from wrap-around",
                change: "set autovacuum = on",
            },
        );
    }
}

/// What decides whether a record that was committed is still there after a crash.
fn durability(condition: &Condition, report: &mut Report) {
    let rules = [
        (
            "fsync",
            "a crash of the machine loses records that callers were told of, and may ruin the database",
        ),
        (
            "full_page_writes",
            "a crash in the middle of a write leaves torn pages: the audit cannot be read or verified any more",
        ),
    ];
    let mut sound = true;
    for (name, why) in rules {
        if condition.setting(name) != "on" {
            sound = false;
            report.trouble(
                Level::Failure,
                STEP,
                Trouble {
                    what: &format!("{name} is {}", condition.setting(name)),
                    why,
                    change: &format!("set {name} = on in postgresql.conf and restart PostgreSQL"),
                },
            );
        }
    }
    if condition.setting("synchronous_commit") == "off" {
        sound = false;
        report.trouble(
            Level::Warning,
            STEP,
            Trouble {
                what: "synchronous_commit is off for this login",
                why: "the audit asks for it in each statement and stays durable; revocations and ended sessions of the last moments come back to life after a crash",
                change: "set synchronous_commit = on (ALTER ROLE … RESET synchronous_commit)",
            },
        );
    }
    if condition.setting("wal_level") == "minimal" {
        sound = false;
        report.trouble(
            Level::Warning,
            STEP,
            Trouble {
                what: "wal_level is minimal",
                why: "there can be no standby and no restore to a moment: a lost disk loses everything since the last dump",
                change: "set wal_level = replica, archive the WAL, and restart PostgreSQL",
            },
        );
    }
    if sound {
        report.ok(STEP, "a commit outlives a crash of the machine");
    }
    match condition.setting("synchronous_standby_names") {
        "" => report.note(STEP, "synchronous_standby_names is empty: a failover may lose the last moments of the audit; name a standby there where that must not be"),
        names => report.ok(STEP, format!("commits wait for a standby ({names})")),
    }
}

/// What others may read of it on the way or in its log.
fn privacy(condition: &Condition, report: &mut Report) {
    if !condition.is_private {
        report.trouble(
            Level::Warning,
            STEP,
            Trouble {
                what: "the connection is not encrypted",
                why: "whoever sits between reads the password's exchange, arguments and records, and can change them",
                change: "add sslmode=verify-full and sslrootcert=… to the connection string",
            },
        );
    }
    let statements = condition.setting("log_statement");
    let logged =
        ["mod", "all"].contains(&statements) || condition.number("log_min_duration_statement") == 0;
    if logged && condition.setting("log_parameter_max_length") != "0" {
        report.trouble(
            Level::Warning,
            STEP,
            Trouble {
                what: "the database logs statements with their values",
                why: "callers' arguments and names end up in its log, where no retention, erasure or role reaches them",
                change: "set log_parameter_max_length = 0, or log_statement = ddl and log_min_duration_statement above 0",
            },
        );
    }
}

async fn schema(store: &Store, report: &mut Report) -> Result<(), StoreError> {
    let (what, change) = match store.schema_state().await? {
        SchemaState::Current => {
            report.ok(STEP, "the schema is this release's");
            return Ok(());
        }
        SchemaState::Behind => (
            "the schema is older than this release needs",
            "run `toolgate migrate --config …`; replicas become ready by themselves",
        ),
        SchemaState::Newer => (
            "the schema is newer than this release",
            "run the newer release, or restore the backup from before its migration",
        ),
    };
    report.trouble(
        Level::Failure,
        STEP,
        Trouble {
            what,
            why: "replicas of this release stay alive and not ready",
            change,
        },
    );
    Ok(())
}

async fn roles(
    store: &Store,
    condition: &Condition,
    config: &Config,
    report: &mut Report,
) -> Result<(), StoreError> {
    if condition.is_superuser {
        report.trouble(
            Level::Warning,
            STEP,
            Trouble {
                what: &format!("the login {} is a superuser", condition.login),
                why: "nothing that it does is held by roles or row-level security, down to the server's files",
                change: "use a login that owns the database and nothing else (CREATE ROLE … LOGIN)",
            },
        );
    }
    let closed = condition.closed_tables.join(", ");
    if !closed.is_empty() {
        report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: &format!("the login {} may not read and change {closed}", condition.login),
                why: "sign-ins, sessions and messages between replicas fail",
                change: "GRANT toolgate_service TO this login, and run `toolgate migrate` as the owner once more",
            },
        );
    }
    if condition.owns_audit.is_none() {
        return Ok(());
    }
    let changers = condition.audit_changers.join(", ");
    if !changers.is_empty() {
        report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: &format!("roles that do not own the audit may alter it: {changers}"),
                why: "records can be changed or removed; `toolgate audit verify` would tell, but only afterwards",
                change: "REVOKE UPDATE, DELETE, TRUNCATE ON the audit's tables FROM them",
            },
        );
    }
    writer(store, condition, config, report).await
}

/// As whom the audit is written.
async fn writer(
    store: &Store,
    condition: &Condition,
    config: &Config,
    report: &mut Report,
) -> Result<(), StoreError> {
    store.check_audit_role().await?;
    if !store.audit_is_restricted() {
        let required = config.database.audit.roles == Separation::Required;
        report.trouble(
            if required { Level::Failure } else { Level::Warning },
            STEP,
            Trouble {
                what: "the audit is written by a login that could alter it",
                why: if required {
                    "database.audit.roles is `required`: calls are refused"
                } else {
                    "an injected statement or a taken-over connection could change what is on record"
                },
                change: "let a login with CREATEROLE run `toolgate migrate`, or give database.audit.writer_url_file (docs/operations.md)",
            },
        );
        return Ok(());
    }
    report.ok(STEP, "the audit's writer can add to it and no more");
    if condition.owns_audit == Some(true) {
        report.note(STEP, "the service's login owns the audit all the same: separate logins keep it even from who takes the process over (docs/operations.md)");
    }
    Ok(())
}

async fn partitions(store: &Store, report: &mut Report) -> Result<(), StoreError> {
    let today = SystemClock.now().date();
    let figures = store.partition_figures().await?;
    let ahead = figures.days.iter().filter(|day| **day > today).count();
    if ahead >= DAYS_AHEAD && figures.in_default == 0 {
        report.ok(STEP, format!("{ahead} days of partitions are made ahead"));
        return Ok(());
    }
    report.trouble(
        Level::Warning,
        STEP,
        Trouble {
            what: &format!(
                "{ahead} days of partitions are made ahead, and {} record(s) lie in the default one",
                figures.in_default
            ),
            why: "records are kept all the same, but retention cannot drop them by the day",
            change: "run `toolgate audit maintain` once a day, as the tables' owner",
        },
    );
    Ok(())
}
