//! The opening of a session at a legacy server (MCP 2025-11-25 lifecycle).

use std::sync::Arc;

use ::http::HeaderMap;
use bytes::Bytes;

use super::header::add_trace;
use super::hearing::{Ear, Heard, hear};
use super::http::Http;
use super::link::{Answer, Reading, base_headers};
use super::profile;
use super::session::Session;
use super::{CallerKey, UpstreamError, UpstreamRequest, message};
use crate::protocol::{ClientCapabilities, Json};

/// Longest session id that is kept.
const LONGEST_ID: usize = 1024;

/// Opens a session for a client that can do this: `initialize`, then
/// `notifications/initialized`.
pub(super) async fn open(
    http: &Http,
    request: &UpstreamRequest,
) -> Result<Arc<Session>, UpstreamError> {
    let number = http.next_id();
    let credential = request.credential.as_ref();
    let mut headers = base_headers(credential);
    let declared = match request.caller {
        CallerKey::GATEWAY => ClientCapabilities::of_gateway().relayed(false),
        _ => request.declared(),
    };
    let body = message::initialize(number, &declared);
    let leg = http.link.legs.own(number, "initialize");
    add_trace(&mut headers, leg.trace());
    let opened = leg.around(greeted(http, number, headers, body)).await;
    leg.end(opened.as_ref().map(|(result, _)| result));
    let (result, id) = opened?;
    let mut profile = profile::of_initialize(&result)?;
    profile.sessionless = id.is_none();
    let session = Session::new(http, id, profile, credential);
    session.face().tell(message::initialized()).await?;
    Ok(session)
}

/// The server's answer to `initialize`, and the session's id.
async fn greeted(
    http: &Http,
    number: i64,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(Json, Option<String>), UpstreamError> {
    let answer = http.link.post(headers, body).await?;
    let id = session_id(answer.header("mcp-session-id"))?;
    let reading = match http.link.read(answer).await? {
        Answer::Messages(reading) => reading,
        Answer::Accepted => {
            return Err(UpstreamError::Garbage {
                what: "nothing where an answer was due",
            });
        }
        Answer::Refused(refusal) => return Err(refusal.into_fault()),
    };
    Ok((initialised(http, number, reading).await?, id))
}

fn session_id(header: Option<&str>) -> Result<Option<String>, UpstreamError> {
    match header {
        None => Ok(None),
        Some(id)
            if !id.is_empty()
                && id.len() <= LONGEST_ID
                && id.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(Some(id.to_owned()))
        }
        Some(_) => Err(UpstreamError::Garbage {
            what: "a session id that is none",
        }),
    }
}

async fn initialised(
    http: &Http,
    number: i64,
    mut reading: Reading,
) -> Result<Json, UpstreamError> {
    let ear = Ear::deaf(number);
    while let Some(json) = reading.next().await? {
        if let Heard::Answer(answer) = hear(&json, &ear, &http.changes).await? {
            http.finish(reading);
            return answer;
        }
    }
    Err(UpstreamError::Broken)
}
