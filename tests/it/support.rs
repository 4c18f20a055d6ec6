//! What the tests share: a Postgres, an identity provider, the real server,
//! clients and upstreams. It knows the program only from outside: its command
//! line, its configuration file, its listeners and its tables.
//!
//! ```text
//! let server = Helper::example("upstream_rmcp", &[]);
//! let gateway = Gateway::over(server).await;
//! for era in both() {
//!     let mut alice = gateway.user("alice@acme").connect(era).await;
//!     assert_eq!(alice.call("echo", json!({"text": "hi"})).await.text(), "hi");
//! }
//! ```
#![expect(
    dead_code,
    reason = "a kit: it offers what the next test needs, whether or not one uses it today"
)]

pub(crate) mod answer;
pub(crate) mod asking;
pub(crate) mod audit;
pub(crate) mod authority;
pub(crate) mod browser;
pub(crate) mod client;
pub(crate) mod collector;
pub(crate) mod config;
pub(crate) mod fleet;
pub(crate) mod folder;
pub(crate) mod idp;
pub(crate) mod keeper;
pub(crate) mod kept;
pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod login_idp;
pub(crate) mod oauth;
pub(crate) mod pooler;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod real;
pub(crate) mod redis;
pub(crate) mod scripted;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod sign_in;
pub(crate) mod sse;
pub(crate) mod talking;
pub(crate) mod tool_server;
pub(crate) mod upstream;
pub(crate) mod wire;

use std::time::{Duration, Instant};

pub(crate) use serde_json::{Value, json};

pub(crate) use server::{Gateway, Setup};
pub(crate) use session::{Era, both};
pub(crate) use upstream::Helper;

/// How long a test waits for anything before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `check` gives a value; fails with `what` after [`PATIENCE`].
pub(crate) async fn eventually<T>(what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, check).await
}

/// The same with a patience of its own.
pub(crate) async fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = check().await {
            return value;
        }
        assert!(start.elapsed() < patience, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
