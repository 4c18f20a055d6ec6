//! Messages as server-sent events: headers at once, each event flushed when it
//! is sent, a comment while nothing happens (WHATWG HTML, Server-sent events).

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};

use crate::mcp::Messages;
use crate::protocol::Json;

/// A response that streams `messages`.
pub(super) fn response(messages: Messages, keep_alive: Duration) -> Response {
    let opening = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b":\n\n")) });
    let events = stream::unfold(Some(messages), move |messages| async move {
        let mut messages = messages?;
        match tokio::time::timeout(keep_alive, messages.next()).await {
            Ok(Some(message)) => Some((Ok(event(&message)), Some(messages))),
            Ok(None) => None,
            Err(_) => Some((Ok(Bytes::from_static(b": keep-alive\n\n")), Some(messages))),
        }
    });
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, no-transform"),
        ),
        (
            header::HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (
        StatusCode::OK,
        headers,
        Body::from_stream(opening.chain(events)),
    )
        .into_response()
}

/// One message as one event. Line breaks between tokens become blanks: a JSON
/// text has none inside its strings.
pub(super) fn event(message: &Json) -> Bytes {
    let text = message.as_str();
    let mut out = BytesMut::with_capacity(text.len() + 24);
    out.extend_from_slice(b"event: message\ndata: ");
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some() {
        out.extend(text.bytes().map(|byte| {
            if matches!(byte, b'\n' | b'\r') {
                b' '
            } else {
                byte
            }
        }));
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(b"\n\n");
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_line_breaks_is_one_data_line() {
        let json = Json::parse(
            Bytes::from_static(b"{\"a\":\r\n [1,\n2]}"),
            &crate::protocol::JsonLimits::CALLER,
        )
        .unwrap();
        assert_eq!(
            event(&json),
            &b"event: message\ndata: {\"a\":   [1, 2]}\n\n"[..]
        );
    }
}
