//! Ten million rows of the audit, written by the product's own lanes: what a row takes
//! on disk, how long searches take, how fast all of it is verified. `SOAK_ROWS` asks
//! for another number; `DATABASE_URL` names an empty database (`make soak` starts one).

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use toolgate::audit::checkpoint::{Verifier, public_keys};
use toolgate::audit::verify::{Quiet, VerifyOptions, verify};
use toolgate::audit::{
    ArgumentsRecord, AuditSettings, Auditor, CallFacts, Filter, Finish, Outcome, Unobserved, search,
};
use toolgate::clock::{Clock, SystemClock, new_call_id, new_replica_id};
use toolgate::config::Durability;
use toolgate::ids::{ClientId, Subject};
use toolgate::protocol::Version;
use toolgate::seal::Keys;
use toolgate::secret::Secret;
use toolgate::store::{DatabaseSettings, Store, migrate};

/// Rows in all, unless `SOAK_ROWS` says otherwise.
const ROWS: u64 = 10_000_000;
/// Calls at a time: what fills batches.
const TOGETHER: usize = 1_024;
/// One subject called this often, whatever the number of rows.
const RARE: u64 = 5;

fn facts(n: u64) -> CallFacts {
    let rare = n.is_multiple_of(1_000_003) || n < RARE;
    let arguments = format!(r#"{{"customer":"{n}","since":"2026-01-01"}}"#);
    CallFacts {
        call_id: new_call_id(&SystemClock),
        at: SystemClock.now(),
        first_call: None,
        tenant: if n.is_multiple_of(3) {
            "globex"
        } else {
            "acme"
        }
        .into(),
        issuer: "https://login.example.com".into(),
        subject: Subject::new(if rare {
            "rare@example.com".to_owned()
        } else {
            format!("user{}@example.com", n % 2_000)
        }),
        client: ClientId::new(format!("client-{}", n % 7)),
        grant: None,
        token_id: None,
        address: Some([10, 0, 0, 7].into()),
        client_info: Some("codex 0.40".to_owned()),
        version: Some(Version::MODERN),
        upstream: Some("crm".into()),
        tool: format!("crm_tool_{}", n % 40),
        upstream_tool: Some(format!("tool_{}", n % 40)),
        definition_digest: Some([0xd1; 32]),
        config_digest: [0xc0; 32],
        arguments: ArgumentsRecord::redacted(&arguments, arguments.as_bytes()),
        trace_id: None,
        request_bytes: 240,
    }
}

fn ended(n: u64) -> Finish {
    let failed = n.is_multiple_of(50);
    Finish {
        outcome: if failed {
            Outcome::ToolError
        } else {
            Outcome::Ok
        },
        reason: None,
        upstream_time: Some(Duration::from_micros(1_500)),
        total_time: Duration::from_micros(2_500),
        response_bytes: 512,
        findings: String::new(),
    }
}

async fn call(auditor: &Auditor, n: u64, durability: Option<Durability>, upstream: Duration) {
    let Some(durability) = durability else {
        return tokio::time::sleep(upstream).await;
    };
    let recorded = auditor.start(&facts(n), durability).await;
    let recorded = recorded.expect("the call is on record");
    if !upstream.is_zero() {
        tokio::time::sleep(upstream).await;
    }
    let receipt = auditor.finish(recorded, ended(n)).await;
    let _ = receipt.expect("its outcome is on record");
}

async fn number(connection: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(connection)
        .await
        .expect("a number")
}

async fn search_time(store: &Store, what: &str, filter: Filter) {
    let begun = Instant::now();
    let page = search(store, &filter, None, 100).await.expect("a page");
    eprintln!(
        "search by {what}: {} entries in {:?}",
        page.entries.len(),
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_stays_fast_and_small_over_millions_of_rows() {
    let Ok(url) = std::env::var("DATABASE_URL") else {
        eprintln!("DATABASE_URL is not set: `make soak` starts a database");
        return;
    };
    let (store, keys, auditor) = opened(&url).await;
    let asked = std::env::var("SOAK_ROWS")
        .ok()
        .and_then(|rows| rows.parse().ok());
    let rows: u64 = asked.unwrap_or(ROWS);
    let url = Secret::new(url);
    let begun = Instant::now();
    stream::iter(0..rows / 2)
        .for_each_concurrent(TOGETHER, |n| {
            call(&auditor, n, Some(Durability::Strict), PROMPT)
        })
        .await;
    auditor.close().await;
    let took = begun.elapsed();
    eprintln!(
        "written: {rows} rows in {took:?}, {:.0} a second",
        rows as f64 / took.as_secs_f64()
    );
    measure(&url, rows).await;
    let jwks = public_keys(&keys).expect("keys").to_string();
    let verifier = Verifier::parse(&jwks).expect("keys");
    let begun = Instant::now();
    let options = VerifyOptions::new(&verifier, SystemClock.now());
    let report = verify(&store, &options, &mut Quiet)
        .await
        .expect("a result");
    let took = begun.elapsed();
    eprintln!(
        "verified: {} events in {took:?}, {:.0} a second",
        report.events,
        report.events as f64 / took.as_secs_f64()
    );
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.events, rows / 2 * 2);
    searches(&store).await;
}

/// How long the tool of the comparison takes.
const UPSTREAM: Duration = Duration::from_millis(5);
const PROMPT: Duration = Duration::ZERO;
/// How long each combination is measured, in each of three rounds.
const MEASURED: Duration = Duration::from_secs(3);

/// What the audit adds to a call, side by side in one run: no record, `overlapped`, `strict`.
#[tokio::test(flavor = "multi_thread")]
async fn what_each_durability_costs() {
    let Ok(url) = std::env::var("DATABASE_URL") else {
        eprintln!("DATABASE_URL is not set: `make soak` starts a database");
        return;
    };
    let (_, _, auditor) = opened(&url).await;
    let kinds = [None, Some(Durability::Overlapped), Some(Durability::Strict)];
    for flight in [1, 16, 64] {
        let mut took = kinds.map(|_| Vec::new());
        for _ in 0..3 {
            for (durability, took) in kinds.iter().zip(&mut took) {
                took.extend(in_flight(&auditor, flight, *durability).await);
            }
        }
        for (durability, took) in kinds.iter().zip(&mut took) {
            took.sort_unstable();
            let at = |share: usize| took.get(took.len() * share / 100).copied();
            eprintln!(
                "{flight} in flight, {durability:?}: p50 {:?}, p99 {:?}, {:.0} calls a second",
                at(50).unwrap_or_default(),
                at(99).unwrap_or_default(),
                took.len() as f64 / MEASURED.as_secs_f64() / 3.0
            );
        }
    }
    auditor.close().await;
}

/// How long each of the calls took that `flight` callers made one after the other.
async fn in_flight(
    auditor: &Auditor,
    flight: u64,
    durability: Option<Durability>,
) -> Vec<Duration> {
    let until = Instant::now() + MEASURED;
    let callers = stream::iter(0..flight).map(|caller| async move {
        let mut took = Vec::new();
        while Instant::now() < until {
            let begun = Instant::now();
            call(auditor, caller, durability, UPSTREAM).await;
            took.push(begun.elapsed());
        }
        took
    });
    callers.buffer_unordered(64).concat().await
}

async fn opened(url: &str) -> (Store, Keys, Auditor) {
    let url = Secret::new(url.to_owned());
    let settings = DatabaseSettings {
        url: &url,
        direct_url: None,
        connections: 4,
        audit_connections: 3,
        audit_writer_url: None,
        audit_roles_required: false,
        timeout: Duration::from_mins(30),
    };
    migrate(&settings, SystemClock.now().date())
        .await
        .expect("a schema");
    let store = Store::connect(&settings).expect("a store");
    let keys = Keys::parse(&Keys::generate_line()).expect("a key");
    let auditor = Auditor::spawn(AuditSettings {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        replica: new_replica_id(&SystemClock),
        observer: Arc::new(Unobserved),
        queue: 4_096,
        keys: Some(keys.clone()),
    });
    (store, keys, auditor)
}

async fn measure(url: &Secret<String>, rows: u64) {
    let mut connection = PgConnection::connect(url.expose())
        .await
        .expect("a connection");
    sqlx::raw_sql("VACUUM ANALYZE")
        .execute(&mut connection)
        .await
        .expect("vacuumed");
    for table in ["audit_events", "audit_bodies", "audit_callers"] {
        let sql = format!(
            "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::int8
             FROM pg_partition_tree('{table}') WHERE isleaf"
        );
        let size = number(&mut connection, &sql).await;
        eprintln!(
            "{table}: {:.0} bytes a row of the events",
            size as f64 / rows as f64
        );
    }
    let sql = "SELECT pg_total_relation_size('audit_checkpoints')::int8";
    let size = number(&mut connection, sql).await;
    eprintln!("audit_checkpoints: {size} bytes");
}

#[expect(clippy::too_many_lines, reason = "one search after another")]
async fn searches(store: &Store) {
    let text = |text: &str| Some(text.to_owned());
    let any = Filter::default;
    search_time(store, "nothing", any()).await;
    search_time(
        store,
        "tenant",
        Filter {
            tenant: text("globex"),
            ..any()
        },
    )
    .await;
    search_time(
        store,
        "a frequent subject",
        Filter {
            subject: text("user7@example.com"),
            ..any()
        },
    )
    .await;
    search_time(
        store,
        "a rare subject",
        Filter {
            subject: text("rare@example.com"),
            ..any()
        },
    )
    .await;
    search_time(
        store,
        "tool",
        Filter {
            tool: text("crm_tool_7"),
            ..any()
        },
    )
    .await;
    search_time(
        store,
        "outcome",
        Filter {
            outcome: text("tool_error"),
            ..any()
        },
    )
    .await;
    search_time(
        store,
        "an outcome that never was",
        Filter {
            outcome: text("withheld"),
            ..any()
        },
    )
    .await;
    search_time(
        store,
        "a trace that never was",
        Filter {
            trace_id: text(&"ab".repeat(16)),
            ..any()
        },
    )
    .await;
    let page = search(store, &any(), None, 1).await.expect("a page");
    let id = page.entries.first().map(|entry| entry.call_id);
    search_time(
        store,
        "call id",
        Filter {
            call_id: id,
            ..any()
        },
    )
    .await;
}
