//! `toolgate audit maintain`, and the service that does the same where it owns the tables.

use super::support::{Gateway, Setup, Value, eventually};

/// The rows of these tests were written by nobody, so their days do not verify.
fn maintain(gateway: &Gateway) -> Value {
    let args = ["audit", "maintain", "--json", "--unverified"];
    serde_json::from_str(&gateway.command(&args)).unwrap()
}

fn count(gateway: &Gateway, sql: &str) -> u64 {
    gateway.database().psql(sql).trim().parse().unwrap()
}

const ROW: &str =
    "insert into audit_events (at, sequence, call_id, writer_id, tenant_id, event, leaf, link)
    select at, 1, gen_random_uuid(), 1, 1, 1, '', '' from generate_series";

#[tokio::test]
async fn upkeep_makes_days_ahead_empties_the_default_and_drops_what_is_too_old_and_not_held() {
    let gateway = Setup::new()
        .yaml(
            "audit: { retention: 30d, holds: [{ from: 2024-02-10, until: 2024-02-11, reason: case }] }",
        )
        .start()
        .await;
    // 2024-02-09 to 12 lie in the default partition: too old, two of them held.
    let database = gateway.database();
    database.psql(&format!(
        "{ROW}('2024-02-09 12:00Z'::timestamptz, '2024-02-12 12:00Z', '1 day') as at"
    ));
    database.psql("select audit_drop_partition((now() at time zone 'UTC')::date + 7)");
    let (first, second) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| maintain(&gateway));
        (maintain(&gateway), beside.join().unwrap())
    });
    for done in [&first, &second] {
        assert_eq!(done["days_ahead"], 7, "{done}");
        assert_eq!(done["waiting"], Value::Array(Vec::new()), "{done}");
    }
    let done = maintain(&gateway);
    assert_eq!(done["moved_rows"], 0);
    assert_eq!(
        done["held"],
        super::support::json!(["2024-02-10", "2024-02-11"])
    );
    assert_eq!(done["dropped"], Value::Array(Vec::new()), "once is enough");
    assert_eq!(
        count(&gateway, "select count(*) from audit_events_default"),
        0
    );
    let left = database.psql(
        "select (at at time zone 'UTC')::date from audit_events where at < '2025-01-01' order by 1",
    );
    assert_eq!(
        left.split_whitespace().collect::<Vec<_>>(),
        ["2024-02-10", "2024-02-11"]
    );
    let text = gateway.command(&["audit", "maintain"]);
    assert!(text.contains("7 days ahead have partitions"), "{text}");
    assert!(text.contains("held: 2024-02-10, 2024-02-11"), "{text}");
}

#[tokio::test]
async fn records_are_kept_for_ever_unless_the_operator_says_otherwise() {
    let gateway = Setup::new().start().await;
    gateway.database().psql(&format!(
        "{ROW}('1999-05-05 12:00Z'::timestamptz, '1999-05-05 12:00Z', '1 day') as at"
    ));
    maintain(&gateway);
    assert_eq!(
        count(&gateway, "select count(*) from audit_events_19990505"),
        1
    );
}

#[tokio::test]
async fn partitions_ahead_and_rows_that_lie_elsewhere_are_figures_to_alert_on() {
    let gateway = Setup::new().start().await;
    eventually("the figures are there", async || {
        let metrics = gateway.metrics().await;
        let there = [
            "toolgate_audit_partitions_ahead 7",
            "toolgate_audit_default_rows 0",
        ]
        .iter()
        .all(|line| metrics.contains(line));
        there.then_some(())
    })
    .await;
}
