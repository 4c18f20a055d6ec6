//! The rest of a request's body when the answer did not wait for it. A refusal
//! (401, 405, 413) is often ready before the client has sent all of its body. A
//! connection whose body nobody reads is closed by the server without a word, and
//! the client's next request on it fails though nothing is wrong: so a small rest
//! is read and thrown away, and a large one is announced (`Connection: close`,
//! RFC 9112 §9.6) and read for a while, since closing at once would reset the
//! connection and lose the answer with it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// Up to here the rest is read and the connection goes on, bytes.
const SMALL: u64 = 256 * 1024;
/// Up to here a rest is read before the connection is closed, bytes.
const MOST: usize = 64 * 1024 * 1024;
/// How long a rest may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a body that was dropped before its end is found again.
type Left = Arc<Mutex<Option<Body>>>;

/// Sees to what the answer left unread.
pub(super) async fn layer(mut request: Request, next: Next) -> Response {
    // In HTTP/2 a request's stream ends alone.
    if request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
        return next.run(request).await;
    }
    // A client that waits for `100 Continue` may never send what it announced.
    let waits = request.headers().contains_key(header::EXPECT);
    let left = Left::default();
    request = request.map(|body| {
        Body::new(Lent {
            body: Some(body),
            left: Arc::clone(&left),
        })
    });
    let mut response = next.run(request).await;
    let rest = left.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(rest) = rest {
        let small = rest.size_hint().upper().is_some_and(|most| most <= SMALL);
        if waits || !small {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if !waits {
            tokio::spawn(tokio::time::timeout(PATIENCE, discard(rest)));
        }
    }
    response
}

async fn discard(mut rest: Body) {
    let mut seen = 0;
    while let Some(Ok(frame)) = rest.frame().await {
        seen += frame.data_ref().map_or(0, Bytes::len);
        if seen > MOST {
            break;
        }
    }
}

/// A body that goes back where it came from when its reader loses interest.
struct Lent {
    body: Option<Body>,
    left: Left,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let body = self.body.take().filter(|body| !body.is_end_stream());
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = body;
    }
}
