//! The legacy era over HTTP: sessions opened by `initialize` (MCP 2025-03-26 to
//! 2025-11-25). Results need no lifting: the modern form differs from them by
//! `resultType` alone, whose absence means complete.
//!
//! A legacy server's log level and its own requests belong to the session, so a
//! session belongs to one caller.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::hearing::{Ear, Heard, Line, hear};
use super::http::{Http, Miss};
use super::link::{Answer, Reading, Refusal, TRACE, add};
use super::profile::{Profile, is_modern_error};
use super::resumption::Resumption;
use super::session::{Flight, Session, open};
use super::sessions::{Lease, SessionKey};
use super::{CallerKey, UpstreamError, UpstreamRequest, listen, message};
use crate::protocol::{Era, Json, LogLevel, UpstreamEvent};

/// How long the first request of a session waits for the session's own stream.
const STANDS: Duration = Duration::from_millis(500);

/// What came of one attempt in a session.
enum Lost {
    /// The server does not know the session: it refused before it ran anything.
    Session(UpstreamError),
    /// Anything else.
    Miss(Miss),
}

impl From<UpstreamError> for Lost {
    fn from(fault: UpstreamError) -> Self {
        Self::Miss(Miss::Fault(fault))
    }
}

/// One request and its answer, in the caller's session. A session that the server
/// has forgotten is opened again, once.
pub(super) async fn call(
    http: &Arc<Http>,
    profile: &Arc<Profile>,
    request: &UpstreamRequest,
    line: &Line,
) -> Result<Json, Miss> {
    let key = SessionKey::of(request);
    let mut reopened = false;
    loop {
        let session = session(http, profile, key, request).await?;
        match exchange(http, &session, request, line).await {
            Ok(result) => {
                if request.caller == CallerKey::GATEWAY {
                    http.listening.to_session(http, profile, &session);
                } else if reopened {
                    // A server that forgot its sessions may have other tools now.
                    http.changes.bump();
                }
                return Ok(result);
            }
            Err(Lost::Miss(miss)) => return Err(miss),
            Err(Lost::Session(fault)) => {
                http.sessions.forget(key, &session).await;
                if reopened {
                    return Err(Miss::Fault(fault));
                }
                reopened = true;
            }
        }
    }
}

async fn session(
    http: &Arc<Http>,
    profile: &Profile,
    key: SessionKey,
    request: &UpstreamRequest,
) -> Result<Lease, Miss> {
    let credential = request.credential.as_ref();
    if profile.sessionless {
        let session = Session::new(http, None, profile.clone(), credential);
        return Ok(Lease::of(session));
    }
    http.sessions.keep_swept(http);
    let opening = open(http, request);
    let opened = http.sessions.get(key, request.alone(), opening).await;
    opened.map_err(|fault| match fault {
        // It does not take the greeting it took before: it may have become modern.
        UpstreamError::Rpc { .. }
        | UpstreamError::Garbage { .. }
        | UpstreamError::Status {
            status: 400 | 404 | 405,
            ..
        } => Miss::Stale(fault),
        _ => Miss::Fault(fault),
    })
}

async fn exchange(
    http: &Arc<Http>,
    session: &Arc<Session>,
    request: &UpstreamRequest,
    line: &Line,
) -> Result<Json, Lost> {
    if let Some(level) = request.log_level {
        lower_level(http, session, level).await;
    }
    if request.may_be_asked() && session.face().is_session() {
        // Some servers ask on the session's own stream only.
        listen::follow(http, session);
        let _ = timeout(STANDS, session.face().stood.cancelled()).await;
    }
    let id = http.next_id();
    let ear = Ear::new(id, request, line);
    let mut headers = session.face().headers();
    if let Some(trace) = &request.trace {
        add(&mut headers, TRACE, trace);
    }
    let mut flight = Flight::start(session, &ear);
    let body = message::call(id, request, Era::Legacy);
    let answer = http.link.post(headers, body).await?;
    match http.link.read(answer).await? {
        Answer::Messages(reading) => {
            let answered = wait(http, session, &ear, reading).await;
            // An answer that was not understood may still be worked on.
            if matches!(answered, Ok(_) | Err(UpstreamError::Rpc { .. })) {
                flight.landed();
            }
            Ok(answered?)
        }
        Answer::Accepted => Err(Lost::from(UpstreamError::Garbage {
            what: "nothing where an answer was due",
        })),
        Answer::Refused(refusal) => {
            flight.landed();
            Err(judge_refusal(session, refusal))
        }
    }
}

fn judge_refusal(session: &Session, refusal: Refusal) -> Lost {
    let modern = refusal.error.as_ref().is_some_and(is_modern_error);
    // 404 is what the specification says of a lost session; many servers say 400
    // with the SDK's -32000, or without any JSON-RPC.
    let unknown = matches!(refusal.code(), None | Some(-32000));
    let lost = refusal.status == 404 || (refusal.status == 400 && unknown);
    let stranger = matches!(refusal.status, 400 | 404 | 405) && unknown;
    let fault = refusal.into_fault();
    if modern {
        return Lost::Miss(Miss::Stale(fault));
    }
    match session.face().is_session() {
        true if lost => Lost::Session(fault),
        false if stranger => Lost::Miss(Miss::Stale(fault)),
        _ => Lost::Miss(Miss::Fault(fault)),
    }
}

async fn wait(
    http: &Http,
    session: &Session,
    ear: &Ear,
    mut reading: Reading,
) -> Result<Json, UpstreamError> {
    let mut resumption = Resumption::default();
    loop {
        match reading.next().await {
            Ok(Some(json)) => match hear(&json, ear, &http.changes).await? {
                Heard::Answer(answer) => {
                    http.finish(reading);
                    return answer;
                }
                Heard::Asked(request) => session.face().asked(&[ear], &request).await,
                Heard::Nothing => {}
            },
            Ok(None) | Err(UpstreamError::Broken) => {
                if let Some(pause) = resumption.note(&reading)? {
                    ear.send(UpstreamEvent::Pausing(pause)).await;
                }
                reading = resumption.resume(session.face()).await?;
            }
            Err(fault) => return Err(fault),
        }
    }
}

/// Tells the server which log messages are wanted, where it has any to give and
/// has not been told to give as many. Its refusal costs messages, not the call.
async fn lower_level(http: &Arc<Http>, session: &Arc<Session>, level: LogLevel) {
    if !session.profile().logs || !session.face().is_session() {
        return;
    }
    let mut told = session.level.lock().await;
    if told.is_some_and(|told| told <= level) {
        return;
    }
    let body = message::set_level(http.next_id(), level.as_str());
    match session.face().tell(body).await {
        Ok(()) => *told = Some(level),
        Err(fault) => tracing::debug!(
            upstream.id = %http.id, error = %fault, "the upstream did not take a log level"
        ),
    }
    // Some servers say what they log on the session's own stream only.
    listen::follow(http, session);
}
