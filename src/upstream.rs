//! Where tools come from: the [`Upstream`] trait and its kinds. Each speaks to its
//! server in the server's own era and hands on what it said in modern form, raw
//! and marked `Untrusted`.
//!
//! Knows nothing of tenants, callers or rules: who asks comes as a [`CallerKey`],
//! what proves it as a [`Credential`].

mod abilities;
mod asking;
mod backoff;
mod child;
mod connection;
mod fault;
mod gate;
mod greeting;
mod header;
mod hearing;
mod http;
#[cfg(test)]
mod http_tests;
mod legacy;
mod lines;
mod link;
mod listen;
mod message;
mod modern;
mod patience;
mod probe;
mod profile;
mod request;
mod resumption;
#[cfg(test)]
mod rmcp_tests;
mod session;
mod sessions;
mod sse;
mod stdio;
#[cfg(test)]
mod stdio_tests;
mod subscribing;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use thiserror::Error;
use tokio::sync::{broadcast, watch};

pub use abilities::Abilities;
pub use fault::UpstreamError;
pub use header::encode_header_value;
pub use hearing::News;
pub use http::HttpUpstream;
pub use request::{CallerKey, Credential, EventSender, UpstreamRequest};
pub use stdio::StdioUpstream;

use crate::clock::SharedClock;
use crate::config::{self, UpstreamKind};
use crate::ids::UpstreamId;
use crate::outgoing::{Outgoing, OutgoingFault};
use crate::protocol::{Json, Untrusted, Version};

/// A source of tools.
pub trait Upstream: Send + Sync + 'static {
    /// Its key in the configuration.
    fn id(&self) -> &UpstreamId;

    /// The revision spoken with it; `None` until it has answered once.
    fn version(&self) -> Option<Version>;

    /// Asks it something and waits for the result, which is the JSON-RPC `result`
    /// as it came. What it says meanwhile goes to `events`. Dropping the future
    /// cancels its work.
    ///
    /// # Errors
    /// [`UpstreamError`] says why there is no result and whether the request can
    /// have been executed.
    fn request(
        &self,
        request: UpstreamRequest,
        events: EventSender,
    ) -> BoxFuture<'_, Result<Untrusted<Json>, UpstreamError>>;

    /// What it says that it can do; nothing until it has answered once.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// Counts what makes its lists worth reading again: its own
    /// announcements, and its restarts. An upstream may announce as often as it
    /// likes: whoever reads the list sets the pace.
    fn list_changed(&self) -> watch::Receiver<u64>;

    /// Word of single resources; `None` where it never has any.
    fn news(&self) -> Option<broadcast::Receiver<News>> {
        None
    }

    /// Subscribes to these resources, and to no others any more. Called again after
    /// [`News::Forgotten`].
    ///
    /// # Errors
    /// When the server could not be told: worth another attempt.
    fn subscribe(
        &self,
        _uris: BTreeSet<String>,
        _credential: Option<Credential>,
    ) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(async { Ok(()) })
    }

    /// Tells the server that the roots of this caller's client are others now, where
    /// it keeps a session for it.
    fn roots_changed(&self, _caller: CallerKey) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Closes sessions and ends processes. Nothing may be asked of it afterwards.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// Why an upstream cannot be made of its configuration.
#[derive(Debug, Error)]
pub enum BuildFault {
    /// Neither of the kinds, or both.
    #[error("upstream `{id}` must be exactly one of `mcp` and `stdio`")]
    Kind {
        /// The upstream.
        id: UpstreamId,
    },
    /// `mcp.url` cannot be asked.
    #[error("upstream `{id}`: `mcp.url` is {fault}")]
    Url {
        /// The upstream.
        id: UpstreamId,
        /// Why.
        fault: OutgoingFault,
    },
}

/// Makes an upstream of its configuration. Nothing is connected to or started
/// before the first request.
///
/// # Errors
/// [`BuildFault`] when the configuration names no kind, or several.
pub fn build(
    id: UpstreamId,
    config: &config::Upstream,
    outgoing: &Outgoing,
    clock: &SharedClock,
) -> Result<Arc<dyn Upstream>, BuildFault> {
    match config.kind() {
        Some(UpstreamKind::Mcp(kind)) => {
            let clock = Arc::clone(clock);
            match HttpUpstream::new(id.clone(), kind, config, outgoing, clock) {
                Ok(upstream) => Ok(Arc::new(upstream)),
                Err(fault) => Err(BuildFault::Url { id, fault }),
            }
        }
        Some(UpstreamKind::Stdio(kind)) => Ok(Arc::new(StdioUpstream::new(id, kind, config))),
        None => Err(BuildFault::Kind { id }),
    }
}
