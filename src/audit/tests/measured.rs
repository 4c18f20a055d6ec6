//! Numbers, not judgements: run by hand (`cargo test --lib measured -- --ignored --nocapture`).

use tokio::time::Instant;

use super::*;
use crate::config::Durability;
use crate::store::testing::{database, number, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn what_a_strict_call_costs_at_1_16_and_64_in_flight() {
    let database = database().await;
    let (auditor, noted) = auditor(&database.store);
    let auditor = Arc::new(auditor);
    for durability in [Durability::Strict, Durability::Overlapped] {
        for flight in [1_usize, 16, 64, 256] {
            noted.batches.lock().unwrap().clear();
            let each = if flight == 1 { 1_500 } else { 20_000 / flight };
            let begun = Instant::now();
            let tasks: Vec<_> = (0..flight)
                .map(|_| {
                    let auditor = Arc::clone(&auditor);
                    tokio::spawn(async move {
                        let mut took = Vec::with_capacity(each);
                        for _ in 0..each {
                            let facts = facts();
                            let begun = Instant::now();
                            let recorded = auditor.start(&facts, durability).await.unwrap();
                            let _ = auditor.finish(recorded, ended(Outcome::Ok)).await.unwrap();
                            took.push(begun.elapsed());
                        }
                        took
                    })
                })
                .collect();
            let mut took = Vec::new();
            for task in tasks {
                took.extend(task.await.unwrap());
            }
            let seconds = begun.elapsed().as_secs_f64();
            took.sort();
            let sizes = noted.sizes(LaneName::Started);
            println!(
                "{durability:?} {flight:>3} in flight: {:>6.0} calls/s, added p50 {:?} p99 {:?}, batch {:.1}",
                took.len() as f64 / seconds,
                took[took.len() / 2],
                took[took.len() * 99 / 100],
                sizes.iter().sum::<usize>() as f64 / sizes.len() as f64,
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn what_an_event_takes_on_disk() {
    let database = database().await;
    let (auditor, _) = auditor(&database.store);
    for _ in 0..40 {
        let calls: Vec<CallFacts> = (0..500).map(|_| facts()).collect();
        let starts = calls
            .iter()
            .map(|facts| auditor.start(facts, Durability::Strict));
        let recorded = futures_util::future::join_all(starts).await;
        let ends = recorded
            .into_iter()
            .map(|recorded| auditor.finish(recorded.unwrap(), ended(Outcome::Ok)));
        for receipt in futures_util::future::join_all(ends).await {
            let _ = receipt.unwrap();
        }
    }
    run(&database.url, "VACUUM ANALYZE").await;
    let events = number(&database.url, "SELECT count(*) FROM audit_events").await;
    for table in ["audit_events", "audit_bodies", "audit_callers"] {
        for what in ["pg_table_size", "pg_indexes_size"] {
            let size = format!(
                "SELECT sum({what}(relid))::bigint FROM pg_partition_tree('{table}') WHERE isleaf"
            );
            let size = number(&database.url, &size).await;
            println!(
                "{table} {what}: {:.0} bytes an event",
                size as f64 / events as f64
            );
        }
    }
    let row = "SELECT avg(pg_column_size(e.*))::bigint FROM audit_events e WHERE event = ";
    println!(
        "started row {}",
        number(&database.url, &format!("{row}1")).await
    );
    println!(
        "finished row {}",
        number(&database.url, &format!("{row}2")).await
    );
    let row = "SELECT avg(pg_column_size(b.*))::bigint FROM audit_bodies b";
    println!("body row {}", number(&database.url, row).await);
}
