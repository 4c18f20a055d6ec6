//! Messages as server-sent events: headers at once, each event flushed when it
//! is sent, a comment while nothing happens (WHATWG HTML, Server-sent events).

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};

use crate::mcp::{Event, Events, Messages};
use crate::protocol::Json;

/// A response that streams `messages`.
pub(super) fn response(messages: Messages, keep_alive: Duration) -> Response {
    let plain = |message| Event {
        message: Some(message),
        ..Event::default()
    };
    of_events(Box::pin(messages.map(plain)), keep_alive)
}

/// A response that streams `events`.
pub(super) fn of_events(events: Events, keep_alive: Duration) -> Response {
    let opening = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b":\n\n")) });
    let events = stream::unfold(Some(events), move |events| async move {
        let mut events = events?;
        match tokio::time::timeout(keep_alive, events.next()).await {
            Ok(Some(next)) => Some((Ok(event(&next)), Some(events))),
            Ok(None) => None,
            Err(_) => Some((Ok(Bytes::from_static(b": keep-alive\n\n")), Some(events))),
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

/// One event. Line breaks between tokens become blanks: a JSON text has none inside
/// its strings. An event without a message has empty data (MCP 2025-11-25
/// Streamable HTTP, Sending Messages to the Server).
pub(super) fn event(event: &Event) -> Bytes {
    let text = event.message.as_ref().map_or("", Json::as_str);
    let mut out = BytesMut::with_capacity(text.len() + 128);
    if let Some(id) = &event.id {
        line(&mut out, b"id: ", id.as_bytes());
    }
    if let Some(retry) = event.retry {
        line(
            &mut out,
            b"retry: ",
            retry.as_millis().to_string().as_bytes(),
        );
    }
    if event.message.is_some() {
        out.extend_from_slice(b"event: message\n");
    }
    out.extend_from_slice(b"data: ");
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

fn line(out: &mut BytesMut, field: &[u8], value: &[u8]) {
    out.extend_from_slice(field);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\n");
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
        let message = Event {
            message: Some(json),
            ..Event::default()
        };
        assert_eq!(
            event(&message),
            &b"event: message\ndata: {\"a\":   [1, 2]}\n\n"[..]
        );
    }

    #[test]
    fn an_event_without_a_message_says_where_the_stream_stands() {
        let marker = Event {
            message: None,
            id: Some("a.1.0".to_owned()),
            retry: Some(Duration::from_millis(500)),
        };
        assert_eq!(event(&marker), &b"id: a.1.0\nretry: 500\ndata: \n\n"[..]);
    }
}
