//! Tells a server's era over HTTP: a modern request first, `initialize` where the
//! answer is not a modern one (MCP 2026-07-28 Streamable HTTP, Backward
//! Compatibility).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::header::add_trace;
use super::hearing::read;
use super::http::Http;
use super::link::{Answer, Reading, Refusal};
use super::profile::{Profile, Verdict, is_modern_error};
use super::sessions::SessionKey;
use super::{UpstreamError, UpstreamRequest, message, modern, opening};
use crate::protocol::{Json, Message};
use crate::telemetry::TraceContext;

/// Longest wait for the answer to the modern request. A legacy server may say
/// nothing at all to it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the server what it is. A legacy server's first session is the asking
/// caller's.
pub(super) async fn probe(
    http: &Arc<Http>,
    request: &UpstreamRequest,
) -> Result<Profile, UpstreamError> {
    let left = request.deadline.saturating_duration_since(Instant::now());
    let discovered = timeout(PATIENCE.min(left / 2), discover(http, request)).await;
    if let Ok(answered) = discovered
        && let Some(profile) = answered?
    {
        return Ok(profile);
    }
    let session = opening::open(http, request).await?;
    let profile = session.profile().clone();
    if !profile.sessionless {
        let key = SessionKey::of(request);
        http.sessions.put(key, request.alone(), session).await;
    }
    Ok(profile)
}

/// The modern request; `None` where the answer is a legacy server's.
async fn discover(
    http: &Http,
    request: &UpstreamRequest,
) -> Result<Option<Profile>, UpstreamError> {
    let id = http.next_id();
    // Its outcome says which era the server is of, and nothing of how it fares.
    let leg = http.link.legs.own(id, "server/discover");
    let discovered = leg.around(discovered(http, id, request, leg.trace())).await;
    let nothing = Json::empty_object();
    leg.end(discovered.as_ref().map(|_| &nothing));
    discovered
}

async fn discovered(
    http: &Http,
    id: i64,
    request: &UpstreamRequest,
    trace: Option<&TraceContext>,
) -> Result<Option<Profile>, UpstreamError> {
    let mut headers = modern::own_headers("server/discover", request.credential.as_ref());
    add_trace(&mut headers, trace);
    let answer = http.link.post(headers, message::discover(id)).await?;
    let outcome = match http.link.read(answer).await {
        Ok(Answer::Messages(reading)) => first_response(http, id, reading).await,
        Ok(Answer::Accepted) => Ok(None),
        Ok(Answer::Refused(refusal)) => return judge_refusal(refusal),
        Err(fault) => Err(fault),
    };
    match outcome {
        Ok(Some(outcome)) => Verdict::of(&outcome).into(),
        // Whatever else it said is not what a modern server says.
        Ok(None) | Err(UpstreamError::Garbage { .. }) => Ok(None),
        Err(fault) => Err(fault),
    }
}

async fn first_response(
    http: &Http,
    id: i64,
    mut reading: Reading,
) -> Result<Option<Result<Json, Json>>, UpstreamError> {
    while let Some(json) = reading.next().await? {
        if let Message::Response(response) = read(&json)? {
            let given = response.id.as_ref();
            let ours = given.is_none_or(|given| given.json().integer() == Some(id));
            http.finish(reading);
            return Ok(ours.then_some(response.outcome));
        }
    }
    Ok(None)
}

fn judge_refusal(refusal: Refusal) -> Result<Option<Profile>, UpstreamError> {
    if let Some(error) = refusal
        .error
        .as_ref()
        .filter(|error| is_modern_error(error))
    {
        return Verdict::of(&Err(error.clone())).into();
    }
    match refusal.status {
        // These say who may come, or when, and nothing of the era.
        401 | 403 | 407 | 408 | 421 | 425 | 429 => Err(refusal.into_fault()),
        // 500 and 501 are what some legacy servers make of a method they do not know.
        400..=501 => Ok(None),
        _ => Err(refusal.into_fault()),
    }
}
