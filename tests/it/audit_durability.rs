//! A database that is there and cannot keep its word: its disk full, its standby
//! away, or standing still under load. Nothing runs unrecorded, nothing is told
//! that is not durable, and it heals by itself (C26 b, c; `outage.rs` has the rest).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::outage::{Stage, calls_are_refused, heals, refused, the_record_is_whole};
use super::support::postgres::OwnPostgres;
use super::support::{Setup, Value, eventually, json};

impl Stage {
    fn setting(&self, assignment: &str) {
        let setting = format!("alter system {assignment}");
        self.postgres.psql("postgres", &setting);
        self.postgres.psql("postgres", "select pg_reload_conf()");
    }
}

/// A commit that its standby has not confirmed is none.
#[tokio::test]
async fn with_its_standby_away_a_database_that_must_wait_for_it_refuses() {
    let stage = Stage::set().await;
    let mut sessions = stage.sessions().await;
    heals(&stage, &mut sessions, "before").await;
    stage.setting("set synchronous_standby_names = 'nobody'");
    eventually("the server waits for its standby", async || {
        let names = stage
            .postgres
            .psql("postgres", "show synchronous_standby_names");
        (names.trim() == "nobody").then_some(())
    })
    .await;
    refused(&sessions[0].call("echo", json!({"n": "alone-first"})).await);
    calls_are_refused(&stage, &sessions, "alone").await;
    // A crash shows what was committed here alone. It is still not enough.
    stage.postgres.crash();
    stage.postgres.resume();
    refused(&sessions[0].call("echo", json!({"n": "alone-again"})).await);
    calls_are_refused(&stage, &sessions, "alone-still").await;
    stage.setting("reset synchronous_standby_names");
    heals(&stage, &mut sessions, "replicated").await;
    the_record_is_whole(&stage).await;
}

/// A file system of a few megabytes, for one tablespace.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(postgres: &OwnPostgres) -> Option<Self> {
        let folder = postgres.folder().join("small");
        std::fs::create_dir(&folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=32m,mode=777", "tmpfs"])
            .arg(&folder)
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            return None;
        }
        let disk = Self(folder);
        OwnPostgres::give(&disk.0);
        let place = disk.0.display().to_string();
        postgres.psql(
            "postgres",
            &format!("create tablespace small location '{place}'"),
        );
        postgres.psql("postgres", "grant create on tablespace small to public");
        Some(disk)
    }

    fn fill(&self) {
        // Until it is full: that it fails is the point.
        let _ = Command::new("dd")
            .args(["if=/dev/zero", "bs=64k"])
            .arg(format!("of={}", self.file().display()))
            .output();
        let _ = Command::new("sh")
            .arg("-c")
            .arg(format!("cat /dev/zero >> {}", self.file().display()))
            .output();
    }

    fn free(&self) {
        std::fs::remove_file(self.file()).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// C26 b: 53100, with the tables on a disk that is full.
#[tokio::test]
async fn with_its_disk_full_the_database_counts_as_away() {
    let postgres = tokio::task::spawn_blocking(OwnPostgres::start)
        .await
        .unwrap();
    let Some(disk) = SmallDisk::mount(&postgres) else {
        eprintln!("skipped: this account may not mount a small disk");
        return;
    };
    postgres.psql("postgres", "alter system set default_tablespace = small");
    postgres.psql("postgres", "select pg_reload_conf()");
    let stage = Stage::over(Arc::clone(&postgres)).await;
    let mut sessions = stage.sessions().await;
    heals(&stage, &mut sessions, "before").await;
    assert!(on_small_disk(&stage), "the tables lie elsewhere");
    disk.fill();
    // What room the tables' last pages have is used up first, by the smallest calls.
    let (mut asked, mut in_a_row) = (0, 0);
    eventually("the disk is felt", async || {
        asked += 1;
        let arguments = json!({"n": format!("f{asked}")});
        let answer = sessions[0].call("echo", arguments).await;
        in_a_row = if answer.status == 503 {
            in_a_row + 1
        } else {
            0
        };
        (in_a_row == 5).then_some(())
    })
    .await;
    calls_are_refused(&stage, &sessions, "full").await;
    disk.free();
    heals(&stage, &mut sessions, "room").await;
    // A call that had begun when the disk was full ran and reads `unknown`.
    let after = sessions[0].call("echo", json!({"n": "after"})).await;
    assert_eq!(after.status, 200, "{after:?}");
    the_told_is_finished(&stage, &["after".to_owned()]).await;
    drop(stage);
    drop(disk);
}

fn on_small_disk(stage: &Stage) -> bool {
    let tables = stage.gateway.database().psql(
        "select count(*) from pg_class c join pg_tablespace t on t.oid = c.reltablespace
         where t.spcname = 'small' and c.relname like 'audit%'",
    );
    tables.trim().parse::<u32>().unwrap() > 0
}

/// Two replicas, callers that go on, a database that stands still for ten seconds:
/// nothing runs unrecorded, and nobody closes what the other still runs.
#[tokio::test]
async fn a_database_that_stands_still_under_load_leaves_a_true_record() {
    let stage = Stage::set().await;
    let second = stage.gateway.replica().await;
    let mut long = stage.gateway.user("alice@acme").modern();
    let long = tokio::spawn(async move {
        let arguments = json!({"n": "outlasts", "ms": 20_000});
        long.call("slow", arguments).await
    });
    eventually("the long call runs", async || {
        (!stage.executed().await.is_empty()).then_some(())
    })
    .await;
    let going = Arc::new(AtomicBool::new(true));
    let mut load = Vec::new();
    for number in 0..8 {
        let gateway = [&stage.gateway, &second][number % 2];
        let mut session = gateway.user("alice@acme").modern();
        let going = Arc::clone(&going);
        load.push(tokio::spawn(async move {
            let mut told = Vec::new();
            let mut turn = 0;
            while going.load(Ordering::Relaxed) {
                turn += 1;
                let n = format!("load-{number}-{turn}");
                let answer = session.call("echo", json!({ "n": n })).await;
                if answer.message().get("result").is_some() {
                    told.push(n);
                } else {
                    assert_eq!(answer.code(), 1503, "{answer:?}");
                }
            }
            told
        }));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.postgres.freeze();
    tokio::time::sleep(Duration::from_secs(10)).await;
    stage.postgres.thaw();
    stage.gateway.until_ready().await;
    second.until_ready().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    going.store(false, Ordering::Relaxed);
    let mut told = Vec::new();
    for caller in load {
        told.extend(caller.await.unwrap());
    }
    assert_eq!(long.await.unwrap().status, 200, "it was never in doubt");
    the_told_is_finished(&stage, &told).await;
    let closed = stage
        .gateway
        .rows("select call_id from audit_events where event = 5")
        .await;
    assert!(closed.is_empty(), "closed while it ran: {closed:?}");
}

async fn the_told_is_finished(stage: &Stage, told: &[String]) {
    let doubled =
        "select call_id, event from audit_events group by call_id, event having count(*) > 1";
    assert_eq!(stage.gateway.rows(doubled).await, Vec::<Value>::new());
    let records = stage
        .gateway
        .rows("select arguments, outcome from audit_calls where arguments is not null")
        .await;
    let named = records.iter().filter_map(|record| {
        let arguments: Value = serde_json::from_str(record["arguments"].as_str()?).ok()?;
        Some((
            arguments["n"].as_str()?.to_owned(),
            record["outcome"].as_str()?.to_owned(),
        ))
    });
    let outcomes: BTreeMap<String, String> = named.collect();
    assert!(!told.is_empty());
    for n in told {
        assert_eq!(
            outcomes.get(n).map(String::as_str),
            Some("ok"),
            "{n} was answered"
        );
    }
    for n in stage.executed().await {
        assert!(outcomes.contains_key(&n), "{n} ran and is not on record");
    }
}

/// An orderly stop is noticed at once: the next replica closes what was cut.
#[tokio::test]
async fn a_call_that_was_cut_by_a_stop_is_closed_by_another_replica() {
    let hostile = super::support::Helper::example("upstream_hostile", &[]).await;
    let mut gateway = Setup::new()
        .yaml("server: { drain_timeout: 1s }")
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    let other = gateway.replica().await;
    let session = gateway.user("alice@acme").modern();
    let mut session = session;
    let call = session.prepare(
        "tools/call",
        json!({"name": "hang", "arguments": {"n": "h"}}),
    );
    let asked = tokio::spawn(async move { call.try_send().await });
    eventually("it runs", async || {
        (hostile.calls().await.len() == 1).then_some(())
    })
    .await;
    assert!(gateway.sigterm_and_wait().await.success());
    asked.await.unwrap();
    let closed = eventually("it is closed", async || {
        let rows = other
            .rows("select e.call_id, b.reason from audit_events e join audit_bodies b using (call_id, event) where event = 5")
            .await;
        (!rows.is_empty()).then_some(rows)
    })
    .await;
    assert_eq!(closed.len(), 1);
    assert_eq!(closed[0]["reason"], "its replica is gone");
    assert_eq!(other.audit(&["--tool", "hang"])[0]["outcome"], "unknown");
    let metrics = other.metrics().await;
    assert!(
        metrics.contains("toolgate_audit_orphans_closed_total 1"),
        "{metrics}"
    );
}
