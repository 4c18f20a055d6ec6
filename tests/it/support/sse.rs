//! Server-sent events, read one by one as they arrive.

use std::time::Duration;

use reqwest::{Response, StatusCode};

use super::answer::Answer;
use super::{PATIENCE, Value};

/// One event, or one comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// `id`
    pub(crate) id: Option<String>,
    /// `event`
    pub(crate) name: Option<String>,
    /// `retry`
    pub(crate) retry: Option<String>,
    /// `data`, its lines joined.
    pub(crate) data: String,
    /// Lines that begin with a colon.
    pub(crate) comment: Option<String>,
}

/// An open stream. Dropping it hangs up.
#[derive(Debug)]
pub(crate) struct Events {
    response: Response,
    pending: Vec<u8>,
    ended: bool,
}

impl Event {
    /// Its data as JSON, where it carries a message.
    pub(crate) fn message(&self) -> Option<Value> {
        serde_json::from_str(&self.data).ok()
    }

    fn parse(block: &str) -> Self {
        let mut event = Self::default();
        let mut data = Vec::new();
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" => event.comment = Some(value.to_owned()),
                "id" => event.id = Some(value.to_owned()),
                "event" => event.name = Some(value.to_owned()),
                "retry" => event.retry = Some(value.to_owned()),
                "data" => data.push(value),
                _ => {}
            }
        }
        event.data = data.join("\n");
        event
    }
}

impl Events {
    /// Reads the body of an answer as events. Panics if it is something else.
    pub(crate) async fn new(response: Response) -> Self {
        let is_stream = is_stream(&response);
        if response.status() != StatusCode::OK || !is_stream {
            let answer = Box::pin(Answer::read(response, &Value::Null)).await;
            panic!("no stream: {answer:?}");
        }
        Self {
            response,
            pending: Vec::new(),
            ended: false,
        }
    }

    /// The answer's headers.
    pub(crate) fn headers(&self) -> &reqwest::header::HeaderMap {
        self.response.headers()
    }

    /// The next event or comment; `None` when the stream has ended. Fails after
    /// [`PATIENCE`].
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let next = tokio::time::timeout(PATIENCE, self.read()).await;
        next.expect("the stream is neither going on nor over")
    }

    /// The next event or comment, if one comes within `limit`.
    pub(crate) async fn within(&mut self, limit: Duration) -> Option<Event> {
        tokio::time::timeout(limit, self.read())
            .await
            .ok()
            .flatten()
    }

    /// The next message, whatever else comes before it.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.next().await?.message() {
                return Some(message);
            }
        }
    }

    /// The next message with this method.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        loop {
            let message = self.message().await;
            let message = message.unwrap_or_else(|| panic!("the stream ended before {method}"));
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Everything up to the response with this id.
    pub(crate) async fn until_response(&mut self, id: &Value) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            let is_response = message["id"] == *id && message["method"].is_null();
            messages.push(message);
            if is_response {
                break;
            }
        }
        messages
    }

    async fn read(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = split(&self.pending) {
                let event = Event::parse(&String::from_utf8(block).expect("events are UTF-8"));
                self.pending = rest;
                return Some(event);
            }
            if self.ended {
                return None;
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.pending.extend_from_slice(&chunk),
                // Cut off or at its end: for the reader there is no more.
                Ok(None) | Err(_) => self.ended = true,
            }
        }
    }
}

/// Whether an answer is a stream of events.
pub(crate) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get("content-type");
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// The first complete block and what follows it.
fn split(bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n"];
    let found = ends.iter().filter_map(|end| {
        let at = bytes.windows(end.len()).position(|window| window == *end)?;
        Some((at, at + end.len()))
    });
    let (end, next) = found.min()?;
    Some((bytes[..end].to_vec(), bytes[next..].to_vec()))
}
