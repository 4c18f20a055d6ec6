//! Callers that go on and on, and what became of their calls.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::client::Caller;
use super::{both, eventually, json};

/// Callers at work.
#[derive(Debug)]
pub(crate) struct Load {
    going: Arc<AtomicBool>,
    told: Arc<Told>,
    callers: Vec<JoinHandle<()>>,
}

/// What they were told.
#[derive(Debug, Default)]
struct Told {
    passed: AtomicUsize,
    limited: AtomicUsize,
    unavailable: AtomicUsize,
    failed: Mutex<Vec<String>>,
    slowest: Mutex<Duration>,
}

/// The sum of it.
#[derive(Debug)]
pub(crate) struct Sum {
    /// Calls that were answered with their result.
    pub(crate) passed: usize,
    /// Refused as over a limit.
    pub(crate) limited: usize,
    /// Refused because something is away (503 and 1503).
    pub(crate) unavailable: usize,
    /// Everything else.
    pub(crate) failed: Vec<String>,
    /// The longest that an answer took.
    pub(crate) slowest: Duration,
}

impl Load {
    /// Callers with these names, in turn of both eras, that call `tool` with a pause
    /// between two calls. A session is opened once and kept.
    pub(crate) async fn start(
        callers: impl IntoIterator<Item = Caller>,
        tool: &'static str,
        pause: Duration,
    ) -> Self {
        let going = Arc::new(AtomicBool::new(true));
        let told = Arc::new(Told::default());
        let mut tasks = Vec::new();
        for (number, caller) in callers.into_iter().enumerate() {
            let mut session = caller.connect(both()[number % 2]).await;
            let (going, told) = (Arc::clone(&going), Arc::clone(&told));
            tasks.push(tokio::spawn(async move {
                let mut turn = 0;
                while going.load(Ordering::Relaxed) {
                    let arguments = json!({"n": format!("load-{number}-{turn}"), "ms": 20});
                    let params = json!({"name": tool, "arguments": arguments});
                    let call = session.prepare("tools/call", params);
                    let begun = Instant::now();
                    told.keep(call.try_send().await, begun.elapsed());
                    turn += 1;
                    tokio::time::sleep(pause).await;
                }
            }));
        }
        Self {
            going,
            told,
            callers: tasks,
        }
    }

    /// How many calls have passed so far.
    pub(crate) fn passed(&self) -> usize {
        self.told.passed.load(Ordering::Relaxed)
    }

    /// Waits until so many more calls have passed.
    pub(crate) async fn until_more(&self, count: usize) {
        self.until(self.passed() + count).await;
    }

    /// Waits until so many calls have passed in all.
    pub(crate) async fn until(&self, goal: usize) {
        eventually("calls pass", async || (self.passed() >= goal).then_some(())).await;
    }

    /// Ends it once every call under way has its answer.
    pub(crate) async fn stop(self) -> Sum {
        self.going.store(false, Ordering::Relaxed);
        for caller in self.callers {
            caller.await.unwrap();
        }
        let told = &self.told;
        Sum {
            passed: told.passed.load(Ordering::Relaxed),
            limited: told.limited.load(Ordering::Relaxed),
            unavailable: told.unavailable.load(Ordering::Relaxed),
            failed: std::mem::take(&mut told.failed.lock().unwrap()),
            slowest: *told.slowest.lock().unwrap(),
        }
    }
}

impl Told {
    fn keep(&self, answer: Option<String>, took: Duration) {
        let mut slowest = self.slowest.lock().unwrap();
        *slowest = took.max(*slowest);
        drop(slowest);
        let of = |word: &str| answer.as_deref().is_some_and(|body| body.contains(word));
        let count = if of("\"code\":1429") {
            &self.limited
        } else if of("\"code\":1503") {
            &self.unavailable
        } else if of("\"content\"") && of("load-") && !of("\"isError\":true") {
            &self.passed
        } else {
            let words = answer.unwrap_or_else(|| "the connection broke".to_owned());
            return self.failed.lock().unwrap().push(words);
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
