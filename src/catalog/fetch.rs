//! Reading an upstream's list of tools: all its pages, within bounds, each
//! definition cleaned before anything else is done with it.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::judge::{Bench, LeftOut, Reason};
use super::schema::quote;
use super::tool::Tool;
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, ListPage, codes};
use crate::sanitize::Sanitizer;
use crate::upstream::{Credential, Upstream, UpstreamError, UpstreamRequest};

const MOST_PAGES: usize = 100;
const MOST_TOOLS: usize = 2_000;
const MOST_BYTES: usize = 32 << 20;

/// What an upstream offers.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) tools: Vec<Tool>,
    pub(super) left_out: Vec<LeftOut>,
    /// How long the upstream says that the list is fresh.
    pub(super) fresh_for: Option<Duration>,
    /// Whether there was more than is read.
    pub(super) cut: bool,
}

/// Reads the whole list.
pub(super) async fn fetch(
    upstream: &dyn Upstream,
    credential: Option<&Credential>,
    sanitizer: &Sanitizer,
    bench: &Bench<'_>,
    deadline: Instant,
) -> Result<Offer, UpstreamError> {
    let mut offer = Offer::default();
    let mut cursor: Option<String> = None;
    let mut bytes = 0;
    for _ in 0..MOST_PAGES {
        let page = match ask(upstream, credential, cursor.as_deref(), deadline).await {
            // A server without tools need not know the method.
            Err(UpstreamError::Rpc { code, .. }) if code == codes::METHOD_NOT_FOUND => {
                return Ok(offer);
            }
            answer => answer?,
        };
        offer.fresh_for = match (offer.fresh_for, page.fresh_for) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        for item in page.items {
            bytes += item.len();
            if offer.tools.len() + offer.left_out.len() >= MOST_TOOLS || bytes > MOST_BYTES {
                offer.cut = true;
                return Ok(offer);
            }
            offer.add(bench.judge(&sanitizer.definition(item)));
            // Compiling takes a while: others shall get their turn.
            tokio::task::yield_now().await;
        }
        match page.next_cursor {
            None => return Ok(offer),
            Some(next) if cursor.as_ref() == Some(&next) => {
                return Err(UpstreamError::Garbage {
                    what: "a list whose next page is the same page",
                });
            }
            next => cursor = next,
        }
    }
    offer.cut = true;
    Ok(offer)
}

impl Offer {
    fn add(&mut self, judged: Result<Tool, LeftOut>) {
        match judged {
            Ok(tool) if self.tools.iter().any(|known| known.exposed == tool.exposed) => {
                self.left_out.push(LeftOut {
                    name: quote(&tool.own_name),
                    reason: Reason::Twice(quote(&tool.own_name)),
                });
            }
            Ok(tool) => self.tools.push(tool),
            Err(left_out) => self.left_out.push(left_out),
        }
    }
}

async fn ask(
    upstream: &dyn Upstream,
    credential: Option<&Credential>,
    cursor: Option<&str>,
    deadline: Instant,
) -> Result<ListPage, UpstreamError> {
    let params = match cursor {
        Some(cursor) => ObjectBuilder::new().text("cursor", cursor).build(),
        None => Json::empty_object(),
    };
    let mut request = UpstreamRequest::own("tools/list", params, deadline);
    request.credential = credential.cloned();
    // Nobody listens to progress of a list; a closed channel drops it.
    let (events, _) = mpsc::channel(1);
    let answer = upstream.request(request, events);
    // The upstream keeps the deadline itself; this is for one that does not.
    let answer = tokio::time::timeout_at(deadline, answer);
    let result = answer.await.map_err(|_| UpstreamError::TimedOut)??;
    result.into_page("tools").ok_or(UpstreamError::Garbage {
        what: "a list of tools without tools",
    })
}
