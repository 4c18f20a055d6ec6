//! What an event takes on disk: a number that every later column has to answer for.

use futures_util::future::join_all;

use super::*;
use crate::config::Durability;
use crate::store::testing::{database, number, run};

#[tokio::test]
async fn an_event_takes_no_more_than_450_bytes_with_its_body_and_indexes() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    for _ in 0..8 {
        let calls: Vec<CallFacts> = (0..500).map(|_| facts()).collect();
        let starts = calls
            .iter()
            .map(|facts| auditor.start(facts, Durability::Strict));
        let ends = join_all(starts)
            .await
            .into_iter()
            .map(|recorded| auditor.finish(recorded.unwrap(), ended(Outcome::Ok)));
        assert!(join_all(ends).await.iter().all(Result::is_ok));
    }
    run(&database.url, "VACUUM ANALYZE").await;
    let events = number(&database.url, "SELECT count(*) FROM audit_events").await;
    let mut all = 0;
    for table in ["audit_events", "audit_bodies", "audit_callers"] {
        for part in ["pg_table_size", "pg_indexes_size"] {
            let size = format!(
                "SELECT sum({part}(relid))::bigint FROM pg_partition_tree('{table}') WHERE isleaf
                 AND (SELECT reltuples FROM pg_class WHERE oid = relid) > 0"
            );
            let size = number(&database.url, &size).await / events;
            println!("{table} {part}: {size} bytes an event");
            all += size;
        }
    }
    println!("together: {all} bytes an event");
    assert!(all <= 450, "{all} bytes an event");
}
