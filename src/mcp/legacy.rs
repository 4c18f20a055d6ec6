//! The legacy era: sessions opened by `initialize`, one GET stream a session, streams
//! that are taken up again, cancellation and replies by messages of their own.

use std::sync::Arc;

use futures_util::StreamExt as _;

use crate::limits::Cost;
use crate::pipeline::{Asking, Refusal};
use crate::protocol::json::ObjectBuilder;
use crate::protocol::{
    Era, Json, LogLevel, Method, Notification, Request, RequestMeta, Response, Version, codes,
};
use crate::upstream::CallerKey;

use super::answers::{self, Manner, Reply};
use super::call::{self, Caller, Within};
use super::journal::Position;
use super::session::{Session, SessionFault};
use super::{
    Answer, Inbound, Server, capabilities, era, listen, lists, lowering, modern, notices, relay,
    replies, routed, subscriptions,
};

/// What a legacy client is told when it comes without a session, or with one that is no longer known.
impl From<SessionFault> for Reply {
    fn from(fault: SessionFault) -> Self {
        match fault {
            SessionFault::Missing => Self::error(
                400,
                None,
                codes::INVALID_REQUEST,
                "Mcp-Session-Id header is missing: send `initialize` first and repeat the header of its answer",
                None,
            ),
            SessionFault::Unknown => Self::error(
                404,
                None,
                codes::INVALID_REQUEST,
                "Session not found: send `initialize` to open a new one",
                None,
            ),
        }
    }
}

/// Opens a session (MCP 2025-11-25 lifecycle). Anything but a known legacy
/// revision is answered with the newest of them.
pub(super) async fn initialize(server: &Server, inbound: &Inbound, request: &Request) -> Answer {
    let admitted = server.pipeline.limits.admit(&inbound.context, Cost::Browse);
    if let Err(fault) = admitted.await {
        return answers::not_admitted(Some(&request.id), fault).into();
    }
    let params = request.params.as_ref();
    let asked = params.and_then(|params| params.get("protocolVersion"));
    let Some(asked) = asked.as_ref().and_then(Json::string) else {
        let words = "`params.protocolVersion` must be a string such as \"2025-11-25\"";
        return Reply::error(200, Some(&request.id), codes::INVALID_PARAMS, words, None).into();
    };
    let version = Version::parse(&asked)
        .filter(|version| version.era() == Era::Legacy)
        .unwrap_or(Version::NEWEST_LEGACY);
    let client = params
        .and_then(|params| params.get("clientInfo"))
        .map(|info| modern::client_name(&info));
    let capabilities = params.and_then(|params| params.get("capabilities"));
    let session = server.sessions.open(
        inbound.context.principal(),
        version,
        capabilities.as_ref(),
        client.as_deref(),
    );
    let capabilities = capabilities::of(server, &inbound.context, Era::Legacy, &[]);
    let result = ObjectBuilder::new()
        .text("protocolVersion", version.as_str())
        .json("capabilities", &capabilities)
        .json("serverInfo", &modern::server_info())
        .build();
    Reply {
        session: Some(session),
        ..Reply::result(&request.id, &result)
    }
    .into()
}

/// The session of a request, once it and the version header are in order.
pub(super) async fn session(server: &Server, inbound: &Inbound) -> Result<Session, Reply> {
    if let Some(header) = inbound.headers.protocol_version.as_deref() {
        let known = Version::parse(header).is_some_and(|version| version.era() == Era::Legacy);
        if !known {
            let shown: String = header.chars().take(64).collect();
            let words = format!(
                "MCP-Protocol-Version '{shown}' is not spoken here; send the version that `initialize` settled on"
            );
            return Err(Reply::error(
                400,
                None,
                codes::INVALID_REQUEST,
                &words,
                None,
            ));
        }
    }
    let id = inbound
        .headers
        .session
        .as_deref()
        .ok_or(SessionFault::Missing)?;
    Ok(server
        .sessions
        .find(inbound.context.principal(), id)
        .await?)
}

/// Answers one request inside a session.
pub(super) async fn request(
    server: &Arc<Server>,
    inbound: Inbound,
    request: Request,
    meta: RequestMeta,
    bytes: usize,
) -> Answer {
    let session = match session(server, &inbound).await {
        Ok(session) => session,
        Err(reply) => return with_id(reply, &request).into(),
    };
    if run_here(&request.method) {
        let mut caller = caller(&session, &inbound, &request, bytes);
        if inbound.accept.stream {
            caller.asking = Asking::Beside;
        }
        let manner = manner(session.version);
        return call::post(server, inbound, request, meta, caller, manner).await;
    }
    method(server, &inbound, &request, &session).await.into()
}

/// What the record and the upstream are told of a request in this session. It cannot
/// be asked for anything unless its answer may be a stream.
pub(super) fn caller(
    session: &Session,
    inbound: &Inbound,
    request: &Request,
    bytes: usize,
) -> Caller {
    let mut attempt = era::attempt(inbound, Era::Legacy, session.version, bytes);
    attempt.client_info.clone_from(&session.client);
    attempt.caller = CallerKey(session.caller_key(inbound.context.principal().key().as_bytes()));
    Caller {
        attempt,
        within: Some(Within {
            session: session.id,
            version: session.version,
            request: request.id.key(),
        }),
        log_level: Some(session.log_level),
        capabilities: session.capabilities.clone(),
        asking: Asking::Not,
    }
}

/// Whether an upstream is asked for the method. Tasks of the extension belong to
/// the modern era.
pub(super) fn run_here(method: &str) -> bool {
    Method::parse(method).is_some_and(|method| !method.is_of_tasks())
}

/// Every method that no upstream is asked for.
pub(super) async fn method(
    server: &Server,
    inbound: &Inbound,
    request: &Request,
    session: &Session,
) -> Reply {
    let admitted = server.pipeline.limits.admit(&inbound.context, Cost::Browse);
    if let Err(fault) = admitted.await {
        return answers::not_admitted(Some(&request.id), fault);
    }
    let outcome = match request.method.as_str() {
        "ping" => Ok(Json::empty_object()),
        "tools/list" => lists::tools(server, &inbound.context, request, session.version),
        "logging/setLevel" => set_level(server, inbound, request, session).await,
        "resources/subscribe" => {
            subscriptions::change(server, inbound, request, session, true).await
        }
        "resources/unsubscribe" => {
            subscriptions::change(server, inbound, request, session, false).await
        }
        "initialize" => Err(Refusal::InvalidRequest(
            "the session is open already".to_owned(),
        )),
        method => match lists::family(method) {
            Some(family) => {
                lists::items(server, &inbound.context, request, session.version, family)
            }
            None => return answers::unknown_method(&request.id, method, false),
        },
    };
    match outcome {
        Ok(result) => Reply::result(&request.id, &result),
        Err(refusal) => answers::of_refusal(Some(&request.id), refusal, Manner::plain(Era::Legacy)),
    }
}

async fn set_level(
    server: &Server,
    inbound: &Inbound,
    request: &Request,
    session: &Session,
) -> Result<Json, Refusal> {
    let level = request
        .params
        .as_ref()
        .and_then(|params| params.get("level"));
    let level = level
        .as_ref()
        .and_then(Json::string)
        .and_then(|name| LogLevel::parse(&name))
        .ok_or_else(|| {
            let names = LogLevel::ALL.map(LogLevel::as_str).join(", ");
            Refusal::MalformedParams(format!("`params.level` must be one of {names}"))
        })?;
    server
        .sessions
        .set_log_level(inbound.context.tenant_id(), session, level)
        .await;
    server
        .relay
        .broadcast(&relay::session_changed(session.id))
        .await;
    Ok(Json::empty_object())
}

/// Takes a notification: 202, whatever it is, once the session is in order.
pub(super) async fn notification(
    server: &Arc<Server>,
    inbound: &Inbound,
    notification: &Notification,
) -> Answer {
    match session(server, inbound).await {
        Ok(session) => {
            notices::hear(server, inbound, &session, notification);
            Reply::empty(202).into()
        }
        Err(reply) => reply.into(),
    }
}

/// Takes a response to what the client was asked, on whichever replica that was.
pub(super) async fn response(server: &Server, inbound: &Inbound, given: &Response) -> Answer {
    let session = match session(server, inbound).await {
        Ok(session) => session,
        Err(reply) => return reply.into(),
    };
    replies::answered(server, &session, given).await;
    // One that nobody waits for any more is no fault of the client's.
    Reply::empty(202).into()
}

/// Opens the session's GET stream. A newer one closes the older.
pub(super) async fn get(server: &Arc<Server>, inbound: Inbound) -> Answer {
    if inbound.headers.session.is_none() || !inbound.accept.stream {
        return Reply {
            allow: Some("POST, GET, DELETE"),
            ..Reply::empty(405)
        }
        .into();
    }
    let session = match session(server, &inbound).await {
        Ok(session) => session,
        Err(reply) => return reply.into(),
    };
    let last = inbound.headers.last_event_id.as_deref();
    if let Some((id, position)) = last.and_then(|id| Some((id, Position::parse(id)?))) {
        return taken_up(server, &inbound, &session, id, position).await;
    }
    let at = server.clock.unix_millis();
    match listen::session_stream(server, inbound, &session, at) {
        Ok(messages) => {
            server.relay.announce(relay::stream_opened(session.id, at));
            Answer::Stream(messages)
        }
        Err(full) => answers::streams_full(None, full).into(),
    }
}

/// Takes a stream of the session up again behind an event, on whichever replica it is.
async fn taken_up(
    server: &Arc<Server>,
    inbound: &Inbound,
    session: &Session,
    id: &str,
    position: Position,
) -> Answer {
    let permit = match server.streams.open(&inbound.context) {
        Ok(permit) => permit,
        Err(full) => return answers::streams_full(None, full).into(),
    };
    let version = session.version;
    let events = if position.replica == server.relay.own() {
        let journal = server.journals.find(session.id, position);
        journal.map(|journal| journal.read(Some(position), version))
    } else {
        routed::follow(server, session.id, position, id, version).await
    };
    match events {
        Some(events) => Answer::Events(Box::pin(events.map(move |event| {
            let _open = &permit;
            event
        }))),
        None => Reply::error(
            400,
            None,
            codes::INVALID_REQUEST,
            "The stream of this Last-Event-ID is over or lost and cannot be taken up: send the request anew if it may run twice",
            None,
        )
        .into(),
    }
}

/// Ends the session: 204, and 404 on every replica afterwards.
pub(super) async fn delete(server: &Server, inbound: Inbound) -> Answer {
    match session(server, &inbound).await {
        Ok(session) => match server
            .sessions
            .end(inbound.context.tenant_id(), &session)
            .await
        {
            Ok(()) => {
                server.listeners.close(session.id);
                server.journals.close(session.id);
                server
                    .relay
                    .broadcast(&relay::session_ended(session.id))
                    .await;
                Reply::empty(204).into()
            }
            Err(_) => answers::unavailable(
                None,
                "The session could not be ended. Retry shortly.",
                Some(std::time::Duration::from_secs(2)),
            )
            .into(),
        },
        Err(reply) => reply.into(),
    }
}

/// A refusal that was made before the id was known, with the id.
fn with_id(reply: Reply, request: &Request) -> Reply {
    let body = reply
        .body
        .map(|body| body.with_member("id", request.id.json()));
    Reply { body, ..reply }
}

/// How answers are written for a revision.
pub(super) fn manner(version: Version) -> Manner {
    Manner {
        era: Era::Legacy,
        lower: lowering::result(version),
    }
}
