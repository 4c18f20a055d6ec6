//! Reading an upstream's lists: all pages of each, within bounds, each definition
//! cleaned before anything else is done with it.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::judge::{LeftOut, Reason};
use super::schema::quote;
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, ListPage, Untrusted, codes};
use crate::upstream::{Credential, Upstream, UpstreamError, UpstreamRequest};

const MOST_PAGES: usize = 100;
const MOST_ITEMS: usize = 2_000;
const MOST_BYTES: usize = 32 << 20;

/// One list of what an upstream offers.
#[derive(Debug)]
pub(super) struct Offer<T> {
    pub(super) items: Vec<T>,
    pub(super) left_out: Vec<LeftOut>,
    /// How long the upstream says that the list is fresh.
    pub(super) fresh_for: Option<Duration>,
    /// Whether there was more than is read.
    pub(super) cut: bool,
}

impl<T> Default for Offer<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            left_out: Vec::new(),
            fresh_for: None,
            cut: false,
        }
    }
}

/// Whom to ask, and until when.
pub(super) struct Reader<'a> {
    pub(super) upstream: &'a dyn Upstream,
    pub(super) credential: Option<&'a Credential>,
    pub(super) deadline: Instant,
}

/// One kind of list: its method, and the member of the result that holds it.
#[derive(Clone, Copy)]
pub(super) struct List {
    pub(super) method: &'static str,
    pub(super) member: &'static str,
}

impl Reader<'_> {
    /// Reads a whole list. `judge` makes an item of a definition and tells the key
    /// that may stand in the list once.
    pub(super) async fn list<T>(
        &self,
        list: List,
        judge: impl Fn(Untrusted<Json>) -> Result<(String, T), LeftOut>,
    ) -> Result<Offer<T>, UpstreamError> {
        let mut offer = Offer::default();
        let mut known = HashSet::new();
        let mut cursor: Option<String> = None;
        let mut bytes = 0;
        for _ in 0..MOST_PAGES {
            let page = match self.ask(list, cursor.as_deref()).await {
                // A server without such things need not know the method.
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
                if offer.items.len() + offer.left_out.len() >= MOST_ITEMS || bytes > MOST_BYTES {
                    offer.cut = true;
                    return Ok(offer);
                }
                offer.add(judge(item), &mut known);
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

    async fn ask(&self, list: List, cursor: Option<&str>) -> Result<ListPage, UpstreamError> {
        let params = match cursor {
            Some(cursor) => ObjectBuilder::new().text("cursor", cursor).build(),
            None => Json::empty_object(),
        };
        let mut request = UpstreamRequest::own(list.method, params, self.deadline);
        request.credential = self.credential.cloned();
        // Nobody listens to progress of a list; a closed channel drops it.
        let (events, _) = mpsc::channel(1);
        let answer = self.upstream.request(request, events);
        // The upstream keeps the deadline itself; this is for one that does not.
        let answer = tokio::time::timeout_at(self.deadline, answer);
        let result = answer.await.map_err(|_| UpstreamError::TimedOut)??;
        result.into_page(list.member).ok_or(UpstreamError::Garbage {
            what: "the answer to a list without the list",
        })
    }
}

impl<T> Offer<T> {
    fn add(&mut self, judged: Result<(String, T), LeftOut>, known: &mut HashSet<String>) {
        match judged {
            Ok((key, item)) => {
                let name = quote(&key);
                if known.insert(key) {
                    self.items.push(item);
                } else {
                    self.left_out.push(LeftOut {
                        reason: Reason::Twice(name.clone()),
                        name,
                    });
                }
            }
            Err(left_out) => self.left_out.push(left_out),
        }
    }
}
