//! Subscriptions to resources at a legacy server: one request for each
//! (MCP 2025-11-25 resources, Subscriptions).

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{UpstreamError, UpstreamRequest};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, Untrusted};

/// How long a server may take to note one.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// What has to be asked to get from one set to the other.
pub(super) fn subscription_steps<'a>(
    had: &'a BTreeSet<String>,
    wanted: &'a BTreeSet<String>,
) -> Vec<(&'static str, &'a String)> {
    let ends = had.difference(wanted).map(|uri| (UNSUBSCRIBE, uri));
    let begins = wanted.difference(had).map(|uri| (SUBSCRIBE, uri));
    ends.chain(begins).collect()
}

pub(super) fn subscription(method: &'static str, uri: &str) -> UpstreamRequest {
    let params = ObjectBuilder::new().text("uri", uri).build();
    UpstreamRequest::own(method, params, Instant::now() + PATIENCE)
}

/// A server that refuses has answered: asking again would not help.
pub(super) fn settled(answer: Result<Untrusted<Json>, UpstreamError>) -> Result<(), UpstreamError> {
    match answer {
        Ok(_) | Err(UpstreamError::Rpc { .. }) => Ok(()),
        Err(fault) => Err(fault),
    }
}
