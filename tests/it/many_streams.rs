//! Ten thousand open streams on one replica (`make soak`; `SOAK_STREAMS` asks for
//! another number): what one costs in memory, whether calls still go through beside
//! them, and whether each gets its graceful end. The replica is a process of its own;
//! each side needs a file descriptor a stream (`ulimit -n`).

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::support::session::Prepared;
use super::support::{Helper, Setup, eventually_within, json};

/// Streams in all, unless `SOAK_STREAMS` says otherwise.
const STREAMS: usize = 10_000;
/// One of so many is a legacy session's.
const LEGACY: usize = 20;
/// Connections that are being opened at the same time.
const OPENING: usize = 64;

/// What goes over the wire for a request, and whether its stream ends in a result.
struct Opening {
    bytes: String,
    is_modern: bool,
}

impl Opening {
    fn post(authority: &str, token: &str, request: &Prepared) -> Self {
        let mut bytes =
            format!("POST /mcp HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {token}\r\n");
        for (name, value) in &request.headers {
            let _ = write!(bytes, "{name}: {value}\r\n");
        }
        let body = request.body.to_string();
        let _ = write!(bytes, "content-length: {}\r\n\r\n{body}", body.len());
        Self {
            bytes,
            is_modern: true,
        }
    }

    fn get(authority: &str, token: &str, session: &str) -> Self {
        let bytes = format!(
            "GET /mcp HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {token}\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
        );
        Self {
            bytes,
            is_modern: false,
        }
    }

    /// Opens the stream, counts it once its headers are there, and reads it to its end.
    /// True where that was a graceful one.
    async fn hold(self, authority: String, open: Arc<AtomicUsize>, gate: Arc<Semaphore>) -> bool {
        let permit = gate.acquire_owned().await.unwrap();
        let mut stream = TcpStream::connect(&authority).await.unwrap();
        stream.write_all(self.bytes.as_bytes()).await.unwrap();
        let (mut heard, mut piece) = (Vec::new(), [0; 512]);
        let mut permit = Some(permit);
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            heard.extend_from_slice(&piece[..read]);
            if permit.is_some() && heard.windows(4).any(|end| end == b"\r\n\r\n") {
                assert!(
                    heard.starts_with(b"HTTP/1.1 200"),
                    "{}",
                    String::from_utf8_lossy(&heard)
                );
                permit = None;
                open.fetch_add(1, Ordering::SeqCst);
            }
            if heard.ends_with(b"0\r\n\r\n") {
                break;
            }
        }
        let heard = String::from_utf8_lossy(&heard);
        let told = !self.is_modern || heard.contains("\"resultType\":\"complete\"");
        heard.ends_with("0\r\n\r\n") && told
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "ten thousand connections: `make soak` runs it"]
async fn streams_by_the_ten_thousand_cost_little_and_end_gracefully() {
    let asked = std::env::var("SOAK_STREAMS").ok();
    let streams = asked.map_or(STREAMS, |asked| asked.parse().unwrap());
    let server = Helper::example("upstream_everything", &["--era", "modern"]).await;
    let mut gateway = Setup::new()
        .over("up", server)
        .yaml("streams: { per_user: 30000, total: 30000 }")
        .yaml("tenants: { acme: { limits: { per_user: { rate: 100000/s, burst: 100000 } } } }")
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    assert!(!alice.names().await.is_empty());
    let authority = gateway.url().trim_start_matches("http://").to_owned();
    let (before, _) = gateway.process().memory();
    let (open, gate) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Semaphore::new(OPENING)),
    );
    let mut held = JoinSet::new();
    let begun = Instant::now();
    for number in 0..streams {
        let caller = gateway.user(&format!("user{}@acme", number % 500));
        let opening = if number % LEGACY == 0 {
            let caller = gateway.user(&format!("legacy{number}@acme"));
            let session = caller.legacy("2025-11-25").await;
            Opening::get(&authority, caller.token(), session.id().unwrap())
        } else {
            let wanted = json!({"notifications": {"toolsListChanged": true}});
            let request = caller.modern().prepare("subscriptions/listen", wanted);
            Opening::post(&authority, caller.token(), &request)
        };
        held.spawn(opening.hold(authority.clone(), Arc::clone(&open), Arc::clone(&gate)));
    }
    eventually_within(Duration::from_mins(3), "all streams are open", async || {
        (open.load(Ordering::SeqCst) == streams).then_some(())
    })
    .await;
    let opened = begun.elapsed();
    let (after, _) = gateway.process().memory();
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        assert_eq!(alice.call("a_plain_tool", json!({})).await.text(), "Plain.");
        times.push(begun.elapsed());
    }
    times.sort();
    eprintln!(
        "{streams} streams opened in {opened:?}; resident memory {before} -> {after} MiB, {} KiB a stream; calls beside them: median {:?}, slowest of 200 {:?}",
        (after - before) * 1024 / u64::try_from(streams).unwrap(),
        times[times.len() / 2],
        times[times.len() - 1],
    );
    let begun = Instant::now();
    gateway.process().signal(Signal::SIGTERM);
    let ends = tokio::time::timeout(Duration::from_mins(2), held.join_all()).await;
    let ends = ends.expect("all streams end");
    let graceful = ends.iter().filter(|graceful| **graceful).count();
    eprintln!(
        "{graceful} of {streams} streams ended gracefully within {:?}",
        begun.elapsed()
    );
    assert_eq!(graceful, streams);
}
