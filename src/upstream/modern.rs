//! The modern era over HTTP: every request stands alone, closing its stream
//! cancels it (MCP 2026-07-28 Streamable HTTP).

use ::http::{HeaderMap, HeaderName, HeaderValue};

use super::header::{add_trace, encode_header_value};
use super::hearing::{Ear, Heard, Line, hear};
use super::http::{Http, Miss};
use super::link::{Answer, METHOD, NAME, PROTOCOL_VERSION, Reading, Refusal, add, base_headers};
use super::{Credential, UpstreamError, UpstreamRequest, message};
use crate::protocol::{Era, Json, Version, codes};
use crate::telemetry::TraceContext;

/// The headers of a request of the gateway's own.
pub(super) fn own_headers(method: &'static str, credential: Option<&Credential>) -> HeaderMap {
    let mut headers = base_headers(credential);
    let version = HeaderValue::from_static(Version::MODERN.as_str());
    headers.insert(PROTOCOL_VERSION, version);
    headers.insert(METHOD, HeaderValue::from_static(method));
    headers
}

fn headers(request: &UpstreamRequest, trace: Option<&TraceContext>) -> HeaderMap {
    let mut headers = own_headers(request.method, request.credential.as_ref());
    if let Some(name) = &request.name {
        add(&mut headers, NAME, &encode_header_value(name));
    }
    for (name, value) in &request.param_headers {
        if let Ok(name) = HeaderName::try_from(name.as_str()) {
            add(&mut headers, name, &encode_header_value(value));
        }
    }
    add_trace(&mut headers, trace);
    headers
}

/// One request and its answer. Dropping the future closes the stream, which is
/// how a modern server hears that nobody waits any more.
pub(super) async fn call(
    http: &Http,
    request: &UpstreamRequest,
    line: &Line,
) -> Result<Json, Miss> {
    let id = http.next_id();
    let leg = http
        .link
        .legs
        .begin(id, request, Some(Version::MODERN), None);
    let outcome = leg
        .around(exchange(http, id, request, leg.trace(), line))
        .await;
    leg.end(outcome.as_ref().map_err(Miss::fault));
    outcome
}

async fn exchange(
    http: &Http,
    id: i64,
    request: &UpstreamRequest,
    trace: Option<&TraceContext>,
    line: &Line,
) -> Result<Json, Miss> {
    let body = message::call(id, request, trace, Era::Modern);
    let answer = http.link.post(headers(request, trace), body).await?;
    match http.link.read(answer).await? {
        Answer::Messages(reading) => {
            let ear = Ear::new(id, request, line);
            wait(http, &ear, reading).await.map_err(judge)
        }
        Answer::Accepted => Err(Miss::Fault(UpstreamError::Garbage {
            what: "nothing where an answer was due",
        })),
        Answer::Refused(refusal) => Err(judge_refusal(refusal)),
    }
}

async fn wait(http: &Http, ear: &Ear, mut reading: Reading) -> Result<Json, UpstreamError> {
    while let Some(json) = reading.next().await? {
        match hear(&json, ear, &http.changes).await? {
            Heard::Answer(answer) => {
                http.finish(reading);
                return answer;
            }
            // A modern server may not ask, and could not be answered.
            Heard::Asked(_) | Heard::Nothing => {}
        }
    }
    Err(UpstreamError::Broken)
}

/// An error answer that says what we believe of the server is out of date. It was
/// refused before anything ran, so it may be sent again.
fn judge(fault: UpstreamError) -> Miss {
    match fault {
        UpstreamError::Rpc {
            code: codes::HEADER_MISMATCH | codes::UNSUPPORTED_PROTOCOL_VERSION,
            ..
        } => Miss::Stale(fault),
        _ => Miss::Fault(fault),
    }
}

fn judge_refusal(refusal: Refusal) -> Miss {
    // A modern server says in the body why it refuses; one that does not may have
    // become a legacy one (Streamable HTTP, Backward Compatibility).
    let stranger = matches!(refusal.status, 400 | 404 | 405)
        && !matches!(
            refusal.code(),
            Some(
                codes::METHOD_NOT_FOUND
                    | codes::INVALID_PARAMS
                    | codes::INTERNAL_ERROR
                    | codes::MISSING_CLIENT_CAPABILITY
            )
        );
    let fault = refusal.into_fault();
    if stranger {
        Miss::Stale(fault)
    } else {
        judge(fault)
    }
}
