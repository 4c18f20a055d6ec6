//! One MCP endpoint over HTTP: sends a message, reads the answer as messages,
//! bounded. Knows status codes and media types; knows no era.

use std::collections::VecDeque;
use std::time::Duration;

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
use bytes::{Bytes, BytesMut};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::leg::Legs;
use super::sse::{SseParser, SseTooLarge};
use super::{Credential, UpstreamError};
use crate::clock::SharedClock;
use crate::outgoing::{HttpAnswer, HttpClient, OutgoingFault, Target};
use crate::protocol::json::Kind;
use crate::protocol::{Json, JsonLimits, Message, Untrusted};

/// Most bytes that are read of the body of a refusal.
const REFUSAL: usize = 64 << 10;
/// How long it is waited for.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// Most bytes of it that go into an error.
const EXCERPT: usize = 4 << 10;
/// How long, and how much, is read behind an answer so that its connection can be
/// used again.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_BYTES: usize = 64 << 10;

/// The endpoint.
pub(super) struct Link {
    pub(super) client: HttpClient,
    pub(super) target: Target,
    pub(super) max_answer: usize,
    pub(super) clock: SharedClock,
    pub(super) legs: Legs,
}

/// An answer, by what can be done with it.
pub(super) enum Answer {
    /// 2xx with messages.
    Messages(Reading),
    /// 2xx without any.
    Accepted,
    /// Anything else.
    Refused(Refusal),
}

/// A status that is no success.
pub(super) struct Refusal {
    /// The HTTP status.
    pub(super) status: u16,
    /// The JSON-RPC error object that came with it.
    pub(super) error: Option<Json>,
    retry_after: Option<Duration>,
    excerpt: String,
}

impl Refusal {
    /// As an error. The JSON-RPC error counts where HTTP only repeats it.
    pub(super) fn into_fault(self) -> UpstreamError {
        match self.error {
            Some(error) if matches!(self.status, 400 | 404) => super::hearing::rpc(&error),
            _ => UpstreamError::Status {
                status: self.status,
                retry_after: self.retry_after,
                excerpt: Untrusted::new(self.excerpt),
            },
        }
    }

    /// The JSON-RPC error's code.
    pub(super) fn code(&self) -> Option<i64> {
        self.error.as_ref()?.get("code")?.integer()
    }
}

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The headers of every message.
pub(super) fn base_headers(credential: Option<&Credential>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    if let Some(credential) = credential {
        headers.extend(header_of(credential));
    }
    headers
}

/// A credential as a header; `None` where HTTP does not allow its name or value.
pub(super) fn header_of(credential: &Credential) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(credential.name.as_str()).ok()?;
    let mut value = HeaderValue::try_from(credential.value.expose().as_str()).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// Adds a header whose value HTTP may not allow; such a value is left out.
pub(super) fn add(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

impl Link {
    /// Posts a message.
    pub(super) async fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpAnswer, UpstreamError> {
        self.send(Method::POST, headers, Some(body)).await
    }

    /// Opens a stream.
    pub(super) async fn get(&self, headers: HeaderMap) -> Result<HttpAnswer, UpstreamError> {
        self.send(Method::GET, headers, None).await
    }

    /// Ends a session.
    pub(super) async fn delete(&self, headers: HeaderMap) -> Result<HttpAnswer, UpstreamError> {
        self.send(Method::DELETE, headers, None).await
    }

    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<HttpAnswer, UpstreamError> {
        let target = self.target.clone();
        let sent = self.client.send(method, target, headers, body).await;
        sent.map_err(|fault| {
            // Whoever handles the error knows no hosts: the reason is said here.
            tracing::debug!(error = %fault, "a request did not reach an upstream");
            fault_of(&fault)
        })
    }

    /// Tells what an answer is, and reads it where it is a refusal.
    pub(super) async fn read(&self, answer: HttpAnswer) -> Result<Answer, UpstreamError> {
        if !(200..300).contains(&answer.status) {
            return Ok(Answer::Refused(self.refusal(answer).await));
        }
        match answer.media_type().as_deref() {
            Some("text/event-stream") => {
                return Ok(Answer::Messages(Reading::stream(answer, self.max_answer)));
            }
            Some("application/json") => {
                return Ok(Answer::Messages(Reading::whole(answer, self.max_answer)));
            }
            _ => {}
        }
        if answer.status != 200 || answer.header("content-length") == Some("0") {
            return Ok(Answer::Accepted);
        }
        Err(UpstreamError::Garbage {
            what: "neither JSON nor an event stream",
        })
    }

    async fn refusal(&self, mut answer: HttpAnswer) -> Refusal {
        let status = answer.status;
        let retry_after = answer
            .header("retry-after")
            .and_then(|text| retry_after(text, self.clock.now()));
        let mut body = BytesMut::new();
        let reading = async {
            while body.len() < REFUSAL {
                let Ok(Some(chunk)) = answer.chunk().await else {
                    break;
                };
                let room = REFUSAL - body.len();
                body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            }
        };
        // A body that breaks off or goes on for ever takes nothing from the status.
        let _ = tokio::time::timeout(REFUSAL_TIME, reading).await;
        let body = body.freeze();
        let error = Json::parse(body.clone(), &JsonLimits::UPSTREAM)
            .ok()
            .and_then(|json| match Message::read(&json) {
                Ok(Message::Response(response)) => response.outcome.err(),
                _ => None,
            });
        let head = body.get(..EXCERPT).unwrap_or(&body);
        Refusal {
            status,
            error,
            retry_after,
            excerpt: String::from_utf8_lossy(head).into_owned(),
        }
    }
}

/// The messages of one answer.
pub(super) struct Reading {
    answer: HttpAnswer,
    form: Form,
    limit: usize,
    /// Longest silence, keep-alive comments included, before it counts as broken.
    silence: Option<Duration>,
    /// Members of a batch that are still to be given (2025-03-26).
    batch: VecDeque<Json>,
}

enum Form {
    /// A body that is one message.
    Whole,
    /// Events.
    Stream(Box<SseParser>),
    /// Nothing more.
    Over,
}

impl Reading {
    fn whole(answer: HttpAnswer, limit: usize) -> Self {
        Self {
            answer,
            form: Form::Whole,
            limit,
            silence: None,
            batch: VecDeque::new(),
        }
    }

    /// An answer that is known to be an event stream.
    pub(super) fn stream(answer: HttpAnswer, limit: usize) -> Self {
        Self {
            answer,
            form: Form::Stream(Box::new(SseParser::new(limit))),
            limit,
            silence: None,
            batch: VecDeque::new(),
        }
    }

    /// The same stream, given up as broken after so much silence.
    pub(super) fn not_silent_for(mut self, silence: Duration) -> Self {
        self.silence = Some(silence);
        self
    }

    /// The next message; `None` where the answer ends.
    pub(super) async fn next(&mut self) -> Result<Option<Json>, UpstreamError> {
        loop {
            if let Some(json) = self.batch.pop_front() {
                return Ok(Some(json));
            }
            let Some(text) = self.text().await? else {
                return Ok(None);
            };
            let json =
                Json::parse(text, &JsonLimits::UPSTREAM).map_err(|_| UpstreamError::Garbage {
                    what: "a body that is not JSON",
                })?;
            if json.kind() != Kind::Array {
                return Ok(Some(json));
            }
            self.batch.extend(json.elements());
        }
    }

    async fn text(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        match &mut self.form {
            Form::Over => Ok(None),
            Form::Whole => {
                self.form = Form::Over;
                self.body().await.map(Some)
            }
            Form::Stream(parser) => loop {
                let event = parser
                    .next()
                    .map_err(|SseTooLarge| UpstreamError::TooLarge { limit: self.limit })?;
                if let Some(event) = event {
                    return Ok(Some(event.data));
                }
                let chunk = self.answer.chunk();
                let chunk = match self.silence {
                    None => chunk.await,
                    Some(silence) => tokio::time::timeout(silence, chunk)
                        .await
                        .map_err(|_| UpstreamError::Broken)?,
                };
                match chunk {
                    Ok(Some(chunk)) => parser.feed(chunk),
                    Ok(None) => return Ok(None),
                    Err(fault) => return Err(fault_of(&fault)),
                }
            },
        }
    }

    async fn body(&mut self) -> Result<Bytes, UpstreamError> {
        let limit = self.limit;
        let announced = self.answer.header("content-length");
        let announced = announced.and_then(|text| text.parse::<usize>().ok());
        if announced.is_some_and(|length| length > limit) {
            return Err(UpstreamError::TooLarge { limit });
        }
        let mut first: Option<Bytes> = None;
        let mut body = BytesMut::new();
        loop {
            let chunk = self
                .answer
                .chunk()
                .await
                .map_err(|fault| fault_of(&fault))?;
            let Some(chunk) = chunk else { break };
            let so_far = first.as_ref().map_or(body.len(), Bytes::len);
            if so_far + chunk.len() > limit {
                return Err(UpstreamError::TooLarge { limit });
            }
            // An answer that comes in one piece is not copied.
            match first.take() {
                None if body.is_empty() => first = Some(chunk),
                None => body.extend_from_slice(&chunk),
                Some(head) => {
                    body.reserve(announced.unwrap_or(so_far + chunk.len()));
                    body.extend_from_slice(&head);
                    body.extend_from_slice(&chunk);
                }
            }
        }
        Ok(first.unwrap_or_else(|| body.freeze()))
    }

    /// The parser of an event stream: its last event id and what it said of
    /// reconnecting.
    pub(super) fn parser(&self) -> Option<&SseParser> {
        match &self.form {
            Form::Stream(parser) => Some(parser),
            Form::Whole | Form::Over => None,
        }
    }

    /// Whether there may be something behind the answer that was taken.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.form, Form::Stream(_))
    }

    /// Reads on to the end for a moment: a connection whose answer was read whole
    /// is used again, one that is dropped in the middle is closed.
    pub(super) async fn linger(mut self) {
        let rest = async {
            let mut left = LINGER_BYTES;
            while let Ok(Some(chunk)) = self.answer.chunk().await {
                left = left.saturating_sub(chunk.len());
                if left == 0 {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(LINGER, rest).await;
    }
}

/// What a fault of the connection means for the request.
fn fault_of(fault: &OutgoingFault) -> UpstreamError {
    match fault {
        OutgoingFault::Blocked { .. } => UpstreamError::Blocked,
        OutgoingFault::TooLarge { limit } => UpstreamError::TooLarge { limit: *limit },
        OutgoingFault::TimedOut { .. } => UpstreamError::TimedOut,
        OutgoingFault::Connect { .. }
        | OutgoingFault::Tls { .. }
        | OutgoingFault::BadUrl
        | OutgoingFault::BadHeader
        | OutgoingFault::NoClient => UpstreamError::Unreachable,
        OutgoingFault::Broken { .. }
        | OutgoingFault::Status { .. }
        | OutgoingFault::NotText { .. } => UpstreamError::Broken,
    }
}

/// `Retry-After`: seconds, or a date (RFC 9110 §10.2.3).
fn retry_after(text: &str, now: OffsetDateTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    Some(Duration::try_from(date - now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now = datetime!(2015-10-21 07:27:30 UTC);
        assert_eq!(retry_after("30", now), Some(Duration::from_secs(30)));
        assert_eq!(
            retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            retry_after("Wed, 21 Oct 2015 07:20:00 GMT", now),
            Some(Duration::ZERO)
        );
        assert_eq!(retry_after("soon", now), None);
    }
}
