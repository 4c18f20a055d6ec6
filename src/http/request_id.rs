//! The outermost layer: who the caller's address is, and an id for the request
//! that every log line of it carries.

use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use super::edge::CallerAddress;
use super::{Edge, address};
use crate::clock;
use crate::telemetry::names::field;
use crate::telemetry::trace;

/// Opens the request's span. A caller's own request id is not taken over: it is
/// text that we did not choose.
pub(super) async fn layer(
    State(edge): State<Edge>,
    ConnectInfo(peer): ConnectInfo<std::net::SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = address::caller(&edge.current.load().base, request.headers(), peer.ip());
    request.extensions_mut().insert(CallerAddress(caller));
    let id = format!("{:016x}", u64::from_be_bytes(clock::random()));
    let span = tracing::info_span!(
        "http.request",
        { field::REQUEST } = %id,
        { field::TRACE } = tracing::field::Empty
    );
    let handled = trace::of_request(&id, next.run(request));
    let mut response = handled.instrument(span).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}
