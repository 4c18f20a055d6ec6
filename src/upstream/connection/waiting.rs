//! The requests in flight on one connection: whose they are, and whom a message
//! without an address may be about.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::hearing::Ear;
use super::super::{CallerKey, UpstreamError};
use crate::protocol::Json;

/// How long after another caller's request a log message may still be about it.
const AFTERTHOUGHT: Duration = Duration::from_secs(2);

/// A response's result, or its error object.
pub(in super::super) type Outcome = Result<Json, Json>;

/// The requests in flight.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) closed: bool,
    pub(super) requests: HashMap<i64, Waiter>,
    /// Who was last active, and when; and until when somebody else was.
    last: Option<(CallerKey, Instant)>,
    others_until: Option<Instant>,
}

pub(super) struct Waiter {
    pub(super) caller: CallerKey,
    pub(super) ear: Ear,
    pub(super) answer: oneshot::Sender<Result<Outcome, UpstreamError>>,
}

impl Waiting {
    /// Notes that a caller is active now.
    pub(super) fn note(&mut self, caller: CallerKey) {
        if caller == CallerKey::GATEWAY {
            return;
        }
        let now = Instant::now();
        if let Some((last, at)) = self.last.replace((caller, now))
            && last != caller
        {
            self.others_until = Some(at);
        }
    }

    /// The request with that id, which is over now.
    pub(super) fn take(&mut self, id: i64) -> Option<Waiter> {
        let waiter = self.requests.remove(&id)?;
        self.note(waiter.caller);
        Some(waiter)
    }

    /// Whom a log message may be about. A shared child does not say: it is only
    /// passed on where it cannot be about anybody else.
    pub(super) fn audience(&self) -> Vec<&Ear> {
        let of_callers = |waiter: &&Waiter| waiter.caller != CallerKey::GATEWAY;
        let waiters = || self.requests.values().filter(of_callers);
        let first = waiters().next().map(|waiter| waiter.caller);
        let alone = waiters().all(|waiter| Some(waiter.caller) == first);
        let fresh = |at: Instant| at.elapsed() < AFTERTHOUGHT;
        if !alone || self.others_until.is_some_and(fresh) {
            return Vec::new();
        }
        waiters().map(|waiter| &waiter.ear).collect()
    }

    /// The requests that a question of the server's can belong to. A shared child
    /// does not say: it is only asked where they are all of one caller.
    pub(super) fn askable(&self) -> Vec<&Ear> {
        let of_callers = |waiter: &&Waiter| waiter.caller != CallerKey::GATEWAY;
        let mut waiters: Vec<&Waiter> = self.requests.values().filter(of_callers).collect();
        waiters.sort_by_key(|waiter| std::cmp::Reverse(waiter.ear.id()));
        let first = waiters.first().map(|waiter| waiter.caller);
        if waiters.iter().any(|waiter| Some(waiter.caller) != first) {
            return Vec::new();
        }
        waiters.into_iter().map(|waiter| &waiter.ear).collect()
    }
}

/// The id in what is left of a response that was too long, written before its
/// result or behind it.
pub(super) fn id_of_cut(head: &[u8], tail: &[u8]) -> Option<i64> {
    let digits = |text: &str| {
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        text.get(..end)?.parse().ok()
    };
    let head = String::from_utf8_lossy(head);
    let before = head
        .split_once("\"result\"")
        .or_else(|| head.split_once("\"error\""))
        .map_or(&*head, |(before, _)| before);
    if let Some((_, rest)) = before.split_once("\"id\":") {
        return digits(rest.trim_start());
    }
    let tail = String::from_utf8_lossy(tail);
    let (_, rest) = tail.rsplit_once("\"id\":")?;
    let rest = rest.trim();
    let number = rest.strip_suffix('}')?.trim_end();
    // Behind the result there is nothing but the id, or the version too.
    let number = number.split_once(',').map_or(number, |(number, _)| number);
    digits(number)
}
