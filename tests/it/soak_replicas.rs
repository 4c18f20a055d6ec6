//! Half an hour of three replicas with everything that goes wrong: `make soak`. One
//! replica lives through all of it and must not grow: memory, file handles, threads,
//! calls and streams that it believes to be open. `SOAK_MINUTES` says how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::support::fleet::Fleet;
use super::support::load::Load;
use super::support::oauth::{refresh, signed_in, text};
use super::support::postgres::OwnPostgres;
use super::support::redis::Redis;
use super::support::sign_in::{desk, local_setup};
use super::support::{Helper, Value, both, eventually, json};

/// What the replica that lives through all of it takes up.
#[derive(Clone, Copy, Debug)]
struct Sample {
    rss: u64,
    files: u64,
    threads: u64,
}

fn sample(pid: u32) -> Sample {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let number = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    Sample {
        rss: number("VmRSS:") / 1024,
        files: std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .count() as u64,
        threads: number("Threads:"),
    }
}

/// The middle of what the samples say.
fn middle(samples: &[Sample], of: fn(&Sample) -> u64) -> u64 {
    let mut all: Vec<u64> = samples.iter().map(of).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

/// People that come, listen for a while, and go.
fn listeners(fleet: &Fleet, going: &Arc<AtomicBool>, count: usize) -> Vec<JoinHandle<()>> {
    let listen = |number: usize| {
        let caller = fleet.user(&format!("listener{number}@acme"));
        let going = Arc::clone(going);
        tokio::spawn(async move {
            while going.load(Ordering::Relaxed) {
                // What a fault does to a stream is no matter here: the next one is opened.
                let caller = caller.clone();
                let once = tokio::spawn(async move {
                    let mut session = caller.connect(both()[number % 2]).await;
                    let mut stream = session.listen().await;
                    for _ in 0..5 {
                        if stream.within(Duration::from_secs(2)).await.is_none() {
                            break;
                        }
                    }
                });
                let _ = once.await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
    };
    (0..count).map(listen).collect()
}

/// Someone who signs in now and then and refreshes in between. What is refused while
/// something is away is tried again; what says that she is signed out counts.
async fn person(fleet: &Fleet, held: &mut Option<Value>, signed_out: &AtomicUsize) {
    let front = fleet.front();
    let Some(tokens) = held.take() else {
        *held = Some(signed_in(front, &desk(front), "desk", "alice@acme.test").await);
        return;
    };
    let page = refresh(front, "desk", text(&tokens, "refresh_token"), &[]).await;
    match page.status.as_u16() {
        200 => *held = Some(serde_json::from_str(&page.body).unwrap()),
        400 => {
            signed_out.fetch_add(1, Ordering::Relaxed);
        }
        _ => *held = Some(tokens),
    }
}

#[tokio::test]
#[ignore = "takes half an hour: make soak"]
async fn soak_replicas_under_mixed_load_with_faults_do_not_grow() {
    let minutes = std::env::var("SOAK_MINUTES").ok();
    let minutes: f64 = minutes.and_then(|text| text.parse().ok()).unwrap_or(30.0);
    let until = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let (redis, hostile) = (
        Redis::start(&[]),
        Helper::example("upstream_hostile", &[]).await,
    );
    let postgres = tokio::task::spawn_blocking(OwnPostgres::start)
        .await
        .unwrap();
    let setup = local_setup()
        .await
        .postgres(&postgres)
        .yaml("server: { drain_delay: 1s, drain_timeout: 10s }")
        .yaml(&json!({"redis": {"url": redis.url(), "timeout": "2s"}}).to_string())
        .yaml("upstreams: { hostile: { concurrent: 500, prefix: h_ } }")
        .upstream("hostile", hostile.config_of("/modern"));
    let mut fleet = Fleet::start(setup).await;
    let lasting = fleet.replicas[0].process().id();
    let going = Arc::new(AtomicBool::new(true));
    let listening = listeners(&fleet, &going, 8);
    let callers = (0..8).map(|number| fleet.user(&format!("user{number}@acme")));
    let load = Load::start(callers, "h_slow", Duration::from_millis(25)).await;
    let (mut held, signed_out) = (None, AtomicUsize::new(0));
    let (mut samples, mut turns) = (Vec::new(), 0_usize);
    while Instant::now() < until {
        match turns % 4 {
            0 => {
                redis.stop();
                tokio::time::sleep(Duration::from_secs(1)).await;
                redis.resume();
            }
            1 => {
                let restarting = Arc::clone(&postgres);
                let restart = move || {
                    restarting.stop();
                    restarting.resume();
                };
                tokio::task::spawn_blocking(restart).await.unwrap();
            }
            2 => {
                fleet.replicas[1].kill();
                fleet.replicas[1].start_again().await;
            }
            _ => fleet.roll(2).await,
        }
        fleet.until_up(3).await;
        load.until_more(100).await;
        person(&fleet, &mut held, &signed_out).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        let now = sample(lasting);
        eprintln!("turn {turns}: {} calls, {now:?}", load.passed());
        samples.push(now);
        turns += 1;
    }
    going.store(false, Ordering::Relaxed);
    for listener in listening {
        listener.await.unwrap();
    }
    let sum = load.stop().await;
    eprintln!(
        "{turns} faults, {} calls passed, {} refused while something was away, {} cut off, slowest {:?}",
        sum.passed,
        sum.unavailable,
        sum.failed.len(),
        sum.slowest
    );
    // Eight callers lose a call each at most with every fourth fault, which kills.
    assert!(
        sum.failed.len() <= 8 * (turns / 4 + 1) + turns,
        "{:?}",
        sum.failed
    );
    assert_eq!(
        signed_out.load(Ordering::Relaxed),
        0,
        "nobody was signed out"
    );
    eventually("no call and no stream is believed to be open", async || {
        let metrics = fleet.front().metrics().await;
        let none = |name: &str| metrics.contains(&format!("{name} 0\n"));
        (none("toolgate_inflight_calls") && none("toolgate_open_streams")).then_some(())
    })
    .await;
    let settled = &samples[samples.len() / 4..];
    let (early, late) = settled.split_at(settled.len() / 2);
    if early.is_empty() {
        return;
    }
    for (what, of, room) in [
        ("MiB", (|sample| sample.rss) as fn(&Sample) -> u64, 12),
        ("files", |sample| sample.files, 12),
        ("threads", |sample| sample.threads, 4),
    ] {
        let (before, after) = (middle(early, of), middle(late, of));
        eprintln!("{what}: {before}, later {after}");
        assert!(
            after <= before + before / 10 + room,
            "{before}, then {after} {what}"
        );
    }
}
